package members

import (
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Condition is that the platform has a member as the callers of writes with If-Match have read
// it. It stays with these writes while they are queued.
type Condition struct {
	// Writes are the versions of those that depend on it. One that is applied does not matter any
	// more.
	Writes []int64 `json:"writes"`

	// Read is the member as it was read for the first of them. The fields Pending had values that
	// the platform did not have yet.
	Read    Member  `json:"read"`
	Pending []Field `json:"pending,omitempty"`
}

// addCondition lets the write that makes version r.Version + 1 depend on what the platform has.
func (r *Record) addCondition() {
	c := Condition{Read: r.Member}
	if r.HasCondition() {
		c.Read, c.Pending, c.Writes = r.Condition.Read, r.Condition.Pending, slices.Clone(r.Condition.Writes)
	} else {
		c.Pending = slices.DeleteFunc(PlatformFields(), func(f Field) bool { return !r.HasPending(f) })
	}
	c.Writes = append(c.Writes, r.Version+1)
	r.Condition = &c
}

// HasCondition reports whether a pending write depends on what the platform has.
func (r *Record) HasCondition() bool {
	return r.Condition != nil && slices.ContainsFunc(r.Condition.Writes, func(version int64) bool { return version > r.Applied })
}

// IsConditional reports whether the last write depends on what the platform has.
func (r *Record) IsConditional() bool {
	return r.Condition != nil && slices.Contains(r.Condition.Writes, r.Version)
}

// BreaksCondition reports whether a pending write depends on what the platform had, and the
// platform has something else now. What the pending writes name may be there already: an attempt
// without a response may have arrived.
func (r *Record) BreaksCondition(found platform.Member) bool {
	if !r.HasCondition() {
		return false
	}
	read := Record{Member: r.Condition.Read}
	for _, f := range PlatformFields() {
		isDone := r.HasPending(f) && !r.differs(f, found)
		if !isDone && !slices.Contains(r.Condition.Pending, f) && read.differs(f, found) {
			return true
		}
		read.MarkNamed(f)
	}
	_, changed := read.Merge(found) // status and tier
	return changed
}

// DropConditional leaves out what pending writes name that depend on the condition.
func (r *Record) DropConditional() {
	for _, f := range PlatformFields() {
		if slices.Contains(r.Condition.Writes, r.Named[f]) {
			r.Named[f] = 0
		}
	}
}
