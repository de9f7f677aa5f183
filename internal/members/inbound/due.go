package inbound

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file says when all members of a site are compared.

// comparisons is the kind of work that compares all members of a site. The key "" is of what recurs, or is due now; others are
// times at which one is due.
const comparisons = "comparisons"

const (
	// laterPause is how long after a request of strangers members are compared.
	laterPause = 5 * time.Minute

	// maxComparisons bounds the comparisons that have begun. They take turns at their platforms, page by page.
	maxComparisons = 16

	// maxLater bounds for how many times comparisons of a site are asked for.
	maxLater = 16

	// compareTurn is how long a comparison goes on before other sites have their turn: a list of
	// members may be long, or have no end. compareTimeout bounds it with its last page, whose members may be read one by one.
	compareTurn    = time.Minute
	compareTimeout = 30 * time.Minute

	// maxRest bounds the time between two comparisons of which the first took long, such as over a night.
	maxRest = time.Hour
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
	err := comparer{found}.compareNow(ctx)
	for _, pause := range later {
		if err == nil {
			err = comparer{found}.compareAt(ctx, s.Now().Add(pause))
		}
		if errors.Is(err, ErrTooMany) { // so there are others
			err = nil
		}
	}
	found.isOwed.CompareAndSwap(false, err != nil)
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
	at, before := s.Now().Add(laterPause), found.laterAt.Load()
	if before != nil && s.Now().Before(*before) || !found.laterAt.CompareAndSwap(before, &at) {
		return nil
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	err := comparer{found}.compareAt(ctx, at)
	if err != nil {
		found.laterAt.CompareAndSwap(&at, before)
	}
	return err
}

// compareAt has members compared once at a time. Errors: ErrTooMany.
func (s comparer) compareAt(ctx context.Context, at time.Time) error {
	isKept, err := s.Work.Check(ctx, s.name, comparisons, at.UTC().Format(time.RFC3339), at, maxLater)
	if err == nil && !isKept {
		err = ErrTooMany
	}
	return err
}

// compareNow has members compared by a comparison that starts after now.
func (s comparer) compareNow(ctx context.Context) error {
	c, err := s.Store.FindComparison(ctx, s.name)
	if err == nil {
		err = s.Store.RequestComparison(ctx, s.name, members.Latest(s.Now(), c.StartedAt.Add(time.Millisecond)))
	}
	if err != nil {
		return err
	}
	const unbounded = 1 << 30 // there is one
	_, err = s.Work.Check(ctx, s.name, comparisons, "", time.Time{}, unbounded)
	return err
}

// plan has members compared from time to time, once in the life of a site in this process, and what could not be stored.
func (s comparer) plan(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	if s.isOwed.Swap(false) {
		if err := s.compareNow(ctx); err != nil {
			s.isOwed.Store(true)
			return err
		}
	}
	if s.isPlanned.Load() {
		return nil
	}
	c, err := s.Store.FindComparison(ctx, s.name)
	isLeft := !c.hasStartedSinceAsked() || !c.StartedAt.IsZero() && !c.isFinished() // by a process that was killed
	if err == nil && (s.Reconcile > 0 || isLeft) {
		err = s.Work.Plan(ctx, s.name, comparisons, "", s.next(c))
	}
	s.isPlanned.Store(err == nil)
	return err
}

// next is when the comparison after one is due, zero for now. It is up to a fifth sooner than Reconcile says, so that sites do
// not compare at the same time.
func (s comparer) next(c Comparison) time.Time {
	if !c.isFinished() || !c.hasStartedSinceAsked() {
		return time.Time{}
	}
	return c.FinishedAt.Add(s.Reconcile - time.Duration(s.spread*float64(s.Reconcile)/5))
}

func (c Comparison) isFinished() bool {
	return !c.FinishedAt.IsZero() && !c.FinishedAt.Before(c.StartedAt)
}

// compareDue compares all members, or goes on with that. However often it is asked for,
// it takes half of the time at most.
func (s *Sync) compareDue(ctx context.Context, t work.Task) work.Result {
	found, ok := s.find(t.Site)
	if !ok {
		return work.Result{Outcome: work.Again, IsUnasked: true}
	}
	ctx, cancel := found.whileThere(ctx)
	defer cancel()
	r, err := comparer{found}.compare(ctx, t.Key)
	if err != nil {
		if !found.isOver.Load() && (!isEnding(ctx) || errors.Is(err, context.DeadlineExceeded)) {
			s.warnings.Warn(t.Site, "cannot compare members with platform", zap.String("problem", members.ForLog(err)))
		}
		return work.Result{Outcome: work.Again, IsUnasked: true, Reason: platform.ReasonOf(err)}
	}
	r.IsUnasked = true // whether the platform responds is found out by counts
	return r
}

// compare goes on with a comparison, or starts a new one, until it is done or its turn ends.
func (s comparer) compare(ctx context.Context, key string) (work.Result, error) {
	c, err := s.Store.FindComparison(ctx, s.name)
	if err != nil {
		return work.Result{}, err
	}
	if at, err := time.Parse(time.RFC3339, key); err == nil && at.After(c.AskedAt) {
		c.AskedAt = at
		if err := s.Store.RequestComparison(ctx, s.name, at); err != nil {
			return work.Result{}, err
		}
	}
	if c.StartedAt.After(s.Now().Add(time.Minute)) { // by a clock that was wrong
		c = Comparison{Site: c.Site, AskedAt: c.AskedAt}
	}
	switch took := min(c.FinishedAt.Sub(c.StartedAt), maxRest); {
	case !c.isFinished():
	case c.hasStartedSinceAsked() && (key != "" || s.Reconcile == 0 || s.Now().Before(s.next(c))): // by another task
		return s.after(c, key), nil
	case took > 0 && !s.Now().Before(c.FinishedAt) && s.Now().Before(c.FinishedAt.Add(took)):
		return work.Result{Outcome: work.Later, At: c.FinishedAt.Add(took)}, nil
	}
	end := s.Now().Add(compareTurn)
	if c.LastID == "" || c.isFinished() {
		c.LastID, c.StartedAt, c.Surplus = "", members.Latest(s.Now().Truncate(time.Millisecond), c.AskedAt), 0
		if err := s.Store.SaveComparison(ctx, c); err != nil { // so that who asks for one from now on is not taken to be served
			return work.Result{}, err
		}
	}
	if !s.applied.startedAt.Equal(c.StartedAt) {
		s.applied = applied{startedAt: c.StartedAt}
	}
	for w := startWalk(c.LastID); !w.done; {
		if s.isOver.Load() || !s.Now().Before(end) { // for the site that is in place of this one, or for others
			return work.Result{Outcome: work.Later, At: s.Now()}, nil
		}
		begin := s.Now()
		step, err := s.step(ctx, w)
		if err != nil {
			s.judge(ctx, err, begin)
			return work.Result{}, err
		}
		c.LastID, c.Surplus = w.at.after, c.Surplus+len(step.Skipped)
		s.applied.count(step)
		if w.done {
			c.LastID, c.FinishedAt = "", members.Latest(s.Now(), c.StartedAt)
		}
		if err := s.Store.SaveComparison(ctx, c); err != nil {
			return work.Result{}, err
		}
	}
	s.logger().Info("compared members with platform", zap.Int("added", s.applied.added), zap.Int("changed", s.applied.changed),
		zap.Int("removed", s.applied.removed), zap.Int("skipped", c.Surplus), zap.Int("failed", s.applied.failed))
	if c, err = s.Store.FindComparison(ctx, s.name); err == nil && !c.hasStartedSinceAsked() {
		return work.Result{Outcome: work.Later, At: s.Now()}, nil // it was asked for meanwhile
	}
	return s.after(c, key), err
}

// hasStartedSinceAsked reports whether nobody has asked for a comparison that starts after this one.
func (c Comparison) hasStartedSinceAsked() bool { return !c.StartedAt.Before(c.AskedAt) }

// after is what becomes of a task once the comparison is done.
func (s comparer) after(c Comparison, key string) work.Result {
	if key == "" && s.Reconcile > 0 {
		return work.Result{Outcome: work.Later, At: s.next(c)}
	}
	return work.Result{Outcome: work.Done}
}
