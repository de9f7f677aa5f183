package members

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file compares all members that the platform has with those in the store, for
// what it tells in no other way: what staff do to many members at once, and what was
// done while nobody listened. comparing.go says when that is done.

const (
	// rangeSize is how many members are read from the store at a time. It is more
	// than are in a page of the platform's, so that those that have gone fit too.
	rangeSize = 200

	// confirmSize is how many members the platform is asked for by their IDs at
	// once.
	confirmSize = 100
)

// Compared counts what comparing members has found, and done.
type Compared struct {
	Seen    int // members of the platform
	Added   int
	Changed int
	Removed int

	// Skipped are the platform's IDs of members who are not kept, because another
	// has their email here. Failed are those of members who could not be looked at.
	Skipped, Failed []string
}

// walk is the way through the members of the platform and of the store, both in
// the platform's order.
type walk struct {
	at   *paging
	done bool
	left int // members of the platform that are still to come
}

func startWalk(after string) *walk { return &walk{at: startPaging(after)} }

// step compares the next members, and brings those of the store up to date. What is
// pending stays: who is behind is left to the outbox, but for what it is not to
// change.
//
// Members who have to be looked at one by one take time: before each, renew keeps the
// claim to compare.
func (s *Service) step(ctx context.Context, w *walk, renew func() error) (Compared, error) {
	// The store is read first: who is written while the platform is asked is then
	// of another version, and is looked at again.
	here, err := s.Comparisons.OnPlatform(ctx, s.Site, w.at.after, rangeSize)
	if err != nil {
		return Compared{}, err
	}
	there, left, err := s.list(ctx, w.at.after)
	if err != nil {
		return Compared{}, err
	}
	there, here, last := together(there, here)
	var result Compared
	result.Seen, w.left = len(there), left-len(there)
	if last == "" {
		w.done = true
	} else if err := w.at.to(last); err != nil {
		return Compared{}, err
	}
	differences, again, err := s.compare(ctx, there, here)
	if err != nil {
		return Compared{}, err
	}
	undone, err := s.Comparisons.Reconcile(ctx, differences)
	if err != nil {
		return Compared{}, err
	}
	result.Changed = len(differences.Changed) - len(undone.Changed)
	result.Added = len(differences.Added) - len(undone.Added)
	result.Removed = len(differences.Gone) - len(undone.Gone)
	// Those to be added come last: the others may let go of their emails.
	for _, m := range slices.Concat(undone.Changed, undone.Gone, undone.Added) {
		again = append(again, m.PlatformID)
	}
	for _, id := range again {
		if err := renew(); err != nil {
			return Compared{}, err
		}
		switch err := s.Refresh(ctx, id); {
		case err == nil:
			result.Changed++
		case ctx.Err() != nil:
			return Compared{}, err
		default: // nobody else is to wait for this one
			s.warnings.Warn("a member could not be compared with the platform's", zap.String("problem", kind(err)))
			if errors.Is(err, errBusy) { // for a moment
				s.noticed.add(id, s.Now().Add(refreshPause))
			}
			result.Failed = append(result.Failed, id)
		}
	}
	for _, m := range undone.Added {
		isKnown, err := s.isKnown(ctx, m)
		if err != nil {
			return Compared{}, err
		}
		if !isKnown {
			result.Skipped = append(result.Skipped, m.PlatformID)
		}
	}
	return result, nil
}

// together cuts two lists that begin at the same place off where the shorter one
// ends, unless that is the end of all. Last is the ID at the end of both, empty at the
// end of all.
func together(there []platform.Member, here []memberstore.Member) (_ []platform.Member, _ []memberstore.Member, last string) {
	if len(there) > 0 {
		last = there[len(there)-1].ID
	}
	if len(here) == rangeSize { // there may be more
		if end := here[len(here)-1].PlatformID; last == "" || end < last {
			last = end
		}
	}
	if last == "" {
		return there, here, ""
	}
	behind := func(id string) bool { return id > last }
	if i := slices.IndexFunc(there, func(p platform.Member) bool { return behind(p.ID) }); i >= 0 {
		there = there[:i]
	}
	if i := slices.IndexFunc(here, func(m memberstore.Member) bool { return behind(m.PlatformID) }); i >= 0 {
		here = here[:i]
	}
	return there, here, last
}

// compare returns how the members of the store are to be changed to be as the
// platform has them, and the IDs of those that have to be looked at one by one.
func (s *Service) compare(ctx context.Context, there []platform.Member, here []memberstore.Member) (d memberstore.Differences, again []string, err error) {
	known := make(map[string]memberstore.Member, len(here))
	for _, m := range here {
		known[m.PlatformID] = m
	}
	for _, p := range there {
		m, isKnown := known[p.ID]
		delete(known, p.ID)
		switch {
		case isKnown && m.Deleted:
		case isKnown:
			after, changed := merge(m, p)
			switch {
			case !changed:
			case m.Applied < m.Version, emailaddr.Key(after.Email) != emailaddr.Key(m.Email):
				again = append(again, p.ID)
			default:
				after.UpdatedAt, after.Applied = latest(p.UpdatedAt, m.UpdatedAt), m.Version+1
				d.Changed = append(d.Changed, after)
			}
		default:
			leaving, err := s.Store.Leaving(ctx, s.Site, p.Email, "")
			if err != nil {
				return d, nil, err
			}
			if !leaving {
				d.Added = append(d.Added, s.fromPlatform(p))
			}
		}
	}
	d.Gone, err = s.confirmGone(ctx, here, known)
	return d, again, err
}

// confirmGone returns those of the members whom a page of the platform did not have,
// and whom it does not have either when asked for each by its ID: a page may be wrong,
// and who is gone here takes more with them than the platform knows.
func (s *Service) confirmGone(ctx context.Context, here []memberstore.Member, missing map[string]memberstore.Member) ([]memberstore.Member, error) {
	gone := slices.DeleteFunc(slices.Clone(here), func(m memberstore.Member) bool {
		_, isMissing := missing[m.PlatformID]
		return !isMissing || m.Deleted || m.Applied < m.Version
	})
	isThere := make(map[string]bool)
	for part := range slices.Chunk(gone, confirmSize) {
		ids := make([]string, 0, len(part))
		for _, m := range part {
			ids = append(ids, m.PlatformID)
		}
		list, err := s.Platform.GetAll(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			isThere[p.ID] = true
		}
	}
	return slices.DeleteFunc(gone, func(m memberstore.Member) bool { return isThere[m.PlatformID] }), nil
}

// isKnown reports whether a member who could not be added is here all the same:
// another edge was sooner, or the member was just made from here.
func (s *Service) isKnown(ctx context.Context, m memberstore.Member) (bool, error) {
	_, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: m.PlatformID})
	if errors.Is(err, memberstore.ErrNotFound) {
		var other memberstore.Member
		if other, err = s.Store.Find(ctx, memberstore.Key{Site: s.Site, Email: m.Email}); err == nil {
			return other.PlatformID == "", nil
		}
	}
	if errors.Is(err, memberstore.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
