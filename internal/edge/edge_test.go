package edge_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// newEdge has two sites and no web server.
func newEdge(t *testing.T, file string) *edge.Edge {
	t.Helper()
	e, err := edge.New(edge.Options{
		Config: &config.Config{Sites: map[string]*config.Site{
			"daily":  {Hosts: []string{"News.example.com", "münchen.example"}, Platform: &config.Platform{Kind: "none"}},
			"weekly": {Hosts: []string{"weekly.example.org"}, Platform: &config.Platform{Kind: "none"}},
		}},
		StoreFile: file, Logger: zap.NewNop(), Registry: prometheus.NewPedanticRegistry(),
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return e
}

func nameOf(site *edge.Site) string {
	if site == nil {
		return ""
	}
	return site.Name
}

// A request is served by the site of its host, however browsers write that.
func TestSiteOfHost(t *testing.T) {
	e := newEdge(t, filepath.Join(t.TempDir(), "lychgate.db"))
	defer func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	got := make(map[string]string)
	for _, host := range []string{"news.example.com", "NEWS.example.com:8443", "news.example.com.", "xn--mnchen-3ya.example", "weekly.example.org", "evil.example.org", "", "[::1]:80"} {
		got[host] = nameOf(e.Site(host))
	}
	want := map[string]string{
		"news.example.com": "daily", "NEWS.example.com:8443": "daily", "news.example.com.": "daily", "xn--mnchen-3ya.example": "daily",
		"weekly.example.org": "weekly", "evil.example.org": "", "": "", "[::1]:80": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sites by host (-want +got):\n%s", diff)
	}
}

// A reload starts the next edge before the one before ends: both share the store, which
// stays open for the next, and the process is served by the next.
func TestReloadKeepsTheStoreOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lychgate.db")
	start := func() *edge.Edge {
		e := newEdge(t, file)
		members, err := e.UseMembers(config.DefaultAPIPath)
		if err != nil {
			t.Fatalf("UseMembers: %v", err)
		}
		if err := e.Start(); err != nil {
			t.Fatalf("Start: %v", err)
		}
		if edge.NowServing() != members.Serving() || members.Serving() == nil {
			t.Fatalf("NowServing = %p, want that of the edge that was started last, %p", edge.NowServing(), members.Serving())
		}
		return e
	}
	end := func(e *edge.Edge) {
		t.Helper()
		e.Stop()
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	last := start()
	for range 20 {
		next := start()
		end(last)
		last = next
		if err := last.AskStore(t.Context()); err != nil {
			t.Errorf("the store after the edge before has ended: %v", err)
		}
	}
	end(last)
	if edge.NowServing().Outbox != nil {
		t.Error("NowServing has an outbox after the last edge has ended, want none")
	}
}

// A configuration that cannot be started leaves the one before running.
func TestFailedStart(t *testing.T) {
	runs := newEdge(t, filepath.Join(t.TempDir(), "lychgate.db"))
	members, err := runs.UseMembers(config.DefaultAPIPath)
	if err == nil {
		err = runs.Start()
	}
	if err != nil {
		t.Fatalf("starting the first: %v", err)
	}
	fails := newEdge(t, filepath.Join(t.TempDir(), "none", "there", "is")+"\x00")
	if _, err := fails.UseMembers(config.DefaultAPIPath); err != nil {
		t.Fatalf("UseMembers: %v", err)
	}
	if err := fails.Start(); err == nil {
		t.Error("Start: got no error, want one for a file that cannot be opened")
	}
	fails.Stop()
	if err := fails.Close(); err != nil {
		t.Errorf("closing the one that failed: %v", err)
	}
	if edge.NowServing() != members.Serving() {
		t.Error("NowServing: got another Serving, want that of the first edge")
	}
	runs.Stop()
	if err := runs.Close(); err != nil {
		t.Errorf("closing the first: %v", err)
	}
}
