package members

import (
	"context"
	"errors"
)

// find takes an identifier as Get does.
func (s *Service) find(ctx context.Context, i Integration, identifier string) (Record, error) {
	r, err := s.Known(ctx, i, identifier)
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	return s.readThrough(ctx, i, identifier, err)
}

func (s *Service) key(i Integration, identifier string) Key {
	if i.Mode == CustomIDMode {
		return Key{Site: s.Site, Integration: i.Name, MemberID: identifier}
	}
	return Key{Site: s.Site, Email: identifier}
}

// readThrough asks the platform for a member that is not here, because of an ErrNotFound.
// A *RefusedError says more than that the platform has none or is away. While the platform
// was asked, a webhook event, a comparison or another caller may have stored the member, so the
// store is read again before anybody is told that there is none.
func (s *Service) readThrough(ctx context.Context, i Integration, identifier string, notHere error) (Record, error) {
	if i.Mode != EmailMode || s.Inbound == nil || checkEmail(identifier) != nil {
		return Record{}, notHere
	}
	r, err := s.Inbound.ReadThrough(ctx, s.Site, identifier)
	if errors.Is(err, ErrNotFound) {
		r, err = s.Known(ctx, i, identifier)
	}
	_, isRefused := errors.AsType[*RefusedError](notHere)
	if _, isAway := errors.AsType[*InvalidError](err); isRefused && (isAway || errors.Is(err, ErrNotFound)) {
		err = notHere
	}
	return r, err
}
