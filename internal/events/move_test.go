package events

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A move outlives what becomes of the event's post.
func TestMovesOutliveTheSync(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		values := map[string]any{"name": "Party", "event_date": "2031-05-01", "location": "The Pier", "speaker": "Ada"}
		e := r.published(values)
		began := r.store.Now().Add(-time.Second)
		values["location"] = "The Hall"
		e = want[Event](t)(r.Save(t.Context(), "daily", e.ID, e.Revision, Edit{"solo", "webinar", values}, typeOf(t, "webinar")))
		r.sync(e.ID)
		values["name"] = "The party"
		want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{"solo", "webinar", values}, typeOf(t, "webinar")))
		e = want[Event](t)(r.Find(t.Context(), "daily", e.ID))
		if diff := cmp.Diff(&Schedule{Start: "2031-05-01", End: "2031-05-02", AllDay: true, Place: "The Pier"}, e.Terms().MovedFrom(began)); diff != "" || len(e.Moves) != 1 {
			t.Errorf("%d moves, want 1, the schedule before (-want +got): %s", len(e.Moves), diff)
		}
	})
}

// Who registered before an event was moved is told of the schedule that they knew, unless it is that again.
func TestMovesAreKept(t *testing.T) {
	e := Event{Status: Published, Shape: Shape{Fields: manifest.StandardFields()}, Values: map[string]any{
		"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "location": "The Pier",
	}}
	pier := Schedule{Start: "2031-05-01T19:00:00+02:00", Place: "The Pier"}
	later := Schedule{Start: "2031-05-02T19:00:00+02:00", Place: "The Pier"}
	at := func(hour int) time.Time { return time.Date(2031, 4, 1, hour, 0, 0, 0, time.UTC) }
	change := func(hour int, key, value string) {
		before := e.schedule()
		e.Values[key] = value
		e.noteMove(before, at(hour))
	}
	known := func(want map[int]*Schedule) {
		t.Helper()
		got := make(map[int]*Schedule)
		for hour := range want {
			got[hour] = e.Terms().MovedFrom(at(hour))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the schedules that were known at these hours (-want +got): %s", diff)
		}
	}
	known(map[int]*Schedule{0: nil})
	change(1, "event_date", "2031-05-02")
	known(map[int]*Schedule{0: &pier, 1: nil, 2: nil})
	change(3, "name", "Another name")
	change(4, "location", "The Hall")
	known(map[int]*Schedule{0: &pier, 1: &later, 3: &later, 5: nil})
	change(5, "location", "The Pier")
	change(6, "event_date", "2031-05-01")
	known(map[int]*Schedule{0: nil, 2: &later, 7: nil})
	for hour := range 20 {
		change(10+hour, "location", []string{"The Hall", "The Pier"}[hour%2])
	}
	if n := len(e.Moves); n != maxMoves {
		t.Errorf("%d moves are kept, want %d", n, maxMoves)
	}
	e.Status, e.Moves = Draft, nil
	change(40, "location", "The Garden")
	if len(e.Moves) != 0 {
		t.Errorf("moves of a draft: %+v, want none: nobody knows of it", e.Moves)
	}
}
