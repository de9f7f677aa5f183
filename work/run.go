package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// This file has what is due done.

// Run does what is due, until ctx is done. It returns when nothing is under way any more.
func (q *Queue) Run(ctx context.Context) {
	defer q.limiter.Close()
	defer q.cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := q.startDue(ctx); err != nil && ctx.Err() == nil {
			q.logger.Debug("cannot read due work", zap.Error(err)) // the store that is away says so elsewhere
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-q.wake:
		}
	}
}

// startDue starts what is due at the sites behind the one that was looked at last. So sites
// that this process does not serve, however many there are, keep it from no other.
func (q *Queue) startDue(ctx context.Context) error {
	if now := q.now(); now.Sub(q.purged) >= purgeInterval {
		if _, err := q.db.Write.ExecContext(ctx, purgeTasks, now.Add(-refusalRetention).UnixMilli()); err != nil {
			return database.Wrap("purging refusals", err)
		}
		q.purged = now
	}
	if err := q.probe(ctx); err != nil {
		return err
	}
	q.forgetIdle()
	sites, err := q.dueSites(ctx, q.behind)
	if err != nil {
		return err
	}
	for _, due := range sites {
		if q.limiter.Taken() >= maxDue {
			return nil // which goes on with this site
		}
		if err := q.startSite(ctx, due.site); err != nil {
			return err
		}
		q.behind = due
	}
	if len(sites) < maxDueSites {
		q.behind = dueSite{}
	}
	return nil
}

// startSite starts what is due at a site, within its bound, unless its breaker is open.
func (q *Queue) startSite(ctx context.Context, site string) error {
	for _, name := range q.names(true) {
		k, b, isServed := q.kind(site, name)
		if !isServed || !b.IsClosed() {
			continue
		}
		tasks, err := q.due(ctx, site, name, q.now(), maxOfSite)
		if err != nil {
			return err
		}
		if k.IsSerial {
			q.startSerial(k, b, site, tasks)
			continue
		}
		for _, t := range tasks {
			q.begin(site, maxDue, func(ctx context.Context) {
				t.holder = "" // of a lease that is over
				if a, err := q.sync(ctx, t, waiter{}); err == nil && a.Outcome != Again && len(tasks) == maxOfSite {
					q.Wake() // there may be more
				}
			})
		}
	}
	return nil
}

// startSerial starts the due tasks of a serial kind at a site, one after the other in one slot,
// unless one of the site is under way: what only waits for others of the site takes no slot.
func (q *Queue) startSerial(k Kind, b *breaker, site string, tasks []Task) {
	if len(tasks) == 0 || !q.serial.TryAcquire(serialKey(site, k.Name)) {
		return
	}
	isBegun := q.begin(site, maxDue, func(ctx context.Context) {
		defer q.serial.Release(serialKey(site, k.Name))
		for _, t := range tasks {
			if ctx.Err() != nil || !b.IsClosed() {
				return
			}
			t.holder = "" // of a lease that is over
			bounded, cancel := context.WithTimeout(ctx, 2*k.Timeout)
			a, err := q.exclusively(bounded, k, b, t, waiter{})
			cancel()
			if errors.Is(err, errHeld) {
				return // another process has leased the site, or the task
			}
			if err == nil && a.Outcome != Again && len(tasks) == maxOfSite {
				q.Wake() // there may be more
			}
		}
	})
	if !isBegun {
		q.serial.Release(serialKey(site, k.Name))
	}
}

// Kinds are the names of those that this process does and that may be pending, sorted.
func (q *Queue) Kinds() []string { return q.names(false) }

func (q *Queue) names(withChecks bool) (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, k := range q.kinds {
		if withChecks || !k.IsCheck {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// IsPersonal reports whether the titles of a kind are for the site's staff alone, as are those of one
// that this process does not know.
func (q *Queue) IsPersonal(kind string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of, isKnown := q.kinds[kind]
	return of.IsPersonal || !isKnown
}

// probe tries one task, due or not, of each site whose breaker is open.
func (q *Queue) probe(ctx context.Context) error {
	q.mu.Lock()
	open := maps.Clone(q.breakers)
	q.mu.Unlock()
	for site, b := range open {
		if !b.IsProbeDue(q.now()) {
			continue
		}
		t, err := q.first(ctx, site)
		if err != nil {
			return err
		}
		if t.Kind == "" { // nothing is left, by which it could be noticed that the platform responds
			b.Succeed()
			continue
		}
		if may, isProbe := b.Begin(q.now()); !may || !isProbe {
			continue
		}
		isBegun := q.begin(site, maxDue, func(ctx context.Context) {
			defer func() { b.EndProbe(q.now()) }()
			t.holder = ""
			_, _ = q.sync(ctx, t, waiter{waits: true}) // judge notes what became of it
		})
		if !isBegun {
			b.EndProbe(q.now())
		}
	}
	return nil
}

// first reads what is due first at a site of all that this process does, also if that is
// later, the zero Task for nothing. An attempt that fails is due behind the others, so a
// task that always fails keeps none of them from being the probe.
func (q *Queue) first(ctx context.Context, site string) (first Task, err error) {
	for _, name := range q.names(true) {
		if _, _, isServed := q.kind(site, name); !isServed {
			continue
		}
		tasks, err := q.due(ctx, site, name, q.now().Add(2*maxBackoff), 1)
		if err != nil {
			return Task{}, err
		}
		if len(tasks) > 0 && (first.Kind == "" || tasks[0].DueAt.Before(first.DueAt)) {
			first = tasks[0]
		}
	}
	return first, nil
}

// TryNow is MakeDue, also of a platform that does not respond.
func (q *Queue) TryNow(ctx context.Context, site string) (int, error) {
	n, err := q.MakeDue(ctx, site)
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	if b != nil {
		b.ProbeNow()
		q.Wake()
	}
	return n, err
}
