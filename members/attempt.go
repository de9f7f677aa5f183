package members

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file is one attempt to bring a member to the platform, and what the
// platform's answer, or its silence, means.

// arrivalTime is how long a member that was sent to the platform without an
// answer may take to turn up there. Ghost lets a request wait for its database
// for a minute.
const arrivalTime = time.Minute

// takenError is the platform's refusal of an email that another of its members
// has, one that is not behind here.
type takenError struct{ reason string }

func (e *takenError) Error() string { return e.reason }

// errFolded is why an email is taken though nobody on the platform has it.
const errFolded = "another member's email is the same to the platform's database, such as jane@example.com to jané@example.com"

func (*takenError) Is(target error) bool { return target == platform.ErrNoEffect }

// waitsError is the platform's refusal of an email that another member has there
// who is behind.
type waitsError struct{}

func (*waitsError) Error() string { return "the email still belongs to another member, who is behind" }

func (*waitsError) Is(target error) bool { return target == platform.ErrNoEffect }

// awaitedError is that a member may still turn up on the platform.
type awaitedError struct{ until time.Time }

func (e *awaitedError) Error() string {
	return "an earlier attempt had no answer, and may still arrive until " + e.until.Format(time.TimeOnly)
}

// attempt brings to the platform what it does not have yet of a member, and returns
// what it has then. With an error that is no more than an ID, if it is known. First
// tells that nothing of this member was ever sent before, and sameEmail that the
// platform has it with this email already.
func (s *Service) attempt(ctx context.Context, m memberstore.Member, first, sameEmail bool) (has platform.Member, err error) {
	known := m.PlatformID != ""
	if !known && !first {
		if m.PlatformID, err = s.arrived(ctx, m); err != nil {
			return has, err
		}
	}
	has.ID = m.PlatformID
	if !m.Deleted && m.Pending(memberstore.Email) && !sameEmail {
		// Ghost may hold an email twice, in different case, so its refusal is not
		// to be relied upon.
		other, err := s.otherWith(ctx, m)
		if err != nil {
			return has, &unsentError{err}
		}
		if other != nil {
			return s.resolveTaken(ctx, m, *other, first)
		}
	}
	switch {
	case m.Deleted && m.PlatformID == "":
		return has, nil
	case m.Deleted:
		if err = s.Platform.Delete(ctx, m.PlatformID); errors.Is(err, platform.ErrNotFound) {
			err = nil
		}
		return has, err
	case m.PlatformID != "":
		has, err = s.bring(ctx, m)
	default:
		if !first {
			if err := s.Store.Sending(ctx, m.GUID, m.Email, s.Now()); err != nil {
				return has, err
			}
		}
		has, err = s.Platform.Create(ctx, toPlatform(m))
	}
	if err == nil {
		return has, nil
	}
	has = platform.Member{ID: m.PlatformID}
	if refusal, refused := errors.AsType[*platform.Refusal](err); refused && m.Pending(memberstore.Email) {
		other, findErr := s.otherWith(ctx, m)
		switch {
		case findErr != nil:
			err = findErr
		case other != nil:
			has, err = s.resolveTaken(ctx, m, *other, first)
		case refusal.Taken:
			err = &takenError{errFolded}
		}
	}
	if !known && errors.Is(err, platform.ErrNotFound) {
		err = errGone
	}
	return has, err
}

// bring changes a member whom the platform has, and returns what it has then.
func (s *Service) bring(ctx context.Context, m memberstore.Member) (platform.Member, error) {
	change := pending(m)
	if change == (platform.Change{}) {
		return s.Platform.Get(ctx, m.PlatformID)
	}
	return s.Platform.Update(ctx, m.PlatformID, change)
}

// errGone means that what was taken for a member on the platform has gone since.
var errGone = errors.New("the platform's member with this email has gone meanwhile")

// arrived looks for a member that was sent to the platform without an answer
// and is not to be sent again as it was, because it has another email by now,
// or is deleted. It returns its ID there, or none if it is not there and will
// not come.
func (s *Service) arrived(ctx context.Context, m memberstore.Member) (id string, err error) {
	if m.Sent == "" || !m.Deleted && emailaddr.Key(m.Sent) == emailaddr.Key(m.Email) {
		return "", nil
	}
	found, err := s.Platform.FindByEmail(ctx, m.Sent)
	switch {
	case err == nil:
		mine, err := s.mayBe(ctx, found, m)
		if mine || err != nil {
			return found.ID, err
		}
	case !errors.Is(err, platform.ErrNotFound):
		return "", err
	}
	if until := m.SentAt.Add(arrivalTime); s.Now().Before(until) {
		return "", &awaitedError{until}
	}
	return "", nil
}

// mayBe reports whether a member of the platform can be one that was sent there
// without an answer: it can't if it is another's, or the platform had it before.
func (s *Service) mayBe(ctx context.Context, found platform.Member, m memberstore.Member) (bool, error) {
	const skew = time.Minute // between the two clocks
	if found.CreatedAt.Before(m.CreatedAt.Add(-skew)) {
		return false, nil
	}
	_, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
	if errors.Is(err, memberstore.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// otherWith returns the member of the platform that has the email of a member,
// unless that is itself: then it returns nil.
func (s *Service) otherWith(ctx context.Context, m memberstore.Member) (*platform.Member, error) {
	found, err := s.Platform.FindByEmail(ctx, m.Email)
	if errors.Is(err, platform.ErrNotFound) || err == nil && found.ID == m.PlatformID {
		return nil, nil
	}
	return &found, err
}

// unsentError is an error that came before anything was changed.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

func (e *unsentError) Is(target error) bool { return target == platform.ErrNoEffect }

// resolveTaken finds out what it means that another member of the platform has
// the email of a member: an error, or that it is this one after all, which then
// is brought up to date. It returns what attempt does.
func (s *Service) resolveTaken(ctx context.Context, m memberstore.Member, found platform.Member, first bool) (has platform.Member, err error) {
	has.ID = m.PlatformID
	owner, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
	if err == nil && (owner.Applied < owner.Version || owner.Deleted) {
		// Ours, and about to let go of the email: wait for that.
		s.nudge()
		return has, s.waitFor(ctx, m, owner)
	}
	if err != nil && !errors.Is(err, memberstore.ErrNotFound) {
		return has, err
	}
	unknown := err != nil
	if leaving, err := s.Store.Leaving(ctx, s.Site, m.Email, m.GUID); err != nil {
		return has, err
	} else if leaving && unknown {
		s.nudge()
		return has, &waitsError{}
	}
	if m.PlatformID == "" && !first && m.Sent != "" {
		mine, err := s.mayBe(ctx, found, m)
		if err != nil {
			return has, err
		}
		if mine { // an earlier attempt arrived, and its answer did not
			m.PlatformID = found.ID
			has, err := s.bring(ctx, m)
			if errors.Is(err, platform.ErrNotFound) {
				return platform.Member{}, errGone
			}
			has.ID = found.ID
			return has, err
		}
	}
	return has, &takenError{errEmailTaken}
}

// unite makes one of a leased member that was never on the platform and the
// platform's own with its email, whom nobody here knew when the create was
// acknowledged. What the caller named wins; everything else is the platform's.
func (s *Service) unite(ctx context.Context, m memberstore.Member) error {
	found, err := s.Platform.FindByEmail(ctx, m.Email)
	if errors.Is(err, platform.ErrNotFound) {
		return &takenError{errFolded}
	}
	if err != nil {
		return err
	}
	tier := m.TierID
	m, _ = merge(m, found)
	if m.PlatformID = found.ID; tier != nil {
		m.TierID = tier
	}
	return s.Store.Update(ctx, m)
}

// waitFor returns the error that m waits for another member to let go of its
// email. If that one waits for m in turn, by way of others or not, m lets go of
// its own, for an address that nobody has.
func (s *Service) waitFor(ctx context.Context, m, owner memberstore.Member) error {
	waits := &waitsError{}
	if m.PlatformID == "" {
		return waits
	}
	const longest = 16
	for range longest {
		if owner.Deleted {
			return waits
		}
		found, err := s.Platform.FindByEmail(ctx, owner.Email)
		if errors.Is(err, platform.ErrNotFound) {
			return waits
		}
		if err != nil {
			return err
		}
		if found.ID == m.PlatformID {
			aside := m.GUID + "@" + asideDomain
			if _, err := s.Platform.Update(ctx, m.PlatformID, platform.Change{Email: &aside}); err != nil {
				return err
			}
			return waits
		}
		owner, err = s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
		if err != nil || owner.Applied >= owner.Version {
			return waits
		}
	}
	return waits
}

// asideDomain is the domain of the address that a member has on the platform
// while it waits for one that waits for its own. No mail arrives there (RFC
// 2606, section 2).
const asideDomain = "lychgate.invalid"

// toPlatform returns a member who is to be made on the platform.
func toPlatform(m memberstore.Member) platform.Member {
	return platform.Member{
		Email: m.Email, Name: m.Name, Note: m.Note, Subscribed: m.Subscribed, Labels: m.Labels, Newsletters: signedUp(m),
	}
}

// pending returns what the platform does not have yet of a member.
func pending(m memberstore.Member) platform.Change {
	var c platform.Change
	if m.Pending(memberstore.Email) {
		c.Email = &m.Email
	}
	if m.Pending(memberstore.Name) {
		c.Name = &m.Name
	}
	if m.Pending(memberstore.Note) {
		c.Note = &m.Note
	}
	if m.Pending(memberstore.Labels) {
		c.Labels = &m.Labels
	}
	if m.Pending(memberstore.Subscription) {
		c.Subscription = &platform.Subscription{Subscribed: m.Subscribed, Newsletters: signedUp(m)}
	}
	return c
}

// signedUp returns the IDs of the newsletters that a member was signed up for, or
// nil if that was left to the platform.
func signedUp(m memberstore.Member) []string {
	if m.Newsletters == nil {
		return nil
	}
	list := []string{}
	for _, n := range m.Newsletters {
		if n.Status != "inactive" {
			list = append(list, n.ID)
		}
	}
	return list
}
