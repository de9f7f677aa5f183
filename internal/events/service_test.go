package events

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

func TestMain(m *testing.M) {
	wait.Goroutines(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

const theme = `
manifest_version: 1
events:
  default_tags: [event, "#listed"]
  types:
    webinar:
      post_template: custom-webinar
      tags: [Webinar]
      required_fields: [name, event_date]
      custom_fields:
        - {key: speaker, type: text, max_length: 20}
        - {key: seats, type: number, min: 1}
    party:
      post_template: custom-party
      supported_fields: [name, event_date, description]
`

func typeOf(t *testing.T, key string) *Type {
	t.Helper()
	parsed := manifest.Parse([]byte(theme))
	found, ok := NewType(parsed.Manifest.Events, key)
	if !ok {
		t.Fatalf("NewType(%q): got false, want the type; findings: %v", key, parsed.Findings)
	}
	return found
}

// bench is a service with a platform.
type bench struct {
	*Service
	*Posts
	ghost *platformtest.Platform
	store *SQL
	queue *work.Queue
	t     *testing.T
}

// The queue does not run until a test runs it.
func queueOf(t *testing.T, store *SQL) *work.Queue {
	t.Helper()
	return want[*work.Queue](t)(work.New(t.Context(), store.db, zap.NewNop(), nil))
}

// sync has an event synced that is pending or to be checked, due or not.
func (r *bench) sync(id string) {
	r.t.Helper()
	if _, err := r.queue.Sync(r.t.Context(), "daily", Kind, id); err != nil && !errors.Is(err, work.ErrLost) {
		r.t.Errorf("syncing an event: %v", err)
	}
}

// exec changes the store behind the service's back.
func (r *bench) exec(query string, args ...any) {
	r.t.Helper()
	dbtest.Exec(r.t, r.store.db, query, args...)
}

// enqueue has an event be pending, or with a time, be checked then.
func (r *bench) enqueue(id string, check time.Time) {
	r.t.Helper()
	want[Event](r.t)(r.store.Change(r.t.Context(), "daily", id, func(tx *sql.Tx, e *Event) error {
		_, err := r.queue.Enqueue(r.t.Context(), tx, e.task())
		if !check.IsZero() {
			e.lateAt = check
		}
		return err
	}))
	if !check.IsZero() {
		r.exec(`UPDATE work SET since = 0, due_at = $1 WHERE key = $2`, check.UnixMilli(), id)
	}
}

func newBench(t *testing.T, db *database.DB) *bench {
	t.Helper()
	store, err := NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	return benchOf(t, store, platformtest.New())
}

func benchOf(t *testing.T, store *SQL, h *platformtest.Platform) *bench {
	t.Helper()
	return benchWith(t, store, store, h)
}

// benchWith polls for changes by staff only when a test tells it to: otherwise it would at any
// moment. kept stands in for the store.
func benchWith(t *testing.T, store *SQL, kept Store, h *platformtest.Platform) *bench {
	t.Helper()
	if err := store.SaveSettings(t.Context(), "daily", Settings{}); err != nil {
		t.Fatalf("store.SaveSettings: %v", err)
	}
	if _, _, err := store.ClaimPoll(t.Context(), "daily", pollInterval); err != nil {
		t.Fatalf("store.ClaimPoll: %v", err)
	}
	dbtest.Exec(t, store.db, `UPDATE events_sites SET looked_at = $1 WHERE site = 'daily'`, store.Now().Add(time.Hour).UnixMilli())
	r := idleBench(t, store, kept, h)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	running.Go(func() { r.queue.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r
}

// idleBench does only what a test has it do, and nothing that is due.
func idleBench(t *testing.T, store *SQL, kept Store, h *platformtest.Platform) *bench {
	t.Helper()
	queue := queueOf(t, store)
	s := New(kept, queue, func(site string) platform.EventHost {
		if site == "daily" {
			return h
		}
		return nil
	}, zap.NewNop())
	return &bench{s, s.Posts, h, store, queue, t}
}

func (r *bench) published(values map[string]any) Event {
	r.t.Helper()
	e, err := r.Create(r.t.Context(), "daily", Edit{"solo", "webinar", values})
	if err == nil {
		e, err = r.Publish(r.t.Context(), "daily", e.ID, e.Revision, typeOf(r.t, "webinar"))
	}
	if err != nil {
		r.t.Fatalf("r.Create: %v", err)
	}
	return e
}

// want fails the test if a call has failed.
func want[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatalf("got error %v, want none", err)
		}
		return value
	}
}

var values = map[string]any{
	"name": "An evening", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00",
	"event_time_zone": "Europe/Berlin", "description": "With wine.", "platform_url": "https://meet.example.com/1",
	"rsvp_labels": []any{"guests"}, "access": "free", "speaker": "Ada </script><b>", "unknown": "kept",
}

// An event becomes one post, with what its type says, and is taken back again.
func TestLifeOfAnEvent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", values}))
		if posts := r.ghost.EventsPostsInOrder(); posts != nil || e.Status != Draft || e.Pending != nil {
			t.Fatalf("got event %+v, posts %+v, want a draft that is not pending, without a post", e, posts)
		}
		e = want[Event](t)(r.Publish(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar")))
		posts := r.ghost.EventsPostsInOrder()
		if len(posts) != 1 {
			t.Fatalf("got posts %+v, want 1", posts)
		}
		head := posts[0].Head
		posts[0].Head, posts[0].Foot = "", ""
		first := platform.EventPost{
			ID: "post1", Title: "An evening", Slug: "an-evening", Excerpt: "With wine.", Status: "published", Template: "custom-webinar", Card: e.cardOf(eveningCard), IsForAll: true,
			Tags: []string{"event", "#listed", "Webinar"}, URL: "https://news.example.com/an-evening/", Edit: "/#/editor/post/post1",
		}
		if diff := cmp.Diff([]platform.EventPost{first}, posts); diff != "" {
			t.Errorf("posts (-want +got):\n%s", diff)
		}
		for _, hidden := range []string{"meet.example.com", "guests", "</script><b>", "kept"} {
			if strings.Contains(head, hidden) {
				t.Errorf("the head of the page has %s: %s", hidden, head)
			}
		}
		if e.Pending != nil || e.Values["slug"] != "an-evening" || e.Status != Published {
			t.Errorf("got %+v, want it published with the slug an-evening, not pending", e)
		}

		// A change in the desk is brought, and touches nothing that staff have written.
		r.ghost.EditPost("post1", func(p *platform.EventPost) {
			p.Head = "<style></style>\n" + p.Head + "\n<meta>"
			p.Tags = []string{"News", "event", "Webinar"} // #listed was taken away
			p.Title = "An evening, changed in Ghost"
		})
		edited := map[string]any{"name": "An evening", "event_date": "2031-05-02", "description": "With cheese.", "slug": "an-evening"}
		e = want[Event](t)(r.Save(ctx, "daily", e.ID, e.Revision, Edit{"solo", "webinar", edited}, typeOf(t, "webinar")))
		p := r.ghost.EventsPostsInOrder()[0]
		if p.Title != "An evening, changed in Ghost" || p.Excerpt != "With cheese." || !strings.HasPrefix(p.Head, "<style></style>\n<!--") ||
			!strings.HasSuffix(p.Head, "-->\n<meta>") || strings.Count(p.Head, "ld+json") != 1 || !strings.Contains(p.Head, "changed in Ghost") {
			t.Errorf("got %+v, want what was changed in Ghost, and the event once in the head", p)
		}
		if diff := cmp.Diff([]string{"News", "event", "Webinar"}, p.Tags); diff != "" {
			t.Errorf("p.Tags (-want +got):\n%s", diff)
		}
		if e.Values["name"] != "An evening, changed in Ghost" {
			t.Errorf("got %+v, want the name that was changed in Ghost", e.Values)
		}

		e = want[Event](t)(r.Cancel(ctx, "daily", e.ID, e.Revision))
		if p := r.ghost.EventsPostsInOrder()[0]; p.Status != "published" || !strings.Contains(p.Head, "EventCancelled") {
			t.Errorf("got %+v, want it published, and EventCancelled in the head", p)
		}
		e = want[Event](t)(r.Unpublish(ctx, "daily", e.ID, e.Revision))
		if p := r.ghost.EventsPostsInOrder()[0]; p.Status != "draft" || e.Status != Draft || e.Pending != nil {
			t.Errorf("got post %+v, event %+v, want both drafts, not pending", p, e)
		}
		if _, err := r.Cancel(ctx, "daily", e.ID, 0); !errors.Is(err, ErrNoPost) {
			t.Errorf("r.Cancel: %v, want %v", err, ErrNoPost)
		}
		e = want[Event](t)(r.Publish(ctx, "daily", e.ID, 0, typeOf(t, "webinar")))
		if err := r.Delete(ctx, "daily", e.ID, e.Revision); err != nil {
			t.Fatalf("r.Delete: %v", err)
		}
		p = r.ghost.EventsPostsInOrder()[0]
		if p.Status != "draft" || p.Head != "<style></style>\n\n<meta>" && p.Head != "<style></style>\n<meta>" {
			t.Errorf("got %+v, want a draft without the event's part in the head", p)
		}
		if _, err := r.store.Find(ctx, "daily", e.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("r.store.Find: %v, want %v", err, ErrNotFound)
		}
	})
}

// What staff change of a post comes back into its event.
func TestChangesInGhost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01"})
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) {
			p.Title, p.Slug, p.Excerpt, p.Picture, p.Alt = "Ball", "ball", "In the garden.", "https://example.com/ball.jpg", "Dancers"
		})
		refreshed := want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))
		r.sync(e.ID)
		e = want[Event](t)(r.Find(ctx, "daily", e.ID))
		changed := map[string]any{"name": "Ball", "slug": "ball", "description": "In the garden.", "feature_image": "https://example.com/ball.jpg", "feature_image_alt": "Dancers", "event_date": "2031-05-01"}
		for _, values := range []map[string]any{refreshed[0].Values, e.Values} {
			if diff := cmp.Diff(changed, values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		}
		if p := r.ghost.EventsPostsInOrder()[0]; p.Title != "Ball" || p.Slug != "ball" || !strings.Contains(p.Head, "In the garden.") || e.Pending != nil {
			t.Errorf("got post %+v, pending %+v, want the title Ball, the slug ball, In the garden. in the head, nothing pending", p, e.Pending)
		}

		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = "draft" })
		e = want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))[0]
		if e.Status != Draft || e.body != "" {
			t.Errorf("unpublished in Ghost: %+v", e)
		}
		r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Status = "published" })
		e = want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))[0]
		r.sync(e.ID)
		e = want[Event](t)(r.Find(ctx, "daily", e.ID))
		if e.Status != Published || e.body == "" {
			t.Errorf("published in Ghost: %+v", e)
		}

		r.ghost.Do(func() { delete(r.ghost.EventsPosts, e.Post.ID) })
		e = want[[]Event](t)(r.Refresh(ctx, "daily", []Event{e}))[0]
		if e.Status != Draft || !e.Post.IsLost || e.Post.ID != "" || e.body != "" || e.Values["name"] != "Ball" {
			t.Errorf("deleted in Ghost: %+v", e)
		}
		e = want[Event](t)(r.Publish(ctx, "daily", e.ID, e.Revision, typeOf(t, "webinar")))
		if posts := r.ghost.EventsPostsInOrder(); len(posts) != 1 || posts[0].Slug != "ball" || e.Status != Published {
			t.Errorf("published again: %+v", posts)
		}
	})
}

// Two editors: the second one is told, and nothing is overwritten.
func TestTwoEditors(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "One"}}))
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() {
				_, errs[i] = r.Save(ctx, "daily", e.ID, e.Revision, Edit{"solo", "webinar", map[string]any{"name": strconv.Itoa(i)}}, nil)
			})
		}
		all.Wait()
		saved := -1
		for i, err := range errs {
			switch {
			case err == nil && saved < 0:
				saved = i
			case !errors.Is(err, ErrChanged):
				t.Errorf("save %d: got %v, want no error once, else %v", i, err, ErrChanged)
			}
		}
		now := want[Event](t)(r.Find(ctx, "daily", e.ID))
		if now.Values["name"] != strconv.Itoa(saved) {
			t.Errorf("%v was saved, and %v is there", saved, now.Values)
		}
	})
}

// What cannot be published is refused with its problems, and stays as it was.
func TestRefusedPublishing(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"speaker": strings.Repeat("x", 21)}}))
	_, err := r.Publish(ctx, "daily", e.ID, 0, typeOf(t, "webinar"))
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Publish: got %v, want an *InvalidError", err)
	}
	problems := []manifest.Problem{
		{Field: "name", Message: "Name is required."},
		{Field: "event_date", Message: "Date is required."},
		{Field: "speaker", Message: "Speaker must have 20 characters at most; it has 21."},
	}
	if diff := cmp.Diff(problems, invalid.Problems); diff != "" {
		t.Errorf("invalid.Problems (-want +got):\n%s", diff)
	}
	now := want[Event](t)(r.Find(ctx, "daily", e.ID))
	if diff := cmp.Diff(e, now, cmp.AllowUnexported(Event{})); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
	for _, wrong := range []Edit{
		{"", "webinar", nil},
		{"solo", "", nil},
		{"solo", "webinar", map[string]any{"": "x"}},
		{"solo", "webinar", map[string]any{"name": map[string]any{}}},
		{"solo", "webinar", map[string]any{"name": "\x00"}},
		{"solo", "webinar", map[string]any{"name": strings.Repeat("x", maxValues)}},
	} {
		if _, err := r.Create(ctx, "daily", wrong); !errors.As(err, &invalid) {
			t.Errorf("Create of %.100v: got %v, want an *InvalidError", wrong, err)
		}
	}
}

// A deleted event is forgotten, also if the process ended right after it was deleted.
func TestDeletedWithoutAPost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Party"}}))
		if err := r.Delete(ctx, "daily", e.ID, 0); err != nil {
			t.Fatalf("r.Delete: %v", err)
		}
		if _, err := r.store.Find(ctx, "daily", e.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("r.store.Find: %v, want %v", err, ErrNotFound)
		}
		e = want[Event](t)(r.Create(ctx, "elsewhere", Edit{"solo", "webinar", map[string]any{"name": "Party"}}))
		r.exec(`UPDATE events SET site = 'daily', status = 'deleted' WHERE id = $1`, e.ID)
		r.enqueue(e.ID, time.Time{})
		r.sync(e.ID)
		if _, err := r.store.Find(ctx, "daily", e.ID); !errors.Is(err, ErrNotFound) {
			t.Errorf("r.store.Find: %v, want %v", err, ErrNotFound)
		}
	})
}
