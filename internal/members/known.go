package members

import (
	"context"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
)

// This file is for writing many members at once: it leaves out what a member has already.

// Known finds the record of a member in the store, by an identifier. The platform is not
// asked. Errors: ErrNotFound, also for a member whose create the platform refused: it is
// created anew.
func (s *Service) Known(ctx context.Context, i Integration, identifier string) (Record, error) {
	r, err := s.Store.Find(ctx, s.key(i, identifier))
	if err == nil {
		err = r.CheckIsThere()
	}
	return r, err
}

// IsPlaceholder reports whether an email is the placeholder of a member who shares one.
func (i Integration) IsPlaceholder(email string) bool {
	return i.makesAt(domainOf(email))
}

// Changes picks the fields that a member does not have yet. Newsletters are always among
// them, since a member does not say which it gets.
func (f Fields) Changes(m Member) Fields {
	if f.Email != nil && emailaddr.Key(*f.Email) == emailaddr.Key(m.Email) {
		f.Email = nil
	}
	f.Name = unless(f.Name, m.Name)
	f.Note = unless(f.Note, m.Note)
	f.Subscribed = unless(f.Subscribed, m.Subscribed)
	if f.Labels != nil && sameLabels(withoutDoubles(*f.Labels), m.Labels) {
		f.Labels = nil
	}
	if f.TierID != nil && (*f.TierID == nil) == (m.TierID == nil) && (m.TierID == nil || **f.TierID == *m.TierID) {
		f.TierID = nil
	}
	f.MemberID = nil // it never changes
	return f
}

// unless is nil for a field that has the value already.
func unless[T comparable](field *T, value T) *T {
	if field != nil && *field == value {
		return nil
	}
	return field
}

// AreNone reports whether no field is there.
func (f Fields) AreNone() bool { return f == Fields{GUID: f.GUID} }
