package memberstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// How far a comparison of a site is, is there for any edge that goes on with it.
func TestComparisonsAreKept(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		for _, want := range []inbound.Comparison{
			{Site: "daily"},
			{Site: "daily", LastID: "p-1", StartedAt: then, Surplus: -3},
			{Site: "daily", StartedAt: then, FinishedAt: later},
			{Site: "daily", StartedAt: then, FinishedAt: later, AskedAt: later},
		} {
			for _, at := range []time.Time{want.AskedAt, then} { // an earlier time changes nothing
				if want.AskedAt.IsZero() {
					break
				}
				if err := store.RequestComparison(t.Context(), "daily", at); err != nil {
					t.Fatalf("store.RequestComparison: %v", err)
				}
			}
			if want.StartedAt.Equal(then) {
				if err := store.SaveComparison(t.Context(), want); err != nil {
					t.Fatalf("store.SaveComparison: %v", err)
				}
			}
			got, err := store.FindComparison(t.Context(), "daily")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("FindComparison: error %v, want none (-want +got):\n%s", err, diff)
			}
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
