package events

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// The values of an event become its terms, in its own time zone, also on days on which the
// clocks change.
func TestTermsAreInTheEventsTimeZone(t *testing.T) {
	berlin := want[*time.Location](t)(time.LoadLocation("Europe/Berlin"))
	newYork := want[*time.Location](t)(time.LoadLocation("America/New_York"))
	for name, c := range map[string]struct {
		values map[string]any
		want   Terms
	}{
		"nothing": {nil, Terms{}},
		"all": {
			map[string]any{
				"access": " paid ", "max_attendees": 120.0, "event_date": "2026-05-04", "event_time_start": "19:30", "event_time_end": "22:00",
				"event_time_zone": "Europe/Berlin", "registration_deadline": "2026-05-03", "deadline_time_end": "12:00",
			},
			Terms{
				Access: AccessPaid, Most: 120,
				Start: time.Date(2026, 5, 4, 19, 30, 0, 0, berlin), End: time.Date(2026, 5, 4, 22, 0, 0, 0, berlin), Deadline: time.Date(2026, 5, 3, 12, 0, 0, 0, berlin),
			},
		},
		"no end: at the start": {
			map[string]any{"access": "free", "event_date": "2026-05-04", "event_time_start": "19:30", "event_time_zone": "America/New_York"},
			Terms{Access: AccessFree, Start: time.Date(2026, 5, 4, 19, 30, 0, 0, newYork), End: time.Date(2026, 5, 4, 19, 30, 0, 0, newYork)},
		},
		"no time: with the day, which has 23 hours": {
			map[string]any{"access": "free", "event_date": "2026-03-29", "event_time_zone": "Europe/Berlin", "registration_deadline": "2026-03-28"},
			Terms{Access: AccessFree, Start: time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), End: time.Date(2026, 3, 30, 0, 0, 0, 0, berlin), Deadline: time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), DeadlineIsDay: true},
		},
		"values that nobody can use": {
			map[string]any{"access": "everybody", "max_attendees": "many", "event_date": "soon", "registration_deadline": "2026-02-30"},
			Terms{},
		},
		"a deadline at midnight": {
			map[string]any{"access": "free", "event_time_zone": "Europe/Berlin", "registration_deadline": "2026-03-28", "deadline_time_end": "00:00"},
			Terms{Access: AccessFree, Deadline: time.Date(2026, 3, 28, 0, 0, 0, 0, berlin)},
		},
	} {
		e := Event{Values: c.values, Status: Published, Shape: Shape{Fields: manifest.StandardFields()}}
		c.want.Waiting = WaitingFills // unless staff say otherwise
		if diff := cmp.Diff(c.want, e.Terms(), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Errorf("%s, want -, got +: %s", name, diff)
		}
	}
	e := Event{Values: map[string]any{"access": "free", "max_attendees": 3.0}, Status: Cancelled, Shape: Shape{Fields: []string{"access"}}}
	if diff := cmp.Diff(Terms{Access: AccessFree, IsCancelled: true}, e.Terms()); diff != "" {
		t.Errorf("fields that the type does not have, want -, got +: %s", diff)
	}
}
