package caddymodule_test

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
)

// While PostgreSQL is away members cannot be read or written, and callers are
// told so before they give up; lookups go on. When it is back, so are members.
func TestPostgresAway(t *testing.T) {
	for name, away := range map[string]func(*tcpproxy.Proxy){"gone": (*tcpproxy.Proxy).Cut, "hangs": (*tcpproxy.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			source, err := url.Parse(dbtest.PostgresSource(t))
			if err != nil {
				t.Fatalf("url.Parse: %v", err)
			}
			p := startGhostProxy(t, "postgres-"+name)
			w := tcpproxy.Start(t, source.Host)
			source.Host = w.Address
			e, admin := startFaultEdge(t, "postgres "+source.String(), p)
			anna, bert, carl := person{p.email("anna"), "Anna", []string{"a"}}, person{p.email("bert"), "Bert", []string{"b"}}, person{p.email("carl"), "Carl", []string{"c"}}
			for _, who := range []person{anna, bert} {
				e.followInGhost(p, []step{{"POST", "", bodyOf(who), responseOf(who, "created")}})
			}

			away(w)
			changed := person{anna.Email, "Changed", []string{"changed"}}
			e.client.Timeout = 30 * time.Second // after which a caller has given up
			var wg sync.WaitGroup
			for _, s := range []step{
				{"POST", "", bodyOf(carl), internalError},
				{"PUT", "/" + anna.Email, bodyOf(changed), internalError},
				{"DELETE", "/" + bert.Email, "", internalError},
				{"GET", "/" + anna.Email, "", internalError},
			} {
				wg.Go(func() { e.follow(p, []step{s}) })
			}
			want := `{"provider":"gmail"}`
			if got := e.do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", p.site+".example.com"); got.Status != 200 || got.Body != want {
				t.Errorf("a lookup: %v", got)
			}
			wg.Wait()
			if diff := cmp.Diff([]person{anna, bert}, p.inGhost()); diff != "" {
				t.Errorf("what was refused is in Ghost: %s", diff)
			}

			w.Fix()
			e.followInGhost(p, []step{
				{"POST", "", bodyOf(carl), responseOf(carl, "created")},
				{"PUT", "/" + anna.Email, bodyOf(changed), responseOf(changed, "updated")},
				{"DELETE", "/" + bert.Email, "", deleted()},
			})
			drain(t, admin, p.site)
			p.compare([]person{changed, carl}, []string{anna.Email, bert.Email, carl.Email}, e.get(p))
			p.keepsSecrets(e.logFile, "members API request failed")
		})
	}
}
