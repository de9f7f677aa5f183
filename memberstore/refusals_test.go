package memberstore_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/outbox"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// What a platform refuses for good is told from what it does not take now.
func TestCountRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := memberstore.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		unknown := (&platform.Refusal{Reason: "There is no newsletter 1."}).Error()
		for i, failed := range []struct{ site, problem string }{
			{"weekly", unknown},
			{"daily", unknown},
			{"daily", (&platform.Refusal{Reason: "Invalid note."}).Error()},
			{"daily", unknown},
			{"daily", "asking Ghost: connection refused"},
			{"daily", ""},
		} {
			m := members.Record{Site: failed.site, Member: members.Member{GUID: strconv.Itoa(i), Email: fmt.Sprintf("m%d@example.com", i)}, Version: 1}
			if err := store.Insert(t.Context(), m, "", members.Lease{}); err != nil {
				t.Fatal(err)
			}
			if err := store.MarkFailed(t.Context(), m.GUID, outbox.Failure{Problem: failed.problem}, ""); err != nil {
				t.Fatal(err)
			}
		}
		got, err := store.CountRefused(t.Context())
		want := []memberstore.Refusal{{"daily", "There is no newsletter 1.", 2}, {"daily", "Invalid note.", 1}, {"weekly", "There is no newsletter 1.", 1}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, %s", err, diff)
		}
	})
}
