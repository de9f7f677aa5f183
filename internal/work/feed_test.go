package work

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// bubble runs a queue in a bubble of time, whose one kind is as changed says.
func bubble(t *testing.T, sites []string, changed func(*Kind), test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		db, err := database.Open(t.Context(), database.SQLite, filepath.Join(t.TempDir(), "work.db"))
		if err != nil {
			t.Fatalf("database.Open: %v", err)
		}
		defer db.Close()
		b := newBench(t, db, sites...)
		k := b.kind("posts", sites...)
		changed(&k)
		b.Handle(k)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			b.Run(ctx)
			close(done)
		}()
		test(b)
		cancel()
		<-done
	})
}

// Work of very many sites that is due at once, such as after a night without an edge, is done as fast as there are slots,
// not as often as is looked for it. So is much work of one site.
func TestDueWorkFillsAllSlots(t *testing.T) {
	const tasks, takes = 600, 100 * time.Millisecond
	for name, test := range map[string]struct{ sites, atOnce int }{
		"of many sites": {tasks, maxDue},
		"of one site":   {1, dueOfSite},
	} {
		t.Run(name, func(t *testing.T) {
			var sites []string
			for i := range test.sites {
				sites = append(sites, fmt.Sprintf("site%03d", i))
			}
			bubble(t, sites, func(*Kind) {}, func(b *bench) {
				b.do = func(context.Context, Task) Result {
					<-time.After(takes)
					return Result{}
				}
				for i := range tasks {
					b.add(sites[i%len(sites)], "posts", strconv.Itoa(i), false)
				}
				begin := time.Now()
				b.Wake(sites[0])
				<-time.After(pollInterval + 2*takes*tasks/time.Duration(test.atOnce))
				if n := len(b.keys()); n != tasks {
					t.Errorf("%d of %d tasks were done in %s, want all", n, tasks, time.Since(begin))
				}
			})
		})
	}
}

// What a kind may do at once is bounded, and all of it is done all the same, beside others of the site.
func TestKindsAreBounded(t *testing.T) {
	const most, tasks = 2, 40
	var sites []string
	for i := range tasks {
		sites = append(sites, fmt.Sprintf("site%03d", i))
	}
	var now, atOnce atomic.Int64
	bubble(t, sites, func(k *Kind) { k.Most = most }, func(b *bench) {
		b.do = func(context.Context, Task) Result {
			if n := now.Add(1); n > atOnce.Load() {
				atOnce.Store(n)
			}
			defer now.Add(-1)
			<-time.After(time.Second)
			return Result{}
		}
		for i := range tasks {
			b.add(sites[i], "posts", "1", false)
		}
		<-time.After(pollInterval + tasks/most*time.Second + time.Millisecond)
		if n := len(b.keys()); n != tasks || atOnce.Load() != most {
			t.Errorf("%d of %d tasks were done, %d at once, want all, %d at once", n, tasks, atOnce.Load(), most)
		}
	})
}

// Checks that hang, however many, keep nothing that is pending from its slots, and are no probes of a platform that does not
// respond.
func TestChecksLeaveSlotsToPendingWork(t *testing.T) {
	var sites []string
	for i := range 2 * MaxChecks {
		sites = append(sites, fmt.Sprintf("site%03d", i))
	}
	bubble(t, sites, func(*Kind) {}, func(b *bench) {
		var now, most atomic.Int64
		b.Handle(Kind{
			Name: "checks", IsCheck: true, Timeout: time.Hour, Platform: func(site string) any { return site },
			Do: func(ctx context.Context, _ Task) Result {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer now.Add(-1)
				<-ctx.Done()
				return Result{Outcome: Again, IsUnasked: true}
			},
		})
		for _, site := range sites {
			if _, err := b.Check(b.t.Context(), site, "checks", "1", time.Time{}, 1); err != nil {
				t.Fatalf("b.Check: %v", err)
			}
		}
		<-time.After(pollInterval)
		if n := now.Load(); n != MaxChecks {
			t.Errorf("%d checks are under way, want as many as there are slots for them, %d", n, MaxChecks)
		}
		for _, site := range sites {
			b.add(site, "posts", "1", false)
		}
		<-time.After(2 * pollInterval)
		if n := len(b.keys()); n != len(sites) {
			t.Errorf("%d of %d posts are done beside them, want all", n, len(sites))
		}
		_, breaker, _ := b.Queue.kind(sites[0], "posts")
		for i := range MaxUnanswered {
			breaker.Fail(strconv.Itoa(i), false, b.store.now())
		}
		b.add(sites[0], "posts", "2", false)
		<-time.After(2 * pollInterval)
		if n := most.Load(); n > MaxChecks || !breaker.IsClosed() {
			t.Errorf("%d checks at once, and the breaker is closed: %t, want %d at most, and it closed by the post", n, breaker.IsClosed(), MaxChecks)
		}
	})
}
