// Package platform is what Lychgate needs of a publishing platform: a place
// where members can be made, changed, removed and found, and that knows its
// staff.
package platform

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// Member is a member as the platform has it.
type Member struct {
	ID         string // the platform's own
	UUID       string // of the member on the pages of the publication, as Reader has it; "" if the platform did not say
	Email      string
	Name       string
	Note       string
	Subscribed bool
	Labels     []string // names
	Status     string   // free, paid or complimentary
	TierID     string   // what a member who is not free has, as the payment processor calls it if it can
	CreatedAt  time.Time
	UpdatedAt  time.Time

	// Newsletters are the IDs of the newsletters that the member gets. Of one who
	// is to be made, nil leaves the choice to the platform and Subscribed.
	Newsletters []string
}

// Change is what is to be changed of a member. What is nil stays as the platform
// has it.
type Change struct {
	Email, Name, Note *string
	Labels            *[]string // the whole set
	Subscription      *Subscription
}

// Subscription says which newsletters a member gets: none unless Subscribed, and
// otherwise those with the IDs, or which the platform chooses if that is nil.
type Subscription struct {
	Subscribed  bool
	Newsletters []string
}

// Platform keeps members.
//
// It may be used by many goroutines at once. Each call is bounded in time, by
// the platform's own bound or ctx, whichever ends first. A call that failed may
// have had its effect all the same, so a caller that repeats it must expect that,
// unless the error is [ErrNotFound], a [*Refusal], or wraps [ErrNoEffect].
//
// Errors are of three kinds: [ErrNotFound]; a [*Refusal], for what the member
// says; and any other, which means that the platform could not be asked or
// could not respond, and may well do so later. A key that the platform rejects
// is of the last kind.
type Platform interface {
	// Create makes a member and returns it with its ID. Labels that do not
	// exist are made. An email that another member has is a Refusal.
	Create(ctx context.Context, m Member) (Member, error)

	// Update changes the member with an ID, and returns all that the platform
	// says of it then. Errors: ErrNotFound; an email that another member has is
	// a Refusal.
	Update(ctx context.Context, id string, c Change) (Member, error)

	// Delete removes a member. Errors: ErrNotFound.
	Delete(ctx context.Context, id string) error

	// Get finds a member by the platform's own ID. Errors: ErrNotFound.
	Get(ctx context.Context, id string) (Member, error)

	// GetAll takes at most 100 IDs. Members that do not exist are left out.
	GetAll(ctx context.Context, ids []string) ([]Member, error)

	// Count counts all members. The latest is that which was changed last, as far as the platform
	// knows; zero without members.
	Count(ctx context.Context) (total int, latest Member, err error)

	// FindByEmail compares emails as emailaddr.Key does. If several members match, an exact match
	// comes first, then the oldest member. Errors: ErrNotFound.
	FindByEmail(ctx context.Context, email string) (Member, error)

	// List reads the members page by page, in an order of the platform's own in which new members
	// come last. A page starts after the member with the ID after, or with the first member if
	// after is empty. If since is not zero, the page has only members that were changed since then,
	// as far as the platform knows. An empty page means the end. The total counts the members from
	// this page on.
	List(ctx context.Context, after string, since time.Time) (page []Member, total int, err error)
}

// EventSource is a Platform that sends a webhook event for each change of a member.
type EventSource interface {
	Platform

	// Identity tells platforms apart. It changes with the key too, since events of
	// a webhook that was registered with another key are not understood.
	Identity() string

	// Subscribe registers a webhook: events are sent to a URL from now on, by
	// POST. A response of 410 ends that.
	Subscribe(ctx context.Context, url string) error

	// SignatureHeader is the name of the header that has the signature of an
	// event.
	SignatureHeader() string

	// ReadEvent finds which member an event is about. That member may have been deleted since. The
	// ID is empty for an event of EventTester's. The signature must be for this URL and body, and
	// be recent. Errors: ErrForged, ErrMalformed.
	ReadEvent(url, signature string, body []byte, now time.Time) (id string, err error)
}

// BulkChanger is a Platform that sends no events for some changes of its members.
type BulkChanger interface {
	// ChangesInBulk reports whether a request to the platform, if it succeeds,
	// changes members for whom no event is sent. The platform may go on with it
	// after its response: again is how long after that to look again, several times.
	ChangesInBulk(method, path string) (again []time.Duration, ok bool)
}

// Authenticator is a Platform that knows its staff.
type Authenticator interface {
	// StaffSession picks the part of a Cookie header that may be a staff session, "" if there is
	// none. It sends no request, so the session may not be valid.
	StaffSession(cookie string) string

	// HasToken reports whether an Authorization header has what may be a token of
	// an integration's, or of a member of the staff's. It asks nobody.
	HasToken(authorization string) bool

	// CheckToken asks whether that token is valid. Errors: ErrNotStaff.
	CheckToken(ctx context.Context, authorization string) error

	// Staff asks who sends a request. Errors: ErrNotStaff if that is not a signed-in member of the
	// staff, or a *SessionError, which is one; ErrUnanswered.
	Staff(ctx context.Context, visitor Visitor) (StaffMember, error)
}

// Visitor is what a browser's request says of who sends it.
type Visitor struct {
	Cookie, Origin, Referer, UserAgent string // the headers

	// SameOrigin means that the request certainly comes from a page of the host that
	// it is sent to, or from no page. The platform may then be asked without the
	// origin, which it would check in place of that.
	SameOrigin bool

	// IsRecalled means that the platform did not answer whose session it is, and that what it
	// said some minutes ago stands in. It is not asked anything else then.
	IsRecalled bool
}

// ErrUnanswered means that a platform did not answer a question: it could not be reached, took too
// long, or is in trouble itself (5xx). What it said before may still hold.
var ErrUnanswered = errors.New("the platform did not answer")

// ErrNotStaff means that a visitor is not signed in as one of the staff.
var ErrNotStaff = errors.New("not signed in as staff")

// SessionError is an ErrNotStaff for which the platform gave a reason, such as the
// origin of the session.
type SessionError struct {
	Reason string // sentences for people
}

func (e *SessionError) Error() string { return ErrNotStaff.Error() + ": " + e.Reason }

// Is reports whether target is ErrNotStaff.
func (*SessionError) Is(target error) bool { return target == ErrNotStaff }

// ErrForged means that an event is not the platform's, or is old.
var ErrForged = errcode.New(errcode.Unauthorized, "the event is not signed by the platform, or was signed too long ago",
	"The webhook event is not signed as it should be, or is old.")

// ErrMalformed means that an event is signed as the platform's, and is not one that it sends.
var ErrMalformed = errcode.New(errcode.Malformed, "the event is not as the platform sends them",
	"The webhook event is not as the platform sends them: it must be JSON about a member.")

// ErrNotFound means that the platform has no such member.
var ErrNotFound = errors.New("the platform has no such member")

// ErrNoEffect means that a call that failed certainly changed nothing: it was
// never sent, or turned away.
var ErrNoEffect = errors.New("nothing was changed")

// ErrKeyRejected means that the platform responds and rejects the key that it is asked with.
var ErrKeyRejected = errors.New("the platform rejects the key")

// NoEffect makes an error one that is [ErrNoEffect], with the same text.
func NoEffect(err error) error { return noEffectError{err} }

type noEffectError struct{ error }

func (e noEffectError) Unwrap() error { return e.error }

func (noEffectError) Is(target error) bool { return target == ErrNoEffect }

// Refusal is the platform's word that it will not take what a member says,
// however often it is asked.
type Refusal struct {
	// Reason is a sentence for people.
	Reason string

	// Taken tells that another member has the email, or one that the platform takes
	// for the same.
	Taken bool
}

func (r *Refusal) Error() string { return "refused by the platform: " + r.Reason }

// Describe has the platform's reason.
func (r *Refusal) Describe() errcode.Description {
	return errcode.Description{Code: errcode.Invalid, Message: r.Reason}
}
