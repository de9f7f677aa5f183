package inbound

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file looks how many members the platform has: another number than it should
// be tells that somebody was added or removed without an event.

const (
	// countPause is how long it is at least between the counts of two sites: with many of them, each
	// is counted less often than every countInterval. 100,000 take 17 minutes.
	countPause = 10 * time.Millisecond

	// firstPollInterval is the time between the first polls of two sites: 100,000 take 500 s.
	firstPollInterval = 5 * time.Millisecond

	// idleInterval is how often a site is counted whose members are not to be compared, once its events have arrived. It
	// tells that the platform responds, and takes the key.
	idleInterval = 10 * time.Minute
)

// countDue has the members compared if their number is odd. The first time it lets
// the site's other task begin, unless the platform hangs.
func (s comparer) countDue(ctx context.Context) (next, rest time.Duration) {
	isFirst := !s.hasBegun.Load()
	err := s.checkCount(ctx)
	if isFirst && !s.isSilent.Load() {
		s.begin()
	}
	if err == nil && !s.isSilent.Load() {
		err = s.plan(ctx)
	}
	if err != nil && !s.isOver.Load() && !isEnding(ctx) {
		s.warnings.Warn(s.name, "cannot compare members with platform", zap.String("problem", members.ForLog(err)))
	}
	if s.isSilent.Load() {
		return max(s.count.silence, s.untilCount(false)), 0
	}
	return s.untilCount(isFirst), 0
}

// PollSoon has a site polled for the first time at once, since a program asks for the site's members.
func (s *Sync) PollSoon(site string) {
	if found, ok := s.find(site); ok && !found.hasBegun.Load() && !found.isWanted.Swap(true) {
		found.counts.ask()
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

// untilCount is how long it is until the site is counted again. Of a platform that fails it is
// soon to be seen that it responds again. After the first poll, sites are spread over the time.
func (s comparer) untilCount(isFirst bool) time.Duration {
	if s.isFailing.Load() {
		return max(countInterval, time.Duration(s.failing.Load())*countPause)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	interval := max(countInterval, time.Duration(len(s.sites))*countPause)
	if isFirst && interval > countInterval { // since first polls are not as far apart
		interval = countInterval + time.Duration(s.spread*float64(interval))
	}
	if isFirst { // others come first
		interval += max(0, s.lastFirst.Sub(s.Now()))
	}
	if s.Reconcile == 0 && (s.events() == nil || s.webhook.hasArrived.Load()) {
		interval = max(interval, idleInterval)
	}
	return interval
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
		s.webhook.changed.Store(&latest)
		s.webhooks.ask()
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
