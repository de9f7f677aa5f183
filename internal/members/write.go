package members

import (
	"context"
	"errors"
	"slices"
	"time"
)

// This file puts writes into the store and hands them to the outbox.
//
// In a store, and on the platform, an email belongs to one member. If the
// integration allows duplicates, a new member whose email is taken gets a placeholder:
// first a short one, then one that is unique. The store tells at once that an email is
// taken. The platform tells it later, of members that only it knows. Then the create
// was undone and is made again, or, if it was queued, goes on with the placeholder
// (package outbox). A change of the email to one that is taken is refused.

// insert adds a new record and delivers it.
func (s *Service) insert(ctx context.Context, i Integration, r Record) (Delivered, error) {
	r.Placeholder = i.placeholder(r.MemberID)
	d, err := s.tryInsert(ctx, i, r)
	for IsTaken(err) {
		r = d.Record
		r.Version = 0 // it was removed again
		if !r.NextPlaceholder() {
			break
		}
		d, err = s.tryInsert(ctx, i, r)
	}
	return d, err
}

func (s *Service) tryInsert(ctx context.Context, i Integration, r Record) (Delivered, error) {
	r.Claim = claimOf(ctx)
	var lease Lease
	if s.Outbox != nil {
		lease = s.leases.New()
	}
	err := storeNew(&r, func() error {
		if s.Outbox == nil {
			r.Applied = 1
		} else {
			r.Sent, r.SentAt = r.Email, s.Now()
		}
		return s.Store.Insert(ctx, r, i.Name, lease)
	})
	if err != nil {
		return Delivered{}, err
	}
	r.Version = 1
	return s.deliver(ctx, Write{After: r, Lease: lease})
}

// write changes a member and delivers the change. With a *TakenError nothing was
// changed.
//
// No other process changes the member meanwhile, unless that takes too long: then
// the change is queued.
func (s *Service) write(ctx context.Context, i Integration, identifier string, match func(Member) bool, change func(*Record)) (Delivered, error) {
	for { // each time that this starts again, another write was done
		before, lease, err := s.lease(ctx, i, identifier)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return Delivered{}, err
		}
		after, err := s.change(ctx, i, before, lease.Owner, match, change)
		if err == nil {
			return s.deliver(ctx, Write{After: after, Before: &before, Lease: lease})
		}
		err = errors.Join(err, s.leases.Release(ctx, before, lease.Owner))
		if !errors.Is(err, ErrConflict) {
			return Delivered{}, err
		}
	}
}

// errStale means that a member was deleted while its lease was waited for.
var errStale = errors.New("the record is stale")

// lease finds a record and leases it. The lease is none if another process holds
// it for too long, and if there is no outbox.
func (s *Service) lease(ctx context.Context, i Integration, identifier string) (r Record, lease Lease, err error) {
	r, err = s.find(ctx, i, identifier)
	if err != nil || s.Outbox == nil {
		return r, Lease{}, err
	}
	lease, err = s.leases.Acquire(ctx, &r)
	switch {
	case errors.Is(err, ErrNotFound):
		return Record{}, Lease{}, errStale
	case err == nil && lease.Owner == "": // the other process may have changed it
		r, err = s.find(ctx, i, identifier)
	}
	return r, lease, err
}

// change changes a record in the store. Errors: ErrConflict, ErrPrecondition,
// *InvalidError.
func (s *Service) change(ctx context.Context, i Integration, before Record, owner string, match func(Member) bool, change func(*Record)) (Record, error) {
	if match != nil && !match(before.Member) {
		return Record{}, ErrPrecondition
	}
	after := before
	after.Labels = slices.Clone(before.Labels)
	after.Refused, after.RefusedAt = "", time.Time{}
	after.Claim = claimOf(ctx)
	if match != nil && s.Outbox != nil {
		after.addCondition()
	}
	change(&after)
	if after.Deleted && match == nil {
		after.Condition = nil // whatever the member is, it is to go
	}
	if err := s.checkSilent(ctx, i, before, after); err != nil {
		return Record{}, err
	}
	if s.Outbox != nil && owner == "" && after.RepeatsSubscription(before) { // it has to wait
		after.Named[SubscriptionField] = before.Named[SubscriptionField]
	}
	if s.Outbox == nil {
		after.Applied = after.Version + 1
	}
	var err error
	if s.Outbox == nil && after.Deleted {
		err = s.Store.Remove(ctx, after)
	} else {
		err = s.Store.Update(ctx, after)
	}
	after.Version++
	after.Attempts = 0
	return after, explainTaken(err)
}

// storeNew puts a new record into the store, by a function. If its email is taken
// there and the integration allows duplicates, it gets a placeholder.
func storeNew(r *Record, put func() error) error {
	err := put()
	for errors.Is(err, ErrEmailTaken) && r.NextPlaceholder() {
		err = put()
	}
	return explainTaken(err)
}

// explainTaken words an error of the store's for a caller.
func explainTaken(err error) error {
	switch {
	case errors.Is(err, ErrEmailTaken):
		return errEmailTaken
	case errors.Is(err, ErrMemberIDTaken):
		return &InvalidError{"The member_id is already taken.", CodeMemberIDTaken}
	case errors.Is(err, ErrUnderWay):
		return errClaimLost
	}
	return err
}

func (s *Service) deliver(ctx context.Context, w Write) (Delivered, error) {
	if s.Outbox == nil {
		return Delivered{Record: w.After}, nil
	}
	return s.Outbox.Deliver(ctx, w)
}
