package outbox

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Store keeps what is pending. What is said of [members.Store] holds for it too.
type Store interface {
	members.Store

	// MarkSent notes that a member is about to be sent to the platform, to be
	// created there under an email.
	MarkSent(ctx context.Context, guid, email string, now time.Time) error

	// MarkApplyAgain is MarkApplied for a record that has to be applied once
	// more, because an earlier attempt had no response and may still take effect.
	// r.Applied is less than the version that the platform has, so the record
	// stays pending until f.Next. Of f, Problem, Next and UnnameUpTo count.
	MarkApplyAgain(ctx context.Context, r members.Record, f Failure, owner string) error

	// MarkFailed notes that an attempt failed, and ends the owner's lease.
	MarkFailed(ctx context.Context, guid string, f Failure, owner string) error

	// Revert puts a record back to what it was before a write that the platform
	// refused, as the version after it; a new one is removed. The write's request is
	// not done any more. Errors: ErrConflict, if there was a later write or another
	// owner has the request, and then nothing is changed; ErrEmailTaken.
	Revert(ctx context.Context, w members.Write) error

	// RefuseCreate notes that the platform refused a new record at a version for
	// good, and ends its lease. It keeps what members.Record.Refused says. Errors:
	// ErrConflict.
	RefuseCreate(ctx context.Context, guid string, version int64, reason string, now time.Time) error
}

// Failure is why a record could not be applied, and when to try again.
type Failure struct {
	Problem string
	Next    time.Time

	// Untried means that nothing was sent to the platform, so it is no failed
	// attempt.
	Untried bool

	// NotSent means that the platform certainly did not create the member.
	NotSent bool

	// PlatformID is the platform's own identifier, if that is known by now.
	PlatformID string

	// UnansweredAt is now if the attempt had no response, else zero.
	UnansweredAt time.Time

	// UnnameUpTo is the version up to which a write that named the subscription
	// need no longer be applied, or 0.
	UnnameUpTo int64
}
