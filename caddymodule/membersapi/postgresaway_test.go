package membersapi_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
)

// While PostgreSQL is away members cannot be read or written, and callers are
// told so before they give up; lookups go on. When it is back, so are members.
func TestPostgresAway(t *testing.T) {
	for name, away := range map[string]func(*tcpproxy.Proxy){"gone": (*tcpproxy.Proxy).Cut, "hangs": (*tcpproxy.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			_, source, w := edgetest.PostgresProxy(t)
			p := edgetest.StartGhostProxy(t, "postgres-"+name)
			e, admin := startFaultEdge(t, source, p)
			anna, bert, carl := edgetest.Person{p.Email("anna"), "Anna", []string{"a"}}, edgetest.Person{p.Email("bert"), "Bert", []string{"b"}}, edgetest.Person{p.Email("carl"), "Carl", []string{"c"}}
			for _, who := range []edgetest.Person{anna, bert} {
				followInGhost(e, p, []step{{"POST", "", edgetest.BodyOf(who), edgetest.ResponseOf(who, "created")}})
			}

			away(w)
			changed := edgetest.Person{anna.Email, "Changed", []string{"changed"}}
			e.Client.Timeout = 30 * time.Second // after which a caller has given up
			var wg sync.WaitGroup
			for _, s := range []step{
				{"POST", "", edgetest.BodyOf(carl), edgetest.InternalError},
				{"PUT", "/" + anna.Email, edgetest.BodyOf(changed), edgetest.InternalError},
				{"DELETE", "/" + bert.Email, "", edgetest.InternalError},
				{"GET", "/" + anna.Email, "", edgetest.InternalError},
			} {
				wg.Go(func() { follow(e, p, []step{s}) })
			}
			want := `{"provider":"gmail"}`
			if got := e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", p.Site+".example.com"); got.Status != 200 || got.Body != want {
				t.Errorf("a lookup: %v", got)
			}
			wg.Wait()
			if diff := cmp.Diff([]edgetest.Person{anna, bert}, p.InGhost()); diff != "" {
				t.Errorf("what was refused is in Ghost: %s", diff)
			}

			w.Fix()
			followInGhost(e, p, []step{
				{"POST", "", edgetest.BodyOf(carl), edgetest.ResponseOf(carl, "created")},
				{"PUT", "/" + anna.Email, edgetest.BodyOf(changed), edgetest.ResponseOf(changed, "updated")},
				{"DELETE", "/" + bert.Email, "", edgetest.Deleted()},
			})
			edgetest.Drain(t, admin, p.Site)
			p.Compare([]edgetest.Person{changed, carl}, []string{anna.Email, bert.Email, carl.Email}, get(e, p))
			p.KeepsSecrets(e.LogFile, "members API request failed")
		})
	}
}
