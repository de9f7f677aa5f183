package members

import (
	"context"
	"time"
)

// Key finds a member of a site. One of the other fields is set: the email; the
// MemberID and its Integration; the PlatformID; or the GUID.
type Key struct {
	Site        string
	GUID        string
	Email       string
	Integration string
	MemberID    string
	PlatformID  string
}

// Lease gives its owner alone the right to apply a member until some time. Each
// lease has an owner of its own. The zero Lease is none.
type Lease struct {
	Owner string
	Until time.Time
}

// Store keeps members.
//
// It may be used by many goroutines, and by several processes, at once. A method
// that returns nil has made its change durable, and whole: after a crash all of
// it is there, and after an error nothing of it. Times are kept to the
// millisecond.
type Store interface {
	// Read finds a member by its email, or by its MemberID in an integration. Tombstones
	// are not found. Errors: ErrNotFound; *RefusedError is one of these.
	Read(ctx context.Context, key Key) (Result, error)

	// Find finds a record. Tombstones are found by PlatformID and GUID only, and records
	// of which CheckIsThere returns an error like others. Errors: ErrNotFound.
	Find(ctx context.Context, key Key) (Record, error)

	// Insert adds a record at version 1. If its MemberID is not empty, that is
	// its identifier in the integration. The caller sets all other fields,
	// Applied and Sent among them. A lease that is not zero is as by Lease.
	// Errors: ErrEmailTaken (also if there is a record with this GUID),
	// ErrMemberIDTaken, ErrNotText, ErrUnderWay (see Record.Claim). A record of which CheckIsThere returns an error
	// has no email and no MemberID that count here and in other methods: it is
	// removed if another needs them.
	Insert(ctx context.Context, r Record, integration string, lease Lease) error

	// Update replaces a record if its version is still r.Version, and gives it
	// the next one. Applied, PlatformID and Deleted never go back: another
	// process may have noted meanwhile what it applied. Attempts start again. A
	// tombstone loses its MemberIDs. If AdoptedBy is not empty, the MemberID is from
	// now on the one in that integration. Errors: ErrConflict (also for a record that
	// is gone), ErrEmailTaken, ErrMemberIDTaken (also if the record has another in the
	// integration), ErrNotText, ErrUnderWay (see Record.Claim).
	Update(ctx context.Context, r Record) error

	// Remove removes a record at a version, for good. Errors: ErrConflict,
	// ErrUnderWay (see Record.Claim).
	Remove(ctx context.Context, r Record) error

	// Lease leases a record, and returns it as it is now. What the owner of a
	// lease that ran out was doing counts as unanswered. Processes that share a
	// store must have clocks that agree to a few seconds. Errors: ErrConflict,
	// while another has it; ErrNotFound.
	Lease(ctx context.Context, guid string, lease Lease) (Record, error)

	// Release ends the owner's lease, and changes nothing else.
	Release(ctx context.Context, guid, owner string) error

	// HasMemberID reports whether a record has a MemberID in an integration.
	HasMemberID(ctx context.Context, guid, integration string) (bool, error)

	// EmailLingers reports whether a member that was deleted or renamed here may
	// still have an email on the platform. The member exceptGUID is ignored.
	EmailLingers(ctx context.Context, site, email, exceptGUID string) (bool, error)

	// MarkApplied notes that the platform has version r.Applied, and what it
	// says of the member now, and ends the owner's lease. Fields that a later
	// write named stay as they are; pending reports that there is such a write.
	// A tombstone that is applied is removed, but for its PlatformID, which is
	// kept for a while. Refused and RefusedAt are noted unless there was another
	// write since. Errors: ErrNotFound, ErrEmailTaken, ErrNotText.
	MarkApplied(ctx context.Context, r Record, owner string) (pending bool, err error)
}
