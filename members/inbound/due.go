package inbound

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
)

// This file says when all members of a site are compared.

// comparisons is the kind of work that compares all members of a site. Its keys say what for: "" for one that recurs or is due
// now, later for one after a request of which it is not known what came of it, and a time for one after the platform has done
// what it does after its response.
const (
	comparisons = "comparisons"
	later       = "later"
)

const (
	// laterPause is how long after a request of strangers members are compared.
	laterPause = 5 * time.Minute

	// maxComparisons bounds the comparisons that have begun. They take turns at their platforms, page by page.
	maxComparisons = 16

	// maxLater bounds for how many times comparisons of a site are asked for.
	maxLater = 16

	// compareTurn is how long a comparison goes on before other sites have their turn: a list of
	// members may be long, or have no end.
	compareTurn = time.Minute
)

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
		at := s.Now().Add(pause)
		if _, err := s.Work.Check(ctx, site, comparisons, at.UTC().Format(time.RFC3339), at, maxLater); err != nil {
			return err
		}
	}
	err := comparer{found}.compareAt(ctx, "", time.Time{})
	found.endSilence() // who asks for it has seen the platform change them
	return err
}

// CompareLater has all members of a site compared in 5 minutes, for a request of
// which it is not known whether the platform did it. Strangers can cause that, so
// one comparison is for all of them.
func (s *Sync) CompareLater(ctx context.Context, site string) error {
	found, ok := s.find(site)
	if !ok {
		return nil
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	return comparer{found}.compareAt(ctx, later, s.Now().Add(laterPause))
}

// compareAt has members compared at a time, unless that is asked for an earlier one.
func (s comparer) compareAt(ctx context.Context, key string, at time.Time) error {
	const unbounded = 1 << 30 // there are few of such keys
	_, err := s.Work.Check(ctx, s.name, comparisons, key, at, unbounded)
	return err
}

// plan has members compared from time to time, once in the life of a site in this process.
func (s comparer) plan(ctx context.Context) error {
	if s.Reconcile == 0 || s.isPlanned.Load() {
		return nil
	}
	c, err := s.Store.FindComparison(ctx, s.name)
	if err == nil {
		err = s.compareAt(ctx, "", s.next(c))
	}
	s.isPlanned.Store(err == nil)
	return err
}

// next is when the comparison after one is due, zero for now. It is up to a fifth sooner than Reconcile says, so that sites do
// not compare at the same time.
func (s comparer) next(c Comparison) time.Time {
	if c.FinishedAt.IsZero() || c.FinishedAt.Before(c.StartedAt) {
		return time.Time{}
	}
	return c.FinishedAt.Add(s.Reconcile - time.Duration(s.spread*float64(s.Reconcile)/5))
}

// compareDue compares all members, or goes on with that. However often it is asked for,
// it takes half of the time at most.
func (s *Sync) compareDue(ctx context.Context, t work.Task) work.Result {
	found, ok := s.find(t.Site)
	if !ok || found.isSilent.Load() { // until the platform responds
		return work.Result{Outcome: work.Again, IsUnasked: true}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(found.removed, cancel)()
	r, err := comparer{found}.compare(ctx, t.Key == "")
	if err != nil {
		if !found.isOver.Load() && !isEnding(ctx) {
			s.warnings.Warn(t.Site, "cannot compare members with platform", zap.String("problem", members.ForLog(err)))
		}
		return work.Result{Outcome: work.Again, IsUnasked: true, Reason: platform.ReasonOf(err)}
	}
	r.IsUnasked = true // whether the platform responds is found out by counts
	return r
}

// compare goes on with a comparison, or starts a new one, until it is done or its turn ends.
func (s comparer) compare(ctx context.Context, recurs bool) (work.Result, error) {
	c, err := s.Store.FindComparison(ctx, s.name)
	if err != nil {
		return work.Result{}, err
	}
	if rested := c.FinishedAt.Add(c.FinishedAt.Sub(c.StartedAt)); s.Now().Before(rested) {
		return work.Result{Outcome: work.Later, At: rested}, nil
	}
	end := s.Now().Add(compareTurn)
	if c.LastID == "" || !c.FinishedAt.Before(c.StartedAt) {
		c.LastID, c.StartedAt, c.Surplus = "", s.Now(), 0
	}
	if !s.applied.startedAt.Equal(c.StartedAt) {
		s.applied = applied{startedAt: c.StartedAt}
	}
	for w := startWalk(c.LastID); !w.done; {
		if s.isOver.Load() || !s.Now().Before(end) { // for the site that is in place of this one, or for others
			return work.Result{Outcome: work.Later, At: s.Now()}, nil
		}
		var step Compared
		err := s.call(ctx, func(ctx context.Context) (err error) {
			step, err = s.step(ctx, w)
			return err
		})
		if err != nil {
			return work.Result{}, err
		}
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		s.applied.count(step)
		if w.done {
			c.LastID, c.FinishedAt = "", s.Now()
		}
		if err := s.Store.SaveComparison(ctx, c); err != nil {
			return work.Result{}, err
		}
	}
	s.logger().Info("compared members with platform", zap.Int("added", s.applied.added), zap.Int("changed", s.applied.changed),
		zap.Int("removed", s.applied.removed), zap.Int("skipped", c.Surplus), zap.Int("failed", s.applied.failed))
	if recurs && s.Reconcile > 0 {
		return work.Result{Outcome: work.Later, At: s.next(c)}, nil
	}
	return work.Result{Outcome: work.Done}, nil
}
