package memberstore

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// An interrupted import resumes after the last member that was saved.
func TestInterruptedImportsResume(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		ctx := t.Context()
		if _, err := store.FindImport(ctx, "daily"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("none yet: %v", err)
		}
		for _, i := range []inbound.Import{
			{Site: "daily", LastID: "p-2", Seen: 3, StartedAt: then},
			{Site: "daily", LastID: "p-3", Seen: 4, StartedAt: then},
		} {
			if err := store.SaveImport(ctx, i); err != nil {
				t.Fatalf("store.SaveImport: %v", err)
			}
			got, err := store.FindImport(ctx, "daily")
			if diff := cmp.Diff(i, got); diff != "" || err != nil {
				t.Errorf("FindImport: error %v, want none (-want +got):\n%s", err, diff)
			}
		}
		if err := store.EndImport(ctx, "daily"); err != nil {
			t.Fatalf("store.EndImport: %v", err)
		}
		if _, err := store.FindImport(ctx, "daily"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("after its end: %v", err)
		}
	})
}
