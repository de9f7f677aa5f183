package members

import (
	"context"
	"errors"
)

// This file gives an integration in Custom ID mode members that were there before it
// (docs/members_api.md#members-that-ghost-had-before).

// adopt has a create of an integration that adopts give its MemberID to the member who has the email,
// and change the fields that it names. It reports false if there is no such member, or one that has a
// MemberID of the integration. isAway means that the platform, which may know of one, does not respond.
func (s *Service) adopt(ctx context.Context, i Integration, f Fields) (d Delivered, isDone, isAway bool, err error) {
	if isPlaceholder, err := s.isPlaceholder(ctx, i, *f.Email); isPlaceholder || err != nil {
		return Delivered{}, false, false, err
	}
	byEmail := Integration{Site: i.Site, Mode: EmailMode}
	found, err := s.find(ctx, byEmail, *f.Email)
	if invalid, ok := errors.AsType[*InvalidError](err); ok && invalid.Code == CodePlatformAway {
		return Delivered{}, false, true, nil
	}
	if errors.Is(err, ErrNotFound) {
		return Delivered{}, false, false, nil
	}
	if err != nil {
		return Delivered{}, false, false, err
	}
	if has, err := s.Store.HasMemberID(ctx, found.GUID, i.Name); has || err != nil {
		return Delivered{}, false, false, err
	}
	change := f
	change.Email, change.MemberID = nil, nil
	d, err = s.write(ctx, byEmail, *f.Email, nil, func(r *Record) {
		change.apply(r)
		r.MemberID, r.AdoptedBy = *f.MemberID, i.Name
		r.UpdatedAt = MovedOn(r.UpdatedAt, s.clock())
	})
	if invalid, ok := errors.AsType[*InvalidError](err); errors.Is(err, ErrNotFound) || ok && invalid.Code == CodeMemberIDTaken {
		return Delivered{}, false, false, nil // another was sooner; the create meets it too
	}
	return d, true, false, err
}
