package membersapi_test

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// load is what readers and a CRM ask of the edges of a fleet.
type load struct {
	t     *testing.T
	p     *edgetest.GhostProxy
	edges []*edgetest.StoredEdge
	key   string

	lookups atomic.Int64
	killed  atomic.Int64 // the edge that is gone; -1 for none
	done    chan struct{}
	running sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]bool // members, by email
}

// begin has somebody ask an edge again and again.
func (l *load) begin(i int, ask func(client *http.Client, n int) error) {
	l.running.Go(func() {
		client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
		defer client.CloseIdleConnections()
		for n := 0; ; n++ {
			select {
			case <-l.done:
				return
			default:
			}
			if err := ask(client, n); err != nil {
				if l.killed.Load() != int64(i) {
					l.t.Errorf("edge %d: %v", i, err)
				}
				return
			}
		}
	})
}

func (l *load) send(client *http.Client, i int, method, path, body string) (int, string, error) {
	got, err := exchange.Send(client, method, "http://127.0.0.1:"+l.edges[i].Port+path, strings.NewReader(body), "Host", "fleet.example", "Authorization", "Bearer "+l.key)
	return got.Status, got.Body, err
}

// lookUp is what a reader does.
func (l *load) lookUp(client *http.Client, i int) error {
	status, text, err := l.send(client, i, "GET", edgetest.LookupPath, "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("a lookup: %d %s", status, text)
	}
	l.lookups.Add(1)
	<-time.After(5 * time.Millisecond) // a reader's pause, which bounds the load
	return err
}

// add is what a CRM does, which tries again until the member is acknowledged.
func (l *load) add(client *http.Client, i, n int) error {
	email := l.p.Email(fmt.Sprintf("m%d-%d", i, n))
	for tries := 0; ; tries++ {
		status, text, err := l.send(client, i, "POST", "/integration/members", `{"email":"`+email+`"}`)
		switch {
		case err != nil:
			return err
		case strings.Contains(text, `"success":true`), tries > 0 && strings.Contains(text, "already taken"):
			l.mu.Lock()
			l.acknowledged[email] = true
			l.mu.Unlock()
			return nil
		case status != http.StatusInternalServerError:
			return fmt.Errorf("%s: %d %s", email, status, text)
		}
		select {
		case <-l.done:
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// goesOn waits for more members to be acknowledged.
func (l *load) goesOn(what string) {
	l.t.Helper()
	l.mu.Lock()
	before := len(l.acknowledged)
	l.mu.Unlock()
	wait.Until(l.t, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.acknowledged) < before+20 {
			return fmt.Sprintf("%s: %d members were acknowledged since", what, len(l.acknowledged)-before)
		}
		return ""
	})
}

// Three edges with a site in PostgreSQL, under load, while PostgreSQL goes away, hangs
// and moves to another address, and an edge is killed. No lookup fails, and Ghost has each
// member that was acknowledged, once.
func TestFleetLosesNothing(t *testing.T) {
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	p := edgetest.StartGhostProxy(t, "fleet")
	primary, standby := tcpproxy.Start(t, source.Host), tcpproxy.Start(t, source.Host)
	standby.Cut()
	source.Host = primary.Address + "," + standby.Address
	edges := make([]*edgetest.StoredEdge, 3)
	for i := range edges {
		edges[i] = edgetest.StartStored(t, "postgres "+source.String(), "secret "+edgetest.FirstSecret)
	}
	edges[0].Must(http.StatusCreated, "POST", "", fmt.Sprintf(
		`{"name":"fleet","hosts":["fleet.example"],"platform":{"kind":"ghost","url":%q,"admin_key":%q,"webhooks":"off","reconcile":"off"}}`, "http://"+p.Address, p.Key))
	key := edges[0].AddKey("fleet")
	for _, e := range edges {
		e.UntilServed("fleet.example")
	}

	l := &load{t: t, p: p, edges: edges, key: key, done: make(chan struct{}), acknowledged: make(map[string]bool)}
	l.killed.Store(-1)
	for i := range edges {
		l.begin(i, func(client *http.Client, _ int) error { return l.lookUp(client, i) })
		l.begin(i, func(client *http.Client, n int) error { return l.add(client, i, n) })
	}
	l.goesOn("before any fault")
	primary.Cut()
	<-time.After(time.Second) // how long the fault lasts
	primary.Fix()
	l.goesOn("PostgreSQL was gone")
	primary.Hang()
	<-time.After(3 * time.Second) // how long the fault lasts
	primary.Fix()
	l.goesOn("PostgreSQL hung")
	standby.Fix()
	primary.Cut()
	l.goesOn("PostgreSQL moved")
	l.killed.Store(2)
	edges[2].Kill()
	l.goesOn("an edge was killed")
	close(l.done)
	l.running.Wait()

	admin := edgetest.AdminOf(t, edges[0].AdminSocket)
	edgetest.Drain(t, admin, "fleet")
	counts := make(map[string]int)
	for email := range emailsIn(t, p) {
		counts[email]++
	}
	want := make(map[string]int)
	for email := range counts {
		want[email] = 1 // also those whose acknowledgement got lost
	}
	for email := range l.acknowledged {
		want[email] = 1
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if len(l.acknowledged) < 100 || l.lookups.Load() < 300 {
		t.Errorf("%d members, %d lookups: too little load to show anything", len(l.acknowledged), l.lookups.Load())
	}
}

// emailsIn goes through the emails of a proxy's members in Ghost, page by page.
func emailsIn(t *testing.T, p *edgetest.GhostProxy) iter.Seq[string] {
	t.Helper()
	client, err := ghost.New(ghost.Config{URL: p.URL.String(), AdminKey: p.Key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	return func(yield func(string) bool) {
		for after := ""; ; {
			page, _, err := client.List(t.Context(), after, time.Time{})
			if err != nil {
				t.Fatalf("client.List: %v", err)
			}
			for _, m := range page {
				if after = m.ID; strings.HasSuffix(m.Email, "@"+p.Domain) && !yield(m.Email) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}
