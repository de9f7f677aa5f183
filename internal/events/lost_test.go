package events

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// What an editor does while PostgreSQL fails over is done once, and the editor is told so, whenever
// the connection is lost and whether or not the commit was kept.
func TestCommitIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*bench, Event) (Event, error)
		status Status
		did    string
	}{
		"saving": {func(r *bench, e Event) (Event, error) {
			return r.Save(t.Context(), "daily", e.ID, e.Revision, Edit{"solo", "webinar", map[string]any{"name": "Gala", "event_date": "2031-05-01"}}, typeOf(t, "webinar"))
		}, Published, "changed"},
		"cancelling":   {func(r *bench, e Event) (Event, error) { return r.Cancel(t.Context(), "daily", e.ID, e.Revision) }, Cancelled, "cancelled"},
		"unpublishing": {func(r *bench, e Event) (Event, error) { return r.Unpublish(t.Context(), "daily", e.ID, e.Revision) }, Draft, "unpublished"},
	} {
		for _, isKept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, kept %t", name, isKept), func(t *testing.T) {
				db, lose := dbtest.LossyPostgres(t)
				store := want[*SQL](t)(NewSQL(t.Context(), db))
				r := idleBench(t, store, store, platformtest.New())
				e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
				commits := lose("events", isKept)
				now, err := test.change(r, e)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				kept := want[Event](t)(r.Find(t.Context(), "daily", e.ID))
				if n := commits(); n < 1 || now.Status != test.status || kept.Status != test.status || kept.Revision != now.Revision || kept.Revision == e.Revision {
					t.Errorf("%d commits, the editor is told %s at revision %d, and %s at %d is kept; want some, the first of which was lost, and %s at another than %d",
						n, now.Status, now.Revision, kept.Status, kept.Revision, test.status, e.Revision)
				}
				var did []string
				for _, entry := range want[[]history.Entry](t)(r.History(t.Context(), "daily", e.ID)) {
					did = append(did, entry.Did)
				}
				if diff := cmp.Diff([]string{test.did, "published", "created"}, did); diff != "" {
					t.Errorf("the history (-want +got):\n%s", diff)
				}
			})
		}
	}
}
