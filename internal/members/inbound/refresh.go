package inbound

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file fetches single members.

// ReadThrough is described at [members.Inbound].
func (s *Sync) ReadThrough(ctx context.Context, site, email string) (members.Record, error) {
	found, ok := s.find(site)
	if !ok {
		return members.Record{}, members.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	return found.readThrough(ctx, email)
}

func (s *site) readThrough(ctx context.Context, email string) (members.Record, error) {
	// A member that is being deleted may be gone here when the platform's response
	// arrives, so that is looked for before too.
	if err := s.checkLingers(ctx, email); err != nil {
		return members.Record{}, err
	}
	found, err := s.Platform.FindByEmail(ctx, email)
	switch {
	case errors.Is(err, platform.ErrNotFound):
		return members.Record{}, members.ErrNotFound
	case err != nil:
		return members.Record{}, s.away(err)
	}
	s.endSilence()
	known, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: found.ID})
	if errors.Is(err, members.ErrNotFound) {
		r, err := s.keep(ctx, found)
		if errors.Is(err, members.ErrEmailTaken) { // by who stored it meanwhile
			err = members.ErrNotFound
		}
		return r, err
	}
	if err == nil && !known.Deleted && !known.HasPending(members.EmailField) && emailaddr.Key(known.Email) != emailaddr.Key(email) {
		// It got the email on the platform, of which no webhook event has told yet.
		if err := s.refresh(ctx, found.ID); err != nil {
			return members.Record{}, s.away(err)
		}
	}
	return members.Record{}, cmp.Or(err, members.ErrNotFound)
}

// away is what callers are told of a member who cannot be fetched.
func (s *site) away(problem error) error {
	s.warnings.Warn(s.name, "cannot fetch member from platform", zap.String("problem", members.ForLog(problem)))
	return &members.InvalidError{
		Message: "The member is not known here, and the publishing platform does not answer. Try again later.",
		Code:    members.CodePlatformAway,
	}
}

// checkLingers fails with ErrNotFound for the email of a member that was deleted or
// renamed here and may still have it on the platform.
func (s *site) checkLingers(ctx context.Context, email string) error {
	lingers, err := s.Store.EmailLingers(ctx, s.name, email, "")
	if lingers && err == nil {
		err = members.ErrNotFound
	}
	return err
}

// keep adds a member that the platform has. Errors: ErrNotFound as by
// checkLingers; ErrEmailTaken.
func (s *site) keep(ctx context.Context, found platform.Member) (members.Record, error) {
	if err := s.checkLingers(ctx, found.Email); err != nil {
		return members.Record{}, err
	}
	r := s.recordOf(found)
	return r, s.Store.Insert(ctx, r, "", members.Lease{})
}

func (s *site) recordOf(p platform.Member) members.Record {
	r := members.Record{
		Member: members.Member{
			GUID: members.NewGUID(), Email: p.Email, Name: p.Name, Note: p.Note, Subscribed: p.Subscribed,
			Labels: p.Labels, Status: p.Status, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
		},
		Site: s.name, Version: 1, Applied: 1, PlatformID: p.ID,
	}
	if p.TierID != "" {
		r.TierID = &p.TierID
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = s.Now().UTC()
	}
	if r.UpdatedAt.IsZero() {
		r.UpdatedAt = r.CreatedAt
	}
	return r
}

// errBusy means that another process writes the member.
var errBusy = errors.New("another writer has leased the member")

// refresh fetches what the platform has of a member now: one that was
// created, changed or deleted there. Fields that are pending stay.
func (s *site) refresh(ctx context.Context, platformID string) error {
	for {
		r, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: platformID})
		if errors.Is(err, members.ErrNotFound) {
			again, err := s.keepUnknown(ctx, platformID)
			if !again || err != nil {
				return err
			}
			continue
		}
		if err != nil || r.Deleted {
			return err
		}
		// No process changes the member on the platform while it is looked at.
		lease, err := s.leases().Acquire(ctx, &r)
		if errors.Is(err, members.ErrNotFound) {
			continue
		}
		if err == nil && lease.Owner == "" {
			err = errBusy
		}
		if err != nil {
			return err
		}
		return s.takeOver(ctx, r, lease.Owner)
	}
}

// keepUnknown adds a member of the platform that the store does not know. It
// reports true if the store may know it by now.
func (s *site) keepUnknown(ctx context.Context, platformID string) (again bool, err error) {
	found, err := s.Platform.Get(ctx, platformID)
	if errors.Is(err, platform.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = s.keep(ctx, found)
	if !errors.Is(err, members.ErrEmailTaken) {
		if errors.Is(err, members.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	// A member with this email may have been sent to the platform just now, and
	// its ID not be noted yet.
	r, err := s.Store.Find(ctx, members.Key{Site: s.name, Email: found.Email})
	if errors.Is(err, members.ErrNotFound) {
		return true, nil
	}
	if err != nil || r.PlatformID != "" {
		return r.PlatformID == platformID, err
	}
	lease, err := s.leases().Acquire(ctx, &r)
	switch {
	case errors.Is(err, members.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case lease.Owner == "":
		return false, errBusy
	}
	return r.PlatformID == platformID, s.leases().Release(ctx, r, lease.Owner)
}

// takeOver changes a leased record to what the platform has, and ends the lease.
func (s *site) takeOver(ctx context.Context, r members.Record, owner string) error {
	found, err := s.Platform.Get(ctx, r.PlatformID)
	if errors.Is(err, platform.ErrNotFound) {
		if r.IsPending() {
			s.logger().Warn("member was deleted on the platform before all writes were applied", zap.String("guid", r.GUID))
		}
		s.Deleted.Tell(ctx, s.name, r.Email)
		return s.leases().Forget(ctx, r, owner)
	}
	if err != nil {
		return errors.Join(err, s.leases().Release(ctx, r, owner))
	}
	after, changed := r.Merge(found)
	isNews := r.IsPending() && r.Confirmed < r.Version && r.HasArrived(found)
	if changed || isNews {
		if after.UpdatedAt = members.Latest(found.UpdatedAt, r.UpdatedAt); !r.IsPending() {
			after.Applied = r.Version + 1
		}
		if isNews || r.Confirmed >= r.Version {
			after.Confirmed = r.Version + 1
		}
		err = s.Store.Update(ctx, after)
		if errors.Is(err, members.ErrEmailTaken) {
			s.warnings.Warn(s.name, "member has the email of another on the platform", zap.String("guid", r.GUID))
			after.Email = r.Email // until the other lets go of it
			err = s.Store.Update(ctx, after)
		}
	}
	return errors.Join(err, s.leases().Release(ctx, r, owner))
}

// Refresh fetches what the platform of a site has of a member now.
func (s *Sync) Refresh(ctx context.Context, site, platformID string) error {
	found, ok := s.find(site)
	if !ok {
		return ErrNoPlatform
	}
	return found.refresh(ctx, platformID)
}
