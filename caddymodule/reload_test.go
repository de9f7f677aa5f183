package caddymodule_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// A reload loses nothing: no request fails, no allowance and no cached response
// is forgotten, and a hundred of them leave nothing behind.
func TestReloadsLoseNothing(t *testing.T) {
	server := edgetest.StartDNS(t, edgetest.Zone)
	// All of it takes longer than a minute on a loaded machine.
	hourly := edgetest.InboxSite{Options: "{\n limit 10 1h\n}"}.Caddyfile()
	config := func(n int) string { return hourly + fmt.Sprintf("# %d\n", n) }
	e := edgetest.StartEdge(t, server, config(0))

	for range 10 {
		e.Lookup("workspace.example", "192.0.2.1")
	}
	e.Load(config(1)) // whatever the first reload starts is there from now on
	goroutines, heap := runtime.NumGoroutine(), edgetest.HeapInUse()

	stop := make(chan struct{})
	var wg sync.WaitGroup
	var answered atomic.Int64
	for worker := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				reader := fmt.Sprintf("%d.%d.%d.%d", 10+worker, n>>16&255, n>>8&255, n&255)
				got, err := sendAgain(e, "GET", "/ghost/inbox-provider?domain=workspace.example", "", "X-Forwarded-For", reader)
				if err != nil || got.Status != 200 || got.Body != `{"provider":"gmail"}` {
					t.Errorf("request %d: %v, %v", n, got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for n := range 100 {
		e.Load(config(n + 2))
		if got := e.Lookup("workspace.example", "192.0.2.1"); got.Status != 429 {
			t.Fatalf("reload %d: the allowance was forgotten: %v", n, got)
		}
	}
	close(stop)
	wg.Wait()
	e.Client.CloseIdleConnections()

	if n := server.Total(); n != 1 {
		t.Errorf("%d DNS queries, want the first one only", n)
	}
	if got := e.Metric(`lychgate_allowance_refused_total{endpoint="inbox_provider",site="demo"}`); got != "100" {
		t.Errorf("counted %s refusals, want 100", got)
	}
	e.Client.CloseIdleConnections()
	edgetest.NothingLeft(t, goroutines, heap)
	t.Logf("%d requests answered during 100 reloads; %d goroutines, were %d; %.1f MB of heap, were %.1f",
		answered.Load(), runtime.NumGoroutine(), goroutines, float64(edgetest.HeapInUse())/1e6, float64(heap)/1e6)
}

// What is counted belongs to the limit, so a changed limit starts anew;
// other changes do not matter.
func TestReloadWithOtherOptions(t *testing.T) {
	server := edgetest.StartDNS(t, edgetest.Zone)
	e := edgetest.StartEdge(t, server, edgetest.OneSite)
	for range 10 {
		e.Lookup("workspace.example", "192.0.2.1")
	}
	e.Load(edgetest.InboxSite{Options: "{\n reject_to /help\n}"}.Caddyfile())
	if got := e.Lookup("workspace.example", "192.0.2.1"); got.Status != 429 {
		t.Errorf("another reject_to: %v", got)
	}
	e.Load(edgetest.InboxSite{Options: "{\n limit 20 1m\n cache_ttl 1h\n}"}.Caddyfile())
	if got := e.Lookup("workspace.example", "192.0.2.1"); got.Status != 200 || server.Total() != 2 {
		t.Errorf("another limit and another cache: %v, %d DNS queries", got, server.Total())
	}
}

// A site that is gone leaves the metrics.
func TestReloadWithoutASite(t *testing.T) {
	e := edgetest.StartEdge(t, edgetest.StartDNS(t, edgetest.Zone), edgetest.OneSite)
	e.Lookup("gmail.com", "192.0.2.1")
	e.Load(edgetest.InboxSite{Name: "renamed"}.Caddyfile())
	if all := e.Do("GET", "/metrics").Body; strings.Contains(all, `site="demo"`) || !strings.Contains(all, `site="renamed"`) {
		t.Errorf("metrics after the site was renamed: %s", all)
	}
}

// A configuration that is refused leaves the running one as it is.
func TestRefusedReload(t *testing.T) {
	server := edgetest.StartDNS(t, edgetest.Zone)
	e := edgetest.StartEdge(t, server, edgetest.OneSite)
	e.Lookup("workspace.example", "192.0.2.1")
	for _, broken := range []string{
		edgetest.InboxSite{Options: "{\n reject_to {nobody.knows}\n}"}.Caddyfile(),
		edgetest.InboxSite{Before: "bind 192.0.2.1"}.Caddyfile(), // fails at the last step
	} {
		if err := e.TryLoad(broken); err == nil {
			t.Fatalf("loading %s: got no error, want one", broken)
		}
		if got := e.Lookup("workspace.example", "192.0.2.1"); got.Status != 200 || server.Total() != 1 {
			t.Errorf("after a refused reload: %v, %d DNS queries", got, server.Total())
		}
	}
}

// sendAgain sends a request during a reload as a browser does: again, if the
// connection was closed before any response came. Go's HTTP server does that to a
// request that it reads while it shuts down, which is what Caddy lets it do at a
// reload. The request has then reached no handler. After a reload nothing needs
// it (see [socket.replace]).
func sendAgain(e *edgetest.Edge, method, target, body string, header ...string) (edgetest.Response, error) {
	for {
		got, err := e.SendBody(method, target, body, header...)
		if !edgetest.IsCutByReload(err) {
			return got, err
		}
	}
}
