package members

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file says when all members are compared with the platform's, and by whom.

const (
	// countPause is how often it is looked whether a comparison is due, and how many
	// members the platform has.
	countPause = time.Minute

	// compareTime is how long an edge may take between two signs of life before another
	// may go on.
	compareTime = 4 * time.Minute
)

// Overlooks reports whether a request to the platform, if that does what it asks for,
// makes it needed to compare: now, and so much later.
func (s *Service) Overlooks(method, path string) (later []time.Duration, ok bool) {
	overlooker, ok := s.Platform.(platform.Overlooker)
	if !ok {
		return nil, false
	}
	return overlooker.Overlooks(method, path)
}

// HasCredentials reports whether the headers of a request have what may be a session or a
// token of the platform's. It asks nobody.
func (s *Service) HasCredentials(cookie, authorization string) bool {
	staff, ok := s.Platform.(platform.StaffRoom)
	return ok && (staff.HasSession(cookie) || staff.HasToken(authorization))
}

// CompareLater asks for a comparison in 5 minutes, for a request of which it is not known
// whether the platform did it. Strangers can cause that, so one is for all of them.
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
		// However often it is asked for, it takes half of the time at most.
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
		if c.Requested > c.Served {
			s.later.addFirst(s.Now().Add(2 * time.Second)) // another edge is at it
		}
		return nil
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
	if surplus == c.Surplus {
		watch.isKnown = false
	}
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
	renew := func() error { // so that no other edge begins when a page takes long
		if now := s.Now(); lease.Until.Sub(now) < compareTime/2 {
			lease.Until = now.Add(compareTime)
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
		added, changed, removed, failed = added+step.Added, changed+step.Changed, removed+step.Removed, failed+len(step.Failed)
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		lease.Until = s.Now().Add(compareTime)
		if w.done {
			c.LastID, c.FinishedAt, lease.Until = "", s.Now(), time.Time{}
		}
		if err := save(); err != nil {
			return errors.Join(err, s.giveUp(ctx, c, lease))
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
