package outbox

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// errFolded is the reason of a [members.TakenError] for an email that nobody on
// the platform has.
const errFolded = "another member's email is the same to the platform's database, such as jane@example.com to jané@example.com"

// errEmailPending means that the email belongs to another member of the platform, whose
// record here is pending and releases it.
var errEmailPending = platform.NoEffect(errors.New("the email still belongs to another member, who is pending"))

// findOther asks the platform for another member that has the record's email, nil for
// none.
func (s applier) findOther(ctx context.Context, r members.Record) (*platform.Member, error) {
	found, err := s.platform.FindByEmail(ctx, r.Email)
	if errors.Is(err, platform.ErrNotFound) || err == nil && found.ID == r.PlatformID {
		return nil, nil
	}
	return &found, err
}

// explainRefusal finds out whether a write was refused because of its email. It
// returns what apply does.
func (s applier) explainRefusal(ctx context.Context, a attempt, refusal *platform.Refusal) (platform.Member, error) {
	other, err := s.findOther(ctx, a.After)
	switch {
	case err != nil:
	case other != nil:
		return s.resolveTaken(ctx, a, *other)
	case refusal.Taken:
		err = &members.TakenError{Reason: errFolded}
	default:
		err = refusal
	}
	return platform.Member{ID: a.After.PlatformID}, err
}

// resolveTaken finds out who the platform's other member with the record's email
// is. If it is the record's own after all, it is updated. It returns
// what apply does.
func (s applier) resolveTaken(ctx context.Context, a attempt, other platform.Member) (platform.Member, error) {
	r := a.After
	id := platform.Member{ID: r.PlatformID}
	owner, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: other.ID})
	isUnknown := errors.Is(err, members.ErrNotFound)
	switch {
	case err != nil && !isUnknown:
		return id, err
	case err == nil && (owner.IsPending() || owner.Deleted):
		s.wake()
		return id, s.waitFor(ctx, r, owner)
	}
	lingers, err := s.Store.EmailLingers(ctx, s.name, r.Email, r.GUID)
	switch {
	case err != nil:
		return id, err
	case lingers && isUnknown:
		s.wake()
		return id, errEmailPending
	case r.PlatformID != "" || a.isFirst() || r.Sent == "":
		return id, &members.TakenError{Reason: members.EmailTaken}
	}
	isIt, err := s.mayBe(ctx, other, r)
	if err != nil {
		return id, err
	}
	if !isIt {
		return id, &members.TakenError{Reason: members.EmailTaken}
	}
	return s.adopt(ctx, r, other.ID) // an earlier attempt arrived
}

// adopt updates a member of the platform that was created by an earlier
// attempt, whose response was lost.
func (s applier) adopt(ctx context.Context, r members.Record, id string) (platform.Member, error) {
	r.PlatformID = id
	found, err := s.update(ctx, r)
	if errors.Is(err, platform.ErrNotFound) {
		return platform.Member{}, errGone
	}
	found.ID = id
	return found, err
}

// waitFor makes the error for a record that waits for its email's owner. If the owner
// waits for the record in turn, directly or through others, the record lets go of its own
// email, for an address that nobody has.
func (s applier) waitFor(ctx context.Context, r, owner members.Record) error {
	if r.PlatformID == "" {
		return errEmailPending
	}
	const longest = 16
	for range longest {
		if owner.Deleted {
			return errEmailPending
		}
		found, err := s.platform.FindByEmail(ctx, owner.Email)
		if errors.Is(err, platform.ErrNotFound) {
			return errEmailPending
		}
		if err != nil {
			return err
		}
		if found.ID == r.PlatformID {
			aside := r.GUID + "@" + asideDomain
			if _, err := s.platform.Update(ctx, r.PlatformID, platform.Change{Email: &aside}); err != nil {
				return err
			}
			return errEmailPending
		}
		owner, err = s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: found.ID})
		if err != nil || !owner.IsPending() {
			return errEmailPending
		}
	}
	return errEmailPending
}

// asideDomain is the domain of the address that a member has on the platform
// while it waits for one that waits for its own. No mail arrives there (RFC 2606,
// section 2).
const asideDomain = "lychgate.invalid"
