package config

import (
	"slices"
	"strings"
)

// Warnings are about the sites of the configuration. Places are lines, or paths in JSON if
// there are none.
func (c *Config) Warnings(p Placeholders, lines Lines) []Warning {
	const (
		sameKey   = "two sites have an integration with the same key, so a leak of it at one opens both: give each its own"
		sameAdmin = "two sites have the same admin_key, which is of one Ghost: write the other's own, or all hosts into one site"
	)
	return slices.Concat(warnOfSameSecret(c.integrationKeys(p), lines, sameKey), warnOfSameSecret(c.adminKeys(p), lines, sameAdmin), c.warnOfHostNames(p, lines))
}

func warnOfSameSecret(secrets places, lines Lines, message string) (warnings []Warning) {
	for _, of := range secrets {
		for _, other := range of[1:] {
			if other.site != of[0].site {
				warnings = append(warnings, NewWarning(message, "site", other.site, "at", lines.Place(other.path), "other_site", of[0].site, "other_at", lines.Place(of[0].path)))
			}
		}
	}
	slices.SortFunc(warnings, func(x, y Warning) int { return strings.Compare(x.String(), y.String()) })
	return warnings
}

// WarningsOfTarget are about an address of a site to which some versions of its platform send no webhook events. They are
// apart from the others since the doctor sees whether events arrive.
func (c *Config) WarningsOfTarget(site string, p Placeholders, lines Lines) []Warning {
	of := c.Sites[site].Platform
	if of == nil || of.kind().RefusedTarget == nil {
		return nil
	}
	address, err := p.Replace("webhooks", of.Webhooks)
	if err != nil || address == "" || address == "off" {
		return nil
	}
	why, write := of.kind().RefusedTarget(address)
	if why == "" {
		return nil
	}
	return []Warning{NewWarning("it may be that no webhook events come to this address, and changes are seen a minute later then",
		"why", why, "address", address, "write", write, "site", site, "at", lines.Place("sites."+site+".platform.webhooks"))}
}

// warnOfHostNames warns of each host that browsers or certificates write in another way.
func (c *Config) warnOfHostNames(p Placeholders, lines Lines) (warnings []Warning) {
	for _, name := range c.Names() {
		for _, host := range c.Sites[name].Hosts {
			host, err := p.Replace("hosts", host)
			if err != nil { // it is refused
				continue
			}
			var message string
			switch {
			case strings.HasSuffix(host, "."):
				message = "a host ends in a dot, which is left out: write it without"
			case strings.Contains(host, "_"):
				message = "a host has an underscore, and no public authority issues certificates for such a name: write one of letters, digits, hyphens and dots"
			default:
				continue
			}
			warnings = append(warnings, NewWarning(message, "host", host, "site", name, "at", lines.Place("sites."+name+".hosts")))
		}
	}
	return warnings
}
