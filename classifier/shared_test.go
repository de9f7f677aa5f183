package classifier

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func connect(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client, err := redis.New(redis.Config{URL: "redis://" + server.Address, Timeout: time.Second})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	wait.Until(t, func() string {
		if !client.Up() {
			return "Redis is away"
		}
		return ""
	})
	return client
}

// keyOf is the key of a domain, of edges with the system's DNS servers.
func keyOf(domain string) string { return newShared(nil, "").key(domain) }

func newEdge(t *testing.T, redis Scripts, mx mxFunc) *Classifier {
	t.Helper()
	cache, err := NewCache(CacheConfig{Size: 1000, Redis: redis})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(cache.Close)
	return &Classifier{MX: mx, Cache: cache}
}

// A domain is looked up once for the whole fleet, however many readers ask at once.
func TestOneLookupForAFleet(t *testing.T) {
	server := redistest.Start(t)
	var lookups atomic.Int64
	mx := func(context.Context, string) ([]net.MX, error) {
		lookups.Add(1)
		<-time.After(100 * time.Millisecond) // so that the others ask meanwhile
		return google, nil
	}
	var readers sync.WaitGroup
	for range 10 {
		edge := newEdge(t, connect(t, server), mx)
		for range 100 {
			readers.Go(func() {
				answer, err := edge.Classify(t.Context(), "workspace.example", netip.Addr{})
				if answer.Provider != Gmail || answer.Failed || err != nil {
					t.Errorf("Classify = %+v, %v, want provider %v, not failed, no error", answer, err, Gmail)
				}
			})
		}
	}
	readers.Wait()
	if n := lookups.Load(); n != 1 {
		t.Errorf("%d lookups, want 1", n)
	}
}

// What one edge found stands for the others, as long as it does there, and no longer.
func TestSharedAnswers(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server)
	lookups := make(map[string]int)
	mx := func(_ context.Context, domain string) ([]net.MX, error) {
		lookups[domain]++
		switch domain {
		case "workspace.example":
			return google, nil
		case "broken.example":
			return nil, errors.New("SERVFAIL")
		}
		return nil, nil
	}
	ask := func(domain string) Answer {
		t.Helper()
		answer, err := newEdge(t, client, mx).Classify(t.Context(), domain, netip.Addr{})
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		return answer
	}
	for domain, want := range map[string]Answer{
		"workspace.example": {Provider: Gmail},
		"nobody.example":    {},
		"broken.example":    {Failed: true},
	} {
		first, second := want, want
		first.Source, second.Source = FromDNS, FromCache
		if diff := cmp.Diff([]Answer{first, second}, []Answer{ask(domain), ask(domain)}); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", domain, diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"workspace.example": 1, "nobody.example": 1, "broken.example": 1}, lookups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := server.Command("PTTL " + keyOf("broken.example")); len(left) != 5 { // up to 30,000 ms
		t.Errorf("a failure stands for %s ms", left)
	}
	if left := server.Command("PTTL " + keyOf("workspace.example")); len(left) != 8 { // up to 86,400,000 ms
		t.Errorf("an answer stands for %s ms", left)
	}
	edge := newEdge(t, client, mx)
	if _, err := edge.Classify(t.Context(), "broken.example", netip.Addr{}); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if e, _ := edge.Cache.entry("broken.example"); e.expires-edge.Cache.clock() > failureTTL {
		t.Errorf("a failure that another edge met is kept for %s", e.expires-edge.Cache.clock())
	}
}

// An edge that ends in the middle of a lookup keeps nobody waiting for long.
func TestClaimOfAnEdgeThatIsGone(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server)
	if value, err := client.Run(findScript, keyOf("workspace.example"), "workspace.example", "60000", "cworkspace.example gone"); value != "" || err != nil {
		t.Fatalf("Run = %v, %v, want no value, no error", value, err)
	}
	start := time.Now()
	answer, err := newEdge(t, client, func(context.Context, string) ([]net.MX, error) { return google, nil }).
		Classify(t.Context(), "workspace.example", netip.Addr{})
	if answer != (Answer{Provider: Gmail, Source: FromDNS}) || err != nil {
		t.Errorf("Classify = %+v, %v, want answer %v, no error", answer, err, (Answer{Provider: Gmail, Source: FromDNS}))
	}
	if waited := time.Since(start); waited < maxWait {
		t.Errorf("waited for %s, want %s", waited, maxWait)
	}
}

// A lookup that an edge had no turn for is made by another.
func TestClaimOfAFullLimiter(t *testing.T) {
	client := connect(t, redistest.Start(t))
	full := newEdge(t, client, func(context.Context, string) ([]net.MX, error) { return nil, ErrBusy })
	idle := newEdge(t, client, func(context.Context, string) ([]net.MX, error) { return google, nil })
	if answer, err := full.Classify(t.Context(), "workspace.example", netip.Addr{}); !answer.Failed || err != nil {
		t.Errorf("an edge whose limiter is full: got %+v, %v, want a failed answer", answer, err)
	}
	if claim, err := client.Run(`return redis.call("GET", KEYS[1]) or ""`, keyOf("workspace.example")); claim != "" || err != nil {
		t.Errorf("the full edge leaves the claim %q, %v, for which others would wait", claim, err)
	}
	if answer, err := idle.Classify(t.Context(), "workspace.example", netip.Addr{}); answer.Provider != Gmail || err != nil {
		t.Errorf("an idle edge: got %+v, %v, want gmail", answer, err)
	}
}

// An edge whose DNS does not work takes no answer away from the others, and one that was
// too late no claim.
func TestLateFailure(t *testing.T) {
	client := connect(t, redistest.Start(t))
	late := newShared(client, "")
	_, _, claim, ok := late.find(t.Context(), "workspace.example")
	if ok {
		t.Fatal("find: got an answer, want none yet")
	}
	late.drop("workspace.example", "cworkspace.example of-another")
	value, err := client.Run(findScript, keyOf("workspace.example"), "workspace.example", "1000", "cworkspace.example mine")
	if !strings.HasPrefix(value, claim) || err != nil {
		t.Errorf("another took the claim away: %q, %v", value, err)
	}
	late.keep("workspace.example", entry{provider: Gmail}, time.Minute, "cworkspace.example of-another")
	late.keep("workspace.example", entry{failed: true}, time.Minute, claim)
	if e, _, _, ok := late.find(t.Context(), "workspace.example"); !ok || e != (entry{provider: Gmail}) {
		t.Errorf("find = %+v, %v, want ok, e %v", e, ok, (entry{provider: Gmail}))
	}
	if _, _, _, ok := newShared(client, "9.9.9.9").find(t.Context(), "workspace.example"); ok {
		t.Error("find with other DNS servers: got an answer, want none")
	}
}

// Without Redis each edge looks up by itself.
func TestLookupsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	client := connect(t, server)
	server.Kill()
	for range 2 {
		answer, err := newEdge(t, client, func(context.Context, string) ([]net.MX, error) { return google, nil }).
			Classify(t.Context(), "workspace.example", netip.Addr{})
		if answer != (Answer{Provider: Gmail, Source: FromDNS}) || err != nil {
			t.Errorf("Classify = %+v, %v, want answer %v, no error", answer, err, (Answer{Provider: Gmail, Source: FromDNS}))
		}
	}
}

// Strangers who ask for many domains do not fill Redis: what they cause has a bound.
func TestSharedKeysAreBounded(t *testing.T) {
	longest := 0
	keys := make(map[string]bool)
	for i := range 100_000 {
		key := keyOf(fmt.Sprint(i, ".example"))
		keys[key], longest = true, max(longest, len(key))
	}
	if longest > len("lychgate:mx:1234567:")+4 { // 36^7 is more than 32 bits, and 36^4 more than sharedKeys
		t.Errorf("a key has %d bytes", longest)
	}
	if n := len(keys); n < 90_000 {
		t.Errorf("100,000 domains have %d keys only", n)
	}
	client := connect(t, redistest.Start(t))
	s := newShared(client, "")
	s.keep("first.example", entry{provider: Gmail}, time.Minute, "")
	// Another domain that happens to have its key takes its place.
	if value, err := client.Run(findScript, keyOf("first.example"), "second.example", "1000", "csecond.example x"); value != "" || err != nil {
		t.Errorf("Run = %q, %v, want no value, no error", value, err)
	}
	if _, _, _, ok := s.find(t.Context(), "first.example"); ok {
		t.Error("find of the domain before: got an answer, want it evicted")
	}
}

// What is in Redis may be another version's, or anybody's.
func TestParseShared(t *testing.T) {
	type parsed struct {
		entry
		ttl time.Duration
		ok  bool
	}
	for value, want := range map[string]parsed{
		"aworkspace.example gmail 1500":          {entry{provider: Gmail}, 1500 * time.Millisecond, true},
		"aworkspace.example  1500":               {entry{}, 1500 * time.Millisecond, true},
		"fworkspace.example  1500":               {entry{failed: true}, 1500 * time.Millisecond, true},
		"cworkspace.example  1500":               {},
		"aworkspace.example gmail -1":            {},
		"aworkspace.example gmail 0":             {},
		"aworkspace.example gmail 9999999999999": {},
		"aworkspace.example evil 1500":           {},
		"zworkspace.example gmail 1500":          {},
		"aworkspace.example gmail":               {},
		"a b c d e 1500":                         {},
		strings.Repeat("a", 1000):                {},
		"":                                       {},
	} {
		var got parsed
		got.entry, got.ttl, got.ok = parseShared(value)
		if got != want {
			t.Errorf("%q: %+v, want %+v", value, got, want)
		}
	}
}
