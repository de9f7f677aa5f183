package inbound

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
)

// This file says when all members of a site are compared, and by which process.

const (
	// waitingInterval is how often a process looks for comparisons that others
	// have asked for, or have not ended.
	waitingInterval = 5 * time.Second

	// compareTimeout is how long a process may take between two signs of life
	// before another goes on with its comparison.
	compareTimeout = 4 * time.Minute

	// compareTurn is how long a comparison goes on before other sites have their turn: a list of
	// members may be long, or have no end.
	compareTurn = time.Minute
)

func newOwner() members.Lease { return members.Lease{Owner: rand.Text()} }

// CompareSoon has all members of a site compared with the platform's, by
// whichever process is free: many may have been changed there without events.
// Platforms do some of that after they have responded, so it is done again after
// the times later.
func (s *Sync) CompareSoon(ctx context.Context, site string, later ...time.Duration) error {
	found, ok := s.find(site)
	if !ok {
		return nil
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	for _, pause := range later {
		found.later.add(s.Now().Add(pause))
	}
	err := comparer{found}.requestComparison(ctx)
	comparer{found}.askCompare(s.Now())
	found.endSilence() // who asks for it has seen the platform change them
	return err
}

// CompareLater has all members of a site compared in 5 minutes, for a request of
// which it is not known whether the platform did it. Strangers can cause that, so
// one comparison is for all of them.
func (s *Sync) CompareLater(site string) {
	const pause = 5 * time.Minute
	if found, ok := s.find(site); ok {
		when := s.Now().Add(pause)
		found.later.addFirst(when)
		comparer{found}.askCompare(when)
	}
}

// askCompare has the task compares look at a time, of the site that has the name
// now.
func (s comparer) askCompare(when time.Time) {
	if now, ok := s.find(s.name); ok {
		now.compares.askBy(when)
	}
}

// requestComparison asks for a comparison, and if that cannot be noted, later.
func (s comparer) requestComparison(ctx context.Context) error {
	err := s.Store.RequestComparison(ctx, s.name)
	if err != nil {
		s.later.add(s.Now().Add(countInterval))
		return err
	}
	if now, ok := s.find(s.name); ok {
		now.isRequested.Store(true)
	}
	return nil
}

// askWaiting has the comparisons begun that other processes have asked for, or have
// not ended.
func (s *Sync) askWaiting(ctx context.Context) (next, rest time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	names, err := s.Store.WaitingComparisons(bounded)
	if err != nil && ctx.Err() == nil {
		s.warnings.Warn("", "cannot read requested comparisons", zap.Error(err))
	}
	for _, name := range names {
		if found, ok := s.find(name); ok {
			found.isRequested.Store(true)
			found.compares.ask()
		}
	}
	return waitingInterval, 0
}

// compareDue compares all members if that is due. However often it is asked for,
// it takes half of the time at most.
func (s comparer) compareDue(ctx context.Context) (next, rest time.Duration) {
	if s.isSilent.Load() {
		return 0, 0 // until the platform responds
	}
	begin := s.Now()
	isLeft, err := s.compareIfDue(ctx)
	s.took += s.Now().Sub(begin)
	if isLeft {
		return time.Millisecond, 0
	}
	if err == nil {
		took := s.took
		s.took = 0
		return s.untilComparison(), took
	}
	s.compared.isKnown = false
	if !s.isOver.Load() && !isEnding(ctx) {
		s.warnings.Warn(s.name, "cannot compare members with platform", zap.String("problem", members.ForLog(err)))
	}
	return countInterval, countInterval // and for as long as all turns took once it has ended
}

// note notes when the next comparison is due.
func (s comparer) note(c Comparison) {
	s.compared = lastComparison{isKnown: true, next: c.FinishedAt.Add(s.interval())}
}

// interval is the time from one comparison to the next. It is up to a fifth shorter than
// Reconcile, so that sites do not compare at the same time.
func (s comparer) interval() time.Duration {
	return s.Reconcile - time.Duration(s.spread*float64(s.Reconcile)/5)
}

// untilComparison is the time until the next poll.
func (s comparer) untilComparison() time.Duration {
	until := s.Reconcile
	if until > 0 { // another process may be at one that is due
		until = max(s.compared.next.Sub(s.Now()), countInterval)
	}
	const longest = 24 * time.Hour
	return max(s.later.next(s.Now(), cmp.Or(until, longest)), time.Millisecond)
}

// compareIfDue compares if that was requested, was begun and not ended, is due
// again, or if the platform has not as many members as it should have. isLeft means
// that its turn ended before it did.
func (s comparer) compareIfDue(ctx context.Context) (isLeft bool, err error) {
	if s.later.due(s.Now()) {
		if err := s.requestComparison(ctx); err != nil {
			return false, err
		}
	}
	isRequested, isOdd := s.isRequested.Swap(false), s.isOdd.Swap(false)
	if s.compared.isKnown && !isRequested && !isOdd && (s.Reconcile == 0 || s.Now().Before(s.compared.next)) {
		return false, nil
	}
	c, err := s.Store.FindComparison(ctx, s.name)
	if err != nil {
		s.isOdd.CompareAndSwap(false, isOdd) // for the next attempt
		return false, err
	}
	if s.note(c); !s.isDue(c) && !isOdd {
		return false, nil
	}
	lease := s.compareBy
	lease.Until = s.Now().Add(compareTimeout)
	claimed, err := s.Store.ClaimComparison(ctx, s.name, lease)
	switch {
	case errors.Is(err, members.ErrConflict):
		return false, nil // another process compares
	case err != nil:
		s.isOdd.CompareAndSwap(false, isOdd) // for the next attempt
		return false, err
	}
	if s.note(claimed); !s.isDue(claimed) && claimed.FinishedAt.After(c.FinishedAt) {
		return false, s.giveUp(ctx, claimed, lease) // another process was sooner
	}
	return s.compareAll(ctx, claimed, lease)
}

// isDue reports whether a comparison was requested, was begun and not ended, or is
// due again.
func (s comparer) isDue(c Comparison) bool {
	return c.Requested > c.Served || c.FinishedAt.Before(c.StartedAt) || s.Reconcile > 0 && s.Now().Sub(c.FinishedAt) >= s.interval()
}

// compareAll goes on with a comparison, or starts a new one, until it is done or its turn ends.
func (s comparer) compareAll(ctx context.Context, c Comparison, lease members.Lease) (isLeft bool, err error) {
	end := s.Now().Add(compareTurn)
	if c.LastID == "" || !c.FinishedAt.Before(c.StartedAt) {
		c.LastID, c.StartedAt, c.Surplus, c.Served = "", s.Now(), 0, c.Requested
	}
	if !s.applied.startedAt.Equal(c.StartedAt) {
		s.applied = applied{startedAt: c.StartedAt}
	}
	save := func() error { return s.Store.SaveComparison(ctx, c, lease) }
	renew := func() error { // so that no other process begins when a page takes long
		if now := s.Now(); lease.Until.Sub(now) < compareTimeout/2 {
			lease.Until = now.Add(compareTimeout)
			return save()
		}
		return nil
	}
	for w := startWalk(c.LastID); !w.done; {
		if s.isOver.Load() {
			return false, s.giveUp(ctx, c, lease) // for the site that is in place of this one
		}
		if !s.Now().Before(end) {
			s.isRequested.Store(true)
			return true, s.giveUp(ctx, c, lease)
		}
		var step Compared
		err := s.call(ctx, func(ctx context.Context) (err error) {
			step, err = s.step(ctx, w, renew)
			return err
		})
		if err != nil {
			return false, errors.Join(err, s.giveUp(ctx, c, lease))
		}
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		s.applied.count(step)
		lease.Until = s.Now().Add(compareTimeout)
		if w.done {
			c.LastID, c.FinishedAt, lease.Until = "", s.Now(), time.Time{}
		}
		if err := save(); err != nil {
			return false, errors.Join(err, s.giveUp(ctx, c, lease))
		}
	}
	s.note(c)
	s.logger().Info("compared members with platform", zap.Int("added", s.applied.added), zap.Int("changed", s.applied.changed),
		zap.Int("removed", s.applied.removed), zap.Int("skipped", c.Surplus), zap.Int("failed", s.applied.failed))
	return false, nil
}

// giveUp lets any process go on with a comparison from where it is.
func (s comparer) giveUp(ctx context.Context, c Comparison, lease members.Lease) error {
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	lease.Until = time.Time{}
	return s.Store.SaveComparison(ctx, c, lease)
}
