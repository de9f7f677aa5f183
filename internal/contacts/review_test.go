package contacts_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A Ghost that one edge could not reach is not away once another edge reaches it, also if that has
// reached it all the time; and a site that nobody serves any more is no longer in trouble.
func TestReviewSeesWhatOtherEdgesReach(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		start := db.Now().Truncate(time.Millisecond).UTC()
		a, b := newLog(t, db, start), newLog(t, db, start)
		a.failing("daily", nil)
		b.now = start.Add(time.Minute)
		if list := b.failing("daily", errors.New("no route")); len(list) != 1 {
			t.Fatalf("failing = %v, want daily", list)
		}
		b.now = start.Add(-13 * time.Hour)
		b.failing("gone", errors.New("no route"))

		a.now = start.Add(2 * time.Minute)
		if list := a.failing("daily", nil); len(list) != 2 { // it does not know what the other has written
			t.Fatalf("failing = %v, want daily and gone", list)
		}
		if err := a.Review(t.Context()); err != nil {
			t.Fatalf("a.Review: %v", err)
		}
		if diff := cmp.Diff([]contacts.Contact(nil), a.failing("daily", nil)); diff != "" {
			t.Errorf("failing after the review (-want +got):\n%s", diff)
		}
	})
}
