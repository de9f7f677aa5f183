package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// newClient waits until the client is connected.
func newClient(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	client, err := redis.New(redis.Config{URL: "redis://" + server.Address, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	client.Start()
	t.Cleanup(client.Close)
	waitUp(t, client, true)
	return client
}

func waitUp(t *testing.T, client *redis.Client, up bool) {
	t.Helper()
	wait.Until(t, func() string {
		if client.Up() != up {
			return fmt.Sprintf("Redis up: %v, want %v", !up, up)
		}
		return ""
	})
}

// fleet is a limiter of several processes, which are asked in turn.
type fleet struct {
	edges []*Shared
	next  atomic.Int64
}

var fleets atomic.Int64

// newFleet has a name of its own in Redis, so that fleets do not share counts.
func newFleet(t testing.TB, edges int, client Scripts, limit Limit, clock *clock) *fleet {
	f := new(fleet)
	name := fmt.Sprint("test", fleets.Add(1))
	for range edges {
		cfg := SharedConfig{Limit: limit, Redis: client, Name: name}
		local := MemoryConfig{Limit: limit}
		if clock != nil {
			cfg.Clock, local.Clock = clock.now, clock.now
		}
		cfg.Local = newMemory(t, local)
		f.edges = append(f.edges, NewShared(cfg))
	}
	return f
}

func (f *fleet) edge() *Shared { return f.edges[int(f.next.Add(1))%len(f.edges)] }

func (f *fleet) Take(ctx context.Context, key Key) time.Duration { return f.edge().Take(ctx, key) }
func (f *fleet) Wait(ctx context.Context, key Key) time.Duration { return f.edge().Wait(ctx, key) }

// A limiter in Redis keeps the contract, for one edge and for several that share it.
func TestRateLimitHoldsForEdgesWithRedis(t *testing.T) {
	client := newClient(t, redistest.Start(t))
	for _, edges := range []int{1, 3} {
		t.Run(fmt.Sprint(edges, " edges"), func(t *testing.T) {
			testLimiter(t, func(t testing.TB, limit Limit, clock *clock) Limiter {
				return newFleet(t, edges, client, limit, clock)
			})
		})
	}
}

// countingScripts counts what Redis is asked.
type countingScripts struct {
	Scripts
	asked atomic.Int64
}

func (c *countingScripts) Run(script, key string, args ...string) (string, error) {
	c.asked.Add(1)
	return c.Scripts.Run(script, key, args...)
}

// Anyone who was refused costs Redis nothing until there is an allowance again.
func TestSharedRefusalsAskNobody(t *testing.T) {
	scripts := &countingScripts{Scripts: newClient(t, redistest.Start(t))}
	f := newFleet(t, 2, scripts, Limit{Requests: 3, Window: time.Hour}, nil)
	for range 3 {
		if wait := f.edges[0].Take(t.Context(), Key{}); wait != 0 {
			t.Fatalf("wait %s, want none", wait)
		}
	}
	for range 100 {
		if f.edges[0].Take(t.Context(), Key{}) == 0 || f.edges[1].Take(t.Context(), Key{}) == 0 {
			t.Fatal("Take: got a fourth request let through, want it refused")
		}
	}
	if n := scripts.asked.Load(); n != 4 { // the second edge once, to learn of the three
		t.Errorf("Redis was asked %d times, want 4", n)
	}
	if a, b := f.edges[0].Wait(t.Context(), Key{}), f.edges[1].Wait(t.Context(), Key{}); (a - b).Abs() > time.Minute {
		t.Errorf("the edges say %s and %s", a, b)
	}
}

// While Redis is away each edge limits by itself, counting what it let through before,
// and the fleet is exact again when Redis is back.
func TestSharedWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server)
	f := newFleet(t, 2, client, Limit{Requests: 4, Window: time.Hour}, nil)
	take := func(edge int, key Key) bool { return f.edges[edge].Take(t.Context(), key) == 0 }
	jane, joe := Key{1}, Key{2}
	for _, edge := range []int{0, 0, 1} {
		if !take(edge, jane) {
			t.Fatal("Take for jane: got refused, want 3 requests let through")
		}
	}
	server.Kill()
	// The first edge has let two through, the second one.
	for edge, left := range []int{2, 3} {
		for range left {
			if !take(edge, jane) {
				t.Fatalf("edge %d refuses too early", edge)
			}
		}
		if take(edge, jane) {
			t.Fatalf("edge %d lets too many through", edge)
		}
	}
	waitUp(t, client, false)
	server.Restart()
	waitUp(t, client, true)
	for range 4 {
		if !take(0, joe) && !take(1, joe) {
			t.Fatal("Take for joe: got refused, want 4 requests let through")
		}
	}
	if take(0, joe) || take(1, joe) {
		t.Error("Take for joe: got a fifth request let through, want it refused")
	}
	if take(0, jane) || take(1, jane) {
		t.Error("Take for jane: got a request let through, want it refused by what an edge has counted meanwhile")
	}
}

// Clocks of edges are not asked: a reader's wait is true by Redis's.
func TestSharedClock(t *testing.T) {
	client := newClient(t, redistest.Start(t))
	limit := Limit{Requests: 2, Window: time.Second}
	f := newFleet(t, 2, client, limit, nil)
	start := time.Now()
	for range 2 {
		if wait := f.Take(t.Context(), Key{}); wait != 0 {
			t.Fatalf("wait %s, want none", wait)
		}
	}
	refused := f.edges[1].Take(t.Context(), Key{})
	if refused <= 0 || refused > limit.Window {
		t.Fatalf("wait %s", refused)
	}
	for f.Take(t.Context(), Key{}) > 0 {
	}
	if waited := time.Since(start); waited < limit.Window {
		t.Errorf("let through after %s", waited)
	}
}

// A clock of Redis's that is set back, or another Redis that takes over, neither lets
// a reader have more nor locks them out for longer than a window.
func TestSharedClockSetBack(t *testing.T) {
	client := newClient(t, redistest.Start(t))
	for name, test := range map[string]struct {
		back, want time.Duration
	}{
		"a little": {time.Second, time.Minute},
		"a year":   {365 * 24 * time.Hour, 0},
	} {
		clock := new(clock)
		clock.advance(2 * 365 * 24 * time.Hour)
		// Each is another edge, whose own count knows nothing.
		f := newFleet(t, 3, client, Limit{Requests: 1, Window: time.Minute}, clock)
		if wait := f.edges[0].Take(t.Context(), Key{}); wait != 0 {
			t.Fatalf("wait %s, want none", wait)
		}
		clock.advance(-test.back)
		if wait := f.edges[1].Wait(t.Context(), Key{}); wait != test.want {
			t.Errorf("%s: wait %s, want %s", name, wait, test.want)
		}
	}
}

// Keys go when they no longer count, so that strangers do not fill Redis.
func TestSharedKeysExpire(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, 1, newClient(t, server), Limit{Requests: 2, Window: 50 * time.Millisecond}, nil)
	var readers sync.WaitGroup
	for reader := range 100 {
		readers.Go(func() { f.Take(t.Context(), Key{byte(reader)}) })
	}
	readers.Wait()
	wait.Until(t, func() string {
		if n := server.Command("DBSIZE"); n != "0" && n != "1" { // the probe's
			return "there are still " + n
		}
		return ""
	})
}
