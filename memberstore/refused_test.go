package memberstore_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// What a platform refuses for good is told from what it does not take now.
func TestCountRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := memberstore.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("memberstore.NewSQL: %v", err)
		}
		const unknown = "There is no newsletter 1."
		for i, failed := range []struct{ site, reason string }{
			{"weekly", unknown}, {"daily", unknown}, {"daily", "Invalid note."}, {"daily", unknown}, {"daily", ""},
		} {
			m := members.Record{Site: failed.site, Member: members.Member{GUID: strconv.Itoa(i), Email: fmt.Sprintf("m%d@example.com", i)}, Version: 1}
			if err := store.Insert(t.Context(), m, "", members.Lease{}); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
			if failed.reason == "" { // which the platform does not take now
				continue
			}
			if err := store.RefuseCreate(t.Context(), m.GUID, m.Version, failed.reason, time.Now()); err != nil {
				t.Fatalf("store.RefuseCreate: %v", err)
			}
		}
		got, err := store.CountRefused(t.Context())
		want := []memberstore.Refusal{{"daily", "There is no newsletter 1.", 2}, {"daily", "Invalid note.", 1}, {"weekly", "There is no newsletter 1.", 1}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("CountRefused: error %v, want none (-want +got):\n%s", err, diff)
		}
	})
}
