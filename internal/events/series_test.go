package events

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// webinars finds the type of all events of these tests.
func webinars(t *testing.T) TypeFinder {
	of := typeOf(t, "webinar")
	return func(context.Context, Event) (*Type, error) { return of, nil }
}

// said has the dates of drafts, with the reasons of those that are not ready.
func (d SeriesDrafts) said() (list []string) {
	for _, e := range d.Ready {
		list = append(list, fmt.Sprint("ready ", e.Values["event_date"]))
	}
	for _, u := range d.Unready {
		list = append(list, fmt.Sprint(u.Event.Values["event_date"], " ", u.Problems[0].Message))
	}
	return append(list, fmt.Sprint(d.Left, " left"))
}

// One press publishes what is ready of a series, and says of the rest why it is not. Events that are no copies until a date
// stay as they are.
func TestSeriesIsPublished(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		first := r.published(map[string]any{"name": "Choir", "event_date": "2031-05-01"})
		weekly := r.copies(r.Service, first.ID, Copies{Date: "2031-05-08", Until: "2031-05-29"})
		want[Event](t)(r.Duplicate(ctx, "daily", first.ID, ""))
		r.copies(r.Service, first.ID, Copies{Date: "2031-07-01"})
		want[Event](t)(r.Save(ctx, "daily", weekly[1].ID, 0, Edit{"solo", "webinar", map[string]any{"event_date": "2031-05-15"}}, nil))
		scheduled := want[Event](t)(r.Write(ctx, "daily", weekly[2].ID, 0, typeOf(t, "webinar")))
		r.ghost.EditPost(scheduled.Post.ID, func(p *platform.EventPost) {
			p.Status, p.PublishAt = platform.Scheduled, time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
		})

		rest := []string{"2031-05-15 Name is required.", "2031-05-22 Its post is scheduled already.", "0 left"}
		all := append([]string{"ready 2031-05-08", "ready 2031-05-29"}, rest...)
		if diff := cmp.Diff(all, want[SeriesDrafts](t)(r.Drafts(ctx, "daily", first.ID, webinars(t))).said()); diff != "" {
			t.Errorf("the drafts (-want +got): %s", diff)
		}
		if diff := cmp.Diff(all, want[SeriesDrafts](t)(r.PublishSeries(ctx, "daily", weekly[3].ID, nil, webinars(t))).said()); diff != "" {
			t.Errorf("what was published (-want +got): %s", diff)
		}
		for _, e := range []Event{weekly[0], weekly[3]} {
			r.sync(e.ID)
			if now := want[Event](t)(r.Find(ctx, "daily", e.ID)); now.Status != Published || now.Pending != nil || now.Post.Status != platform.Published {
				t.Errorf("got %+v, want it published", now)
			}
		}
		if diff := cmp.Diff(rest, want[SeriesDrafts](t)(r.PublishSeries(ctx, "daily", first.ID, nil, webinars(t))).said()); diff != "" {
			t.Errorf("what was published by another press (-want +got): %s", diff)
		}
		all = []string{}
		for _, q := range []Query{{Series: weekly[0].ID, Most: 1}, {Series: weekly[0].ID, View: Drafts, Most: 1}, {View: Drafts, Most: 1}, {Series: "x", Most: 1}} {
			page, tally := want[Page](t)(r.List(ctx, "daily", q)), want[Tally](t)(r.Tally(ctx, "daily", q, time.UTC))
			all = append(all, fmt.Sprint(page.Total, tally.Views[q.View]))
		}
		if diff := cmp.Diff([]string{"5 5", "2 2", "4 4", "0 0"}, all); diff != "" {
			t.Errorf("the series, its drafts, all drafts, no series: listed and counted (-want +got): %s", diff)
		}
	})
}

// A series has all of its events also where the database sorts z before t.
func TestSeriesByAnyCollation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		if db.Kind == database.Postgres {
			dbtest.Exec(t, db, `ALTER TABLE events ALTER COLUMN id TYPE TEXT COLLATE "et-x-icu"`)
		}
		first := want[Event](t)(r.Create(t.Context(), "daily", Edit{"solo", "webinar", map[string]any{"name": "Choir", "event_date": "2031-05-01"}}))
		r.copies(r.Service, first.ID, Copies{Date: "2031-05-08", Until: "2032-04-29"})
		q := Query{Series: first.ID, Most: 1}
		page, tally := want[Page](t)(r.List(t.Context(), "daily", q)), want[Tally](t)(r.Tally(t.Context(), "daily", q, time.UTC))
		if got, want := fmt.Sprint(page.Total, tally.Views[AllEvents]), fmt.Sprint(1+MaxCopies, 1+MaxCopies); got != want {
			t.Errorf("listed and counted: got %s, want %s", got, want)
		}
	})
}

// A draft is published only as an editor has seen it, also if it was changed or made after they looked.
func TestSeriesIsPublishedAsSeen(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	first := r.published(map[string]any{"name": "Choir", "event_date": "2031-05-01"})
	weekly := r.copies(r.Service, first.ID, Copies{Date: "2031-05-08", Until: "2031-05-22"})
	seen := map[string]int64{first.ID: first.Revision}
	for _, e := range want[SeriesDrafts](t)(r.Drafts(ctx, "daily", first.ID, webinars(t))).Ready {
		seen[e.ID] = e.Revision
	}
	want[Event](t)(r.Save(ctx, "daily", weekly[1].ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball", "event_date": "2031-05-15", "speaker": "Ada"}}, nil))
	r.copies(r.Service, first.ID, Copies{Date: "2031-05-29", Until: "2031-06-05"})
	got := want[SeriesDrafts](t)(r.PublishSeries(ctx, "daily", first.ID, seen, webinars(t))).said()
	if diff := cmp.Diff([]string{"ready 2031-05-08", "ready 2031-05-22", "2031-05-15 Somebody changed it meanwhile.", "2 left"}, got); diff != "" {
		t.Errorf("what was published (-want +got): %s", diff)
	}
	if got := want[SeriesDrafts](t)(r.PublishSeries(ctx, "daily", first.ID, map[string]int64{}, webinars(t))).said(); !cmp.Equal([]string{"3 left"}, got) {
		t.Errorf("of no draft: got %v, want 3 left", got)
	}
}

// slowStore takes half a second for each change, by its own clock.
type slowStore struct {
	*SQL
	now *time.Time
}

func (s slowStore) Now() time.Time { return *s.now }

func (s slowStore) Change(ctx context.Context, site, id string, change func(*sql.Tx, *Event) error) (Event, error) {
	*s.now = s.now.Add(time.Second / 2)
	return s.SQL.Change(ctx, site, id, change)
}

// A platform that hangs delays nobody who publishes a series, and what a slow store leaves undone is done by the next press.
func TestSeriesIsPublishedInTime(t *testing.T) {
	store := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))
	now := store.Now()
	r := idleBench(t, store, slowStore{store, &now}, platformtest.New())
	r.ghost.Break(platformtest.ErrDown)
	first := want[Event](t)(r.Create(t.Context(), "daily", Edit{"solo", "webinar", map[string]any{"name": "Choir", "event_date": "2031-05-01"}}))
	r.copies(r.Service, first.ID, Copies{Date: "2031-05-08", Until: "2031-07-01"})
	var got []string
	for range 3 {
		done := want[SeriesDrafts](t)(r.PublishSeries(t.Context(), "daily", first.ID, nil, webinars(t)))
		got = append(got, fmt.Sprint(len(done.Ready), " published, ", done.Left, " left"))
	}
	if diff := cmp.Diff([]string{"5 published, 4 left", "4 published, 0 left", "0 published, 0 left"}, got); diff != "" {
		t.Errorf("three presses (-want +got): %s", diff)
	}
}
