package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// call is an attempt that a caller waits for, at a task whose lease it has.
func (b *bench) call(site, key string, do func(context.Context)) error {
	task := b.add(site, "posts", key, true)
	return b.Call(b.t.Context(), task, 5*time.Second, func(ctx context.Context) Result {
		do(ctx)
		return Result{IsUnasked: true}
	})
}

func pause(d time.Duration) func(context.Context) {
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
}

// Of one site whose platform responds, many callers have their attempts, beside another whose platform hangs.
func TestManyCallersOfOneSite(t *testing.T) {
	bubble(t, []string{"daily", "hangs"}, func(*Kind) {}, func(b *bench) {
		var calls sync.WaitGroup
		var busy atomic.Int64
		for i := range maxSlowCalls / 2 {
			calls.Go(func() { _ = b.call("hangs", fmt.Sprint("h", i), pause(time.Hour)) })
		}
		for i := range 200 {
			calls.Go(func() {
				if err := b.call("daily", strconv.Itoa(i), pause(500*time.Millisecond)); err != nil {
					busy.Add(1)
				}
			})
		}
		calls.Wait()
		if n := busy.Load(); n > 0 {
			t.Errorf("%d of 200 callers had no attempt, want all", n)
		}
	})
}

// A check that takes long says nothing of its platform: callers of the site have the quick slots.
func TestLongChecksAreNoSlowPlatform(t *testing.T) {
	bubble(t, []string{"daily", "hangs"}, func(*Kind) {}, func(b *bench) {
		b.Handle(Kind{
			Name: "checks", IsCheck: true, Timeout: time.Hour, Platform: func(site string) any { return site },
			Do: func(ctx context.Context, _ Task) Result {
				pause(time.Minute)(ctx)
				return Result{IsUnasked: true}
			},
		})
		if _, err := b.Check(b.t.Context(), "daily", "checks", "1", time.Time{}, 1); err != nil {
			t.Fatalf("b.Check: %v", err)
		}
		<-time.After(2 * slowDue)
		var calls sync.WaitGroup
		_, hangs, _ := b.Queue.kind("hangs", "posts")
		hangs.Fail("1", false, b.store.now())
		for i := range maxSlowCalls {
			calls.Go(func() { _ = b.call("hangs", fmt.Sprint("h", i), pause(time.Hour)) })
		}
		<-time.After(time.Second)
		if err := b.call("daily", "1", func(context.Context) {}); err != nil {
			t.Errorf("Call beside a check: %v, want an attempt", err)
		}
		calls.Wait()
	})
}

// What a caller's attempt panics with takes no slot along.
func TestCallThatPanics(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Call did not panic")
				}
			}()
			_ = b.call("daily", "1", func(context.Context) { panic("of a test") })
		}()
		if n := b.calls.TakenBy("daily"); n != 0 {
			t.Errorf("%d slots are taken, want none", n)
		}
	})
}

// A site that is woken while all slots are taken is looked at when one is free, not with the next poll.
func TestWokenWithoutSlots(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		<-time.After(pollInterval + time.Millisecond)
		var free []func()
		for i := range maxDue {
			slot, site := b.due.TryAcquire(strconv.Itoa(i), false), strconv.Itoa(i)
			free = append(free, func() {
				slot.End()
				b.freed(site)
			})
		}
		b.add("daily", "posts", "1", false)
		b.Wake("daily")
		<-time.After(time.Second)
		for _, end := range free {
			end()
		}
		<-time.After(time.Second)
		if n := len(b.keys()); n != 1 {
			t.Errorf("%d tasks are done, want the one", n)
		}
	})
}

// hung is a table in a store that hangs when it is asked once.
type hung struct {
	Table
	asked atomic.Int64
}

func (h *hung) DueKinds(ctx context.Context) ([]string, error) {
	if h.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func (*hung) Purge(context.Context) error { return nil }

// A store that hangs for one question does not end all others.
func TestStoreThatHangsOnce(t *testing.T) {
	table := new(hung)
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		b.Handle(Kind{Name: "other", Table: table, Platform: func(string) any { return nil }})
		<-time.After(pollInterval + lookTimeout)
		b.add("daily", "posts", "1", false)
		<-time.After(2*lookTimeout + pollInterval)
		if n := len(b.keys()); n != 1 || table.asked.Load() < 2 {
			t.Errorf("%d tasks are done, and the store was asked %d times, want 1, and more than once", n, table.asked.Load())
		}
	})
}

// Open breakers whose probes have no slot cost no questions to the store.
func TestProbesWithoutSlots(t *testing.T) {
	asked := &counted{}
	bubble(t, []string{"daily"}, func(k *Kind) {}, func(b *bench) {
		asked.Table = b.store
		k := b.kind("other", "daily")
		k.Table = asked
		b.Handle(k)
		_, breaker, _ := b.Queue.kind("daily", "other")
		for i := range MaxUnanswered {
			breaker.Fail(strconv.Itoa(i), false, b.store.now())
		}
		var slots []interface{ End() }
		for i := range maxSlowDue {
			slots = append(slots, b.due.TryAcquire(strconv.Itoa(i), true))
		}
		<-time.After(time.Minute)
		if n := asked.due.Load(); n != 0 {
			t.Errorf("the store was asked %d times for what to probe, want never", n)
		}
		for _, slot := range slots {
			slot.End()
		}
		<-time.After(pollInterval)
		if asked.due.Load() == 0 || !breaker.IsClosed() {
			t.Errorf("with slots it was asked %d times, and the breaker is closed: %t, want it asked, and closed since nothing is left", asked.due.Load(), breaker.IsClosed())
		}
	})
}

// counted counts the questions for what is due.
type counted struct {
	Table
	due atomic.Int64
}

func (c *counted) Due(ctx context.Context, site, kind string, by time.Time, most int) ([]Task, error) {
	c.due.Add(1)
	return c.Table.Due(ctx, site, kind, by, most)
}

// What has failed is tried again after its backoff of some seconds, and what opens the breaker is probed a second later.
func TestRetriesComeInTime(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		var mu sync.Mutex
		var at []time.Duration
		begin := time.Now()
		b.do = func(context.Context, Task) Result {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(begin))
			return Result{Outcome: Again, IsUnanswered: true}
		}
		b.add("daily", "posts", "1", false)
		b.Wake("daily")
		<-time.After(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(at) < 3 || at[1]-at[0] > 2*FirstBackoff || at[2]-at[1] > 4*FirstBackoff {
			t.Errorf("attempts at %v, want the second and third after backoffs of some 2 and 4 s", at)
		}
	})
}

// What a process did when it was killed is done five seconds later by the process that is started in its place.
func TestKilledProcessIsReplaced(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		<-time.After(2 * time.Second) // since the process was started in its place
		b.add("daily", "posts", "1", true)
		<-time.After(5 * time.Second)
		synctest.Wait()
		b.wantLeft("after five seconds")
	})
}

// A caller that waited long for its slot keeps its lease meanwhile.
func TestLeaseOfACallerThatWaited(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		task := b.add("daily", "posts", "1", true)
		<-time.After(LeaseTime - time.Second)
		err := b.Call(b.t.Context(), task, 5*time.Second, func(ctx context.Context) Result {
			pause(5*time.Second - time.Millisecond)(ctx)
			if _, err := b.store.Lease(context.WithoutCancel(ctx), task, true); !errors.Is(err, ErrHeld) {
				t.Errorf("Lease by another: %v, want %v", err, ErrHeld)
			}
			return Result{IsUnasked: true}
		})
		if err != nil {
			t.Errorf("Call: %v", err)
		}
	})
}

// failing fails once when it is asked for what is due.
type failing struct {
	Table
	left atomic.Int64
}

func (f *failing) Due(ctx context.Context, site, kind string, by time.Time, most int) ([]Task, error) {
	if f.left.Add(-1) >= 0 {
		return nil, errors.New("connection reset")
	}
	return f.Table.Due(ctx, site, kind, by, most)
}

// An error of the store while a platform is to be probed ends no later probe.
func TestProbeAfterAnErrorOfTheStore(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		k := b.kind("posts", "daily")
		table := &failing{Table: b.store}
		k.Table = table
		b.Handle(k)
		_, breaker, _ := b.Queue.kind("daily", "posts")
		for i := range MaxUnanswered {
			breaker.Fail(strconv.Itoa(i), false, b.store.now())
		}
		table.left.Store(1)
		b.add("daily", "posts", "1", false)
		<-time.After(time.Minute)
		if n := len(b.keys()); n != 1 || !breaker.IsClosed() {
			t.Errorf("%d tasks are done, and the breaker is closed: %t, want the one, and it closed", n, breaker.IsClosed())
		}
	})
}

// However many callers of a site there are, those of another whose platform takes longer are not cut off.
func TestCallersOfAnotherSite(t *testing.T) {
	for _, takes := range []time.Duration{500 * time.Millisecond, 4500 * time.Millisecond} {
		bubble(t, []string{"daily", "weekly"}, func(*Kind) {}, func(b *bench) {
			var calls sync.WaitGroup
			for i := range 60 {
				calls.Go(func() { _ = b.call("daily", strconv.Itoa(i), pause(takes)) })
			}
			<-time.After(100 * time.Millisecond)
			var cut atomic.Int64
			for i := range 10 {
				calls.Go(func() {
					err := b.call("weekly", strconv.Itoa(i), func(ctx context.Context) {
						pause(1500 * time.Millisecond)(ctx)
						if ctx.Err() != nil {
							cut.Add(1)
						}
					})
					if err != nil {
						cut.Add(1)
					}
				})
			}
			calls.Wait()
			if n := cut.Load(); n > 0 {
				t.Errorf("%d of 10 attempts were cut off beside 60 that take %s, want none", n, takes)
			}
		})
	}
}

// What is pending is tried by a kind whose store answers, beside one whose does not.
func TestOneTableThatFails(t *testing.T) {
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		b.Handle(Kind{Name: "bad", Table: broken{}, Platform: func(string) any { return nil }})
		b.add("daily", "posts", "1", false)
		<-time.After(2 * pollInterval)
		if n := len(b.keys()); n != 1 {
			t.Errorf("%d tasks are done, want the one", n)
		}
	})
}

type broken struct{ Table }

func (broken) DueKinds(context.Context) ([]string, error) { return nil, errors.New("no such table") }

func (broken) Purge(context.Context) error { return errors.New("no such table") }

// unwritten fails whenever something is to be made due.
type unwritten struct {
	broken
	asked atomic.Int64
}

func (u *unwritten) MakeDue(context.Context, string) (map[string]int, error) {
	u.asked.Add(1)
	return nil, errors.New("no connection")
}

// While the store is away, what is to be tried soon is not tried without a pause.
func TestTrySoonWhileTheStoreIsAway(t *testing.T) {
	table := new(unwritten)
	bubble(t, []string{"daily"}, func(*Kind) {}, func(b *bench) {
		b.Handle(Kind{Name: "bad", Table: table, Platform: func(string) any { return nil }})
		b.TrySoon("daily")
		<-time.After(10 * time.Second)
		if n := table.asked.Load(); n < 2 || n > 12 {
			t.Errorf("asked %d times in 10 s, want about once a second", n)
		}
	})
}
