package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Three edges are upgraded one after the other while readers, a CRM and an editor go on, and one is
// taken back. No request fails, and Ghost has what was acknowledged last.
func TestRollingUpgrade(t *testing.T) {
	last := lastRelease(t)
	f := newFleet(t, last)
	f.add(last)
	f.add(last)
	l := f.newLoad()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	isDone := l.start(ctx)

	for n, upgrade := range []struct {
		edge   int
		binary string
	}{{0, caddytest.Build(t)}, {1, caddytest.Build(t)}, {2, caddytest.Build(t)}, {0, last}} {
		l.goOn(20)
		f.stop(upgrade.edge)
		l.goOn(20)
		if n == 1 { // behind the migrations of this version, which the first edge has made
			f.migrateAsNext()
		}
		f.start(upgrade.edge, upgrade.binary)
	}
	l.goOn(20)
	cancel()
	<-isDone

	if diff := cmp.Diff([]string(nil), l.failures); diff != "" {
		t.Errorf("failed requests (-want +got):\n%s", diff)
	}
	wait.Until(t, func() string { return cmp.Diff(l.want, f.inGhost()) })
	var registered, taken int
	if err := f.db.Read.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM registrations WHERE cancelled_at IS NULL), (SELECT SUM(taken) FROM registrations_taken)").Scan(&registered, &taken); err != nil {
		t.Fatalf("f.db.Read.QueryRowContext: %v", err)
	}
	if registered != l.registered || taken != l.registered {
		t.Errorf("got %d registrations and %d places taken, want %d, as many as readers were told", registered, taken, l.registered)
	}
	t.Logf("%d requests; %d connections refused and %d lost, whose requests went to another edge", l.sent.Load(), f.isRefused.Load(), f.isLost.Load())
}

// load is requests by all kinds of callers, of which a load balancer chooses the edge.
type load struct {
	fleet *fleet
	sent  atomic.Int64
	event string // its path on the desk

	readers map[string]*caller // by email

	mu         sync.Mutex
	failures   []string
	want       content // what was acknowledged last
	registered int     // how many readers were told so last
}

// newLoad publishes an event, and signs readers in.
func (f *fleet) newLoad() *load {
	f.t.Helper()
	l := &load{fleet: f, want: content{Members: make(map[string]member), Posts: make(map[string]int)}, readers: make(map[string]*caller)}
	var e event
	f.owner.do(anyEdge, "POST", desk, eventBody("Party", "party", labels), &e)
	l.event = desk + "/" + e.ID
	f.owner.do(anyEdge, "POST", l.event+"/publish", nil, nil)
	l.want.Posts["Party"] = 1
	for edge := range f.edges {
		wait.Until(f.t, func() string { // a Ghost that is slow gets the event later
			if status, text := f.owner.try(f.t.Context(), edge, "GET", "/ghost/lychgate/events/party", nil, nil); status != http.StatusOK {
				return fmt.Sprintf("the event at edge %d: got %d, %s, want 200", edge, status, text)
			}
			return ""
		})
	}
	for _, email := range []string{"jane@example.com", "john@example.com"} {
		l.readers[email] = f.newReader(anyEdge, email)
		l.want.Members[email] = member{Labels: []string{}, Count: 1}
	}
	return l
}

var labels = map[string]any{"rsvp_labels": []string{"Guest"}}

// start has all callers send until ctx ends, and what they are at then.
func (l *load) start(ctx context.Context) (done <-chan struct{}) {
	var all sync.WaitGroup
	// each has a caller send a request, and another one an interval later.
	each := func(interval time.Duration, send func(n int)) {
		all.Go(func() {
			ticker := time.NewTicker(interval)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					send(n)
				}
			}
		})
	}
	f := l.fleet
	for _, path := range []string{"/ghost/inbox-provider?domain=gmail.com", "/ghost/lychgate/events", "/ghost/lychgate/events/party"} {
		visitor := f.newCaller()
		each(50*time.Millisecond, func(int) { l.send(visitor, "GET", path, nil, "") })
	}
	crm := f.newCaller("Authorization", "Bearer "+emailKey)
	for worker := range 2 {
		each(100*time.Millisecond, func(n int) { l.write(crm, fmt.Sprintf("m-%d-%d@example.com", worker, n)) })
	}
	for email, reader := range l.readers {
		isRegistered := false
		each(200*time.Millisecond, func(int) { isRegistered = l.register(reader, email, isRegistered) })
	}
	name := "Party"
	each(500*time.Millisecond, func(n int) {
		next := fmt.Sprintf("Party %d", n)
		if _, ok := l.send(f.owner, "PUT", l.event, eventBody(next, "party", labels), ""); ok {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.want.Posts, name)
			name = next
			l.want.Posts[name] = 1
		}
	})
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	return ended
}

// goOn waits until more requests were sent.
func (l *load) goOn(more int64) {
	l.fleet.t.Helper()
	until := l.sent.Load() + more
	wait.Until(l.fleet.t, func() string {
		if sent := l.sent.Load(); sent < until {
			return fmt.Sprintf("%d requests were sent, want %d", sent, until)
		}
		return ""
	})
}

// send sends a request. It is kept as a failure unless its status is below 300.
func (l *load) send(c *caller, method, path string, body any, key string) (text string, ok bool) {
	l.sent.Add(1)
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	const slow = 5 * time.Second // half of what an edge gives Ghost: of a busy machine, not of an upgrade
	var status int
	for range 3 {
		begin := time.Now()
		status, text = c.try(l.fleet.t.Context(), anyEdge, method, path, body, header)
		if isGhosts := status == http.StatusBadGateway || status == http.StatusServiceUnavailable; !isGhosts || time.Since(begin) < slow {
			break
		}
	}
	if status >= 200 && status < 300 && !strings.Contains(text, `"success":false`) {
		return text, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Sprintf("%s %s: %d, %s", method, path, status, text))
	return text, false
}

// write makes a member, and changes it.
func (l *load) write(crm *caller, email string) {
	kept := func(m member) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.want.Members[email] = m
	}
	if _, ok := l.send(crm, "POST", "/integration/members", map[string]any{"email": email, "name": "Jane"}, "make "+email); !ok {
		return
	}
	kept(member{"Jane", "", []string{}, 1})
	if _, ok := l.send(crm, "PUT", "/integration/members/"+email, map[string]any{"note": "changed"}, "change "+email); ok {
		kept(member{"Jane", "changed", []string{}, 1})
	}
}

// register has a reader register, or cancel.
func (l *load) register(reader *caller, email string, isRegistered bool) bool {
	method, want := "PUT", "registered"
	if isRegistered {
		method, want = "DELETE", "can_register"
	}
	text, ok := l.send(reader, method, "/ghost/lychgate/events/party/registration", nil, "")
	if !ok {
		return isRegistered
	}
	var got struct{ State string }
	err := json.Unmarshal([]byte(text), &got)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || got.State != want {
		l.failures = append(l.failures, fmt.Sprintf("%s by %s: got %s, %v, want the state %s", method, email, text, err, want))
		return isRegistered
	}
	m := member{Labels: []string{}, Count: 1}
	l.registered--
	if !isRegistered {
		m.Labels = []string{"Guest"}
		l.registered += 2
	}
	l.want.Members[email] = m
	return !isRegistered
}
