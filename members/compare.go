package members

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/emailaddr"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file compares all members that the platform has with those in the store, for
// what it tells in no other way: what staff do to many members at once, and what was
// done while nobody listened.

const (
	// countPause is how often it is looked whether a comparison is due, and how many
	// members the platform has.
	countPause = time.Minute

	// compareTime is how long an edge may take between two signs of life before another
	// may go on.
	compareTime = 4 * time.Minute

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
// Some members have to be looked at one by one, which takes time: before each, still
// is asked whether to go on.
func (s *Service) step(ctx context.Context, w *walk, still func() error) (Compared, error) {
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
		if err := still(); err != nil {
			return Compared{}, err
		}
		switch err := s.Refresh(ctx, id); {
		case err == nil:
			result.Changed++
		case ctx.Err() != nil:
			return Compared{}, err
		default: // nobody else is to wait for this one
			s.warnings.Warn("a member could not be compared with the platform's", zap.String("problem", kind(err)))
			s.noticed.add(id, s.Now().Add(refreshPause))
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

// Overlooks reports whether a request to the platform, if that does what it asks for,
// makes it needed to compare: now, and so much later.
func (s *Service) Overlooks(method, path string) (later []time.Duration, ok bool) {
	overlooker, ok := s.Platform.(platform.Overlooker)
	if !ok {
		return nil, false
	}
	return overlooker.Overlooks(method, path)
}

// CompareLater is CompareSoon for what the platform may have done or not: once for all
// of that within some minutes, since strangers can cause it.
func (s *Service) CompareLater() {
	const pause = 5 * time.Minute
	if !s.local() && s.Comparisons != nil {
		s.later.addFirst(s.Now().Add(pause))
	}
}

// CompareSoon has all members compared with the platform's, by whatever edge is free
// to: much may have been changed there of which no notice comes. Platforms do some
// of that when they have answered, so later is when it is done again; none is fine.
func (s *Service) CompareSoon(ctx context.Context, later ...time.Duration) error {
	if s.local() || s.Comparisons == nil {
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	for _, pause := range later {
		s.later.add(s.Now().Add(pause))
	}
	err := s.requestComparison(ctx)
	select {
	case s.compareNow <- struct{}{}:
	default:
	}
	return err
}

// requestComparison asks for a comparison, and if that cannot be noted, later.
func (s *Service) requestComparison(ctx context.Context) error {
	err := s.Comparisons.RequestComparison(ctx, s.Site)
	if err != nil {
		s.later.add(s.Now().Add(countPause))
	}
	return err
}

// keepComparing compares whenever that is due, until ctx is done.
func (s *Service) keepComparing(ctx context.Context) {
	lease := memberstore.Lease{Owner: rand.Text()}
	watch := counting{}
	for {
		begin := time.Now()
		if err := s.compareIfDue(ctx, lease, &watch); err != nil && ctx.Err() == nil {
			s.warnings.Warn("the members could not be compared with the platform's", zap.String("problem", kind(err)))
		}
		// Half of the time at most is spent on it, whoever asks for it how often.
		rest := time.After(time.Since(begin))
		next := time.After(s.later.next(s.Now(), countPause))
		select {
		case <-ctx.Done():
			return
		case <-rest:
		}
		select {
		case <-ctx.Done():
			return
		case <-s.compareNow:
		case <-next:
		}
	}
}

// counting is what was seen of the number of members.
type counting struct {
	counted time.Time // when it was last looked at; zero before
	surplus int       // what it was then

	// isKnown tells that known is a surplus because of which was compared before. It
	// has not gone by that, so there is no use in comparing again.
	isKnown bool
	known   int
}

// compareIfDue compares if that was asked for, was begun and not ended, is over for
// long enough, or if the platform has not as many members as it should have.
func (s *Service) compareIfDue(ctx context.Context, lease memberstore.Lease, watch *counting) error {
	if s.later.due(s.Now()) {
		if err := s.requestComparison(ctx); err != nil {
			return err
		}
	}
	c, err := s.Comparisons.FindComparison(ctx, s.Site)
	if err != nil {
		return err
	}
	odd := false
	if !s.isDue(c) {
		if s.Reconcile > 0 {
			odd, err = s.countIsOdd(ctx, c, watch)
		}
		if !odd || err != nil {
			return err
		}
	}
	lease.Until = s.Now().Add(compareTime)
	claimed, err := s.Comparisons.ClaimComparison(ctx, s.Site, lease)
	switch {
	case errors.Is(err, memberstore.ErrConflict):
		return nil // another edge is at it; what was asked for is done when that is over
	case err != nil:
		return err
	case !s.isDue(claimed) && claimed.FinishedAt.After(c.FinishedAt):
		return s.giveUp(ctx, claimed, lease) // another edge was sooner
	}
	return s.compareAll(ctx, claimed, lease)
}

// isDue reports whether a comparison was asked for, was begun and not ended, or is over
// for long enough.
func (s *Service) isDue(c memberstore.Comparison) bool {
	return c.Requested > c.Served || c.FinishedAt.Before(c.StartedAt) || s.Reconcile > 0 && s.Now().Sub(c.FinishedAt) >= s.Reconcile
}

// countIsOdd reports whether the platform has another number of members than the last
// comparison has left, and the same twice in a row: once may be because of a member who
// is just being written.
func (s *Service) countIsOdd(ctx context.Context, c memberstore.Comparison, watch *counting) (bool, error) {
	if s.Now().Sub(watch.counted) < countPause {
		return false, nil
	}
	isFirst := watch.counted.IsZero()
	watch.counted = s.Now()
	surplus, err := s.surplus(ctx)
	if err != nil {
		return false, err
	}
	again := surplus == watch.surplus
	watch.surplus = surplus
	if surplus == c.Surplus || isFirst || !again || watch.isKnown && surplus == watch.known {
		return false, nil
	}
	watch.isKnown, watch.known = true, surplus
	return true, nil
}

// surplus returns how many members the platform has that the store has not.
func (s *Service) surplus(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	there, err := s.Platform.Count(ctx)
	if err != nil {
		return 0, err
	}
	here, err := s.Comparisons.CountOnPlatform(ctx, s.Site)
	return there - here, err
}

// compareAll goes on with a comparison, or starts a new one, until it is done.
func (s *Service) compareAll(ctx context.Context, c memberstore.Comparison, lease memberstore.Lease) error {
	if c.LastID == "" || !c.FinishedAt.Before(c.StartedAt) {
		c.LastID, c.StartedAt, c.Surplus, c.Served = "", s.Now(), 0, c.Requested
	}
	save := func() error { return s.Comparisons.SaveComparison(ctx, c, lease) }
	still := func() error { // so that no other edge begins when a page takes long
		if now := s.Now(); lease.Until.Sub(now) < compareTime/2 {
			lease.Until = now.Add(compareTime)
			return save()
		}
		return nil
	}
	var added, changed, removed, failed int
	for w := startWalk(c.LastID); !w.done; {
		step, err := s.step(ctx, w, still)
		if err != nil {
			return errors.Join(err, s.giveUp(ctx, c, lease))
		}
		added, changed, removed, failed = added+step.Added, changed+step.Changed, removed+step.Removed, failed+len(step.Failed)
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		lease.Until = s.Now().Add(compareTime)
		if w.done {
			c.LastID, c.FinishedAt, lease.Until = "", s.Now(), time.Time{}
		}
		if err := save(); err != nil {
			return err
		}
	}
	s.Logger.Info("the members were compared with the platform's", zap.Int("added", added), zap.Int("changed", changed),
		zap.Int("removed", removed), zap.Int("skipped", c.Surplus), zap.Int("failed", failed))
	return nil
}

// giveUp lets any edge go on with a comparison from where it is.
func (s *Service) giveUp(ctx context.Context, c memberstore.Comparison, lease memberstore.Lease) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	lease.Until = time.Time{}
	return s.Comparisons.SaveComparison(ctx, c, lease)
}

// alarms are times to come at which something is due.
type alarms struct {
	mu    sync.Mutex
	times []time.Time
}

// maxAlarms bounds how many times are remembered.
const maxAlarms = 16

func (a *alarms) add(when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) < maxAlarms {
		a.times = append(a.times, when)
	}
}

// addFirst adds a time unless there is one already.
func (a *alarms) addFirst(when time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.times) == 0 {
		a.times = append(a.times, when)
	}
}

// due reports whether one of the times has come, and forgets all that have.
func (a *alarms) due(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.times)
	a.times = slices.DeleteFunc(a.times, func(when time.Time) bool { return !when.After(now) })
	return len(a.times) < before
}

// next returns how long it is to the next of the times, at most longest.
func (a *alarms) next(now time.Time, longest time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, when := range a.times {
		longest = min(longest, when.Sub(now))
	}
	return longest
}
