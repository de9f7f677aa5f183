package config_test

import (
	"encoding/json"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

func sealedStore(t *testing.T) *sites.SQL {
	t.Helper()
	keys, err := seal.NewKeyring("sealing-secret-0123456789abcdef0123456789")
	if err != nil {
		t.Fatalf("seal.NewKeyring: %v", err)
	}
	store, err := sites.NewSQL(t.Context(), dbtest.SQLite(t), keys)
	if err != nil {
		t.Fatalf("sites.NewSQL: %v", err)
	}
	return store
}

func dailyOnGhost() config.NamedSite {
	return config.NamedSite{
		Name: "daily", Hosts: []string{"news.example.com"}, Labels: []string{"acme"},
		Platform: &config.Platform{Kind: "ghost", URL: "http://ghost.example:2368", AdminURL: "https://ghost.example", AdminKey: adminKey},
		Themes: map[string]*config.Theme{
			"nightly": {Repository: &config.Repository{URL: "https://git.example.com/n.git", Token: "theme-token"}},
			"open":    {Repository: &config.Repository{URL: "https://git.example.com/o.git"}},
		},
	}
}

// A secret that is kept goes to no other server: who may change an address need not know the secret.
func TestSecretStaysWithItsAddress(t *testing.T) {
	store := sealedStore(t)
	const (
		withKey   = `,"admin_key":"` + adminKey + `"`
		needsKey  = " is another server than before, and would be sent the admin_key that is kept: write platform.admin_key too"
		needsOpen = `site daily: themes.nightly.repository.url: this is another server than before, and would be sent the token that is kept: write themes.nightly.repository.token too, or null for none`
	)
	refused := func(field string) string { return "site daily: platform." + field + ": this" + needsKey }
	for name, test := range map[string]struct{ patch, want string }{
		"another host":                {`{"platform":{"url":"http://evil.example:2368"}}`, refused("url")},
		"another port":                {`{"platform":{"url":"http://ghost.example:2369"}}`, refused("url")},
		"another scheme":              {`{"platform":{"url":"https://ghost.example:2368"}}`, refused("url")},
		"an admin elsewhere":          {`{"platform":{"admin_url":"https://admin.example"}}`, ""}, // nothing is sent there
		"another platform's, by kind": {`{"platform":{"kind":"ghost","url":"http://evil.example"}}`, refused("url")},
		"another repository's":        {`{"themes":{"nightly":{"repository":{"url":"https://evil.example/nightly.git"}}}}`, needsOpen},
		"the host, with the key":      {`{"platform":{"url":"http://new.example"` + withKey + `}}`, ""},
		"no admin of its own":         {`{"platform":{"admin_url":null}}`, ""},
		"another path":                {`{"platform":{"url":"http://Ghost.example:2368/blog"}}`, ""},
		"the port that goes unsaid":   {`{"themes":{"nightly":{"repository":{"url":"https://git.example.com:443/n.git"}}}}`, ""},
		"the repository, with its":    {`{"themes":{"nightly":{"repository":{"url":"https://new.example/n.git","token":"t"}}}}`, ""},
		"the repository, public now":  {`{"themes":{"nightly":{"repository":{"url":"https://new.example/n.git","token":null}}}}`, ""},
		"one that never had a token":  {`{"themes":{"open":{"repository":{"url":"https://new.example/n.git"}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, scope := range []config.Scope{nil, {"acme"}} { // the operator's own, and a tenant's
				editor := &config.Editor{Config: new(config.Config), Store: store}
				if _, err := editor.Add(t.Context(), dailyOnGhost()); err != nil {
					t.Fatalf("editor.Add: %v", err)
				}
				editor.Scope = scope
				got := ""
				if err := editor.Patch(t.Context(), map[string]json.RawMessage{"daily": json.RawMessage(test.patch)}, true); err != nil {
					got = err.Error()
				}
				if got != test.want {
					t.Errorf("with scope %v: got %q, want %q", scope, got, test.want)
				}
				if err := store.Remove(t.Context(), "daily", true); err != nil {
					t.Fatalf("store.Remove: %v", err)
				}
			}
		})
	}
}
