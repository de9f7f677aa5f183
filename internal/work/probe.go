package work

import (
	"context"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// This file finds out that a platform responds again.

// allBreakers are those of all sites.
func (q *Queue) allBreakers() []*breaker {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.breakers))
}

// breakersOf are those of a site's platform and of its other services.
func (q *Queue) breakersOf(site string) (of []*breaker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for service := range q.services {
		if b := q.breakers[laneOf(site, service)]; b != nil {
			of = append(of, b)
		}
	}
	return of
}

func (q *Queue) slotsOf(service string) *limiter.Bulkhead {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.services[service]
}

// probe tries one task, due or not, for each of some breakers that is open and due for it.
func (q *Queue) probe(ctx context.Context, breakers []*breaker) error {
	for _, b := range breakers {
		if err := q.probeOne(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) probeOne(ctx context.Context, b *breaker) error {
	if !b.IsProbeDue(q.store.now()) {
		return nil
	}
	slot := q.slotsOf(b.service).TryAcquire(laneOf(b.site, b.service), true)
	if slot == nil {
		return nil // until the next look
	}
	t, err := q.first(ctx, b.site, b.service)
	if err == nil && t.Kind == "" { // nothing is left, by which it could be noticed that the platform responds
		b.Succeed()
	}
	if err != nil {
		slot.End()
		return err
	}
	if !b.Begin(q.store.now()) {
		slot.End()
		return nil
	}
	q.inSlot(slot, b.site, b, func(ctx context.Context) {
		defer func() { b.EndProbe(q.store.now()) }()
		t.Holder = ""
		_, _ = q.sync(ctx, t, waiter{waits: true}) // judge notes what became of it
	})
	return nil
}

// first reads what is due first for a service of a site of all that this process does, also if that is
// later, the zero Task for nothing. An attempt that fails is due behind the others, so a
// task that always fails keeps none of them from being the probe.
func (q *Queue) first(ctx context.Context, site, service string) (first Task, err error) {
	for _, k := range q.handled() {
		if _, _, isServed := q.kind(site, k.Name); !isServed || k.IsCheck || k.Service != service {
			continue
		}
		tasks, err := within(ctx, func(ctx context.Context) ([]Task, error) {
			return k.Table.Due(ctx, site, k.Name, q.store.now().Add(2*maxBackoff), 1)
		})
		if err != nil {
			return Task{}, err
		}
		if len(tasks) > 0 && (first.Kind == "" || tasks[0].DueAt.Before(first.DueAt)) {
			first = tasks[0]
		}
	}
	return first, nil
}

// TryNow is MakeDue, also of a platform, or another service, that does not respond.
func (q *Queue) TryNow(ctx context.Context, site string) (map[string]int, error) {
	for _, b := range q.breakersOf(site) {
		b.ProbeNow()
	}
	return q.MakeDue(ctx, site)
}

// TrySoon is TryNow, by Run.
func (q *Queue) TrySoon(site string) {
	q.mu.Lock()
	q.retried[site] = true
	q.mu.Unlock()
	q.Wake(site)
}

// Heard tells that the platform of a site responds to something else. If attempts have failed lately, all that is pending is tried at once.
func (q *Queue) Heard(ctx context.Context, site string) {
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	at := q.store.now()
	if b == nil || b.IsOver(at) {
		return
	}
	now, before := at.UnixMilli(), b.heard.Load()
	if now-before < heardInterval.Milliseconds() || !b.heard.CompareAndSwap(before, now) {
		return
	}
	if _, err := q.TryNow(ctx, site); err != nil {
		q.logger.Debug("cannot make pending work due", zap.Error(err)) // each is due later
	}
}

// IsPaused reports whether the breaker of a site is open.
func (q *Queue) IsPaused(site string) bool {
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	return b != nil && !b.IsClosed()
}
