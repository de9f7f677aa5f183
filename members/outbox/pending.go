package outbox

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
)

// This file shows what is pending and what was refused.

// Count counts the pending records of a site.
func (o *Outbox) Count(ctx context.Context, site string) (int, error) {
	return o.Store.CountPending(ctx, site)
}

// CountAll counts the pending records by site, of all sites in the store that have any.
func (o *Outbox) CountAll(ctx context.Context) (map[string]int, error) {
	return o.Store.CountAllPending(ctx)
}

// Pending lists pending records of a site, those whose next attempt comes first before
// others, and counts all.
func (o *Outbox) Pending(ctx context.Context, site string, limit int) ([]members.Record, int, error) {
	n, err := o.Store.CountPending(ctx, site)
	if err != nil || n == 0 {
		return nil, n, err
	}
	list, err := o.Store.Due(ctx, site, o.Now().Add(farthestAttempt), limit)
	return list, n, err
}

// Refused lists records of a site whose last write the platform refused for good, the last
// first.
func (o *Outbox) Refused(ctx context.Context, site string, limit int) ([]members.Record, error) {
	return o.Store.Refused(ctx, site, limit)
}

// CountAllRefused counts these by site, of all sites in the store that have any.
func (o *Outbox) CountAllRefused(ctx context.Context) (map[string]int, error) {
	return o.Store.CountAllRefused(ctx)
}

// Paused has since when the breakers of sites are open.
func (o *Outbox) Paused() map[string]time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	paused := make(map[string]time.Time)
	for name, st := range o.states {
		if since, isOpen := st.breaker.OpenSince(); isOpen {
			paused[name] = since.UTC()
		}
	}
	return paused
}

// Heard tells that the platform of a site responds. If attempts have failed, what is pending is tried at once.
func (o *Outbox) Heard(site string) {
	o.mu.Lock()
	st := o.states[site]
	isTroubled := st != nil && st.troubles.Load() > 0 && o.Now().Sub(st.heard) >= heardInterval
	if isTroubled {
		st.heard = o.Now()
	}
	o.mu.Unlock()
	if !isTroubled {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), members.StoreTimeout)
	defer cancel()
	if _, err := o.TryNow(ctx, site); err != nil {
		o.Logger.Error("cannot make pending members due", zap.String("site", site), zap.Error(err)) // each comes later
	}
}

// TryNow makes all pending records of a site due, and returns how many these are.
func (o *Outbox) TryNow(ctx context.Context, site string) (int, error) {
	n, err := o.Store.MakeDue(ctx, site)
	if s, served := o.enter(site); served {
		s.breaker.ProbeNow()
		s.leave()
	}
	o.Wake()
	return n, err
}
