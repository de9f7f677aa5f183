package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Mail servers of many sites that hang leave the mails of another site alone, and all slow slots to platforms that take long.
func TestServicesThatHangDelayNothingElse(t *testing.T) {
	sites := []string{"works"}
	for n := range maxSlowDue {
		sites = append(sites, fmt.Sprint("hangs", n))
	}
	b := newBench(t, dbtest.SQLite(t), sites...)
	mails := b.kind("mails", sites...)
	mails.Service = "mail server"
	b.Handle(mails)
	end := make(chan struct{})
	var hanging, slow, cut atomic.Int64
	b.do = func(ctx context.Context, task Task) Result {
		if task.Site == "works" {
			return Result{}
		}
		count := &hanging
		if task.Kind == "posts" {
			count = &slow
		}
		count.Add(1)
		select {
		case <-end:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), limiter.ErrTooLong) {
				cut.Add(1)
			}
		}
		return Result{}
	}
	t.Cleanup(func() { close(end) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	reach := func(what string, count *atomic.Int64, least int64) {
		t.Helper()
		wait.Until(t, func() string {
			b.signal()
			if n := count.Load(); n < least {
				return fmt.Sprintf("%d %s, want %d", n, what, least)
			}
			return ""
		})
	}
	for _, site := range sites[1:] {
		for n := range dueOfSite {
			b.add(site, "mails", strconv.Itoa(n), false)
		}
		b.Wake(site)
	}
	reach("mails hang", &hanging, maxSlowDue)
	b.add("works", "mails", "mail", false)
	b.Wake("works")
	wait.Until(t, func() string {
		if got := strings.Join(b.keys(), " "); got != "mail" {
			return "done: " + got + ", want the mail of the site whose server works"
		}
		return ""
	})
	for _, site := range sites[1:] {
		b.add(site, "posts", "post", false)
		b.Wake(site)
	}
	reach("posts are slow", &slow, maxSlowDue)
	wait.Until(t, func() string {
		if !b.due.IsFull(true) {
			return "some slow slots are free, want all in use by posts"
		}
		return ""
	})
	if n := cut.Load(); n > 0 {
		t.Errorf("%d attempts were cut off, want none", n)
	}
}

// A task that pauses its kind at a site leaves the others there for the next look.
func TestPausedKind(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily", "weekly")
	b.stopClock()
	var asked atomic.Int64
	b.do = func(_ context.Context, task Task) Result {
		if task.Site == "daily" {
			asked.Add(1)
			return Result{Outcome: Again, Reason: "later", IsUnasked: true, Pauses: true}
		}
		return Result{}
	}
	for n := range 3 * maxBatch {
		b.add("daily", "posts", fmt.Sprint("daily", n), false)
		b.add("weekly", "posts", fmt.Sprint("weekly", n), false)
	}
	if err := b.DoDue(t.Context()); err != nil {
		t.Fatalf("DoDue: %v", err)
	}
	if n, left := asked.Load(), len(b.left("weekly")); n < 1 || n > dueOfSite || left > 0 {
		t.Errorf("%d tasks of the paused site were tried, and %d of the other are left, want 1 to %d, and 0", n, left, dueOfSite)
	}
}
