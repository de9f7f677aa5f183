package registration

import (
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
)

// This file says how an event stands for a reader (docs/registration.md#states). It asks
// nobody: all that counts is handed in.

// Membership is what a reader is to the publication.
type Membership int

// The memberships. Complimentary members count as paid. A guest can become a free member on the
// spot, so [events.AccessAnyone] and [events.AccessFree] admit the same people.
const (
	Guest Membership = iota
	FreeMember
	PaidMember
)

// Reader is somebody who looks at an event's page, as the platform knows them.
type Reader struct {
	Member      string // the platform's UUID, "" for a guest
	Email, Name string
	Membership  Membership
	Since       time.Time // when they became a member
	Language    string    // of the page where they are, one of messages, "" for the publication's
}

// StateOf tries the states in the order of docs/registration.md#states, and the first that fits
// counts. The reason is that of RegistrationClosed. taken is how many are registered.
func StateOf(t events.Terms, now time.Time, who Membership, isRegistered bool, taken int) (messaging.State, messaging.Reason) {
	switch {
	case t.IsOver(now):
		return messaging.EventPassed, ""
	case t.IsCancelled:
		return messaging.RegistrationClosed, messaging.IsCancelled
	case isRegistered:
		return messaging.Registered, ""
	case t.IsLate(now):
		return messaging.RegistrationClosed, messaging.ByDeadline
	case t.Most > 0 && taken >= t.Most:
		return messaging.RegistrationClosed, messaging.IsFull
	case who == Guest && t.Access == events.AccessPaid:
		return messaging.LoginRequiredPaid, ""
	case who == Guest:
		return messaging.LoginRequiredFree, ""
	case who == FreeMember && t.Access == events.AccessPaid:
		return messaging.UpgradeRequired, ""
	}
	return messaging.CanRegister, ""
}
