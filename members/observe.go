package members

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file is the way from the platform to the store: what was made and
// changed there, by its staff, its readers or before there was a store.

// readThrough keeps a member that the platform has and the store has not.
func (s *Service) readThrough(ctx context.Context, email string) (memberstore.Member, error) {
	if checkEmail(email) != nil {
		return memberstore.Member{}, ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()

	// Whoever is being deleted now can be gone here by the time that the
	// platform's answer is, so that is looked for first too.
	if err := s.leaving(ctx, email); err != nil {
		return memberstore.Member{}, err
	}
	found, err := s.Platform.FindByEmail(ctx, email)
	switch {
	case errors.Is(err, platform.ErrNotFound):
		return memberstore.Member{}, ErrNotFound
	case err != nil:
		s.warnings.Warn("a member could not be looked up on the platform", zap.String("problem", kind(err)))
		return memberstore.Member{}, invalid("The member is not known here, and the publishing platform does not answer. Try again later.")
	}
	_, err = s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
	if err == nil {
		// The platform lags behind: the member has another email by now, or is
		// deleted.
		return memberstore.Member{}, ErrNotFound
	}
	if !errors.Is(err, memberstore.ErrNotFound) {
		return memberstore.Member{}, err
	}
	m, err := s.keep(ctx, found)
	if errors.Is(err, memberstore.ErrEmailTaken) { // by another caller who asked for it too
		m, err = s.Store.Find(ctx, memberstore.Key{Site: s.Site, Email: email})
		if errors.Is(err, memberstore.ErrNotFound) { // who has deleted it since
			err = ErrNotFound
		}
	}
	return m, err
}

// leaving returns ErrNotFound for the email of a member that is about to leave
// the platform.
func (s *Service) leaving(ctx context.Context, email string) error {
	leaving, err := s.Store.Leaving(ctx, s.Site, email, "")
	if leaving && err == nil {
		err = ErrNotFound
	}
	return err
}

// keep adds a member that the platform has. Errors: ErrNotFound, if it is about
// to leave the platform; memberstore.ErrEmailTaken.
func (s *Service) keep(ctx context.Context, found platform.Member) (memberstore.Member, error) {
	if err := s.leaving(ctx, found.Email); err != nil {
		return memberstore.Member{}, err
	}
	m := s.fromPlatform(found)
	return m, s.Store.Insert(ctx, m, "", memberstore.Lease{})
}

func (s *Service) fromPlatform(p platform.Member) memberstore.Member {
	m := memberstore.Member{
		GUID: NewGUID(), Site: s.Site, Email: p.Email, Name: p.Name, Note: p.Note, Subscribed: p.Subscribed,
		Labels: p.Labels, Status: p.Status, CreatedAt: p.CreatedAt, UpdatedAt: p.UpdatedAt,
		Version: 1, Applied: 1, PlatformID: p.ID,
	}
	if p.TierID != "" {
		m.TierID = &p.TierID
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = s.Now().UTC()
	}
	if m.UpdatedAt.IsZero() {
		m.UpdatedAt = m.CreatedAt
	}
	return m
}

// Refresh takes over what the platform has of a member now: one that was made,
// changed or removed there. A write that the platform does not have yet wins.
func (s *Service) Refresh(ctx context.Context, platformID string) error {
	for {
		m, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: platformID})
		if errors.Is(err, memberstore.ErrNotFound) {
			again, err := s.meet(ctx, platformID)
			if !again || err != nil {
				return err
			}
			continue
		}
		if err != nil || m.Deleted {
			return err
		}
		// Nobody here changes the member on the platform while it is looked at.
		lease, err := s.acquire(ctx, &m)
		if errors.Is(err, memberstore.ErrNotFound) {
			continue
		}
		if err == nil && lease == "" {
			err = errBusy
		}
		if err != nil {
			return err
		}
		return s.takeOver(ctx, m, lease)
	}
}

var errBusy = errors.New("the member is being written by another")

// meet keeps a member of the platform that the store does not know. It reports
// true if the store may know it by now.
func (s *Service) meet(ctx context.Context, platformID string) (again bool, err error) {
	found, err := s.Platform.Get(ctx, platformID)
	if errors.Is(err, platform.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = s.keep(ctx, found)
	if !errors.Is(err, memberstore.ErrEmailTaken) {
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return false, err
	}
	// A member with this email may have been sent to the platform just now, and
	// its ID not be noted yet.
	m, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, Email: found.Email})
	if errors.Is(err, memberstore.ErrNotFound) {
		return true, nil
	}
	if err != nil || m.PlatformID != "" {
		return m.PlatformID == platformID, err
	}
	lease, err := s.acquire(ctx, &m)
	switch {
	case errors.Is(err, memberstore.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case lease == "":
		return false, errBusy
	}
	return m.PlatformID == platformID, s.release(ctx, m, lease)
}

// takeOver changes a leased member to what the platform has, and ends the
// lease.
func (s *Service) takeOver(ctx context.Context, m memberstore.Member, lease string) error {
	found, err := s.Platform.Get(ctx, m.PlatformID)
	if errors.Is(err, platform.ErrNotFound) {
		return s.forget(ctx, m, lease)
	}
	if err != nil {
		return errors.Join(err, s.release(ctx, m, lease))
	}
	after, changed := merge(m, found)
	if changed {
		if after.UpdatedAt = latest(found.UpdatedAt, m.UpdatedAt); m.Applied >= m.Version {
			after.Applied = m.Version + 1
		}
		err = s.Store.Update(ctx, after)
		if errors.Is(err, memberstore.ErrEmailTaken) {
			s.sharedEmail(m)
			after.Email = m.Email
			err = s.Store.Update(ctx, after)
		}
	}
	return errors.Join(err, s.release(ctx, m, lease))
}

// merge returns a member as the platform has it, and whether that is a change. What
// the platform does not have yet stays.
func merge(m memberstore.Member, found platform.Member) (after memberstore.Member, changed bool) {
	after, changed = mergeFields(m, found)
	switch after.Status = found.Status; {
	case found.TierID != "":
		after.TierID = &found.TierID
	case found.Status == "free" && m.Status != "free":
		after.TierID = nil
	}
	changed = changed || after.Status != m.Status ||
		(after.TierID == nil) != (m.TierID == nil) || after.TierID != nil && *after.TierID != *m.TierID
	return after, changed
}

// mergeFields is merge for what a caller can change on the platform.
func mergeFields(m memberstore.Member, found platform.Member) (after memberstore.Member, changed bool) {
	after = m
	take := func(field memberstore.Field, differs bool) bool {
		taken := differs && !m.Pending(field)
		changed = changed || taken
		return taken
	}
	if take(memberstore.Email, !emailaddr.Same(m.Email, found.Email)) {
		after.Email = found.Email
	}
	if take(memberstore.Name, m.Name != found.Name) {
		after.Name = found.Name
	}
	if take(memberstore.Note, m.Note != found.Note) {
		after.Note = found.Note
	}
	if take(memberstore.Labels, !sameLabels(m.Labels, found.Labels)) {
		after.Labels = found.Labels
	}
	if take(memberstore.Subscription, m.Subscribed != found.Subscribed) {
		after.Subscribed = found.Subscribed
	}
	other := m.Newsletters != nil && found.Newsletters != nil && !sameElements(signedUp(m), found.Newsletters)
	if take(memberstore.Subscription, other) {
		after.Newsletters = nil // the choice that was made here is no longer the last
	}
	return after, changed
}

// sameLabels reports whether two sets of labels are the same to the platform,
// which orders them, and does not tell them apart by case.
func sameLabels(a, b []string) bool {
	return sameElements(folded(a), folded(b))
}

func folded(labels []string) []string {
	list := make([]string, 0, len(labels))
	for _, label := range labels {
		list = append(list, strings.ToLower(label))
	}
	return list
}

func sameElements(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
