// Package worktest has what every [work.Table] must do, and queues for tests.
package worktest

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Queue makes a queue that does not run, on a database of its own, also in a bubble of time.
func Queue(t *testing.T) *work.Queue {
	t.Helper()
	db, err := database.Open(t.Context(), database.SQLite, filepath.Join(t.TempDir(), "work.db"))
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("db.Close: %v", err)
		}
	})
	queue, err := work.New(t.Context(), db, zap.NewNop(), time.Now) // as all else of a test
	if err != nil {
		t.Fatalf("work.New: %v", err)
	}
	return queue
}

// Bench is a table with what changes it from outside.
type Bench struct {
	work.Table
	Kind string
	Now  *time.Time // the clock of the table

	Add  func(site, key string)             // has a task that is due at once
	Fail func(t work.Task, until time.Time) // notes that an attempt has failed, by the holder of the lease
	Done func(t work.Task)                  // likewise that the platform has it
}

// Table checks the contract of a table in which there is nothing.
func Table(t *testing.T, b Bench) {
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	due := func(site string, by time.Time) (keys []string) {
		t.Helper()
		list, err := b.Due(ctx, site, b.Kind, by, 10)
		must("Due", err)
		for _, task := range list {
			keys = append(keys, task.Key)
		}
		return keys
	}
	want := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, want -, got +: %s", what, diff)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		b.Add("daily", key)
		*b.Now = b.Now.Add(time.Second)
	}
	b.Add("weekly", "d")
	kinds, err := b.DueKinds(ctx)
	must("DueKinds", err)
	want("DueKinds", []string{b.Kind}, kinds)
	sites, err := b.DueSites(ctx, b.Kind, work.DueSite{})
	must("DueSites", err)
	if len(sites) != 2 || sites[0].Site != "daily" || sites[1].Site != "weekly" {
		t.Errorf("DueSites: %v, want daily and weekly", sites)
	}
	behind, err := b.DueSites(ctx, b.Kind, sites[0])
	must("DueSites behind the first", err)
	want("DueSites behind the first", sites[1:], behind)

	a, err := b.Lease(ctx, work.Task{Site: "daily", Kind: b.Kind, Key: "a"}, false)
	must("Lease", err)
	if a.Key != "a" || a.Site != "daily" || a.Kind != b.Kind || a.Holder == "" || !a.Until.Equal(b.Now.Add(work.LeaseTime).Truncate(time.Millisecond)) {
		t.Errorf("Lease: %+v, want a leased until %s", a, b.Now.Add(work.LeaseTime))
	}
	want("due beside a leased one", []string{"b", "c"}, due("daily", *b.Now))
	other := a
	other.Holder = "another"
	if _, err := b.Lease(ctx, a, true); !errors.Is(err, work.ErrHeld) {
		t.Errorf("Lease of a leased one: %v, want %v", err, work.ErrHeld)
	}
	for what, got := range map[string]error{"Prolong": b.Prolong(ctx, other, *b.Now), "Release": b.Release(ctx, other)} {
		if !errors.Is(got, work.ErrLost) {
			t.Errorf("%s by another: %v, want %v", what, got, work.ErrLost)
		}
	}
	must("Prolong", b.Prolong(ctx, a, b.Now.Add(time.Minute)))
	*b.Now = b.Now.Add(work.LeaseTime + time.Second)
	if _, err := b.Lease(ctx, a, false); !errors.Is(err, work.ErrHeld) {
		t.Errorf("Lease of one whose lease was prolonged: %v, want %v", err, work.ErrHeld)
	}
	must("Release", b.Release(ctx, a))
	want("due after Release", []string{"a", "b", "c"}, due("daily", *b.Now))

	a, err = b.Lease(ctx, a, false)
	must("Lease again", err)
	until := b.Now.Add(time.Minute)
	b.Fail(a, until)
	if _, err := b.Lease(ctx, a, false); !errors.Is(err, work.ErrEarly) {
		t.Errorf("Lease after a failure: %v, want %v", err, work.ErrEarly)
	}
	want("due after a failure", []string{"b", "c"}, due("daily", *b.Now))
	want("due in two minutes", []string{"b", "c", "a"}, due("daily", b.Now.Add(2*time.Minute)))
	if a, err = b.Lease(ctx, a, true); err != nil || a.Attempts != 1 || a.Reason == "" {
		t.Errorf("Lease before its time: %+v, %v, want it with one failed attempt and why", a, err)
	}
	must("Release", b.Release(ctx, a))

	counts, err := b.Count(ctx, "daily")
	must("Count", err)
	want("Count", map[string]int{b.Kind: 3}, counts)
	counts, err = b.Count(ctx, "nobody's")
	must("Count of a site that has none", err)
	want("Count of a site that has none", 0, len(counts))
	all, err := b.CountAll(ctx)
	must("CountAll", err)
	want("CountAll", map[string]map[string]int{"daily": {b.Kind: 3}, "weekly": {b.Kind: 1}}, all)
	pending, err := b.Pending(ctx, "daily", 2)
	must("Pending", err)
	var shown []string
	for _, task := range pending {
		shown = append(shown, fmt.Sprint(task.Key, " ", task.Attempts, " ", task.Since.IsZero()))
	}
	want("Pending", []string{"b 0 false", "c 0 false"}, shown)
	refused, err := b.Refused(ctx, "daily", 2)
	must("Refused", err)
	want("Refused", 0, len(refused))

	counts, err = b.MakeDue(ctx, "daily")
	must("MakeDue", err)
	want("MakeDue", map[string]int{b.Kind: 3}, counts)
	want("due after MakeDue", 3, len(due("daily", *b.Now)))

	c, err := b.Lease(ctx, work.Task{Site: "daily", Kind: b.Kind, Key: "c"}, false)
	must("Lease", err)
	b.Done(c)
	if got, err := b.Lease(ctx, c, true); !errors.Is(err, work.ErrGone) || got.Key != "" {
		t.Errorf("Lease of what is done: %+v, %v, want none, %v", got, err, work.ErrGone)
	}
	must("Purge", b.Purge(ctx))
	counts, err = b.Count(ctx, "daily")
	must("Count", err)
	want("Count at the end", map[string]int{b.Kind: 2}, counts)
}
