package config

import (
	"crypto/sha256"
	"maps"
	"slices"
)

// This file is about the tokens of Lychgate's endpoints on Caddy's admin API.

// AdminToken is a token that requests to Lychgate's endpoints on Caddy's admin API have. With one or
// more in the configuration, requests without one are refused.
type AdminToken struct {
	// Key is the token itself, of 32 characters or more. Placeholders such as {env.PANEL_TOKEN}
	// are replaced. Required.
	Key string `json:"key,omitempty"`

	// Labels are those of the sites in the store that the token may see and change: sites that carry
	// one of them. Default: none, for a token that may do everything.
	Labels []string `json:"labels,omitempty"`

	// AllowPrivateUpstreams lets a token with labels write sites whose platform or repositories are on this machine or in
	// a private network. Default: false.
	AllowPrivateUpstreams bool `json:"allow_private_upstreams,omitempty"`
}

// NamedToken is a token that a request had.
type NamedToken struct {
	Name   string
	Labels []string // none for a token that may do everything

	AllowPrivateUpstreams bool
}

// AdminTokens are those of a configuration.
type AdminTokens map[[sha256.Size]byte]NamedToken

// Find reports false if no token has the key. It compares hashes, so the time that it takes says nothing
// of the keys.
func (t AdminTokens) Find(key string) (NamedToken, bool) {
	named, ok := t[sha256.Sum256([]byte(key))]
	return named, ok
}

// ResolveAdminTokens checks the tokens. Those whose key is not known where this runs are left out.
func (c *Config) ResolveAdminTokens(p Placeholders) (AdminTokens, error) {
	all := make(AdminTokens)
	for _, name := range slices.Sorted(maps.Keys(c.AdminTokens)) {
		if err := c.AdminTokens[name].resolve(p, name, all); err != nil {
			return nil, In("admin_token "+name, "admin_tokens."+name, err)
		}
	}
	return all, nil
}

func (t *AdminToken) resolve(p Placeholders, name string, all AdminTokens) error {
	if err := CheckAdminTokenName(name); err != nil {
		return err
	}
	if t == nil || t.Key == "" {
		return &Mistake{Option: "key", Text: "it has none: write one, such as ‹key {env.PANEL_TOKEN}|\"key\": \"{env.PANEL_TOKEN}\"›"}
	}
	if t.Labels != nil && len(t.Labels) == 0 {
		return &Mistake{Option: "labels", Text: "there are none: write one, or leave labels out for a token that may do everything"}
	}
	labels, err := checkedLabels(t.Labels)
	if err != nil {
		return err
	}
	return p.Use("key", t.Key, func(key string) error {
		if err := checkKey(key); err != nil {
			return err
		}
		if other, taken := all.Find(key); taken {
			return &Mistake{Option: "key", Text: "it is that of admin_token " + other.Name + " too: give each its own"}
		}
		all[sha256.Sum256([]byte(key))] = NamedToken{name, labels, t.AllowPrivateUpstreams}
		return nil
	})
}

// CheckAdminTokenName checks the name of a token.
func CheckAdminTokenName(name string) error {
	return CheckName("admin_token", "admin_tokens", name, "panel")
}
