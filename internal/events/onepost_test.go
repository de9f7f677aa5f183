package events

import (
	"context"
	"database/sql"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// Whatever becomes of a response, there is one post, with the last state that was
// acknowledged.
func TestOnePost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := want[*SQL](t)(NewSQL(t.Context(), db))
		for name, takesEffect := range map[string]func(call string, n int) (takesEffect bool){
			"the first answer is lost":       func(_ string, n int) bool { return n == 1 },
			"nothing arrives at first":       func(string, int) bool { return false },
			"the change is lost":             func(call string, _ int) bool { return call == "changepost" },
			"each answer is lost, but comes": func(string, int) bool { return true },
		} {
			for status, prepare := range map[string]func(*bench, map[string]any) Event{"published": (*bench).published, "draft": (*bench).written} {
				h := platformtest.New()
				n := 0
				h.Fail(func(call, _ string) error {
					switch n++; {
					case n > 3 || call != "makedraft" && call != "changepost":
						return nil
					case takesEffect(call, n):
						return platformtest.Lost(platformtest.ErrDown)
					}
					return platformtest.ErrDown
				})
				r := idleBench(t, store, store, h)
				e := prepare(r, map[string]any{"name": "Party", "event_date": "2031-05-01"})
				for tries := 0; e.Pending != nil && tries < 8; tries++ {
					r.due(e)
					r.sync(e.ID)
					e = want[Event](t)(r.Find(t.Context(), "daily", e.ID))
				}
				posts := h.EventsPostsInOrder()
				if len(posts) != 1 || posts[0].Title != "Party" || posts[0].Status != status || posts[0].Slug != "party" {
					t.Errorf("%s: got %+v, want one post that is %s", name, posts, status)
				}
			}
		}
	})
}

// due has an event brought now.
func (r *bench) due(e Event) {
	r.t.Helper()
	r.exec(`UPDATE work SET due_at = 0 WHERE site = $1 AND key = $2 AND since > 0`, e.Site, e.ID)
}

// forgetful is a store that fails to keep some changes.
type forgetful struct {
	*SQL
	forgets func(Event) bool
}

func (f forgetful) Change(ctx context.Context, site, id string, change func(*sql.Tx, *Event) error) (Event, error) {
	return f.SQL.Change(ctx, site, id, f.forgetting(change))
}

func (f forgetful) ChangeIn(ctx context.Context, tx *sql.Tx, site, id string, change func(*sql.Tx, *Event) error) (Event, error) {
	return f.SQL.ChangeIn(ctx, tx, site, id, f.forgetting(change))
}

func (f forgetful) forgetting(change func(*sql.Tx, *Event) error) func(*sql.Tx, *Event) error {
	return func(tx *sql.Tx, e *Event) error {
		if err := change(tx, e); err != nil {
			return err
		}
		if f.forgets(*e) {
			return platformtest.ErrDown
		}
		return nil
	}
}

// Which post an event has is known before the post gets another slug, under which it would
// not be found. Only what nobody has tried is the first try.
func TestNotedBeforeIt(t *testing.T) {
	h, store := platformtest.New(), want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))
	var isFull atomic.Bool
	isFull.Store(true)
	r := benchWith(t, store, forgetful{store, func(e Event) bool { return isFull.Load() && e.Post.ID != "" }}, h)
	h.Fail(func(call, id string) error {
		if call != "changepost" {
			return nil
		}
		if e := want[[]Event](t)(store.WithPosts(t.Context(), "daily", []string{id}, "")); len(e) != 1 {
			t.Errorf("%s is changed, and in no event", id)
		}
		return nil
	})
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	if posts := r.ghost.EventsPostsInOrder(); len(posts) != 1 || posts[0].Slug != draftSlug(e.ID) || posts[0].Status != platform.Draft || e.Pending == nil {
		t.Errorf("got posts %+v, event %+v, want 1 draft under %s, pending", posts, e, draftSlug(e.ID))
	}
	isFull.Store(false)
	r.due(e)
	r.sync(e.ID)
	if posts := r.ghost.EventsPostsInOrder(); len(posts) != 1 || posts[0].Slug != "party" || posts[0].Status != platform.Published {
		t.Errorf("got posts %+v, want 1 that is published under party", posts)
	}
	r.ghost.Do(func() {
		if len(h.Firsts) < 2 || !h.Firsts[0] || slices.Contains(h.Firsts[1:], true) {
			t.Errorf("isFirst: got %v, want true for the first call alone", h.Firsts)
		}
	})
}

// A post that a request makes after it was given up is deleted.
func TestLatePost(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	r.ghost.Break(platformtest.ErrDown)
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.ghost.Fix()
	r.due(e)
	r.sync(e.ID)
	r.ghost.AddEventsPost(platform.EventPost{Title: "Party", Slug: draftSlug(e.ID), Status: platform.Draft})
	if _, err := r.store.Change(t.Context(), e.Site, e.ID, func(_ *sql.Tx, e *Event) error {
		e.lateAt = time.UnixMilli(1)
		return nil
	}); err != nil {
		t.Fatalf("r.store.Change: %v", err)
	}
	r.sync(e.ID)
	e = want[Event](t)(r.Find(t.Context(), "daily", e.ID))
	if posts := r.ghost.EventsPostsInOrder(); len(posts) != 1 || posts[0].Status != "published" || e.Pending != nil || !e.lateAt.IsZero() {
		t.Errorf("got posts %+v, event %+v, want 1 published post, nothing pending or to check", posts, e)
	}
}

// A post that a request makes late is looked for also if the event was saved again before
// the next try.
func TestLatePostOfASavedEvent(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	webinar := typeOf(t, "webinar")
	r.ghost.Break(platformtest.ErrDown)
	e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
	r.ghost.Fix()
	want[Event](t)(r.Save(ctx, "daily", e.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-01"}}, webinar))
	e = want[Event](t)(r.Find(ctx, "daily", e.ID))
	if e.lateAt.IsZero() {
		t.Errorf("got %+v, want a time to check for a second post", e)
	}
}
