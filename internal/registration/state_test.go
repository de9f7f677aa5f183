package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// The texts that staff write for a state are shown in that state alone.
func TestStatesAreThoseOfManifests(t *testing.T) {
	ours := []string{
		string(messaging.CanRegister), string(messaging.LoginRequiredFree), string(messaging.LoginRequiredPaid), string(messaging.UpgradeRequired),
		string(messaging.Registered), string(messaging.RegistrationClosed), string(messaging.EventPassed),
	}
	if diff := cmp.Diff(manifest.MessagingStates(), ours); diff != "" {
		t.Errorf("the states, want -, got +: %s", diff)
	}
}

// A reader is told the truth: the first that fits, of what the event's end, its status, the
// reader's own registration, the deadline, the places and the access say.
func TestStateIsTheFirstThatFits(t *testing.T) {
	now := time.Date(2026, time.May, 4, 18, 0, 0, 0, time.UTC)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	open := events.Terms{Access: events.AccessFree, End: after, Deadline: after, Most: 10}
	with := func(change func(*events.Terms)) events.Terms {
		changed := open
		change(&changed)
		return changed
	}
	paid := with(func(t *events.Terms) { t.Access = events.AccessPaid })
	anyone := with(func(t *events.Terms) { t.Access = events.AccessAnyone })
	for name, c := range map[string]struct {
		terms        events.Terms
		who          Membership
		isRegistered bool
		taken        int
		state        messaging.State
		reason       messaging.Reason
	}{
		"a guest where anyone may":              {anyone, Guest, false, 0, messaging.LoginRequiredFree, ""},
		"a free member where anyone may":        {anyone, FreeMember, false, 0, messaging.CanRegister, ""},
		"a guest":                               {open, Guest, false, 0, messaging.LoginRequiredFree, ""},
		"a free member":                         {open, FreeMember, false, 0, messaging.CanRegister, ""},
		"a paid member":                         {open, PaidMember, false, 0, messaging.CanRegister, ""},
		"a guest where members pay":             {paid, Guest, false, 0, messaging.LoginRequiredPaid, ""},
		"a free member where members pay":       {paid, FreeMember, false, 0, messaging.UpgradeRequired, ""},
		"a paid member where members pay":       {paid, PaidMember, false, 0, messaging.CanRegister, ""},
		"registered":                            {open, FreeMember, true, 1, messaging.Registered, ""},
		"registered, and not paying any more":   {paid, FreeMember, true, 1, messaging.Registered, ""},
		"registered, and full":                  {open, FreeMember, true, 10, messaging.Registered, ""},
		"registered, and the limit lowered":     {open, FreeMember, true, 12, messaging.Registered, ""},
		"the last place":                        {open, FreeMember, false, 9, messaging.CanRegister, ""},
		"full":                                  {open, FreeMember, false, 10, messaging.RegistrationClosed, messaging.IsFull},
		"full, for a guest":                     {open, Guest, false, 10, messaging.RegistrationClosed, messaging.IsFull},
		"the limit lowered":                     {open, FreeMember, false, 12, messaging.RegistrationClosed, messaging.IsFull},
		"any number of places":                  {with(func(t *events.Terms) { t.Most = 0 }), FreeMember, false, 1 << 40, messaging.CanRegister, ""},
		"the deadline is now":                   {with(func(t *events.Terms) { t.Deadline = now }), FreeMember, false, 0, messaging.RegistrationClosed, messaging.ByDeadline},
		"after the deadline":                    {with(func(t *events.Terms) { t.Deadline = before }), Guest, false, 0, messaging.RegistrationClosed, messaging.ByDeadline},
		"after the deadline, and full":          {with(func(t *events.Terms) { t.Deadline = before }), Guest, false, 10, messaging.RegistrationClosed, messaging.ByDeadline},
		"registered, after the deadline":        {with(func(t *events.Terms) { t.Deadline = before }), FreeMember, true, 1, messaging.Registered, ""},
		"no deadline":                           {with(func(t *events.Terms) { t.Deadline = time.Time{} }), FreeMember, false, 0, messaging.CanRegister, ""},
		"cancelled":                             {with(func(t *events.Terms) { t.IsCancelled = true }), FreeMember, false, 0, messaging.RegistrationClosed, messaging.IsCancelled},
		"cancelled, for those who registered":   {with(func(t *events.Terms) { t.IsCancelled = true }), FreeMember, true, 1, messaging.RegistrationClosed, messaging.IsCancelled},
		"cancelled, and after the deadline":     {with(func(t *events.Terms) { t.IsCancelled, t.Deadline = true, before }), Guest, false, 0, messaging.RegistrationClosed, messaging.IsCancelled},
		"the end is now":                        {with(func(t *events.Terms) { t.End = now }), FreeMember, false, 0, messaging.EventPassed, ""},
		"over, for those who were there":        {with(func(t *events.Terms) { t.End = before }), FreeMember, true, 1, messaging.EventPassed, ""},
		"over, and cancelled":                   {with(func(t *events.Terms) { t.End, t.IsCancelled = before, true }), FreeMember, false, 0, messaging.EventPassed, ""},
		"an event without a date is never over": {with(func(t *events.Terms) { t.End = time.Time{} }), FreeMember, false, 0, messaging.CanRegister, ""},
	} {
		if state, reason := StateOf(c.terms, now, c.who, c.isRegistered, c.taken); state != c.state || reason != c.reason {
			t.Errorf("%s: %q %q, want %q %q", name, state, reason, c.state, c.reason)
		}
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
		terms := events.Terms{
			Access: rapid.SampledFrom([]string{events.AccessAnyone, events.AccessFree, events.AccessPaid}).Draw(t, "access"),
			End:    moment("end"), Deadline: moment("deadline"), Most: rapid.IntRange(0, 3).Draw(t, "most"), IsCancelled: rapid.Bool().Draw(t, "cancelled"),
		}
		who := rapid.SampledFrom([]Membership{Guest, FreeMember, PaidMember}).Draw(t, "who")
		isRegistered, taken := who != Guest && rapid.Bool().Draw(t, "registered"), rapid.IntRange(0, 4).Draw(t, "taken")
		state, reason := StateOf(terms, now, who, isRegistered, taken)
		isOver := !terms.End.IsZero() && !now.Before(terms.End)
		isLate := !terms.Deadline.IsZero() && !now.Before(terms.Deadline)
		left, isLimited := terms.PlacesLeft(taken)
		may := !isOver && !isLate && !terms.IsCancelled && !isRegistered && (!isLimited || left > 0) &&
			(who == PaidMember || who == FreeMember && terms.Access != events.AccessPaid)
		if may != (state == messaging.CanRegister) {
			t.Errorf("%+v: %s, want it to be possible: %t", terms, state, may)
		}
		if (reason != "") != (state == messaging.RegistrationClosed) {
			t.Errorf("%+v: %s for %q, want a reason where it is closed alone", terms, state, reason)
		}
	})
}
