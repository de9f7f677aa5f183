package work

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// This file tests what opens and closes the breaker of a site, and who is the probe.

func (b *bench) isClosed(site string) bool {
	_, breaker, _ := b.Queue.kind(site, "posts")
	return breaker.IsClosed()
}

// away has the breaker of daily opened by work at a platform that does not respond.
func (b *bench) away() {
	b.t.Helper()
	for i := range MaxUnanswered {
		b.add("daily", "posts", strconv.Itoa(i), false)
	}
	b.settleAll()
	if b.isClosed("daily") {
		b.t.Fatal("the breaker is closed, want it open")
	}
}

// One task that the platform never answers keeps nothing else of the site from it, also if it
// is of the kind that is first.
func TestOneTaskThatAlwaysFails(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily")
	b.Handle(b.kind("curation", "daily"))
	var isUp atomic.Bool
	b.do = func(_ context.Context, t Task) Result {
		if t.Kind == "posts" && isUp.Load() {
			return Result{}
		}
		return Result{Outcome: Again, Reason: "500", IsUnanswered: true}
	}
	b.add("daily", "curation", "poison", false)
	b.away()
	isUp.Store(true)
	for range 20 {
		b.pass(40 * time.Second)
		b.settleAll()
	}
	if left := b.left("daily"); len(left) != 1 || !strings.HasPrefix(left[0], "poison ") {
		t.Errorf("once the platform is back, left are %q, want only poison", left)
	}
}

// What says nothing of the platform neither opens nor closes its breaker: a lease that was lost,
// a check that fails again and again, and work for which nothing was sent.
func TestBreakerOnlyOfAnswers(t *testing.T) {
	t.Run("lost lease", func(t *testing.T) {
		db := dbtest.SQLite(t)
		b := newBench(t, db, "daily")
		b.do = func(ctx context.Context, t Task) Result {
			if _, err := db.Write.ExecContext(ctx, "UPDATE work SET holder = 'other' WHERE key = $1", t.Key); err != nil {
				b.t.Errorf("taking the lease: %v", err)
			}
			<-ctx.Done()
			return Result{Outcome: Again, IsUnanswered: true}
		}
		for i := range MaxUnanswered + 1 {
			b.add("daily", "posts", strconv.Itoa(i), false)
		}
		b.settleAll()
		if !b.isClosed("daily") {
			t.Error("the breaker is open after lost leases, want it closed")
		}
	})
	t.Run("check", func(t *testing.T) {
		b := newBench(t, dbtest.SQLite(t), "daily")
		var checks atomic.Int64
		b.do = func(context.Context, Task) Result {
			return Result{Outcome: Later, At: b.store.now().Add(time.Minute), IsUnanswered: checks.Add(1) > 1}
		}
		b.add("daily", "posts", "1", false)
		for range MaxUnanswered + 1 {
			b.settleAll()
			b.pass(61 * time.Second)
		}
		if n := checks.Load(); n != MaxUnanswered+1 || !b.isClosed("daily") {
			t.Errorf("%d checks of one task; closed: %t, want %d and true", n, b.isClosed("daily"), MaxUnanswered+1)
		}
	})
	t.Run("nothing sent", func(t *testing.T) {
		b := newBench(t, dbtest.SQLite(t), "daily")
		b.do = func(_ context.Context, t Task) Result {
			if t.Key == "draft" {
				return Result{IsUnasked: true}
			}
			return Result{Outcome: Again, IsUnanswered: true}
		}
		b.away()
		b.add("daily", "posts", "draft", false)
		for range 4 {
			b.pass(2 * time.Minute)
			b.settleAll()
		}
		if keys := b.keys(); !slices.Contains(keys, "draft") || b.isClosed("daily") {
			t.Errorf("done were %q; closed: %t, want the draft and an open breaker", keys, b.isClosed("daily"))
		}
	})
}

// A platform that hangs takes no slots from others, and is left alone once it has not responded
// five times: what is enqueued is then not even tried, until a probe is answered.
func TestBreakerOfASite(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily", "weekly")
	b.stopClock()
	var isUp atomic.Bool
	b.do = func(_ context.Context, t Task) Result {
		if t.Site == "weekly" || isUp.Load() {
			return Result{}
		}
		return Result{Outcome: Again, Reason: "It is down.", IsUnanswered: true}
	}
	for i := range MaxUnanswered {
		b.Try(t.Context(), b.add("daily", "posts", strconv.Itoa(i), true))
	}
	if task := b.add("daily", "posts", "more", true); task.Holder != "" {
		t.Errorf("work for a platform that does not respond: got holder %q, want it not leased", task.Holder)
	} else if _, ok := b.Try(t.Context(), task); ok {
		t.Error("Try for a platform that does not respond: got true, want false")
	}
	if a, ok := b.Try(t.Context(), b.add("weekly", "posts", "1", true)); !ok || a.Outcome != Done {
		t.Errorf("at another platform: %+v, %t; want done", a, ok)
	}
	n := len(b.keys())
	b.pass(time.Second)
	b.settleAll()
	b.settleAll()
	if got := len(b.keys()) - n; got != 1 {
		t.Errorf("%d attempts after a second, want one probe", got)
	}
	isUp.Store(true)
	b.pass(3 * time.Second)
	b.settleAll()
	b.settleAll()
	b.wantLeft("it responds")
	b.pass(3 * maxBackoff)
	b.settleAll()
	if len(b.breakers) != 0 {
		t.Errorf("%d breakers are kept, want none", len(b.breakers))
	}
}
