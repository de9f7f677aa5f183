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
		before := e.Schedule()
		e.Values[key] = value
		e.noteMove(before, e.Status, at(hour))
	}
	becomes := func(hour int, status Status) {
		was := e.Status
		e.Status = status
		e.noteMove(e.Schedule(), was, at(hour))
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

	// It is postponed: cancelled or taken back, and published again.
	e.Moves = nil
	for hour, status := range map[int]Status{40: Cancelled, 50: Draft} {
		change(hour, "location", "The Pier")
		e.Moves = nil
		becomes(hour+1, status)
		change(hour+2, "location", "The Gar")
		change(hour+3, "location", "The Garden")
		if len(e.Moves) != 0 {
			t.Errorf("%s: moves %+v, want none: nobody knows of them yet", status, e.Moves)
		}
		becomes(hour+4, Published)
		known(map[int]*Schedule{hour: &pier, hour + 5: nil})
	}
	e = Event{Status: Draft, Shape: e.Shape, Values: map[string]any{"location": "The Pier"}}
	change(60, "location", "The Hall")
	if becomes(61, Published); len(e.Moves) != 0 {
		t.Errorf("moves of what was a draft: %+v, want none: nobody knew of it", e.Moves)
	}
}
