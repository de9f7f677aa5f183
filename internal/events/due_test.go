package events

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// An event that is pending while it is to be checked for a second post is neither forgotten
// nor taken for a check.
func TestPendingAndToBeChecked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := want[*SQL](t)(NewSQL(t.Context(), db))
		r := idleBench(t, store, store, platformtest.New())
		e := want[Event](t)(r.Create(t.Context(), "daily", Edit{"solo", "webinar", map[string]any{"name": "Party"}}))
		at := time.UnixMilli(1000).UTC()
		r.enqueue(e.ID, at)
		if e = want[Event](t)(store.Find(t.Context(), "daily", e.ID)); e.Pending != nil || !e.lateAt.Equal(at) {
			t.Errorf("to be checked: pending is %+v, want nil; to be checked at %s, want %s", e.Pending, e.lateAt, at)
		}
		r.enqueue(e.ID, time.Time{})
		if e = want[Event](t)(store.Find(t.Context(), "daily", e.ID)); e.Pending == nil || !e.lateAt.Equal(at) {
			t.Errorf("enqueued then: pending is %+v, want something; to be checked at %s, want %s", e.Pending, e.lateAt, at)
		}
	})
}

// Sites are polled once in an interval, those first that wait the longest. While too much
// is under way, a site goes on waiting, and nothing that staff changed is missed.
func TestPollSites(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, h, ctx := want[*SQL](t)(NewSQL(t.Context(), db)), platformtest.New(), t.Context()
		hosts := func(string) platform.EventHost { return h }
		queue := queueOf(t, store)
		service := New(store, queue, hosts, zap.NewNop())
		r := &bench{service, service.Posts, h, store, queue, t} // which does not run
		r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
		want[Event](t)(r.Create(ctx, "idle", Edit{"solo", "webinar", nil}))
		looked := func(at time.Time) {
			t.Helper()
			if _, err := db.Write.ExecContext(ctx, `UPDATE events_sites SET looked_at = $1 WHERE site = 'daily'`, at.UnixMilli()); err != nil {
				t.Fatalf("db.Write.ExecContext: %v", err)
			}
		}
		now := store.Now()
		var lists [][]string
		for _, at := range []time.Time{now.Add(-time.Hour), now} {
			looked(at)
			lists = append(lists, want[[]string](t)(store.Sites(ctx, time.Minute)))
		}
		if diff := cmp.Diff([][]string{{"daily"}, nil}, lists); diff != "" {
			t.Errorf("lists (-want +got):\n%s", diff)
		}

		full := New(store, ended(t, store), hosts, zap.NewNop())
		looked(now.Add(-time.Hour))
		full.Posts.pollSites(ctx)
		if list := want[[]string](t)(store.Sites(ctx, time.Minute)); len(list) != 1 {
			t.Errorf("Sites: got %q, want 1 site: a poll for which there was no room is not claimed", list)
		}
	})
}

// Each poll says whether the platform takes the key, so operators see one that it rejects though
// nobody writes.
func TestPollsTellContacts(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	var told []string
	r.UseContacts(func(site string, err error) { told = append(told, fmt.Sprint(site, " ", err)) })
	for _, err := range []error{nil, platform.ErrKeyRejected, nil} {
		r.ghost.Fail(func(string, string) error { return err })
		_ = r.poll(ctx, r.ghost, "daily", r.store.Now()) // its error is what is told
	}
	if diff := cmp.Diff([]string{"daily <nil>", "daily " + platform.ErrKeyRejected.Error(), "daily <nil>"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A date in a field that the event's type does not have counts for no list.
func TestDateOfTheTypeBefore(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	party := typeOf(t, "party")
	party.SupportedFields = []string{"name"}
	e := r.published(map[string]any{"name": "Party", "event_date": "2001-05-01"})
	e = want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "party", e.Values}, party))
	totals := make(map[bool]int)
	for _, past := range []bool{false, true} {
		totals[past] = len(want[[]PublicEntry](t)(r.store.PublicEntries(ctx, "daily", past)))
	}
	if diff := cmp.Diff(map[bool]int{false: 1, true: 0}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	other := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	var ids []string
	for q := (Query{Most: 1}); len(ids) < 4; {
		page := want[Page](t)(r.List(ctx, "daily", q))
		ids = append(ids, page.Events[0].ID)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{other.ID, e.ID}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

// The queue of a process that has ended does not take any work.
func ended(t *testing.T, store *SQL) *work.Queue {
	t.Helper()
	queue := queueOf(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	queue.Run(ctx)
	return queue
}

// An event for which there is no room at once is due for every process, not held by the one
// that had no room.
func TestNoRoomLeavesItDue(t *testing.T) {
	store, h, ctx := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t))), platformtest.New(), t.Context()
	full := New(store, ended(t, store), func(string) platform.EventHost { return h }, zap.NewNop())
	e := want[Event](t)(full.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party", "event_date": "2031-05-01"}}))
	e = want[Event](t)(full.Publish(ctx, "daily", e.ID, 0, typeOf(t, "webinar")))
	var due int
	err := store.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM work WHERE key = $1 AND due_at <= $2 AND holder = '' AND leased_until = 0`, e.ID, store.Now().UnixMilli()).Scan(&due)
	if err != nil || due != 1 || e.Pending == nil {
		t.Errorf("pending is %+v, want something; %d rows are due and not leased, want 1; %v", e.Pending, due, err)
	}
}
