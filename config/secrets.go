package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// This file finds what is odd about the sites of a configuration: the same secret in two
// places, and hosts that are written as no certificate has them.

// place is where the configuration has a secret.
type place struct {
	site, block, path string // path is that of the option in JSON
	field             string
}

// places are where the configuration has each secret of a kind. Values that cannot be used
// are left out: what needs them reports them.
type places map[string][]place

func (of places) add(p Placeholders, secret string, at place) {
	if value, err := p.Replace(at.field, secret); err == nil && value != "" {
		of[value] = append(of[value], at)
	}
}

func (c *Config) adminKeys(p Placeholders) places {
	found := make(places)
	for _, name := range c.Names() {
		if of := c.Sites[name].Platform; of != nil {
			found.add(p, of.AdminKey, place{name, of.Block(), "sites." + name + ".platform.admin_key", "admin_key"})
		}
	}
	return found
}

func (c *Config) integrationKeys(p Placeholders) places {
	found := make(places)
	for _, name := range c.Names() {
		of := c.Sites[name].Integrations
		for _, integration := range slices.Sorted(maps.Keys(of)) {
			if of[integration] != nil {
				found.add(p, of[integration].Key, place{name, "integration " + integration, "sites." + name + ".integrations." + integration + ".key", "key"})
			}
		}
	}
	return found
}

// CheckKeys refuses an integration whose key is a secret of another kind, which its CRM must
// not get.
func (c *Config) CheckKeys(p Placeholders) error {
	sealing, admin := make(places), c.adminKeys(p)
	for _, secret := range c.Secrets {
		sealing.add(p, secret, place{field: "secret"})
	}
	integrations := c.integrationKeys(p)
	for _, key := range slices.SortedFunc(maps.Keys(integrations), func(x, y string) int {
		return cmp.Compare(integrations[x][0].path, integrations[y][0].path)
	}) {
		is := ""
		switch {
		case len(sealing[key]) > 0:
			is = "a secret of the lychgate block"
		case len(admin[key]) > 0:
			is = "the admin_key of site " + admin[key][0].site
		}
		if is != "" {
			at := integrations[key][0]
			return inSite(at.site, inIntegration(strings.TrimPrefix(at.block, "integration "),
				&Mistake{Option: "key", Text: "it is " + is + " too: give the integration a key of its own, such as openssl rand -hex 32 makes"}))
		}
	}
	return nil
}

// Warning is something that may be meant but seldom is. Its fields are for a log.
type Warning struct {
	Message string
	Fields  []Field
}

// Field is a value of a [Warning]: a string, or a list of strings.
type Field struct {
	Name  string
	Value any
}

// NewWarning returns a warning with fields, whose names and values follow each other.
func NewWarning(message string, fields ...any) Warning {
	w := Warning{Message: message}
	for i := 0; i < len(fields); i += 2 {
		w.Fields = append(w.Fields, Field{Name: fields[i].(string), Value: fields[i+1]})
	}
	return w
}

// String returns the warning for people.
func (w Warning) String() string {
	var said []string
	for _, field := range w.Fields {
		said = append(said, strings.ReplaceAll(field.Name, "_", " ")+": "+textOf(field.Value))
	}
	return w.Message + " (" + strings.Join(said, ", ") + ")"
}

func textOf(value any) string {
	if list, ok := value.([]string); ok {
		return "[" + strings.Join(list, " ") + "]"
	}
	return value.(string)
}

// Warnings returns what is odd about the sites of the configuration. Places are lines, or
// paths in JSON if there are none.
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

// warnOfHostNames returns a warning for each host that browsers or certificates have in
// another way.
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
