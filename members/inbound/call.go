package inbound

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/members"
)

// This file bounds what is done at platforms at once. A platform that hangs is left
// alone but for a count now and then, so that it delays no other.

const (
	// maxCalls bounds what is done at once at platforms that respond within
	// slowCall, and maxSlowCalls at others.
	maxCalls, maxSlowCalls, slowCall = 6, 2, 5 * time.Second

	// maxCounts and slowCount are for counts, which find out what hangs. They let 200 platforms a second be counted
	// that respond within 60 ms, though one of 50 hangs. maxSlowCounts lets 1,500 that hang be asked each
	// longestSilence.
	maxCounts, maxSlowCounts, slowCount = 16, 8, time.Second

	// maxPolls is maxCalls for what else asks for little. It lets 200 platforms a second be asked that respond within
	// 60 ms.
	maxPolls, maxSlowPolls = 12, 2

	// maxBegun bounds the looks for changes that have begun.
	// They take turns at their platforms, page by page.
	maxBegun = 32

	// countInterval is how often the members of a platform are counted. One that hangs is asked after
	// twice as long each time, up to longestSilence, so that many do not keep another from being asked.
	countInterval  = time.Minute
	longestSilence = 16 * time.Minute

	// silence is how long a call takes that failed because the platform hangs.
	silence = time.Second
)

// call does a part of what is to be done at the platform, when there is a slot.
func (s *site) call(ctx context.Context, do func(context.Context) error) error {
	return s.callIn(ctx, s.calls, do)
}

func (s *site) callIn(ctx context.Context, slots *limiter.Bulkhead, do func(context.Context) error) error {
	slot, err := slots.Acquire(ctx, "", false)
	if err != nil {
		return err
	}
	defer slot.End()
	begin := s.Now()
	bounded := slot.Begin(ctx, func() {})
	err = do(bounded)
	s.judge(bounded, err, begin)
	if err != nil && errors.Is(context.Cause(bounded), limiter.ErrTooLong) {
		return limiter.ErrTooLong
	}
	return err
}

// judge notes that the platform hangs if a call has failed after so long a time.
func (s *site) judge(ctx context.Context, err error, begin time.Time) {
	if isEnding(ctx) || !s.hasHung(ctx, err, begin) {
		return
	}
	s.counts.isSlow.Store(true)
	if !s.isSilent.Swap(true) {
		s.counts.askBy(s.Now().Add(countInterval))
	}
}

// hasHung reports whether a call with this context has failed because the platform hangs.
func (s *site) hasHung(ctx context.Context, err error, begin time.Time) bool {
	return err != nil && (s.Now().Sub(begin) >= silence || errors.Is(context.Cause(ctx), limiter.ErrTooLong))
}

// responded notes that the platform responds, and has done what was put off.
func (s *site) responded(ctx context.Context) {
	isBack := s.isFailing.Load()
	s.noteFailing(false)
	if s.isSilent.Swap(false) {
		isBack = true
		s.counts.isSlow.Store(false)
		s.begin()
	}
	if !isBack {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	if _, err := s.Work.TryNow(ctx, s.name); err != nil {
		s.logger().Debug("cannot make pending work due", zap.Error(err)) // each is due later
	}
}

// endSilence notes that the platform has responded to something else than a count, so it is worth one soon.
func (s *site) endSilence() {
	if s.isSilent.Load() {
		s.counts.askBy(s.Now().Add(countInterval))
	}
}

// begin lets the task begin that asks the platform for more than a number.
func (s *site) begin() {
	s.hasBegun.Store(true)
	s.webhooks.ask()
}
