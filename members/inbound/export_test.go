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
	MaxEvents       = maxEvents
	RefreshInterval = refreshInterval
	RegistrationTTL = registrationTTL
	ClaimTimeout    = claimTimeout
	CatchUpInterval = catchUpInterval
)

func (s *Sync) CompareIfDue(ctx context.Context, site string) error {
	return s.sites[site].compareIfDue(ctx)
}

func (s *Sync) Register(ctx context.Context, site string) error {
	return s.sites[site].register(ctx, s.sites[site].events())
}

func (s *Sync) CatchUp(ctx context.Context, site string) error { return s.sites[site].catchUp(ctx) }

func (s *Sync) CatchUpSince(ctx context.Context, site string, since time.Time) error {
	return s.sites[site].catchUpSince(ctx, since)
}

func (s *Sync) RefreshDue(ctx context.Context, site string) { s.sites[site].refreshDue(ctx) }

func (s *Sync) AddEvent(site, id string) bool { return s.sites[site].queue.add(id, time.Time{}) }

func (s *Sync) DueEvents(site string, now time.Time) []string { return s.sites[site].queue.due(now) }

func (s *Sync) AddAlarm(site string, when time.Time) { s.sites[site].later.add(when) }

func (s *Sync) Alarms(site string) int { return len(s.sites[site].later.times) }
