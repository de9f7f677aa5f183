package ratelimit

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

func TestMain(m *testing.M) { wait.Goroutines(m) }

// clock is a time that only moves when told to.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Duration      { return time.Duration(c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

// testLimiter holds an implementation to the contract of Limiter. It is given
// a way to make a limiter on a clock.
func testLimiter(t *testing.T, newLimiter func(t testing.TB, limit Limit, clock *clock) Limiter) {
	jane, joe := Key{1}, Key{2}

	t.Run("window slides", func(t *testing.T) {
		clock := new(clock)
		limiter := newLimiter(t, Limit{Requests: 3, Window: time.Minute}, clock)
		steps := []struct {
			advance time.Duration
			want    time.Duration
		}{
			{0, 0}, // at 0 s
			{20 * time.Second, 0},
			{30 * time.Second, 0},          // at 50 s
			{0, 10 * time.Second},          // until the first has left
			{9 * time.Second, time.Second}, // a refused request does not count
			{time.Second, 0},               // at 60 s: exactly one is free
			{0, 20 * time.Second},          // until the one of 20 s has left
			{20*time.Second - 1000, 1000},  // a microsecond short
			{1000, 0},                      // at 80 s
			{0, 30 * time.Second},          // until the one of 50 s has left
			{time.Hour, 0},
			{0, 0},
			{0, 0},                          // all are free
			{0, time.Minute},                // and taken
			{59 * time.Second, time.Second}, // no moment at which all start anew
			{time.Second, 0},
			{0, 0},
			{0, 0},                              // but they all came at once
			{time.Nanosecond, 60 * time.Second}, // less than the clock's resolution
			{100 * 24 * time.Hour, 0},
			{0, 0}, // long idle
		}
		for i, step := range steps {
			clock.advance(step.advance)
			if got := limiter.Take(t.Context(), jane); got != step.want {
				t.Fatalf("step %d, at %s: wait %s, want %s", i, clock.now(), got, step.want)
			}
		}
	})

	t.Run("keys do not share", func(t *testing.T) {
		limiter := newLimiter(t, Limit{Requests: 1, Window: time.Minute}, new(clock))
		for _, key := range []Key{jane, joe} {
			if wait := limiter.Take(t.Context(), key); wait != 0 {
				t.Errorf("%v has to wait %s", key, wait)
			}
		}
	})

	t.Run("many callers never get more", func(t *testing.T) {
		const limit = 100
		limiter := newLimiter(t, Limit{Requests: limit, Window: time.Hour}, new(clock))
		var taken atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range limit {
					if limiter.Take(t.Context(), jane) == 0 {
						taken.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := taken.Load(); n != limit {
			t.Errorf("%d taken, want %d", n, limit)
		}
	})

	t.Run("as the plain rule says", rapid.MakeCheck(func(t *rapid.T) {
		limit := Limit{
			Requests: rapid.IntRange(1, 5).Draw(t, "requests"),
			Window:   time.Duration(rapid.IntRange(1, 50).Draw(t, "window")) * time.Millisecond,
		}
		clock := new(clock)
		limiter := newLimiter(nil, limit, clock)
		// Somewhere around where 32 bits of microseconds end.
		clock.advance(time.Duration(rapid.IntRange(0, 1<<33).Draw(t, "start")) * time.Microsecond)
		taken := map[Key][]time.Duration{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			clock.advance(time.Duration(rapid.OneOf(rapid.IntRange(0, 20_000), rapid.IntRange(1<<32-20_000, 1<<32+20_000),
				rapid.Just(0)).Draw(t, "advance")) * time.Microsecond)
			key := Key{byte(rapid.IntRange(1, 4).Draw(t, "key"))}

			// The rule: count those of the last window, the oldest frees first.
			now, inWindow := clock.now(), []time.Duration(nil)
			for _, at := range taken[key] {
				if now-at < limit.Window {
					inWindow = append(inWindow, at)
				}
			}
			var want time.Duration
			if len(inWindow) >= limit.Requests {
				want = inWindow[0] + limit.Window - now
			} else {
				inWindow = append(inWindow, now)
			}
			taken[key] = inWindow

			if got := limiter.Wait(nil, key); got != want { //nolint:staticcheck // the context does not matter
				t.Fatalf("at %s, limit %v: would wait %s, want %s", now, limit, got, want)
			}
			if got := limiter.Take(nil, key); got != want { //nolint:staticcheck // the context does not matter
				t.Fatalf("at %s, limit %v: wait %s, want %s", now, limit, got, want)
			}
		}
	}))
}

func TestAddrKey(t *testing.T) {
	same := [][2]string{
		{"192.0.2.1", "::ffff:192.0.2.1"},
		{"2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff"},
		{"fe80::1%eth0", "fe80::2"},
	}
	for _, pair := range same {
		if a, b := addrKey(pair[0]), addrKey(pair[1]); a != b {
			t.Errorf("%s and %s have the keys %x and %x, want one", pair[0], pair[1], a, b)
		}
	}
	differ := [][2]string{
		{"192.0.2.1", "192.0.2.2"},
		{"2001:db8:0:1::1", "2001:db8:0:2::1"},
		{"0.0.0.0", "::"},
	}
	for _, pair := range differ {
		if a, b := addrKey(pair[0]), addrKey(pair[1]); a == b {
			t.Errorf("%s and %s share the key %x", pair[0], pair[1], a)
		}
	}
	if got := AddrKey(netip.Addr{}); got != (Key{}) {
		t.Errorf("the invalid address has the key %x", got)
	}
}

func addrKey(s string) Key { return AddrKey(netip.MustParseAddr(s)) }

func TestRetryAfter(t *testing.T) {
	for wait, want := range map[time.Duration]int{
		1:                            1,
		time.Second - 1:              1,
		time.Second:                  1,
		time.Second + 1:              2,
		59*time.Second + 1_000_000:   60,
		60 * time.Second:             60,
		24*time.Hour - time.Second/2: 86400,
	} {
		if got := RetryAfter(wait); got != want {
			t.Errorf("RetryAfter(%s) = %d, want %d", wait, got, want)
		}
	}
}
