package inbound

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/work"
)

// The tests check these values, and call these steps one at a time.

const (
	RangeSize       = rangeSize
	CountInterval   = countInterval
	MaxLater        = maxLater
	ComparisonKind  = comparisons
	RefreshKind     = refreshes
	RefreshAttempts = refreshAttempts
	RegistrationTTL = registrationTTL
	ClaimTimeout    = claimTimeout
	CatchUpInterval = catchUpInterval
	MaxAtOnce       = maxComparisons + work.MaxPolls
	MaxComparisons  = maxComparisons
)

// CompareIfDue does what is due of a site's comparisons, and the other work that is due.
func (s *Sync) CompareIfDue(ctx context.Context, site string) error {
	of := comparer{s.site(site)}
	if err := of.checkCount(ctx); err != nil {
		return err
	}
	if err := of.plan(ctx); err != nil {
		return err
	}
	return s.Work.DoDue(ctx)
}

func (s *Sync) Count(ctx context.Context, site string) error {
	return comparer{s.site(site)}.checkCount(ctx)
}

func (s *Sync) Register(ctx context.Context, site string) error {
	return s.site(site).register(ctx, s.site(site).events())
}

func (s *Sync) CatchUp(ctx context.Context, site string) error {
	_, err := s.site(site).catchUp(ctx)
	return err
}

func (s *Sync) CatchUpSince(ctx context.Context, site string, since time.Time) error {
	_, err := s.site(site).catchUpOn(ctx, &changes{since: since, at: startPaging("")})
	return err
}

// Silence has a platform be taken to hang.
func (s *Sync) Silence(site string) {
	found := s.site(site)
	found.judge(context.Background(), context.DeadlineExceeded, s.Now().Add(-silence))
}

func (s *Sync) EndSilence(site string) { s.site(site).endSilence() }

func (s *Sync) site(name string) *site {
	found, _ := s.find(name)
	return found
}
