package memberstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Operators take the members back with their store, on both databases, and a newer binary makes the migrations again.
func TestDowngrade(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		if _, err := NewSQL(t.Context(), db); err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		check := func(has int64) {
			t.Helper()
			got, err := Schema.Version(t.Context(), db)
			if diff := cmp.Diff(database.Version{Has: has, Known: 13}, got); diff != "" || err != nil {
				t.Errorf("Schema.Version: got error %v (-want +got):\n%s", err, diff)
			}
		}
		if from, err := Schema.Down(t.Context(), db, 7); from != 13 || err != nil {
			t.Errorf("Schema.Down: got %d, %v, want 13", from, err)
		}
		check(7)
		if _, err := NewSQL(t.Context(), db); err != nil {
			t.Fatalf("NewSQL, after the members were taken back: %v", err)
		}
		check(13)
	})
}
