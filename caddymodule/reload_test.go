package caddymodule_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A reload loses nothing: no request fails, no allowance and no cached response
// is forgotten, and a hundred of them leave nothing behind.
func TestReloads(t *testing.T) {
	server := startDNS(t, zone)
	// All of it takes longer than a minute on a loaded machine.
	hourly := inboxSite{options: "{\n limit 10 1h\n}"}.caddyfile()
	config := func(n int) string { return hourly + fmt.Sprintf("# %d\n", n) }
	e := startEdge(t, server, config(0))

	for range 10 {
		e.lookup("workspace.example", "192.0.2.1")
	}
	e.load(config(1)) // whatever the first reload starts is there from now on
	goroutines, heap := runtime.NumGoroutine(), heapInUse()

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
				reader := fmt.Sprintf("10.%d.%d.%d", worker, n/250, n%250)
				got, err := e.sendAgain("GET", "/ghost/inbox-provider?domain=workspace.example", "", "X-Forwarded-For", reader)
				if err != nil || got.Status != 200 || got.Body != `{"provider":"gmail"}` {
					t.Errorf("request %d: %v, %v", n, got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for n := range 100 {
		e.load(config(n + 2))
		if got := e.lookup("workspace.example", "192.0.2.1"); got.Status != 429 {
			t.Fatalf("reload %d: the allowance was forgotten: %v", n, got)
		}
	}
	close(stop)
	wg.Wait()
	e.client.CloseIdleConnections()

	if n := server.Total(); n != 1 {
		t.Errorf("%d DNS queries, want the first one only", n)
	}
	if got := e.metric(`lychgate_allowance_refused_total{endpoint="inbox_provider",site="demo"}`); got != "100" {
		t.Errorf("counted %s refusals, want 100", got)
	}
	e.client.CloseIdleConnections()
	nothingLeft(t, goroutines, heap)
	t.Logf("%d requests answered during 100 reloads; %d goroutines, were %d; %.1f MB of heap, were %.1f",
		answered.Load(), runtime.NumGoroutine(), goroutines, float64(heapInUse())/1e6, float64(heap)/1e6)
}

// What is counted belongs to the limit, so a changed limit starts anew;
// other changes do not matter.
func TestReloadWithOtherOptions(t *testing.T) {
	server := startDNS(t, zone)
	e := startEdge(t, server, oneSite)
	for range 10 {
		e.lookup("workspace.example", "192.0.2.1")
	}
	e.load(inboxSite{options: "{\n reject_to /help\n}"}.caddyfile())
	if got := e.lookup("workspace.example", "192.0.2.1"); got.Status != 429 {
		t.Errorf("another reject_to: %v", got)
	}
	e.load(inboxSite{options: "{\n limit 20 1m\n cache_ttl 1h\n}"}.caddyfile())
	if got := e.lookup("workspace.example", "192.0.2.1"); got.Status != 200 || server.Total() != 2 {
		t.Errorf("another limit and another cache: %v, %d DNS queries", got, server.Total())
	}
}

// A site that is gone leaves the metrics.
func TestReloadWithoutASite(t *testing.T) {
	e := startEdge(t, startDNS(t, zone), oneSite)
	e.lookup("gmail.com", "192.0.2.1")
	e.load(inboxSite{name: "renamed"}.caddyfile())
	if all := e.do("GET", "/metrics").Body; strings.Contains(all, `site="demo"`) || !strings.Contains(all, `site="renamed"`) {
		t.Errorf("metrics after the site was renamed: %s", all)
	}
}

// A configuration that is refused leaves the running one as it is.
func TestRefusedReload(t *testing.T) {
	server := startDNS(t, zone)
	e := startEdge(t, server, oneSite)
	e.lookup("workspace.example", "192.0.2.1")
	for _, broken := range []string{
		inboxSite{options: "{\n reject_to {nobody.knows}\n}"}.caddyfile(),
		inboxSite{before: "bind 192.0.2.1"}.caddyfile(), // fails at the last step
	} {
		if err := e.tryLoad(broken); err == nil {
			t.Fatalf("loading %s: got no error, want one", broken)
		}
		if got := e.lookup("workspace.example", "192.0.2.1"); got.Status != 200 || server.Total() != 1 {
			t.Errorf("after a refused reload: %v, %d DNS queries", got, server.Total())
		}
	}
}

// sendAgain sends a request during a reload as a browser does: again, if the
// connection was closed before any response came. Go's HTTP server does that to a
// request that it reads while it shuts down, which is what Caddy lets it do at a
// reload. The request has then reached no handler. After a reload nothing needs
// it (see [socket.replace]).
func (e *edge) sendAgain(method, target, body string, header ...string) (response, error) {
	for {
		got, err := e.sendBody(method, target, body, header...)
		if !isCutByReload(err) {
			return got, err
		}
	}
}

// isCutByReload reports whether a connection was closed before its response. New ones
// are as well, if they come while the old configuration stops listening: of 800 reloads
// of a Caddy with nothing but respond, two did that.
func isCutByReload(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// nothingLeft waits until there are no more goroutines and no more heap than
// there were.
func nothingLeft(t testing.TB, goroutines int, heap uint64) {
	t.Helper()
	wait.Until(t, func() string {
		if n := runtime.NumGoroutine(); n > goroutines+5 {
			return fmt.Sprintf("%d goroutines, were %d", n, goroutines)
		}
		return ""
	})
	wait.Until(t, func() string {
		if now := heapInUse(); now > heap+8<<20 {
			return fmt.Sprintf("%d bytes of heap, were %d", now, heap)
		}
		return ""
	})
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
