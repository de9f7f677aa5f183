package work

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Sites whose platforms take long, however much their staff ask for, keep no other site from its attempts, nor
// what polls it.
func TestSlowSitesLeaveSlots(t *testing.T) {
	sites := []string{"quick"}
	for n := range 16 {
		sites = append(sites, fmt.Sprint("slow", n))
	}
	b := newBench(t, dbtest.SQLite(t), sites...)
	end := make(chan struct{})
	var slow atomic.Int64
	b.do = func(_ context.Context, task Task) Result {
		if task.Site != "quick" {
			slow.Add(1)
			<-end
		}
		return Result{}
	}
	t.Cleanup(func() { close(end) })
	ctx, leave := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	for _, site := range sites[1:] {
		for n := range callsOfSite {
			task := b.add(site, "posts", strconv.Itoa(n), true)
			asked.Go(func() { b.Try(ctx, task) })
		}
	}
	wait.Until(t, func() string {
		if n := slow.Load(); n < maxCalls/2 {
			return fmt.Sprintf("%d attempts are slow", n)
		}
		return ""
	})
	if a, isKnown := b.Try(t.Context(), b.add("quick", "posts", "a", true)); !isKnown || a.Outcome != Done {
		t.Errorf("Try at a quick site: %+v, %t, want it done", a, isKnown)
	}
	b.add("quick", "posts", "b", false)
	if err := b.startDue(t.Context()); err != nil {
		t.Fatalf("startDue: %v", err)
	}
	wait.Until(t, func() string {
		if !slices.Contains(b.keys(), "b") {
			return "what is due at the quick site was not done"
		}
		return ""
	})
	leave()
	asked.Wait()
}

// A mail server that does not respond has its own breaker, which does not pause a site's work for the platform, and a
// platform that does not respond delays no mail.
func TestServicesHaveTheirBreakers(t *testing.T) {
	for name, broken := range map[string]string{"mail server": "mails", "platform": "posts"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, dbtest.SQLite(t), "daily")
			b.stopClock()
			mails := b.kind("mails", "daily")
			mails.Service = "mail server"
			b.Handle(mails)
			b.do = func(_ context.Context, task Task) Result {
				if task.Kind == broken {
					return Result{Outcome: Again, Reason: "no response", IsUnanswered: true}
				}
				return Result{}
			}
			var want []string
			for n := range MaxUnanswered {
				b.add("daily", broken, fmt.Sprint("broken", n), false)
			}
			b.settleAll()
			b.add("daily", broken, fmt.Sprint("broken", MaxUnanswered), false)
			for _, kind := range []string{"mails", "posts"} {
				if kind != broken {
					b.add("daily", kind, "works", false)
				}
			}
			b.settleAll()
			left := b.left("daily")
			for n := range MaxUnanswered {
				want = append(want, fmt.Sprintf("broken%d 1 no response", n))
			}
			want = append(want, fmt.Sprintf("broken%d 0 ", MaxUnanswered))
			slices.Sort(left)
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("left, want -, got +: %s", diff)
			}
			if paused := b.IsPaused("daily"); paused != (broken == "posts") {
				t.Errorf("IsPaused = %t", paused)
			}
			b.do = func(context.Context, Task) Result { return Result{} }
			b.pass(2 * maxProbeInterval)
			b.settleAll()
			b.settleAll() // what the probe has made due
			if left := b.left("daily"); len(left) > 0 {
				t.Errorf("left once it responds: %q", left)
			}
		})
	}
}
