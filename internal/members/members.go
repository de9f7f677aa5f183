// Package members is the ground of the members API: what a member, an integration
// and a request are, what a store must do, and the four operations of the API.
// It knows neither HTTP nor SQL.
//
// A write is first made durable in the [Store], as a new version of the record.
// Then an [Outbox] writes the fields that it names to the publishing platform:
// at once if it can, and otherwise by as many retries as it takes. What is
// applied is the current state, not a list of calls, so retries are harmless and
// their order does not matter (docs/guarantees.md#a-write).
package members

import (
	"context"
	"errors"
	"time"
)

// Get finds a member by an identifier: an email, or a member ID in Custom ID mode. An
// email that the store does not know is asked of the platform. Errors: ErrNotFound, of
// which *RefusedError is one; *InvalidError.
func (s *Service) Get(ctx context.Context, i Integration, identifier string) (Result, error) {
	result, err := s.Store.Read(ctx, s.key(i, identifier))
	if !errors.Is(err, ErrNotFound) {
		return result, err
	}
	r, err := s.readThrough(ctx, i, identifier, err)
	return r.Result(), err
}

// GetByGUID finds a member for the result of its last write, so without a MemberID.
// Errors: ErrNotFound.
func (s *Service) GetByGUID(ctx context.Context, guid string) (Result, error) {
	r, err := s.Store.Find(ctx, Key{Site: s.Site, GUID: guid})
	if err == nil && r.Deleted {
		err = ErrNotFound
	}
	if err == nil {
		err = r.CheckIsThere()
	}
	if err != nil {
		return Result{}, err
	}
	return r.Result(), nil
}

// IsPending reports whether something of a member, or its deletion, is not on the platform
// yet.
func (s *Service) IsPending(ctx context.Context, guid string) (bool, error) {
	r, err := s.Store.Find(ctx, Key{Site: s.Site, GUID: guid})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && r.IsPending(), err
}

// Create adds a member. If there is a member with the GUID that the fields give,
// this create was done before, and the result is what it made. Errors:
// *InvalidError.
func (s *Service) Create(ctx context.Context, i Integration, f Fields) (Result, error) {
	if err := f.CheckNew(i); err != nil {
		return Result{}, err
	}
	now := s.clock()
	r := Record{
		Member: Member{GUID: f.GUID, Subscribed: i.SubscribeByDefault, Status: "free", CreatedAt: now, UpdatedAt: now},
		Site:   s.Site,
	}
	f.apply(&r)
	if i.Mode == CustomIDMode {
		r.MemberID = *f.MemberID
	}
	if err := s.silence(ctx, i, &r); err != nil {
		return Result{}, err
	}
	if r.GUID == "" {
		r.GUID = NewGUID()
	} else if created, err := s.Store.Find(ctx, Key{Site: s.Site, GUID: r.GUID}); !errors.Is(err, ErrNotFound) {
		return createdBefore(created, r.MemberID, err)
	}
	if i.Mode == CustomIDMode && i.Adopt {
		adopted, isDone, isAway, err := s.adopt(ctx, i, f)
		if isDone || err != nil {
			result, err := result(adopted, err)
			result.Adopted = err == nil
			return result, err
		}
		if isAway { // then it is made one with the member whom the platform turns out to have
			i.DuplicateEmails = false
		}
	}
	created, err := s.insert(ctx, i, r)
	return result(created, err)
}

// createdBefore answers a create that was done before.
func createdBefore(r Record, memberID string, err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	if r.Deleted {
		return Result{}, &InvalidError{"The member was created, and deleted since.", CodeDeletedSince}
	}
	if r.CheckIsThere() != nil {
		return Result{}, &InvalidError{"The member was created, and refused by the publishing platform since: " + r.Refused, CodeRefused}
	}
	r.MemberID = memberID
	return r.Result(), nil
}

// Update changes the fields that the caller supplies. If match is not nil it is
// asked whether the member is as the caller expects. Errors: ErrNotFound,
// ErrPrecondition, *InvalidError.
func (s *Service) Update(ctx context.Context, i Integration, identifier string, f Fields, match func(Member) bool) (Result, error) {
	if err := f.Check(); err != nil {
		return Result{}, err
	}
	return result(s.write(ctx, i, identifier, match, func(r *Record) {
		f.apply(r)
		r.UpdatedAt = MovedOn(r.UpdatedAt, s.clock())
	}))
}

// Delete deletes a member, for good. If match is not nil it is asked as by
// Update. Errors: ErrNotFound, ErrPrecondition, *InvalidError.
func (s *Service) Delete(ctx context.Context, i Integration, identifier string, match func(Member) bool) (Result, error) {
	deleted, err := s.write(ctx, i, identifier, match, func(r *Record) { r.Deleted = true })
	if _, isRefused := errors.AsType[*RefusedError](err); isRefused {
		err = errors.Join(err, s.forgetRefused(ctx, i, identifier))
	}
	return result(deleted, err)
}

// forgetRefused forgets a member whose create the platform refused.
func (s *Service) forgetRefused(ctx context.Context, i Integration, identifier string) error {
	r, err := s.Store.Find(ctx, s.key(i, identifier))
	if err == nil && r.CheckIsThere() != nil {
		err = s.Store.Remove(ctx, r)
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConflict) { // somebody else was sooner
		return nil
	}
	return err
}

// result turns an outcome of the outbox into what a caller is told.
func result(d Delivered, err error) (Result, error) {
	if IsTaken(err) {
		err = errEmailTaken
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Member: d.Member, Queued: d.Queued}, nil
}

// MovedOn is the time of a write at now, of a member that was changed before. Callers are shown whole seconds: in the
// same second it is the next one, so that they see a change. It is never more than a second ahead, so that more writes
// within a second are shown with the same time.
func MovedOn(before, now time.Time) time.Time {
	if next := before.Truncate(time.Second).Add(time.Second); now.Before(next) && next.Sub(now) <= time.Second {
		return next
	}
	return Latest(now, before.Add(time.Millisecond))
}

// clock is truncated to what the store keeps: milliseconds.
func (s *Service) clock() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// Latest takes the later time, or a if they are equal.
func Latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
