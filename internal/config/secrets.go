package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// This file finds the same secret in two places of a configuration.

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
