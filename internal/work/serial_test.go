package work

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Serial work of a site is done one at a time, in the order in which it was asked for; that of
// another site meanwhile.
func TestSerialWorkIsDoneInOrder(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily", "weekly")
	k := b.kind("posts", "daily", "weekly")
	k.IsSerial = true
	b.Handle(k)
	begun, end := make(chan string, 10), make(chan struct{})
	b.do = func(_ context.Context, t Task) Result {
		begun <- t.Key
		if t.Site == "daily" {
			<-end
		}
		return Result{}
	}
	var working sync.WaitGroup
	for _, key := range []string{"1", "2"} {
		task := b.add("daily", "posts", key, true)
		working.Go(func() {
			if _, ok := b.Try(t.Context(), task); !ok {
				t.Errorf("Try of task %s: got false, want true", key)
			}
		})
		if key == "1" {
			<-begun
		}
	}
	if _, ok := b.Try(t.Context(), b.add("weekly", "posts", "3", true)); !ok {
		t.Error("Try for another site: got false, want true")
	}
	if key := <-begun; key != "3" {
		t.Errorf("%s has begun beside the first one", key)
	}
	close(end)
	working.Wait()
}

// Of serial work that is due, one task of a site takes a slot, however many there are: sites that
// hang leave slots to others.
func TestSerialSlots(t *testing.T) {
	sites := []string{"healthy"}
	for i := range dueOfSite {
		sites = append(sites, "hangs"+strconv.Itoa(i))
	}
	b := newBench(t, dbtest.SQLite(t), sites...)
	k := b.kind("posts", sites...)
	k.IsSerial = true
	b.Handle(k)
	begun, end := make(chan string, 100), make(chan struct{})
	b.do = func(_ context.Context, t Task) Result {
		begun <- t.Site
		if t.Site != "healthy" {
			<-end
		}
		return Result{}
	}
	for _, site := range sites[1:] {
		b.add(site, "posts", "1", false)
		b.add(site, "posts", "2", false)
	}
	for range 6 {
		if err := b.startDue(t.Context()); err != nil {
			t.Fatalf("b.startDue: %v", err)
		}
	}
	for range sites[1:] {
		<-begun
	}
	for _, site := range sites[1:] {
		if n := b.due.TakenBy(site); n != 1 {
			t.Errorf("%s takes %d slots, want one", site, n)
		}
	}
	b.add("healthy", "posts", "1", false)
	if err := b.startDue(t.Context()); err != nil {
		t.Fatalf("b.startDue: %v", err)
	}
	if site := <-begun; site != "healthy" {
		t.Errorf("%s has begun a second task", site)
	}
	close(end)
	b.settleAll()
	b.wantLeft("after the sites respond")
}

// Serial work of a site is done one at a time by all processes on a store, so that two changes
// of one post do not undo each other.
func TestSerialOfTwoProcesses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		begun, end := make(chan struct{}, 2), make(chan struct{})
		var benches []*bench
		for range 2 {
			b := newBench(t, db, "daily")
			k := b.kind("posts", "daily")
			k.IsSerial = true
			b.Handle(k)
			b.do = func(context.Context, Task) Result {
				begun <- struct{}{}
				<-end
				return Result{}
			}
			benches = append(benches, b)
		}
		first, second := benches[0], benches[1]
		first.add("daily", "posts", "1", false)
		if err := first.startDue(t.Context()); err != nil {
			t.Fatalf("first.startDue: %v", err)
		}
		<-begun
		second.add("daily", "posts", "2", false)
		second.settleAll()
		select {
		case <-begun:
			t.Error("the second process has begun another task of the site, want it to wait")
		default:
		}
		close(end)
		first.idle()
		second.settleAll()
		second.wantLeft("after the first process has released the site")
	})
}

// Due work with the same line is done one at a time, in the order in which it was asked for, and other work beside it.
func TestWorkInLine(t *testing.T) {
	b := newBench(t, dbtest.SQLite(t), "daily")
	k := b.kind("posts", "daily")
	k.Line = func(key string) string { return key[:1] }
	b.Handle(k)
	var mu sync.Mutex
	var done []string
	under := 0
	isBeside := make(chan struct{})
	b.do = func(_ context.Context, t Task) Result {
		if t.Key[0] == 'b' {
			close(isBeside)
			return Result{}
		}
		mu.Lock()
		under++
		done = append(done, t.Key+" "+strconv.Itoa(under))
		mu.Unlock()
		<-isBeside
		mu.Lock()
		under--
		mu.Unlock()
		return Result{}
	}
	for _, key := range []string{"a3", "a1", "a4", "a2", "b1"} {
		b.add("daily", "posts", key, false)
		b.pass(time.Millisecond)
	}
	if err := b.DoDue(t.Context()); err != nil {
		t.Fatalf("b.DoDue: %v", err)
	}
	if diff := cmp.Diff([]string{"a3 1", "a1 1", "a4 1", "a2 1"}, done); diff != "" {
		t.Errorf("what was done, and how many were under way (-want +got): %s", diff)
	}
}
