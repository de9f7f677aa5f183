package inbound

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
)

// This file says when all members of a site are compared, and by which process.

const (
	// countInterval is how often it is looked whether a comparison is due, and how
	// many members the platform has.
	countInterval = time.Minute

	// compareTimeout is how long a process may take between two signs of life
	// before another goes on with its comparison.
	compareTimeout = 4 * time.Minute
)

func newOwner() members.Lease { return members.Lease{Owner: rand.Text()} }

// CompareSoon has all members of a site compared with the platform's, by
// whichever process is free: many may have been changed there without events.
// Platforms do some of that after they have answered, so it is done again after
// the times later.
func (s *Sync) CompareSoon(ctx context.Context, site string, later ...time.Duration) error {
	found, ok := s.sites[site]
	if !ok {
		return nil
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	for _, pause := range later {
		found.later.add(s.Now().Add(pause))
	}
	err := found.requestComparison(ctx)
	found.compares.ask()
	return err
}

// CompareLater has all members of a site compared in 5 minutes, for a request of
// which it is not known whether the platform did it. Strangers can cause that, so
// one comparison is for all of them.
func (s *Sync) CompareLater(site string) {
	const pause = 5 * time.Minute
	if found, ok := s.sites[site]; ok {
		found.later.addFirst(s.Now().Add(pause))
	}
}

// requestComparison asks for a comparison, and if that cannot be noted, later.
func (s *site) requestComparison(ctx context.Context) error {
	err := s.Store.RequestComparison(ctx, s.name)
	if err != nil {
		s.later.add(s.Now().Add(countInterval))
	}
	return err
}

// compareDue compares all members if that is due. However often it is asked for,
// it takes half of the time at most.
func (s *site) compareDue(ctx context.Context) (next, rest time.Duration) {
	begin := s.Now()
	if err := s.compareIfDue(ctx); err != nil && ctx.Err() == nil {
		s.warnings.Warn("the members could not be compared with the platform's", zap.String("problem", members.ForLog(err)))
	}
	return max(s.later.next(s.Now(), countInterval), time.Millisecond), s.Now().Sub(begin)
}

// counting is what was seen of the number of members.
type counting struct {
	counted time.Time // when that was; zero before
	surplus int

	// isKnown means that there was a comparison because of the surplus known. It
	// has not gone by that, so there is no use in comparing again.
	isKnown bool
	known   int
}

// compareIfDue compares if that was requested, was begun and not ended, is due
// again, or if the platform has not as many members as it should have.
func (s *site) compareIfDue(ctx context.Context) error {
	if s.later.due(s.Now()) {
		if err := s.requestComparison(ctx); err != nil {
			return err
		}
	}
	c, err := s.Store.FindComparison(ctx, s.name)
	if err != nil {
		return err
	}
	if !s.isDue(c) {
		isOdd, err := s.countIsOdd(ctx, c)
		if !isOdd || err != nil {
			return err
		}
	}
	lease := s.compareBy
	lease.Until = s.Now().Add(compareTimeout)
	claimed, err := s.Store.ClaimComparison(ctx, s.name, lease)
	switch {
	case errors.Is(err, members.ErrConflict):
		if c.Requested > c.Served {
			s.later.addFirst(s.Now().Add(2 * time.Second)) // another process compares
		}
		return nil
	case err != nil:
		return err
	case !s.isDue(claimed) && claimed.FinishedAt.After(c.FinishedAt):
		return s.giveUp(ctx, claimed, lease) // another process was sooner
	}
	return s.compareAll(ctx, claimed, lease)
}

// isDue reports whether a comparison was requested, was begun and not ended, or is
// due again.
func (s *site) isDue(c Comparison) bool {
	return c.Requested > c.Served || c.FinishedAt.Before(c.StartedAt) || s.Reconcile > 0 && s.Now().Sub(c.FinishedAt) >= s.Reconcile
}

// countIsOdd reports whether the platform has another number of members than after
// the last comparison, twice in a row: once may be because of a member that is
// just being written.
func (s *site) countIsOdd(ctx context.Context, c Comparison) (bool, error) {
	count := &s.count
	if s.Reconcile == 0 || s.Now().Sub(count.counted) < countInterval {
		return false, nil
	}
	isFirst := count.counted.IsZero()
	count.counted = s.Now()
	surplus, err := s.surplus(ctx)
	if err != nil {
		return false, err
	}
	isSame := surplus == count.surplus
	count.surplus = surplus
	if surplus == c.Surplus {
		count.isKnown = false
	}
	if surplus == c.Surplus || isFirst || !isSame || count.isKnown && surplus == count.known {
		return false, nil
	}
	count.isKnown, count.known = true, surplus
	return true, nil
}

// surplus returns how many members the platform has that the store has not.
func (s *site) surplus(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	there, err := s.Platform.Count(ctx)
	if err != nil {
		return 0, err
	}
	here, err := s.Store.CountOnPlatform(ctx, s.name)
	return there - here, err
}

// compareAll goes on with a comparison, or starts a new one, until it is done.
func (s *site) compareAll(ctx context.Context, c Comparison, lease members.Lease) error {
	if c.LastID == "" || !c.FinishedAt.Before(c.StartedAt) {
		c.LastID, c.StartedAt, c.Surplus, c.Served = "", s.Now(), 0, c.Requested
	}
	save := func() error { return s.Store.SaveComparison(ctx, c, lease) }
	renew := func() error { // so that no other process begins when a page takes long
		if now := s.Now(); lease.Until.Sub(now) < compareTimeout/2 {
			lease.Until = now.Add(compareTimeout)
			return save()
		}
		return nil
	}
	var added, changed, removed, failed int
	for w := startWalk(c.LastID); !w.done; {
		step, err := s.step(ctx, w, renew)
		if err != nil {
			return errors.Join(err, s.giveUp(ctx, c, lease))
		}
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		added, changed, removed, failed = added+step.Added, changed+step.Changed, removed+step.Removed, failed+len(step.Failed)
		lease.Until = s.Now().Add(compareTimeout)
		if w.done {
			c.LastID, c.FinishedAt, lease.Until = "", s.Now(), time.Time{}
		}
		if err := save(); err != nil {
			return errors.Join(err, s.giveUp(ctx, c, lease))
		}
	}
	s.logger.Info("the members were compared with the platform's", zap.Int("added", added), zap.Int("changed", changed),
		zap.Int("removed", removed), zap.Int("skipped", c.Surplus), zap.Int("failed", failed))
	return nil
}

// giveUp lets any process go on with a comparison from where it is.
func (s *site) giveUp(ctx context.Context, c Comparison, lease members.Lease) error {
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	lease.Until = time.Time{}
	return s.Store.SaveComparison(ctx, c, lease)
}

// alarms are times at which something is due.
type alarms struct {
	mu    sync.Mutex
	times []time.Time
}

// maxAlarms bounds how many times are kept.
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

// due reports whether one of the times has come, and removes all that have.
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
