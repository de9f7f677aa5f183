package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
)

// perKeys are limiters of several processes that share a Redis, or one without.
func perKeys(processes int, scripts Scripts, clock *clock) (all []*PerKey) {
	name := fmt.Sprint("test", fleets.Add(1))
	for range processes {
		all = append(all, &PerKey{
			Limit: Limit{Requests: 3, Window: time.Minute}, Memories: &Memories{Clock: clock.now}, Redis: scripts, Name: name,
		})
	}
	return all
}

// eachPerKey runs a test without Redis, and for several processes with one.
func eachPerKey(t *testing.T, test func(t *testing.T, all []*PerKey, clock *clock)) {
	t.Run("memory", func(t *testing.T) {
		clock := new(clock)
		test(t, perKeys(1, nil, clock), clock)
	})
	t.Run("Redis", func(t *testing.T) {
		clock := new(clock)
		clock.advance(time.Hour)
		test(t, perKeys(2, newClient(t, redistest.Start(t)), clock), clock)
	})
}

// A key has its own limit, exact over all edges, beside keys that have the common one.
func TestPerKey(t *testing.T) {
	eachPerKey(t, func(t *testing.T, all []*PerKey, clock *clock) {
		crm, form := Key{1}, Key{2}
		five := Limit{Requests: 5, Window: 2 * time.Minute}
		next := 0
		taken := func(key Key, limit Limit) (n int) {
			for range 10 {
				next++
				if all[next%len(all)].Take(t.Context(), key, limit) == 0 {
					n++
				}
			}
			return n
		}
		got := []int{taken(crm, five), taken(form, Limit{})}
		clock.advance(time.Minute)
		got = append(got, taken(crm, five), taken(form, Limit{}))
		clock.advance(time.Minute)
		got = append(got, taken(crm, five), taken(form, Limit{Requests: -1}), taken(form, Limit{Requests: 3, Window: time.Minute}))
		if diff := cmp.Diff([]int{5, 3, 0, 3, 5, 3, 0}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A limit that changes holds at once, and the requests before it still count.
func TestPerKeyChangedLimit(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to Limit
		advance  time.Duration
		want     []int // requests let through before, at once afterwards, and once the first have left the window
	}{
		{"raised", Limit{4, time.Minute}, Limit{7, time.Minute}, 60 * time.Second, []int{4, 3, 7}},
		{"lowered", Limit{7, time.Minute}, Limit{4, time.Minute}, 60 * time.Second, []int{7, 0, 4}},
		{"lowered before it is used up", Limit{20, time.Minute}, Limit{12, time.Minute}, 60 * time.Second, []int{10, 2, 10}},
		{"a longer window", Limit{4, time.Minute}, Limit{4, time.Hour}, 60 * time.Second, []int{4, 0, 0}},
		{"a shorter window", Limit{4, time.Hour}, Limit{4, time.Minute}, 60 * time.Second, []int{4, 0, 4}},
		{"that of the others", Limit{4, time.Minute}, Limit{}, 60 * time.Second, []int{4, 0, 3}},
		{"its own", Limit{}, Limit{4, time.Minute}, 60 * time.Second, []int{3, 1, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachPerKey(t, func(t *testing.T, all []*PerKey, clock *clock) {
				take := func(limit Limit) (n int) {
					for i := range 10 {
						if all[i%len(all)].Take(t.Context(), Key{1}, limit) == 0 {
							n++
						}
					}
					return n
				}
				got := []int{take(test.from)}
				got = append(got, take(test.to))
				clock.advance(test.advance - time.Millisecond)
				if n := take(test.to); n != 0 {
					t.Errorf("%d were let through too early", n)
				}
				clock.advance(time.Millisecond)
				got = append(got, take(test.to))
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Callers of a key get its allowance between them, also right after its limit changed.
func TestPerKeyConcurrently(t *testing.T) {
	p := perKeys(1, nil, new(clock))[0]
	var taken atomic.Int64
	for _, limit := range []Limit{{Requests: 50, Window: time.Hour}, {Requests: 60, Window: 2 * time.Hour}, {Requests: 20, Window: time.Minute}} {
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				for range 50 {
					if p.Take(context.Background(), Key{1}, limit) == 0 {
						taken.Add(1)
					}
					p.Take(context.Background(), Key{2, byte(i)}, Limit{})
				}
			})
		}
		callers.Wait()
	}
	if n := taken.Load(); n != 60 {
		t.Errorf("%d requests were let through, want 60", n)
	}
}

// Limits that nobody has any more cost no memory.
func TestMemoriesForgetLimits(t *testing.T) {
	clock := new(clock)
	p := perKeys(1, nil, clock)[0]
	for i := range 3 * sweepAt {
		clock.advance(2 * time.Second)
		p.Take(t.Context(), Key{byte(i)}, Limit{Requests: 1 + i, Window: time.Second})
	}
	if n := len(p.Memories.limits); n > sweepAt {
		t.Errorf("%d limits are remembered, want %d at most", n, sweepAt)
	}
}
