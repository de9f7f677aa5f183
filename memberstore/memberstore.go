// Package memberstore keeps the members of the publications, the integrations
// that may change them, and the answers to requests that may come again.
//
// [Store] is the contract; [SQL] implements it on SQLite and on PostgreSQL.
package memberstore

import (
	"context"
	"errors"
	"time"
)

// Member is one member of a site.
type Member struct {
	GUID        string // unique everywhere
	Site        string
	Email       string // unique in its site, as emailaddr.Key compares
	Name        string
	Note        string
	Subscribed  bool
	Labels      []string
	Newsletters []Newsletter // as last asked for; nil leaves them to the platform
	TierID      *string
	Status      string // free, paid or complimentary
	CreatedAt   time.Time
	UpdatedAt   time.Time

	// MemberID is the member's identifier in an integration in Custom ID mode,
	// or empty: in that which was named to Find, or is to be named to Insert.
	MemberID string

	// Version counts the writes, from 1. Applied is the version that the
	// platform has; while it is less the member is behind.
	Version, Applied int64

	// Named is the version of the write that last named each field. The platform
	// is to be sent those whose version is more than Applied, and no other.
	Named [fields]int64

	// PlatformID is the platform's own identifier, empty until it is known.
	PlatformID string

	// Deleted marks a tombstone: a member that is gone here, and may still be
	// there on the platform.
	Deleted bool

	// Sent is the email under which the member was last sent to the platform,
	// to be made there, if it is not known what came of that; SentAt is when.
	// Empty if it was not, or is known.
	Sent   string
	SentAt time.Time

	// UnansweredAt is when an attempt to apply the member last had no answer, so
	// that it may take its effect later. Zero if none had.
	UnansweredAt time.Time

	// Attempts counts how often applying the current version was tried and did
	// not succeed; Problem is why the last one did not, and NextAttempt when it
	// is tried again.
	Attempts    int64
	Problem     string
	NextAttempt time.Time
}

// Field is a field of a member that the platform keeps too.
type Field int

// The fields.
const (
	Email Field = iota
	Name
	Note
	Labels
	Subscription // Subscribed and Newsletters
	fields
)

// Fields returns all fields.
func Fields() []Field { return []Field{Email, Name, Note, Labels, Subscription} }

// Names notes that the write that is being made, the one after m.Version, names a
// field.
func (m *Member) Names(f Field) { m.Named[f] = m.Version + 1 }

// Pending reports whether a write has named a field that the platform does not
// have yet.
func (m *Member) Pending(f Field) bool { return m.Named[f] > m.Applied }

// Newsletter is a newsletter that a member was signed up for or off.
type Newsletter struct {
	ID     string `json:"id"`
	Status string `json:"status,omitempty"` // active, which is the default, or inactive
}

// Errors that a Store returns, wrapped or not.
var (
	// ErrNotText means that what is to be kept is not UTF-8, or has U+0000, which
	// PostgreSQL does not take. No such thing is found either.
	ErrNotText = errors.New("not text that can be kept")

	// ErrNotFound means that there is no such thing.
	ErrNotFound = errors.New("not found")

	// ErrEmailTaken means that another member of the site has the email.
	ErrEmailTaken = errors.New("email is taken")

	// ErrMemberIDTaken means that another member has the identifier in the
	// integration.
	ErrMemberIDTaken = errors.New("member ID is taken")

	// ErrConflict means that the member was changed since it was read.
	ErrConflict = errors.New("member was changed meanwhile")
)

// Key finds a member of a site: by its email, or, if Integration is set, by
// its MemberID in that integration, or by its PlatformID, or by its GUID.
type Key struct {
	Site        string
	GUID        string
	Email       string
	Integration string
	MemberID    string
	PlatformID  string
}

// Store keeps members.
//
// It may be used by many goroutines, and by several processes, at once. A
// method that returns nil has made its change durable, and whole: after a crash
// all of it is there, and after an error nothing of it. Times are kept to the
// millisecond.
type Store interface {
	// Find returns the member with a key. Tombstones are not found by email or
	// MemberID, but they are by PlatformID and GUID. Errors: ErrNotFound.
	Find(ctx context.Context, key Key) (Member, error)

	// Read is Find by email or MemberID, for whoever only shows the member: the
	// newsletters, and what follows MemberID in [Member], are left out, which makes
	// it quicker.
	Read(ctx context.Context, key Key) (Member, error)

	// Insert adds a member at version 1, with its MemberID in integration if
	// that is not empty. The caller sets all other fields, Applied and Sent
	// among them. If lease is not zero the member is leased as by Lease.
	// Errors: ErrEmailTaken (also if there is a member with this GUID),
	// ErrMemberIDTaken, ErrNotText.
	Insert(ctx context.Context, m Member, integration string, lease Lease) error

	// Update replaces what a member says if its version is still m.Version, and
	// makes it the next one: m.Version + 1. Applied, PlatformID and Deleted are
	// replaced too, but never by less than is known: another may have noted
	// meanwhile what it applied. What was tried before is forgotten. A tombstone loses its
	// MemberIDs. Errors: ErrConflict (also for a member that is gone),
	// ErrEmailTaken, ErrNotText.
	Update(ctx context.Context, m Member) error

	// Lease makes its owner the only one who may apply the member until some
	// time, and returns the member as it is now. A lease that has run out is
	// free to take; what its owner was doing then counts as unanswered. Edges
	// that share a store are taken to have clocks that agree to a few seconds.
	// Errors: ErrConflict, while there is another; ErrNotFound.
	Lease(ctx context.Context, guid string, lease Lease) (Member, error)

	// Release ends the owner's lease, and nothing else.
	Release(ctx context.Context, guid, owner string) error

	// Leaving reports whether the platform may have a member with an email who
	// is about to leave it: a tombstone, or one that was sent under it and has
	// another email by now. The member with the GUID but does not count.
	Leaving(ctx context.Context, site, email, but string) (bool, error)

	// Sending notes that a member is about to be sent to the platform, to be
	// made there.
	Sending(ctx context.Context, guid, email string, now time.Time) error

	// Applied notes that the platform has a version of the member, m.Applied, and
	// what it says of the member now, and ends the owner's lease. What a later
	// write has named stays as that says. The result tells whether the member is
	// still behind, because of such a write. A tombstone that is applied is
	// removed; if there is a PlatformID, that is kept for Purge to remove, and
	// nothing else. Errors: ErrNotFound, ErrEmailTaken, ErrNotText.
	Applied(ctx context.Context, m Member, owner string) (behind bool, err error)

	// Unsure is Applied for a member that has to be applied once more at some
	// time, because an attempt before had no answer and may yet take its effect:
	// m.Applied is less than the version that the platform has. Until then the
	// member is behind. Of f, Problem, Next and Unname count.
	Unsure(ctx context.Context, m Member, f Failure, owner string) error

	// Purge removes the tombstones of a site that were applied before some time.
	Purge(ctx context.Context, site string, before time.Time) error

	// Failed notes that a version could not be applied, and ends the owner's
	// lease.
	Failed(ctx context.Context, guid string, f Failure, owner string) error

	// Revert puts a member back to what it was before a write that the platform
	// refused: m, at the version after refused. It does nothing and returns
	// ErrConflict if there was a further write. Before nil removes the member.
	Revert(ctx context.Context, guid string, refused int64, before *Member, owner string) error

	// Remove removes a member at a version, for good. Errors: ErrConflict.
	Remove(ctx context.Context, guid string, version int64) error

	// Behind returns members of a site that are behind, whose next attempt is
	// due, and that nobody leases, longest due first.
	Behind(ctx context.Context, site string, now time.Time, limit int) ([]Member, error)

	// DueNow makes the next attempt of all members of a site that are behind due
	// at once, and returns how many those are.
	DueNow(ctx context.Context, site string) (int, error)

	// CountBehind returns how many members of a site are behind.
	CountBehind(ctx context.Context, site string) (int, error)
}

// Failure is why a member could not be applied, and when to try again.
type Failure struct {
	Problem string
	Next    time.Time

	// NotSent tells that the platform certainly did not make the member.
	NotSent bool

	// PlatformID is the platform's own identifier, if that is known by now.
	PlatformID string

	// UnansweredAt is now if the attempt had no answer, else zero.
	UnansweredAt time.Time

	// Unname is up to which version a write that named the subscription need no
	// longer be applied, or 0.
	Unname int64
}

// Lease names who applies a member, and until when. Each lease has an owner of
// its own.
type Lease struct {
	Owner string
	Until time.Time
}
