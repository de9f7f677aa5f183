package inbound

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file says when a platform is asked what has changed. One that hangs is left alone but for a count now and then.

// Polls is the kind of work that asks a platform how many members it has, registers the webhook, and asks for changes.
const Polls = "polls"

const (
	// countInterval is how often the members of a platform are counted. One that hangs is asked after
	// twice as long each time, up to longestSilence, so that many do not keep another from being asked.
	countInterval  = time.Minute
	longestSilence = 16 * time.Minute

	// silence is how long a call takes that failed because the platform hangs.
	silence = time.Second

	// countPause is how long it is at least between the counts of two sites: with many of them, each
	// is counted less often than every countInterval. 100,000 take 17 minutes.
	countPause = 10 * time.Millisecond

	// firstPollInterval is the time between the first polls of two sites: 100,000 take 500 s.
	firstPollInterval = 5 * time.Millisecond

	// idleInterval is how often a site is counted whose members are not to be compared, once its events have arrived. It
	// tells that the platform responds, and takes the key.
	idleInterval = 10 * time.Minute

	// pollTimeout bounds a poll: a count, a registration, and the turn of a look for changes.
	pollTimeout = time.Minute
)

// pollDue polls the platform of a task's site. The result says when it is polled again.
func (s *Sync) pollDue(ctx context.Context, t work.Task) work.Result {
	found, ok := s.find(t.Site)
	if !ok {
		return work.Result{Outcome: work.Later, At: s.Now().Add(countInterval), IsUnasked: true}
	}
	if !found.polling.TryLock() { // by an attempt that began before the site was put again
		return work.Result{Outcome: work.Later, At: s.Now().Add(time.Second), IsUnasked: true}
	}
	defer found.polling.Unlock()
	ctx, cancel := found.whileThere(ctx)
	defer cancel()
	return work.Result{Outcome: work.Later, At: comparer{found}.poll(ctx), IsUnasked: true} // Contacts, not the breaker, is told whether it responds
}

// poll counts the members, and has them compared if their number is odd. Then it has the platform send webhook events, and catches up on
// what was changed while it did not. It returns when the next poll is due.
func (s comparer) poll(ctx context.Context) time.Time {
	isFirst := !s.hasBegun.Load()
	var err error
	if s.webhook.changes == nil || s.isSilent.Load() { // else a look for changes goes on
		err = s.checkCount(ctx)
	}
	if isFirst && !s.isSilent.Load() {
		s.hasBegun.Store(true)
	}
	if err == nil && !s.isSilent.Load() {
		err = s.plan(ctx)
	}
	if err != nil && !s.isOver.Load() && !isEnding(ctx) {
		s.warnings.Warn(s.name, "cannot compare members with platform", zap.String("problem", members.ForLog(err)))
	}
	next := s.nextCount(isFirst)
	if source := s.events(); source != nil && !s.isFailing.Load() && !s.isSilent.Load() {
		next = earlier(next, s.checkWebhook(ctx, source))
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// nextCount is when the site is to be counted again. Of a platform that fails it is
// soon to be seen that it responds again. After the first poll, sites are spread over the time.
func (s comparer) nextCount(isFirst bool) time.Time {
	var interval time.Duration
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.isFailing.Load():
		interval = max(countInterval, s.count.silence, time.Duration(s.failing.Load())*countPause)
	default:
		interval = max(countInterval, time.Duration(len(s.sites))*countPause)
		if isFirst && interval > countInterval { // since first polls are not as far apart
			interval = countInterval + time.Duration(s.spread*float64(interval))
		}
		if isFirst { // others come first
			interval += max(0, s.lastFirst.Sub(s.Now()))
		}
		if s.Reconcile == 0 && (s.events() == nil || s.webhook.hasArrived.Load()) {
			interval = max(interval, idleInterval)
		}
	}
	return s.count.counted.Add(interval)
}

// PollSoon has a site polled for the first time at once, since a program asks for the site's members.
func (s *Sync) PollSoon(site string) {
	if found, ok := s.find(site); ok && !found.hasBegun.Load() && !found.isWanted.Swap(true) {
		s.polls.By(site, s.Now())
		s.Work.Wake(site)
	}
}

// Unpolled counts the sites whose first poll is to come.
func (s *Sync) Unpolled() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for _, found := range s.sites {
		if !found.hasBegun.Load() {
			n++
		}
	}
	return n
}

// isEnding reports whether ctx is done because the process ends, the site is removed, or the time is up.
func isEnding(ctx context.Context) bool { return ctx.Err() != nil && !isCutOff(ctx) }

// isCutOff reports whether ctx is done because too many platforms respond slowly.
func isCutOff(ctx context.Context) bool { return errors.Is(context.Cause(ctx), limiter.ErrTooLong) }

// asking makes a call to the platform other than a count, and notes if it hangs. A poll that is cut off after its count does not
// mean that.
func (s *site) asking(ctx context.Context, ask func() error) error {
	begin := s.Now()
	err := ask()
	if !isCutOff(ctx) {
		s.judge(ctx, err, begin)
	}
	return err
}

// judge notes that the platform hangs if a call has failed after so long a time.
func (s *site) judge(ctx context.Context, err error, begin time.Time) {
	if !isEnding(ctx) && s.hasHung(ctx, err, begin) && !s.isSilent.Swap(true) {
		s.polls.By(s.name, s.Now().Add(countInterval))
	}
}

// hasHung reports whether a call with this context has failed because the platform hangs.
func (s *site) hasHung(ctx context.Context, err error, begin time.Time) bool {
	return err != nil && (s.Now().Sub(begin) >= silence || isCutOff(ctx))
}

// endSilence notes that the platform has responded to something else than a count, so it is worth one soon.
func (s *site) endSilence() {
	if s.isSilent.Load() {
		s.polls.By(s.name, s.Now().Add(countInterval))
	}
}

// responded notes that the platform responds, and has done what was put off.
func (s *site) responded(ctx context.Context) {
	isBack := s.isFailing.Load()
	s.noteFailing(false)
	if isBack = s.isSilent.Swap(false) || isBack; !isBack {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	if _, err := s.Work.TryNow(ctx, s.name); err != nil {
		s.logger().Debug("cannot make pending work due", zap.Error(err)) // each is due later
	}
}

// checkCount asks the platform how many members it has. If that is odd, it has
// them compared.
func (s comparer) checkCount(ctx context.Context) error {
	count := &s.count
	if s.Now().Sub(count.counted) < countInterval {
		return nil
	}
	isFirst := count.counted.IsZero()
	count.counted = s.Now()
	there, latest, err := s.countThere(ctx)
	if err == nil {
		s.seen(latest, isFirst)
	}
	if err != nil || s.Reconcile == 0 || !isFirst && there == count.there && !count.isOdd {
		return err
	}
	isOdd, err := s.isCountOdd(ctx, there, isFirst)
	if err != nil {
		count.isOdd = true // so that the store is asked again
		return err
	}
	if isOdd {
		if err := s.compareNow(ctx); err != nil {
			count.isOdd, count.isKnown = true, false // so that it is asked for again
			return err
		}
	}
	return nil
}

// seen has changes looked for if the member that was changed last is another than at the last count, for events may be
// lost, or never arrive.
func (s comparer) seen(latest platform.Member, isFirst bool) {
	before := s.count.latest
	s.count.latest = version{latest.ID, latest.UpdatedAt}
	if s.events() != nil && !isFirst && (latest.ID != before.id || !latest.UpdatedAt.Equal(before.updatedAt)) {
		s.webhook.changed = &latest
	}
}

// countThere asks the platform how many members it has, and which was changed last. Of one that hangs it finds
// out that it responds again.
func (s comparer) countThere(ctx context.Context) (int, platform.Member, error) {
	begin := s.Now()
	bounded, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	there, latest, err := s.Platform.Count(bounded)
	if !isEnding(ctx) {
		s.Contacts.Note(s.name, err)
		if err != nil {
			s.noteFailing(true)
		}
	}
	if s.hasHung(ctx, err, begin) {
		s.count.silence = min(max(2*s.count.silence, countInterval), longestSilence)
	} else {
		s.count.silence = 0
	}
	if err != nil {
		s.judge(ctx, err, begin)
		return 0, latest, err
	}
	s.responded(ctx)
	return there, latest, nil
}

// noteFailing notes whether the last count failed. A site that is over is not counted among those
// that fail.
func (s *site) noteFailing(isFailing bool) {
	switch {
	case isFailing && s.isFailing.CompareAndSwap(false, true):
		s.failing.Add(1)
		if s.isOver.Load() {
			s.noteFailing(false)
		}
	case !isFailing && s.isFailing.CompareAndSwap(true, false):
		s.failing.Add(-1)
	}
}

// isCountOdd reports whether the platform has another number of members than after
// the last comparison, twice in a row: once may be because of a member that is
// just being written.
func (s comparer) isCountOdd(ctx context.Context, there int, isFirst bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	here, err := s.Store.CountOnPlatform(ctx, s.name)
	if err != nil {
		return false, err
	}
	c, err := s.Store.FindComparison(ctx, s.name)
	if err != nil {
		return false, err
	}
	count, surplus := &s.count, there-here
	isSame := !isFirst && surplus == count.surplus
	count.there, count.surplus = there, surplus
	if !c.isFinished() { // which may explain it
		count.isOdd = true
		return false, nil
	}
	if surplus == c.Surplus {
		count.isKnown, count.isOdd = false, false
		return false, nil
	}
	isKnown := count.isKnown && surplus == count.known
	count.isOdd = !isKnown
	if !isSame || isKnown {
		return false, nil
	}
	count.isKnown, count.known = true, surplus
	return true, nil
}
