package members

import (
	"slices"
	"time"
)

// Record is a member as it is stored, with what the outbox needs.
//
// A member is pending while the platform does not have its last write. What is
// pending of it are single fields: those that writes have named since.
type Record struct {
	Member
	Site        string
	Newsletters []Newsletter // as last asked for; nil leaves them to the platform

	// PlatformID is the platform's own identifier, empty until it is known.
	PlatformID string

	// Version counts the writes, from 1. Applied is the version that the
	// platform has.
	Version, Applied int64

	// Named is the version of the write that last named each field.
	Named [fields]int64

	// Deleted marks a tombstone: the member is deleted here, and may still be on
	// the platform.
	Deleted bool

	// Sent is the email under which the member was last sent to the platform to
	// be created, while the outcome is not known; SentAt is when. Both are zero
	// otherwise.
	Sent   string
	SentAt time.Time

	// UnansweredAt is when an attempt to apply the member last had no response. It
	// may still take effect. Zero if there was none.
	UnansweredAt time.Time

	// Attempts counts the failed attempts to apply the current version. Problem
	// is why the last one failed, and NextAttempt is when the next one is due.
	Attempts    int64
	Problem     string
	NextAttempt time.Time

	// Placeholder is the address that a member gets whose email belonged to another on the platform
	// when it was created, by an integration that allows duplicates. It has the GUID in it if the
	// usual one is taken too. Empty for none.
	Placeholder string

	// Refused is why the platform refused the last write for good, and RefusedAt
	// when; both are zero otherwise. The record then is as the platform has the
	// member; or, if it has none because it refused the create, only keeps the
	// reason for RefusalRetention.
	Refused   string
	RefusedAt time.Time

	// Confirmed is the last version that the platform is known to have got. It may be more than Applied
	// while the version is applied once more, because an earlier attempt may still arrive.
	Confirmed int64

	// Condition is what pending writes depend on, nil for none. A tombstone with one keeps its MemberIDs until it is
	// applied.
	Condition *Condition

	// AdoptedBy is the integration that gives the member, which was there before, its MemberID with this
	// write; empty for none. It is not kept.
	AdoptedBy string

	// Claim is the request that a write is for, nil for none. It is not kept. The
	// store takes the write only while the request is its owner's, and notes with it
	// that the request is done.
	Claim *Request
}

// RefusalRetention is how long it is kept why the platform refused a create.
const RefusalRetention = 7 * 24 * time.Hour

// CheckIsThere fails with a *RefusedError for a record whose create the platform refused,
// so that there is no such member.
func (r *Record) CheckIsThere() error {
	if r.Refused == "" || r.PlatformID != "" || r.IsPending() || r.Deleted {
		return nil
	}
	return &RefusedError{Reason: r.Refused}
}

// Result converts the record to what a caller is told of the member.
func (r *Record) Result() Result {
	return Result{Member: r.Member, Queued: r.IsPending() && r.Confirmed < r.Version, Refused: r.Refused}
}

// Field is a field of a member that the platform keeps too.
type Field int

// The fields.
const (
	EmailField Field = iota
	NameField
	NoteField
	LabelsField
	SubscriptionField // Subscribed and Newsletters
	fields
)

// PlatformFields are all fields that the platform keeps too.
func PlatformFields() []Field {
	return []Field{EmailField, NameField, NoteField, LabelsField, SubscriptionField}
}

// MarkNamed notes that the current write, which makes version r.Version + 1, names a
// field.
func (r *Record) MarkNamed(f Field) { r.Named[f] = r.Version + 1 }

// Clear empties a field.
func (r *Record) Clear(f Field) {
	switch f {
	case NameField:
		r.Name = ""
	case NoteField:
		r.Note = ""
	case LabelsField:
		r.Labels = nil
	case SubscriptionField:
		r.Subscribed, r.Newsletters = false, nil
	}
}

// IsPending reports whether the platform does not have the last write.
func (r *Record) IsPending() bool { return r.Applied < r.Version }

// HasPending reports whether the platform does not have the last write that
// named a field.
func (r *Record) HasPending(f Field) bool { return r.Named[f] > r.Applied }

// ActiveNewsletters are the IDs of the newsletters that the member is signed up for, nil
// if the platform chooses them.
func (r *Record) ActiveNewsletters() []string {
	if r.Newsletters == nil {
		return nil
	}
	ids := []string{}
	for _, n := range r.Newsletters {
		if n.IsActive() {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// RepeatsSubscription reports whether a write, which made r of before, subscribes
// a member who was subscribed to the same newsletters. Such a write changes
// nothing that is known here. If it has to wait for the platform, it must not
// subscribe somebody who unsubscribed there meanwhile (docs/guarantees.md).
func (r *Record) RepeatsSubscription(before Record) bool {
	return r.Named[SubscriptionField] != before.Named[SubscriptionField] && !before.HasPending(SubscriptionField) &&
		before.Subscribed && r.Subscribed &&
		(before.Newsletters == nil) == (r.Newsletters == nil) && sameElements(before.ActiveNewsletters(), r.ActiveNewsletters())
}

// Result is a member after a read or a write.
type Result struct {
	Member Member

	// Queued reports that the last write is durable here, but not on the platform
	// yet.
	Queued bool

	// Adopted reports that a create gave its MemberID to a member who was there before.
	Adopted bool

	// Refused is why the platform refused the last write for good after it was
	// queued, or empty. The member is as the platform has it.
	Refused string
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
