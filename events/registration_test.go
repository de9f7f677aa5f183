package events

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// The texts that staff write for a state are shown in that state alone.
func TestStatesAreThoseOfManifests(t *testing.T) {
	ours := []string{
		string(CanRegister), string(LoginRequiredFree), string(LoginRequiredPaid), string(UpgradeRequired),
		string(Registered), string(RegistrationClosed), string(EventPassed),
	}
	if diff := cmp.Diff(manifest.MessagingStates(), ours); diff != "" {
		t.Errorf("the states, want -, got +: %s", diff)
	}
}

// A reader is told the truth: the first that fits, of what the event's end, its status, the
// reader's own registration, the deadline, the places and the access say.
func TestState(t *testing.T) {
	now := time.Date(2026, time.May, 4, 18, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	open := Terms{Access: AccessFree, End: after, Deadline: after, Most: 10}
	with := func(change func(*Terms)) Terms {
		changed := open
		change(&changed)
		return changed
	}
	paid := with(func(t *Terms) { t.Access = AccessPaid })
	anyone := with(func(t *Terms) { t.Access = AccessAnyone })
	for name, c := range map[string]struct {
		terms        Terms
		who          Membership
		isRegistered bool
		taken        int
		state        State
		reason       Reason
	}{
		"a guest where anyone may":              {anyone, Guest, false, 0, LoginRequiredFree, ""},
		"a free member where anyone may":        {anyone, FreeMember, false, 0, CanRegister, ""},
		"a guest":                               {open, Guest, false, 0, LoginRequiredFree, ""},
		"a free member":                         {open, FreeMember, false, 0, CanRegister, ""},
		"a paid member":                         {open, PaidMember, false, 0, CanRegister, ""},
		"a guest where members pay":             {paid, Guest, false, 0, LoginRequiredPaid, ""},
		"a free member where members pay":       {paid, FreeMember, false, 0, UpgradeRequired, ""},
		"a paid member where members pay":       {paid, PaidMember, false, 0, CanRegister, ""},
		"registered":                            {open, FreeMember, true, 1, Registered, ""},
		"registered, and not paying any more":   {paid, FreeMember, true, 1, Registered, ""},
		"registered, and full":                  {open, FreeMember, true, 10, Registered, ""},
		"registered, and the limit lowered":     {open, FreeMember, true, 12, Registered, ""},
		"the last place":                        {open, FreeMember, false, 9, CanRegister, ""},
		"full":                                  {open, FreeMember, false, 10, RegistrationClosed, IsFull},
		"full, for a guest":                     {open, Guest, false, 10, RegistrationClosed, IsFull},
		"the limit lowered":                     {open, FreeMember, false, 12, RegistrationClosed, IsFull},
		"any number of places":                  {with(func(t *Terms) { t.Most = 0 }), FreeMember, false, 1 << 40, CanRegister, ""},
		"the deadline is now":                   {with(func(t *Terms) { t.Deadline = now }), FreeMember, false, 0, RegistrationClosed, ByDeadline},
		"after the deadline":                    {with(func(t *Terms) { t.Deadline = before }), Guest, false, 0, RegistrationClosed, ByDeadline},
		"after the deadline, and full":          {with(func(t *Terms) { t.Deadline = before }), Guest, false, 10, RegistrationClosed, ByDeadline},
		"registered, after the deadline":        {with(func(t *Terms) { t.Deadline = before }), FreeMember, true, 1, Registered, ""},
		"no deadline":                           {with(func(t *Terms) { t.Deadline = time.Time{} }), FreeMember, false, 0, CanRegister, ""},
		"cancelled":                             {with(func(t *Terms) { t.IsCancelled = true }), FreeMember, false, 0, RegistrationClosed, IsCancelled},
		"cancelled, for those who registered":   {with(func(t *Terms) { t.IsCancelled = true }), FreeMember, true, 1, RegistrationClosed, IsCancelled},
		"cancelled, and after the deadline":     {with(func(t *Terms) { t.IsCancelled, t.Deadline = true, before }), Guest, false, 0, RegistrationClosed, IsCancelled},
		"the end is now":                        {with(func(t *Terms) { t.End = now }), FreeMember, false, 0, EventPassed, ""},
		"over, for those who were there":        {with(func(t *Terms) { t.End = before }), FreeMember, true, 1, EventPassed, ""},
		"over, and cancelled":                   {with(func(t *Terms) { t.End, t.IsCancelled = before, true }), FreeMember, false, 0, EventPassed, ""},
		"an event without a date is never over": {with(func(t *Terms) { t.End = time.Time{} }), FreeMember, false, 0, CanRegister, ""},
	} {
		if state, reason := c.terms.State(now, c.who, c.isRegistered, c.taken); state != c.state || reason != c.reason {
			t.Errorf("%s: %q %q, want %q %q", name, state, reason, c.state, c.reason)
		}
	}
}

// The values of an event become its terms, in its own time zone, also on days on which the
// clocks change.
func TestTerms(t *testing.T) {
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
				End: time.Date(2026, 5, 4, 22, 0, 0, 0, berlin), Deadline: time.Date(2026, 5, 3, 12, 0, 0, 0, berlin),
			},
		},
		"no end: at the start": {
			map[string]any{"access": "free", "event_date": "2026-05-04", "event_time_start": "19:30", "event_time_zone": "America/New_York"},
			Terms{Access: AccessFree, End: time.Date(2026, 5, 4, 19, 30, 0, 0, newYork)},
		},
		"no time: with the day, which has 23 hours": {
			map[string]any{"access": "free", "event_date": "2026-03-29", "event_time_zone": "Europe/Berlin", "registration_deadline": "2026-03-28"},
			Terms{Access: AccessFree, End: time.Date(2026, 3, 30, 0, 0, 0, 0, berlin), Deadline: time.Date(2026, 3, 29, 0, 0, 0, 0, berlin)},
		},
		"values that nobody can use": {
			map[string]any{"access": "everybody", "max_attendees": "many", "event_date": "soon", "registration_deadline": "2026-02-30"},
			Terms{},
		},
	} {
		e := Event{Values: c.values, Status: Published, Shape: Shape{Fields: manifest.StandardFields()}}
		if diff := cmp.Diff(c.want, e.terms(), cmp.Comparer(time.Time.Equal)); diff != "" {
			t.Errorf("%s, want -, got +: %s", name, diff)
		}
	}
	e := Event{Values: map[string]any{"access": "free", "max_attendees": 3.0}, Status: Cancelled, Shape: Shape{Fields: []string{"access"}}}
	if diff := cmp.Diff(Terms{Access: AccessFree, IsCancelled: true}, e.terms()); diff != "" {
		t.Errorf("fields that the type does not have, want -, got +: %s", diff)
	}
}

// Nobody is told that they can register where they would be refused by what is known: of
// random terms, the state never promises a place that is not there.
func TestStateNeverPromisesTooMuch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(0, 1000).Draw(t, "now"), 0)
		moment := func(name string) time.Time {
			if rapid.Bool().Draw(t, "has "+name) {
				return time.Unix(rapid.Int64Range(0, 1000).Draw(t, name), 0)
			}
			return time.Time{}
		}
		terms := Terms{
			Access: rapid.SampledFrom([]string{AccessAnyone, AccessFree, AccessPaid}).Draw(t, "access"),
			End:    moment("end"), Deadline: moment("deadline"), Most: rapid.IntRange(0, 3).Draw(t, "most"), IsCancelled: rapid.Bool().Draw(t, "cancelled"),
		}
		who := rapid.SampledFrom([]Membership{Guest, FreeMember, PaidMember}).Draw(t, "who")
		isRegistered, taken := who != Guest && rapid.Bool().Draw(t, "registered"), rapid.IntRange(0, 4).Draw(t, "taken")
		state, reason := terms.State(now, who, isRegistered, taken)
		isOver := !terms.End.IsZero() && !now.Before(terms.End)
		isLate := !terms.Deadline.IsZero() && !now.Before(terms.Deadline)
		left, isLimited := terms.PlacesLeft(taken)
		may := !isOver && !isLate && !terms.IsCancelled && !isRegistered && (!isLimited || left > 0) &&
			(who == PaidMember || who == FreeMember && terms.Access != AccessPaid)
		if may != (state == CanRegister) {
			t.Errorf("%+v: %s, want it to be possible: %t", terms, state, may)
		}
		if (reason != "") != (state == RegistrationClosed) {
			t.Errorf("%+v: %s for %q, want a reason where it is closed alone", terms, state, reason)
		}
	})
}
