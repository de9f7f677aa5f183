package outbox

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file makes one attempt. taken.go says what it means that the platform has another
// member with the record's email.

// apply writes the pending fields of a record to the platform, and returns what it has then. With an error that is no more than an ID, if it is known.
func (s applier) apply(ctx context.Context, a attempt) (platform.Member, error) {
	r, wasKnown, keepsEmail := &a.After, a.After.PlatformID != "", a.keepsEmail()
	if !wasKnown && !a.isFirst() {
		var err error
		if r.PlatformID, err = s.findArrived(ctx, *r); err != nil {
			return platform.Member{}, err
		}
	}
	if wasKnown && r.HasCondition() {
		if found, err := s.checkCondition(ctx, *r); err != nil {
			return found, err
		}
	}
	if r.Deleted {
		return platform.Member{ID: r.PlatformID}, s.remove(ctx, *r)
	}
	if r.HasPending(members.EmailField) && !keepsEmail {
		// The platform's refusal cannot be relied upon: Ghost may hold an email
		// twice, in different case.
		other, err := s.findOther(ctx, *r)
		if err != nil {
			return platform.Member{ID: r.PlatformID}, platform.NoEffect(err)
		}
		if other != nil {
			return s.resolveTaken(ctx, a, *other)
		}
	}
	found, err := s.put(ctx, a)
	if err == nil {
		return found, nil
	}
	found = platform.Member{ID: r.PlatformID}
	if refusal, refused := errors.AsType[*platform.Refusal](err); refused && r.HasPending(members.EmailField) {
		found, err = s.explainRefusal(ctx, a, refusal)
	}
	if !wasKnown && errors.Is(err, platform.ErrNotFound) {
		err = errGone
	}
	return found, err
}

// remove removes a record's member from the platform.
func (s applier) remove(ctx context.Context, r members.Record) error {
	if r.PlatformID == "" {
		return nil
	}
	err := s.platform.Delete(ctx, r.PlatformID)
	if errors.Is(err, platform.ErrNotFound) {
		return nil
	}
	return err
}

// put creates a record's member on the platform, or changes it there.
func (s applier) put(ctx context.Context, a attempt) (platform.Member, error) {
	r := a.After
	if r.PlatformID != "" {
		return s.update(ctx, r)
	}
	if !a.isFirst() {
		if err := s.Store.MarkSent(ctx, r.GUID, r.Email, s.Now()); err != nil {
			return platform.Member{}, err
		}
	}
	return s.platform.Create(ctx, platform.Member{
		Email: r.Email, Name: r.Name, Note: r.Note, Subscribed: r.Subscribed, Labels: r.Labels, Newsletters: r.ActiveNewsletters(),
	})
}
