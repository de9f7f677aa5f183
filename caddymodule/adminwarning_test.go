package caddymodule_test

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
)

// Where tenants have tokens, the log says at start that the admin API listens on TCP.
func TestAdminAPIOnTCPBesideTenants(t *testing.T) {
	const warning = "Caddy's admin API listens on TCP"
	before := caddy.DefaultAdminListen
	t.Cleanup(func() { caddy.DefaultAdminListen = before })
	caddy.DefaultAdminListen = "127.0.0.1:" + freeport.New(t)
	for name, test := range map[string]struct {
		admin, labels string
		want          int
	}{
		"TCP":                 {"# {{admin}}", "labels acme", 1},
		"a socket":            {"{{admin}}", "labels acme", 0},
		"no tenant":           {"# {{admin}}", "", 0},
		"TCP, and it is told": {"# {{admin}}", "labels acme\n\t\t\tallow_private_upstreams", 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := edgetest.StartEdge(t, nil, `{
	{{global}}
	`+test.admin+`
	lychgate {
		store `+edgetest.SQLiteStore(t)+`
		admin_token panel {
			key `+edgetest.AcmeToken+`
			`+test.labels+`
		}
	}
}
http://:{{port}} {
	members_api
}
`)
			if n := strings.Count(e.Logged(), warning); n != test.want {
				t.Errorf("it is logged %d times, want %d", n, test.want)
			}
		})
	}
}
