package config_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// A tenant writes no host that is this machine for somebody, and no server that only this machine or its network reaches, such as
// Caddy's admin API. The operator may, and lets others by allow_private_upstreams.
func TestReachOfTenants(t *testing.T) {
	const (
		isHost    = "is no host for a site of this token: write a name that is in DNS, such as news.example.com"
		isPrivate = "this is on this machine or in its network, which the token may not reach: write a public address, or have the operator add allow_private_upstreams to the admin_token"
		isAdmin   = "this is Caddy's admin API: write where the site's own server is"
	)
	platform := func(url string) string { return fmt.Sprintf(`{"platform":{"url":%q,"admin_key":%q}}`, url, adminKey) }
	type refusals struct{ tenant, allowed string }
	private := refusals{isPrivate, ""}
	tests := map[string]refusals{
		`{"hosts":["localhost"]}`:      {isHost, isHost},
		`{"hosts":["a.localhost"]}`:    {isHost, isHost},
		`{"hosts":["127.0.0.1"]}`:      {isHost, isHost},
		`{"hosts":["[::1]"]}`:          {isHost, isHost},
		`{"hosts":["203.0.113.7"]}`:    {isHost, isHost},
		`{"hosts":["127.1"]}`:          {isHost, isHost},
		`{"hosts":["new.example"]}`:    {},
		`{"hosts":["10.example.com"]}`: {},
		`{"themes":{"open":{"repository":{"url":"https://192.168.1.1/t.git"}}}}`:   private,
		`{"themes":{"open":{"repository":{"url":"http://localhost:2019/t.git"}}}}`: {isAdmin, isAdmin},
	}
	for _, host := range []string{
		"localhost", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]", "10.1.2.3", "172.16.0.1", "192.168.0.1",
		"100.64.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "2130706433", "0x7f.1", "ghost", "metadata.google.internal", "nas.local", "localhost.", "127.0.0.２", "１0.1.2.3", "ｌocalhost", "127。0。0。2",
	} {
		tests[platform("http://"+host)] = private
	}
	for _, at := range []string{"127.0.0.1:2019", "localhost:2019", "[::1]:2019", "0.0.0.0:2019", "127.1:2019", "127.0.0.１:2019", "ｌocalhost:2019"} {
		tests[platform("http://"+at)] = refusals{isAdmin, isAdmin}
	}
	for _, public := range []string{"https://ghost.example", "http://203.0.113.7:2019", "https://[2001:db8::1]", "https://172.32.0.1", "http://ghost.example:2369"} {
		tests[platform(public)] = refusals{}
	}
	tests[`{"platform":{"admin_url":"http://localhost:2019"}}`] = refusals{isAdmin, isAdmin}
	tests[`{"platform":{"admin_url":"https://10.1.2.3"}}`] = private
	mail := func(url string) string { return fmt.Sprintf(`{"mail":{"url":%q,"from":"a@b.example"}}`, url) }
	tests[mail("smtp://jo:hunter2@localhost:25")] = private
	tests[mail("smtps://10.1.2.3")] = private
	tests[mail("smtp://127.0.0.1:2019")] = refusals{isAdmin, isAdmin}
	tests[mail("smtp://jo:hunter2@smtp.example.com")] = refusals{}
	tests[`{"mail":{"url":"off"}}`] = refusals{}
	store := sealedStore(t)
	for patch, want := range tests {
		for _, who := range []struct {
			name  string
			scope config.Scope
			reach config.Reach
			want  string
		}{
			{"the operator", nil, config.Reach{}, ""},
			{"a tenant", config.Scope{"acme"}, config.Reach{}, want.tenant},
			{"one who may", config.Scope{"acme"}, config.Reach{PrivateUpstreams: true}, want.allowed},
		} {
			t.Run(who.name+" "+patch, func(t *testing.T) {
				who.reach.Admin = netip.MustParseAddrPort("127.0.0.1:2019")
				editor := &config.Editor{Config: new(config.Config), Store: store, Scope: who.scope, Reach: who.reach, IsKept: nothing}
				if _, err := editor.Add(t.Context(), dailyOnGhost()); err != nil {
					t.Fatalf("editor.Add: %v", err)
				}
				defer func() {
					if err := store.Remove(t.Context(), "daily", true); err != nil {
						t.Errorf("store.Remove: %v", err)
					}
				}()
				err := editor.Patch(t.Context(), map[string]json.RawMessage{"daily": json.RawMessage(patch)}, true)
				if who.want == "" && err != nil || who.want != "" && (err == nil || !strings.HasSuffix(err.Error(), who.want)) {
					t.Errorf("got %v, want %q", err, who.want)
				}
			})
		}
	}
}

// A new site is looked at too, and what the operator has written stays while the tenant changes something else.
func TestReachOfNewSites(t *testing.T) {
	store := sealedStore(t)
	here := dailyOnGhost()
	here.Hosts, here.Platform.URL = []string{"localhost"}, "http://127.0.0.1:2368"
	tenant := &config.Editor{Config: new(config.Config), Store: store, Scope: config.Scope{"acme"}, IsKept: nothing}
	if _, err := tenant.Add(t.Context(), here); err == nil {
		t.Error("a tenant adds a site at localhost: got no error")
	}
	operator := &config.Editor{Config: new(config.Config), Store: store}
	if _, err := operator.Add(t.Context(), here); err != nil {
		t.Fatalf("operator.Add: %v", err)
	}
	if err := tenant.Patch(t.Context(), map[string]json.RawMessage{"daily": json.RawMessage(`{"registration":false}`)}, true); err != nil {
		t.Errorf("the tenant changes something else: %v", err)
	}
}

func nothing(context.Context, string) (bool, error) { return false, nil }
