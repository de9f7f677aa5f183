package events

import (
	"time"

	"github.com/lychgate/caddy-lychgate/internal/errcode"
)

// This file says how an event stands for a reader (docs/registration.md#states). It asks
// nobody: all that counts is handed in.

// State is a messaging state, by its name in theme manifests.
type State string

// The states.
const (
	CanRegister        State = "can_register"
	LoginRequiredFree  State = "login_required_free"
	LoginRequiredPaid  State = "login_required_paid"
	UpgradeRequired    State = "upgrade_required"
	Registered         State = "registered"
	RegistrationClosed State = "registration_closed"
	EventPassed        State = "event_passed"
)

// Reason says why registration is closed.
type Reason string

// The reasons.
const (
	ByDeadline  Reason = "deadline"
	IsFull      Reason = "full"
	IsCancelled Reason = "cancelled"
)

// Membership is what a reader is to the publication.
type Membership int

// The memberships. Complimentary members count as paid. A guest can become a free member on the
// spot, so AccessAnyone and AccessFree admit the same people.
const (
	Guest Membership = iota
	FreeMember
	PaidMember
)

// Terms are the conditions of registering for an event.
type Terms struct {
	Access      string    // AccessAnyone, AccessFree or AccessPaid; "" means that the event takes no registrations
	End         time.Time // of the event: its start if it does not say, the end of its day without a time; zero for never
	Deadline    time.Time // zero for none
	Most        int       // registrations, 0 for any number
	IsCancelled bool
}

// State returns the first state that fits, in the order of docs/registration.md#states, and the
// reason of RegistrationClosed. taken is how many are registered.
func (t Terms) State(now time.Time, who Membership, isRegistered bool, taken int) (State, Reason) {
	switch {
	case !t.End.IsZero() && !now.Before(t.End):
		return EventPassed, ""
	case t.IsCancelled:
		return RegistrationClosed, IsCancelled
	case isRegistered:
		return Registered, ""
	case !t.Deadline.IsZero() && !now.Before(t.Deadline):
		return RegistrationClosed, ByDeadline
	case t.Most > 0 && taken >= t.Most:
		return RegistrationClosed, IsFull
	case who == Guest && t.Access == AccessPaid:
		return LoginRequiredPaid, ""
	case who == Guest:
		return LoginRequiredFree, ""
	case who == FreeMember && t.Access == AccessPaid:
		return UpgradeRequired, ""
	}
	return CanRegister, ""
}

// PlacesLeft returns how many more can register, and false if any number can.
func (t Terms) PlacesLeft(taken int) (left int, isLimited bool) {
	return max(t.Most-taken, 0), t.Most > 0
}

// terms leaves out what the event's type does not have.
func (e *Event) terms() Terms {
	values := e.shown()
	w := whenOf(values)
	t := Terms{Access: accessOf(values), End: w.End, Deadline: w.Deadline, IsCancelled: e.Status == Cancelled}
	if most, ok := wholeNumber(values["max_attendees"]).(int64); ok {
		t.Most = int(most)
	}
	return t
}

// ErrNoRegistration means that the event takes no registrations.
var ErrNoRegistration = errcode.New(errcode.NotFound, "the event takes no registrations", "This event takes no registrations.")
