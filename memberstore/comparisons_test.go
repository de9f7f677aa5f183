package memberstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

// One edge at a time compares, and no request for a comparison is lost.
func TestOneEdgeComparesAtATime(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		check := func(want inbound.Comparison) {
			t.Helper()
			got, err := store.FindComparison(ctx, "daily")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("FindComparison: error %v, want none (-want +got):\n%s", err, diff)
			}
		}
		request := func() {
			t.Helper()
			if err := store.RequestComparison(ctx, "daily"); err != nil {
				t.Fatalf("store.RequestComparison: %v", err)
			}
		}
		check(inbound.Comparison{Site: "daily"})
		one, two := members.Lease{Owner: "one", Until: time.Now().Add(time.Hour)}, members.Lease{Owner: "two", Until: time.Now().Add(time.Hour)}
		if c, err := store.ClaimComparison(ctx, "daily", one); c != (inbound.Comparison{Site: "daily"}) || err != nil {
			t.Errorf("ClaimComparison = %+v, %v, want c %v, no error", c, err, (inbound.Comparison{Site: "daily"}))
		}
		for range 2 {
			if _, err := store.ClaimComparison(ctx, "daily", two); !errors.Is(err, members.ErrConflict) {
				t.Errorf("claimed by two: %v", err)
			}
			request()
		}
		if c, err := store.ClaimComparison(ctx, "daily", one); c != (inbound.Comparison{Site: "daily", Requested: 2}) || err != nil {
			t.Errorf("claimed again: %+v, %v", c, err)
		}
		c := inbound.Comparison{Site: "daily", LastID: "p-1", StartedAt: then, FinishedAt: later, Surplus: -3, Served: 1}
		if err := store.SaveComparison(ctx, c, members.Lease{Owner: "one"}); err != nil {
			t.Fatalf("store.SaveComparison: %v", err)
		}
		if err := store.SaveComparison(ctx, c, two); !errors.Is(err, members.ErrConflict) {
			t.Errorf("saved by another: %v", err)
		}
		c.Requested = 2
		check(c)
		if got, err := store.ClaimComparison(ctx, "daily", two); got != c || err != nil {
			t.Errorf("ClaimComparison = %+v, %v, want %v, no error", got, err, c)
		}
		if _, err := store.ClaimComparison(ctx, "weekly", one); err != nil {
			t.Errorf("another site: %v", err)
		}
	})
}

// Any edge finds the comparisons that were asked for, or that an edge has not ended,
// unless another is at them. Other sites cost nothing.
func TestWaitingComparisons(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		save := func(c inbound.Comparison, until time.Time) {
			t.Helper()
			lease := members.Lease{Owner: "me", Until: time.Now().Add(time.Hour)}
			if _, err := store.ClaimComparison(ctx, c.Site, lease); err != nil {
				t.Fatalf("store.ClaimComparison: %v", err)
			}
			lease.Until = until
			if err := store.SaveComparison(ctx, c, lease); err != nil {
				t.Fatalf("store.SaveComparison: %v", err)
			}
		}
		save(inbound.Comparison{Site: "done", StartedAt: then, FinishedAt: later}, time.Time{})
		save(inbound.Comparison{Site: "given up", StartedAt: later, FinishedAt: then}, time.Time{})
		save(inbound.Comparison{Site: "of a dead edge", StartedAt: then}, time.Now().Add(-time.Second))
		save(inbound.Comparison{Site: "under way", StartedAt: then}, time.Now().Add(time.Hour))
		for _, site := range []string{"requested", "under way"} {
			if err := store.RequestComparison(ctx, site); err != nil {
				t.Fatalf("store.RequestComparison: %v", err)
			}
		}
		got, err := store.WaitingComparisons(ctx)
		if diff := cmp.Diff([]string{"given up", "of a dead edge", "requested"}, got); diff != "" || err != nil {
			t.Errorf("WaitingComparisons: error %v, want none (-want +got):\n%s", err, diff)
		}
		if db.Kind != database.SQLite {
			return
		}
		if plan := planOf(t, db, waitingComparisons, 0); !strings.Contains(plan, "comparisons_waiting") {
			t.Errorf("planOf = %q, want %q in it", plan, "comparisons_waiting")
		}
	})
}

// Reconcile changes only members without a pending write, a lease or a newer version.
func TestReconcileChangesNoPendingRecords(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		add := func(name string, change func(*members.Record), lease members.Lease) members.Record {
			m := joe()
			m.GUID, m.Email, m.PlatformID, m.MemberID, m.Applied = "guid-"+name, name+"@example.com", "p-"+name, "c-"+name, 1
			change(&m)
			if err := store.Insert(ctx, m, "crm", lease); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
			return m
		}
		as := func(*members.Record) {}
		settled := add("settled", as, members.Lease{})
		gone := add("gone", as, members.Lease{})
		pending := add("pending", func(m *members.Record) { m.Applied = 0 }, members.Lease{})
		leased := add("leased", as, members.Lease{Owner: "me", Until: time.Now().Add(time.Hour)})
		written := add("written", as, members.Lease{})
		written.Version = 7
		changed := func(list ...members.Record) []members.Record {
			for i := range list {
				list[i].Name, list[i].Applied = "changed", list[i].Version+1
			}
			return list
		}
		fresh, taken, known := joe(), joe(), joe()
		fresh.GUID, fresh.PlatformID, fresh.Applied = "guid-fresh", "p-fresh", 1
		taken.GUID, taken.PlatformID, taken.Email = "guid-taken", "p-taken", "SETTLED@example.com"
		known.GUID, known.PlatformID, known.Email = "guid-known", "p-settled", "known@example.com"
		d := inbound.Differences{
			Changed: changed(settled, pending, leased, written),
			Added:   []members.Record{fresh, taken, known},
			Gone:    []members.Record{gone, pending, leased, written},
		}
		left, err := store.Reconcile(ctx, d)
		want := inbound.Differences{Changed: d.Changed[1:], Added: d.Added[1:], Gone: d.Gone[1:]}
		if diff := cmp.Diff(want, left); diff != "" || err != nil {
			t.Errorf("left: %s, %v", diff, err)
		}

		list, err := store.OnPlatform(ctx, "daily", "", 100)
		if err != nil {
			t.Fatalf("store.OnPlatform: %v", err)
		}
		settled.Name, settled.Version, settled.Applied = "changed", 2, 2
		gone.Version, gone.Applied, gone.Deleted, gone.Email, gone.Labels = 2, 2, true, "", []string{}
		written.Version = 1
		all := []members.Record{fresh, gone, leased, pending, settled, written}
		for i := range all {
			all[i].MemberID = ""
		}
		if diff := cmp.Diff(all, list, cmpopts.IgnoreFields(members.Record{}, "NextAttempt")); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		if list, err := store.OnPlatform(ctx, "daily", "p-fresh", 2); len(list) != 2 || list[0].PlatformID != "p-gone" || err != nil {
			t.Errorf("after p-fresh: %+v, %v", list, err)
		}
		if n, err := store.CountOnPlatform(ctx, "daily"); n != 5 || err != nil {
			t.Errorf("CountOnPlatform = %d, %v, want n 5, no error", n, err)
		}
		if _, err := store.Find(ctx, members.Key{Site: "daily", Integration: "crm", MemberID: "c-gone"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("the member ID of a deleted member: %v", err)
		}
	})
}
