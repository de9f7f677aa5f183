package inbound

import (
	"context"
	"time"
)

// The tests check these values, and call these steps one at a time.

const (
	RangeSize       = rangeSize
	CountInterval   = countInterval
	MaxAlarms       = maxAlarms
	RefreshAttempts = refreshAttempts
	RegistrationTTL = registrationTTL
	ClaimTimeout    = claimTimeout
	CatchUpInterval = catchUpInterval
	MaxCalls        = maxCalls
	MaxAtOnce       = maxCalls + maxSlowCalls + maxPolls + maxSlowPolls + maxCounts + maxSlowCounts
)

func (s *Sync) CompareIfDue(ctx context.Context, site string) error {
	s.askWaiting(ctx)
	if err := (comparer{s.site(site)}).checkCount(ctx); err != nil {
		return err
	}
	_, err := (comparer{s.site(site)}).compareIfDue(ctx)
	return err
}

func (s *Sync) Count(ctx context.Context, site string) error {
	return comparer{s.site(site)}.checkCount(ctx)
}

func (s *Sync) Register(ctx context.Context, site string) error {
	return s.site(site).register(ctx, s.site(site).events())
}

func (s *Sync) CatchUp(ctx context.Context, site string) error {
	s.site(site).webhook.until = catchUpTurn
	_, err := s.site(site).catchUp(ctx)
	return err
}

func (s *Sync) CatchUpSince(ctx context.Context, site string, since time.Time) error {
	s.site(site).webhook.until = maxCatchUpTime
	_, err := s.site(site).catchUpOn(ctx, &changes{since: since, at: startPaging("")})
	return err
}

func (s *Sync) EndSilence(site string) { s.site(site).endSilence() }

func (s *Sync) AddAlarm(site string, when time.Time) { s.site(site).later.add(when) }

func (s *Sync) Alarms(site string) int { return len(s.site(site).later.times) }

func (s *Sync) site(name string) *site {
	found, _ := s.find(name)
	return found
}

// Doing counts the tasks that are running.
func (s *Sync) Doing() int { return int(s.schedule.doing.Load()) }
