package edge_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

const firstSecret, secondSecret = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"

// storedEdges starts edges on one file with sites in it.
type storedEdges struct {
	t     testing.TB
	file  string
	db    *database.DB
	sites *sites.SQL
}

func newStoredEdges(t testing.TB, secret string) *storedEdges {
	t.Helper()
	s := &storedEdges{t: t, file: filepath.Join(t.TempDir(), "lychgate.db")}
	keys, err := seal.NewKeyring(secret)
	if err == nil {
		s.db, err = database.Open(t.Context(), database.SQLite, s.file)
	}
	if err == nil {
		s.sites, err = sites.NewSQL(t.Context(), s.db, keys)
	}
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.db.Close(); err != nil {
			t.Errorf("db.Close: %v", err)
		}
	})
	return s
}

// ghostSite is a site whose Ghost is away, and gets no events.
func ghostSite(name string, hosts ...string) sites.Site {
	return sites.Site{
		Name: name, Hosts: hosts,
		Settings: json.RawMessage(`{"platform":{"kind":"ghost","url":"http://127.0.0.1:1","webhooks":"off","reconcile":"off"}}`),
		Secrets:  map[string]string{"platform.admin_key": "65f1d4e5d6a0c10001a1b2c3:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"},
	}
}

// start starts an edge with everything on it.
func (s *storedEdges) start(secrets ...string) *edge.Edge {
	s.t.Helper()
	e, err := edge.New(edge.Options{
		Config: &config.Config{Store: &config.Store{Kind: "sqlite", Source: s.file}, Secrets: secrets},
		Logger: zap.NewNop(), Registry: prometheus.NewPedanticRegistry(),
	})
	if err == nil {
		_, err = e.UseMembers(config.DefaultAPIPath)
	}
	if err == nil {
		_, err = e.UseThemes("staff_desk")
	}
	if err == nil {
		_, err = e.UseEvents()
	}
	if err == nil {
		err = e.Start()
	}
	if err != nil {
		s.t.Fatalf("starting an edge: %v", err)
	}
	return e
}

func (s *storedEdges) end(e *edge.Edge) {
	s.t.Helper()
	e.Stop()
	if err := e.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
}

func (s *storedEdges) exec(statement string) {
	s.t.Helper()
	dbtest.Exec(s.t, s.db, statement)
}

// A reload with a hundred thousand sites would keep readers waiting if it read all of them again.
// It reads those that have changed; with another secret it reads all.
func TestReloadReadsChanges(t *testing.T) {
	s := newStoredEdges(t, firstSecret)
	var list []sites.Site
	for i := range 3000 {
		name := fmt.Sprintf("site%d", i)
		list = append(list, ghostSite(name, name+".example"))
	}
	if err := s.sites.Add(t.Context(), list...); err != nil {
		t.Fatalf("Add: %v", err)
	}
	served := func(e *edge.Edge) map[string]string {
		found := make(map[string]string)
		for _, host := range []string{"site7.example", "site8.example", "site9.example", "unread.example", "late.example"} {
			found[host] = nameOf(e.Site(host))
		}
		return found
	}
	first := s.start(firstSecret)
	// Without a revision of its own, only a reading of all sites finds it.
	s.exec(`DELETE FROM site_hosts WHERE site = 'site2'`)
	s.exec(`UPDATE sites SET name = 'unread', hosts = '["unread.example"]', settings = '{"platform":{"kind":"none"}}', secrets = '' WHERE name = 'site2'`)
	if err := s.sites.Remove(t.Context(), "site8", false); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	if err := s.sites.Add(t.Context(), ghostSite("late", "late.example")); err != nil {
		t.Fatalf("Add: %v", err)
	}
	second := s.start(firstSecret)
	want := map[string]string{"site7.example": "site7", "site8.example": "", "site9.example": "site9", "unread.example": "", "late.example": "late"}
	if diff := cmp.Diff(want, served(second)); diff != "" {
		t.Errorf("sites by host after a reload (-want +got):\n%s", diff)
	}
	if site := second.Site("site9.example"); site == nil || site.Platform == nil || site.Platform != first.Site("site9.example").Platform {
		t.Error("the reload has made the platform of a site anew, want that of before, with its connections")
	}
	for _, host := range []string{"site9.example", "late.example"} {
		if _, err := second.Members().Site(second.Site(host)); err != nil {
			t.Errorf("the members of %s: %v", host, err)
		}
	}
	s.end(first)

	for _, secrets := range [][]string{{secondSecret}, {secondSecret, firstSecret}} {
		next := s.start(secrets...)
		if site, want := next.Site("site9.example"), len(secrets) == 1; site == nil || (site.Locked != nil) != want {
			t.Errorf("a site after a reload with %d secrets: got %+v, want locked %t", len(secrets), site, want)
		}
		if got := nameOf(next.Site("unread.example")); got != "unread" {
			t.Errorf("a reload with %d secrets has not read all sites: got %q at unread.example", len(secrets), got)
		}
		s.end(second)
		second = next
	}
	s.end(second)
}

// A reload of a hundred thousand sites closed as many platforms, whose connections the next
// configuration uses, and one after a reload with another secret made all of them anew. The last
// configuration to go closes them.
func TestReloadKeepsConnections(t *testing.T) {
	// On a busy machine a connection is idle for too long, or an edge ends amid a request of its own.
	var opened, closed int
	for range 3 {
		if opened, closed = reloadConnections(t); closed == 0 {
			return
		}
	}
	t.Errorf("reloads closed %d of %d connections to a platform, want none", closed, opened)
}

// reloadConnections counts the connections to a platform that four reloads open and close.
func reloadConnections(t *testing.T) (got, gone int) {
	t.Helper()
	opened, closed := make(chan struct{}, 100), make(chan struct{}, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"members":[],"meta":{"pagination":{"page":1,"limit":1,"pages":1,"total":0,"next":null,"prev":null}}}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened <- struct{}{}
		case http.StateClosed:
			closed <- struct{}{}
		default:
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s := newStoredEdges(t, firstSecret)
	site := ghostSite("daily", "daily.example")
	site.Settings = fmt.Appendf(nil, `{"platform":{"kind":"ghost","url":%q,"webhooks":"off","reconcile":"off"}}`, server.URL)
	if err := s.sites.Add(t.Context(), site); err != nil {
		t.Fatalf("Add: %v", err)
	}
	count := func(e *edge.Edge) {
		t.Helper()
		if _, _, err := e.Site("daily.example").Platform.Count(t.Context()); err != nil {
			t.Fatalf("Count: %v", err)
		}
	}
	last := s.start(firstSecret)
	for _, secrets := range [][]string{{firstSecret}, {firstSecret}, {secondSecret, firstSecret}, {secondSecret, firstSecret}} { // the third reads all sites anew
		count(last)
		next := s.start(secrets...)
		if last.Site("daily.example").Platform != next.Site("daily.example").Platform {
			t.Error("a reload has made a platform anew, want that of before")
		}
		s.end(last)
		last = next
	}
	got, gone = len(opened), len(closed)
	s.end(last)
	for range len(opened) {
		<-closed
	}
	return got, gone
}

// What readers were given is not read again after a reload, whether or not the store answers.
func TestReloadKeepsResponses(t *testing.T) {
	s := newStoredEdges(t, firstSecret)
	if err := s.sites.Add(t.Context(), ghostSite("daily", "daily.example")); err != nil {
		t.Fatalf("Add: %v", err)
	}
	first := s.start(firstSecret)
	list := func(e *edge.Edge) error {
		of, err := e.UseEvents()
		if err != nil {
			return err
		}
		feed, err := of.Feed()
		if err != nil {
			return err
		}
		response, err := feed.List(t.Context(), "daily", "daily", events.PublicQuery{Most: 10}, events.JSON)
		if err == nil {
			response.Close()
		}
		return err
	}
	if err := list(first); err != nil {
		t.Fatalf("the list before: %v", err)
	}
	second := s.start(firstSecret)
	s.exec(`DROP TABLE events`)
	if err := list(second); err != nil {
		t.Errorf("the list after a reload: %v", err)
	}
	s.end(first)
	s.end(second)
}

// A reload is to take under a second with a hundred thousand sites (bench/README.md): 10 µs for each.
func BenchmarkReload(b *testing.B) {
	const many = 20_000
	s := newStoredEdges(b, firstSecret)
	list := make([]sites.Site, many)
	for i := range list {
		name := fmt.Sprintf("site%d", i)
		list[i] = ghostSite(name, name+".example", "www."+name+".example")
	}
	for some := range slices.Chunk(list, 4000) {
		if err := s.sites.Add(b.Context(), some...); err != nil {
			b.Fatalf("Add: %v", err)
		}
	}
	before := s.start(firstSecret)
	for b.Loop() {
		now := s.start(firstSecret)
		s.end(before)
		before = now
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/site")
	s.end(before)
}
