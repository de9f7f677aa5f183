package admin_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// These tests are about sites in the store while something fails.

// A row that nobody can understand is one site's trouble: it is named, all else goes
// on, and it can be removed. A placeholder in one is never replaced.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	store := edgetest.SQLiteStore(t)
	e := edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret)
	db := edgetest.OpenDatabase(t, store)
	rows := map[string]string{
		"hosts":       `hosts = '{'`,
		"no-hosts":    `hosts = '[]'`,
		"odd-host":    `hosts = '["A.example"]'`,
		"settings":    `settings = '{'`,
		"no-platform": `settings = '{}'`,
		"unknown":     `settings = '{"platform":{"kind":"wordpress"}}'`,
		"later":       `settings = '{"platform":{"kind":"none"},"staff":{}}'`,
		"theme":       `settings = '{"platform":{"kind":"ghost","url":"http://127.0.0.1:1"},"themes":{"casper":null}}'`,
		"repository":  `settings = '{"platform":{"kind":"ghost","url":"http://127.0.0.1:1"},"themes":{"casper":{}}}'`,
		"placeholder": `settings = '{"platform":{"kind":"ghost","url":"http://127.0.0.1:1/{env.HOME}"}}'`,
		"secrets":     `secrets = 'v1.00000000.AAAA'`,
	}
	for name, change := range rows {
		e.AddNone(name, name+".example")
		damage := func(tx *sql.Tx) error { // at once, for the edge reads revisions all the time
			_, err := tx.ExecContext(t.Context(), "UPDATE sites SET "+change+" WHERE name = $1", name)
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "UPDATE site_revisions SET revision = revision + 1")
			}
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "UPDATE sites SET revision = (SELECT revision FROM site_revisions) WHERE name = $1", name)
			}
			return err
		}
		if err := db.InTx(t.Context(), damage); err != nil {
			t.Fatalf("%s: db.InTx: %v", name, err)
		}
		e.AddNone("after-"+name, "after-"+name+".example")
		if isLocked := name == "secrets"; e.Serves(name+".example") != isLocked {
			t.Errorf("%s: served: %t", name, !isLocked)
		}
	}
	again := edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret)
	for name := range rows {
		for _, edge := range []*edgetest.StoredEdge{e, again} {
			if !edge.Serves("after-" + name + ".example") {
				t.Errorf("%s: others are not served", name)
			}
		}
		text := e.Must(http.StatusOK, "GET", "/"+name, "")
		if !strings.Contains(text, `"problem":"its row is damaged, or of a later Lychgate: `) && !strings.Contains(text, `"locked":"`) || strings.Contains(text, os.Getenv("HOME")+`"`) {
			t.Errorf("%s: must = %s, want text with %s or %s, and without %q",
				name, text, `"problem":"its row is damaged, or of a later Lychgate: `, `"locked":"`, os.Getenv("HOME")+`"`)
		}
		e.Must(http.StatusNoContent, "DELETE", "/"+name, "")
	}
	e.Must(http.StatusOK, "GET", "?limit=1000", "")
}

// A store that was put back to an earlier state, as from a backup, is believed.
func TestStoreIsPutBack(t *testing.T) {
	t.Parallel()
	edgetest.EachStore(t, func(t *testing.T, store string) {
		e := edgetest.StartStored(t, store)
		db := edgetest.OpenDatabase(t, store)
		e.AddNone("daily", "daily.example")
		e.AddNone("weekly", "weekly.example")
		for _, statement := range []string{"DELETE FROM sites WHERE name = 'weekly'", "UPDATE site_revisions SET revision = 1"} {
			dbtest.Exec(t, db, statement)
		}
		wait.Until(t, func() string {
			if e.Serves("weekly.example") {
				return "still served"
			}
			return ""
		})
		e.AddNone("monthly", "monthly.example")
		if !e.Serves("daily.example") || !e.Serves("monthly.example") {
			t.Errorf("served: got daily.example %t, monthly.example %t, want both", e.Serves("daily.example"), e.Serves("monthly.example"))
		}
	})
}

// While a configuration is loaded, readers of sites in the store notice nothing, whether
// the store answers or hangs.
func TestReloadWithStoredSites(t *testing.T) {
	t.Parallel()
	_, source, w := edgetest.PostgresProxy(t)
	e := edgetest.StartStored(t, source)
	e.AddNone("daily", "daily.example")
	config, err := os.ReadFile(filepath.Join(e.Folder, "Caddyfile"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	e.Client.Transport = &http.Transport{DisableKeepAlives: true} // the old configuration closes its own
	for round := range 8 {
		if round == 6 {
			w.Hang()
		}
		e.LoadAndAsk(string(config)+strings.Repeat("\n# changed", round+1), "daily.example")
	}
	w.Fix()
}

// A reload keeps what was read of the sites and what readers were given. With thousands of sites,
// lists of events were answered with 503, or waited until all sites were read again.
func TestReloadWithManySites(t *testing.T) {
	t.Parallel()
	edgetest.EachStore(t, func(t *testing.T, store string) {
		kind, source, _ := strings.Cut(store, " ")
		addMany(t, database.Kind(kind), source, 4000)
		e := edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret)
		config, err := os.ReadFile(filepath.Join(e.Folder, "Caddyfile"))
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		wait.Until(t, func() string {
			if status, text := e.Get("site7.example", "/ghost/lychgate/events"); status != http.StatusOK {
				return text
			}
			return ""
		})
		for range 6 {
			loaded := make(chan error, 1)
			go func() { loaded <- e.Load(string(config)) }()
			for isLoading := true; isLoading; {
				select {
				case err := <-loaded:
					if isLoading = false; err != nil {
						t.Fatalf("loading the configuration: %v", err)
					}
				default:
				}
				if status, text := e.Get("site7.example", "/ghost/lychgate/events"); status != http.StatusOK {
					t.Fatalf("a list of events during a reload: got status %d, %s, want 200", status, text)
				}
			}
		}
		log := edgetest.ReadLog(t, e.LogFile)
		if lines := edgetest.LinesWith(log, "the store is away"); lines != "" {
			t.Errorf("the log says that the store is away, which it is not: %s", lines)
		}
	})
}

// addMany adds sites to a store, named site0 and so on.
func addMany(t *testing.T, kind database.Kind, source string, n int) {
	t.Helper()
	db := edgetest.OpenDatabase(t, string(kind)+" "+source)
	keys, err := seal.NewKeyring(edgetest.FirstSecret)
	if err != nil {
		t.Fatalf("seal.NewKeyring: %v", err)
	}
	store, err := sites.NewSQL(t.Context(), db, keys)
	if err != nil {
		t.Fatalf("sites.NewSQL: %v", err)
	}
	list, ghost := make([]sites.Site, n), edgetest.PublicGhost(t)
	for i := range list {
		name := fmt.Sprintf("site%d", i)
		list[i] = sites.Site{
			Name: name, Hosts: []string{name + ".example"}, Secrets: map[string]string{"platform.admin_key": fakeAdminKey},
			Settings: json.RawMessage(`{"platform":{"kind":"ghost","url":"` + ghost + `","webhooks":"off","reconcile":"off"}}`),
		}
	}
	if err := store.Add(t.Context(), list...); err != nil {
		t.Fatalf("adding %d sites: %v", n, err)
	}
}

// An edge that could not reach the store for a while brings no write to where the site's
// Ghost was before.
func TestPlatformMovesWhileAnEdgeIsCutOff(t *testing.T) {
	t.Parallel()
	direct, source, w := edgetest.PostgresProxy(t)
	type received struct{ old, fresh atomic.Int64 }
	var got received
	fake := func(created *atomic.Int64, isAway *atomic.Bool) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isAway != nil && isAway.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			if r.Method == http.MethodPost {
				created.Add(1)
			}
			fmt.Fprint(w, `{"members":[],"newsletters":[],"tiers":[],"labels":[],"meta":{"pagination":{"page":1,"limit":100,"pages":1,"total":0,"next":null,"prev":null}}}`)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	var away atomic.Bool
	away.Store(true)
	old, fresh := fake(&got.old, nil), fake(&got.fresh, &away)
	one := edgetest.StartStored(t, direct, "secret "+edgetest.FirstSecret)
	two := edgetest.StartStored(t, source, "secret "+edgetest.FirstSecret)
	one.Must(http.StatusCreated, "POST", "", fmt.Sprintf(`{"name":"daily","hosts":["daily.example"],"platform":{"kind":"ghost","url":%q,"admin_key":%q,"webhooks":"off","reconcile":"off"}}`, old, fakeAdminKey))
	key := one.AddKey("daily")
	two.UntilServed("daily.example")
	const rounds = 5
	for round := range rounds {
		w.Cut()
		one.Must(http.StatusOK, "PATCH", "/daily?force=true", fmt.Sprintf(`{"platform":{"url":%q,"admin_key":%q}}`, fresh, fakeAdminKey))
		for i := range 10 {
			status, text := one.Send("POST", "daily.example", "/integration/members", fmt.Sprintf(`{"email":"r%d-%d@example.com"}`, round, i), "Authorization", "Bearer "+key)
			if status >= 300 {
				t.Fatalf("send = %v, %v, want status below 300", status, text)
			}
		}
		<-time.After(1500 * time.Millisecond) // so that attempts are due when the other edge is back
		w.Fix()
		wait.Until(t, func() string { // it has taken part again
			if status, text := two.Get("daily.example", "/integration/members/r0-0@example.com", "Authorization", "Bearer "+key); status != http.StatusOK {
				return text
			}
			return ""
		})
		<-time.After(1500 * time.Millisecond) // in which an edge with an old configuration would deliver
		if n := got.old.Load(); n > 0 {
			t.Fatalf("round %d: the old Ghost got %d members", round, n)
		}
		one.Must(http.StatusOK, "PATCH", "/daily?force=true", fmt.Sprintf(`{"platform":{"url":%q,"admin_key":%q}}`, fresh, fakeAdminKey))
	}
	if status, text := one.Manage("PATCH", "/daily", `{"platform":{"url":"http://127.0.0.1:1","admin_key":"`+fakeAdminKey+`"}}`); status != http.StatusConflict || !strings.Contains(text, "?force=true") {
		t.Errorf("moved with pending writes: %d %s", status, text)
	}
}

// With another secret an edge says whose keys it cannot open, and serves the rest but for events, which may be private. The
// operator changes the secret without an edge that cannot.
func TestLockedSites(t *testing.T) {
	t.Parallel()
	store := edgetest.SQLiteStore(t)
	one := edgetest.StartStored(t, store, "secret "+edgetest.FirstSecret)
	one.Must(http.StatusCreated, "POST", "", `{"name":"daily","hosts":["daily.example"],"platform":{"kind":"ghost","url":"http://127.0.0.1:1","admin_key":"`+fakeAdminKey+`","webhooks":"off","reconcile":"off"}}`)
	one.AddNone("weekly", "weekly.example")
	keys := map[string]string{"daily": one.AddKey("daily"), "weekly": one.AddKey("weekly")}
	check := func(e *edgetest.StoredEdge, want map[string]int) {
		t.Helper()
		got := make(map[string]int)
		for site, key := range keys {
			got[site], _ = e.Get(site+".example", "/integration/members/nobody@example.com", "Authorization", "Bearer "+key)
			if !e.Serves(site + ".example") {
				t.Errorf("no lookup at %s", site)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	}
	for name, options := range map[string][]string{"another": {"secret " + edgetest.SecondSecret}, "none": nil} {
		other := edgetest.StartStored(t, store, options...)
		check(other, map[string]int{"daily": 500, "weekly": 404})
		for _, path := range []string{"/ghost/lychgate/events", "/ghost/lychgate/events/party", "/ghost/lychgate/events.ics"} {
			if status, text := other.Get("daily.example", path); status != http.StatusServiceUnavailable {
				t.Errorf("%s of a site that may be private: %d %s, want 503", path, status, text)
			}
		}
		log := edgetest.ReadLog(t, other.LogFile)
		if n := strings.Count(log, `the keys of sites in the store cannot be opened, so their members API answers 500: write the secret that sealed them behind the others in secret","sites":1,"first":["daily"],"problem":"it was sealed with another secret"`); n != 1 {
			t.Errorf("%s: %d lines say it", name, n)
		}
		if text := other.Must(http.StatusOK, "GET", "/daily", ""); !strings.Contains(text, `"locked":"it was sealed with another secret"`) {
			t.Errorf("other.must = %q, want %q in it", text, `"locked":"it was sealed with another secret"`)
		}
		if status, text := other.Manage("PATCH", "/daily", `{"hosts":["other.example"]}`); status != http.StatusBadRequest || !strings.Contains(text, "admin_key") {
			t.Errorf("changed without its key: %d %s", status, text)
		}
	}
	both := edgetest.StartStored(t, store, "secret "+edgetest.SecondSecret+" "+edgetest.FirstSecret)
	check(both, map[string]int{"daily": 200, "weekly": 404}) // Ghost is away
	log, err := os.ReadFile(both.LogFile)
	if err != nil || strings.Contains(string(log), edgetest.FirstSecret) || strings.Contains(string(log), fakeAdminKey) {
		t.Errorf("a secret is in the log, or %v", err)
	}
}

// While PostgreSQL is away an edge goes on with the sites that it knows, even over a
// reload, and sees what was changed meanwhile when it is back.
func TestSitesWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*tcpproxy.Proxy){"gone": (*tcpproxy.Proxy).Cut, "hangs": (*tcpproxy.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			store, source, w := edgetest.PostgresProxy(t)
			direct := edgetest.StartStored(t, store)
			e := edgetest.StartStored(t, source)
			direct.AddNone("daily", "daily.example")
			e.UntilServed("daily.example")
			away(w)
			direct.AddNone("weekly", "weekly.example")
			config, err := os.ReadFile(filepath.Join(e.Folder, "Caddyfile"))
			if err != nil {
				t.Fatalf("os.ReadFile: %v", err)
			}
			if err := e.Load(string(config) + "\n# changed"); err != nil || !e.Serves("daily.example") || e.Serves("weekly.example") {
				t.Errorf("after the reload: %v, daily %t, weekly %t", err, e.Serves("daily.example"), e.Serves("weekly.example"))
			}
			if status, text := e.Get("daily.example", "/integration/members/joe@example.com", "Authorization", "Bearer x"); status != http.StatusInternalServerError {
				t.Errorf("a member: %d %s", status, text)
			}
			w.Fix()
			e.UntilServed("daily.example", "weekly.example")
			key := direct.AddKey("daily")
			wait.Until(t, func() string {
				if status, text := e.Get("daily.example", "/integration/members/joe@example.com", "Authorization", "Bearer "+key); status != http.StatusNotFound || !strings.Contains(text, "Member not found.") {
					return text
				}
				return ""
			})
		})
	}
}
