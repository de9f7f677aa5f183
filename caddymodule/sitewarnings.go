package caddymodule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// This file finds what is odd about the sites of a configuration: the same secret in two
// places, and hosts that are written as no certificate has them.

// use is where the configuration has a secret.
type use struct {
	site, block, path string // path is that of the option in JSON
	field             string
}

// uses are the places of each secret of a kind. Values that cannot be used are left out:
// whoever needs them says so.
type uses map[string][]use

// add adds the use of a secret whose placeholders are replaced here.
func (u uses) add(secret string, of use) {
	if value, err := replace(of.field, secret); err == nil && value != "" {
		u[value] = append(u[value], of)
	}
}

// adminKeys returns where the configuration has the keys of platforms.
func (a *App) adminKeys() uses {
	found := make(uses)
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		if p := a.Sites[name].Platform; p != nil {
			found.add(p.AdminKey, use{name, p.block(), "sites." + name + ".platform.admin_key", "admin_key"})
		}
	}
	return found
}

// integrationKeys returns where the configuration has the keys of integrations.
func (a *App) integrationKeys() uses {
	found := make(uses)
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		of := a.Sites[name].Integrations
		for _, integration := range slices.Sorted(maps.Keys(of)) {
			if of[integration] != nil {
				found.add(of[integration].Key, use{name, "integration " + integration, "sites." + name + ".integrations." + integration + ".key", "key"})
			}
		}
	}
	return found
}

// checkKeys refuses an integration whose key is a secret of another kind, which its CRM must
// not get.
func (a *App) checkKeys() error {
	sealing, admin := make(uses), a.adminKeys()
	for _, secret := range a.Secrets {
		sealing.add(secret, use{field: "secret"})
	}
	integrations := a.integrationKeys()
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
			of := integrations[key][0]
			err := &mistake{name: "key", text: "it is " + is + " too: give the integration a key of its own, such as openssl rand -hex 32 makes"}
			return inSite(of.site, inBlock(of.block, strings.TrimSuffix(strings.TrimPrefix(of.path, "sites."+of.site+"."), ".key"), err))
		}
	}
	return nil
}

// warningsOfSites returns what is odd about the sites of the configuration.
func (a *App) warningsOfSites() []warning {
	const (
		sameKey   = "two sites have an integration with the same key, so a leak of it at one opens both: give each its own"
		sameAdmin = "two sites have the same admin_key, which is of one Ghost: write the other's own, or all hosts into one site"
	)
	return slices.Concat(a.warnOfSameSecret(a.integrationKeys(), sameKey), a.warnOfSameSecret(a.adminKeys(), sameAdmin), a.warnOfHostNames())
}

// warnOfSameSecret returns a warning for each secret that several sites have.
func (a *App) warnOfSameSecret(secrets uses, message string) (warnings []warning) {
	for _, of := range secrets {
		for _, other := range of[1:] {
			if other.site != of[0].site {
				warnings = append(warnings, warning{message, []zap.Field{
					zap.String("site", other.site), zap.String("at", a.placeOf(other.path)),
					zap.String("other_site", of[0].site), zap.String("other_at", a.placeOf(of[0].path)),
				}})
			}
		}
	}
	slices.SortFunc(warnings, func(x, y warning) int { return strings.Compare(x.String(), y.String()) })
	return warnings
}

// warnOfHostNames returns a warning for each host that browsers or certificates have in
// another way.
func (a *App) warnOfHostNames() (warnings []warning) {
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		for _, host := range a.Sites[name].Hosts {
			host, err := replace("hosts", host)
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
			warnings = append(warnings, warning{message, []zap.Field{
				zap.String("host", host), zap.String("site", name), zap.String("at", a.placeOf("sites."+name+".hosts")),
			}})
		}
	}
	return warnings
}

// placeOf returns the line of a path in JSON, or the path if there are no lines.
func (a *App) placeOf(path string) string { return cmp.Or(lineOf(a.Lines, path), path) }

// checkSecrets refuses a secret that is written twice.
func checkSecrets(secrets []string) error {
	for i, secret := range secrets {
		if slices.Contains(secrets[:i], secret) {
			return &mistake{
				name: "secret", text: fmt.Sprintf("number %d is written before: write the new one in front of the old one, or one alone", i+1),
				field: "secrets",
			}
		}
	}
	return nil
}
