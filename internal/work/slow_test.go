package work

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

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
