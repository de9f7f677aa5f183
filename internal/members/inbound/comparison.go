package inbound

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file compares all members of a platform with the store, page by page.
// due.go says when a comparison is due.

const (
	// rangeSize is how many records are read from the store at a time. It is more
	// than a page of the platform's has, so records of deleted members fit too.
	rangeSize = 200

	// listAttempts is how often a page of the platform's members is asked for,
	// listPause how long after the first failure; it doubles with each.
	listAttempts = 3
	listPause    = time.Second

	// confirmSize is how many members the platform is asked for by their IDs at
	// once.
	confirmSize = 100
)

// Compared counts what a comparison has found and applied.
type Compared struct {
	Seen    int // members of the platform
	Added   int
	Changed int
	Removed int

	// Skipped are the platform's IDs of members that are not kept, because
	// another member has their email here. Failed are those of members that could
	// not be refreshed.
	Skipped, Failed []string
}

// comparer compares the members of a site with those of its platform.
type comparer struct{ *site }

func (c *Compared) add(step Compared) {
	c.Seen += step.Seen
	c.Added += step.Added
	c.Changed += step.Changed
	c.Removed += step.Removed
	c.Skipped = append(c.Skipped, step.Skipped...)
	c.Failed = append(c.Failed, step.Failed...)
}

// walk is a position in the members of the platform and of the store, both in the
// platform's order.
type walk struct {
	at   *paging
	done bool
	left int // members of the platform that are still to come
}

// list reads a page of the platform's members, with retries. left is how many there are
// from the page on.
func (s *site) list(ctx context.Context, after string) (page []platform.Member, left int, err error) {
	pause := listPause
	for attempt := 1; ; attempt++ {
		page, left, err = s.Platform.List(ctx, after, time.Time{})
		if err == nil || ctx.Err() != nil || attempt == listAttempts {
			return page, left, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func startWalk(after string) *walk { return &walk{at: startPaging(after)} }

// step compares the next members and applies the differences. Pending records are
// left to the outbox, but for the fields that are not pending.
//
// Some members have to be refreshed one by one, which takes time.
func (s comparer) step(ctx context.Context, w *walk) (Compared, error) {
	// The store is read first: a record that is written while the platform is
	// asked is then of another version, and is refreshed.
	here, err := s.Store.OnPlatform(ctx, s.name, w.at.after, rangeSize)
	if err != nil {
		return Compared{}, err
	}
	there, left, err := s.list(ctx, w.at.after)
	if err != nil {
		return Compared{}, err
	}
	there, here, last := align(there, here)
	w.left = left - len(there)
	if last == "" {
		w.done = true
	} else if err := w.at.to(last); err != nil {
		return Compared{}, err
	}
	differences, again, err := s.diff(ctx, there, here)
	if err != nil {
		return Compared{}, err
	}
	undone, err := s.Store.Reconcile(ctx, differences)
	if err != nil {
		return Compared{}, err
	}
	s.Deleted.Tell(ctx, s.name, emailsOf(differences.Gone)...)
	result := Compared{
		Seen:    len(there),
		Added:   len(differences.Added) - len(undone.Added),
		Changed: len(differences.Changed) - len(undone.Changed),
		Removed: len(differences.Gone) - len(undone.Gone),
	}
	// Those to be added come last: the others may let go of their emails.
	for _, r := range slices.Concat(undone.Changed, undone.Gone, undone.Added) {
		again = append(again, r.PlatformID)
	}
	if err := s.refreshEach(ctx, again, &result); err != nil {
		return Compared{}, err
	}
	for _, r := range undone.Added {
		isKnown, err := s.isKnown(ctx, r)
		if err != nil {
			return Compared{}, err
		}
		if !isKnown {
			result.Skipped = append(result.Skipped, r.PlatformID)
		}
	}
	return result, nil
}

func emailsOf(list []members.Record) (emails []string) {
	for _, r := range list {
		emails = append(emails, r.Email)
	}
	return emails
}

// refreshEach refreshes members one by one, and counts them.
func (s comparer) refreshEach(ctx context.Context, ids []string, result *Compared) error {
	for _, id := range ids {
		err := s.refresh(ctx, id)
		if err == nil {
			result.Changed++
			continue
		}
		if ctx.Err() != nil {
			return err
		}
		// The others do not wait for this one.
		s.warnings.Warn(s.name, "cannot compare member with platform", zap.String("problem", members.ForLog(err)))
		if errors.Is(err, errBusy) && s.Work != nil { // for a moment
			if _, err := s.Work.Check(ctx, s.name, refreshes, id, time.Time{}, maxEvents); err != nil {
				return err
			}
		}
		result.Failed = append(result.Failed, id)
	}
	return nil
}

// align cuts two lists that begin at the same place off where the shorter one
// ends, unless that is the end of all members. Last is the ID at the end of both,
// empty at the end of all.
func align(there []platform.Member, here []members.Record) (_ []platform.Member, _ []members.Record, last string) {
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
	if i := slices.IndexFunc(there, func(p platform.Member) bool { return p.ID > last }); i >= 0 {
		there = there[:i]
	}
	if i := slices.IndexFunc(here, func(r members.Record) bool { return r.PlatformID > last }); i >= 0 {
		here = here[:i]
	}
	return there, here, last
}

// diff compares the records of the store with the platform's members. again has the IDs of
// members that have to be refreshed one by one.
func (s comparer) diff(ctx context.Context, there []platform.Member, here []members.Record) (d Differences, again []string, err error) {
	missing := make(map[string]members.Record, len(here))
	for _, r := range here {
		missing[r.PlatformID] = r
	}
	for _, p := range there {
		r, isKnown := missing[p.ID]
		delete(missing, p.ID)
		switch {
		case isKnown && r.Deleted:
		case isKnown:
			after, changed := r.Merge(p)
			switch {
			case !changed:
			case r.IsPending(), emailaddr.Key(after.Email) != emailaddr.Key(r.Email):
				again = append(again, p.ID)
			default:
				after.UpdatedAt, after.Applied = members.Latest(p.UpdatedAt, r.UpdatedAt), r.Version+1
				d.Changed = append(d.Changed, after)
			}
		default:
			lingers, err := s.Store.EmailLingers(ctx, s.name, p.Email, "")
			if err != nil {
				return d, nil, err
			}
			if !lingers {
				d.Added = append(d.Added, s.recordOf(p))
			}
		}
	}
	d.Gone, err = s.confirmGone(ctx, here, missing)
	return d, again, err
}

// confirmGone picks the records whose members were missing from a page of the platform's,
// and that it does not have either when asked for by their IDs. A page may be wrong, and a
// record has more than the platform knows.
func (s comparer) confirmGone(ctx context.Context, here []members.Record, missing map[string]members.Record) ([]members.Record, error) {
	gone := slices.DeleteFunc(slices.Clone(here), func(r members.Record) bool {
		_, isMissing := missing[r.PlatformID]
		return !isMissing || r.Deleted || r.IsPending()
	})
	isThere := make(map[string]bool)
	for part := range slices.Chunk(gone, confirmSize) {
		ids := make([]string, 0, len(part))
		for _, r := range part {
			ids = append(ids, r.PlatformID)
		}
		list, err := s.Platform.GetAll(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			isThere[p.ID] = true
		}
	}
	return slices.DeleteFunc(gone, func(r members.Record) bool { return isThere[r.PlatformID] }), nil
}

// isKnown reports whether a member that could not be added is here all the same:
// another process was sooner, or the member was just created from here.
func (s comparer) isKnown(ctx context.Context, r members.Record) (bool, error) {
	_, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: r.PlatformID})
	if errors.Is(err, members.ErrNotFound) {
		var other members.Record
		if other, err = s.Store.Find(ctx, members.Key{Site: s.name, Email: r.Email}); err == nil {
			return other.PlatformID == "", nil
		}
	}
	if errors.Is(err, members.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
