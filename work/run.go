package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// This file has what is due done.

// Run does what is due, until ctx is done. It returns when nothing is under way any more.
func (q *Queue) Run(ctx context.Context) {
	defer q.checks.Close()
	defer q.limiter.Close()
	defer q.cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	look := q.startDue
	for ctx.Err() == nil {
		if err := look(ctx); err != nil && ctx.Err() == nil {
			q.logger.Debug("cannot read due work", zap.Error(err)) // the store that is away says so elsewhere
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
			look = q.startDue
		case <-q.wake:
			look = q.goOn
		}
	}
}

// DoDue does what is due, once, and returns when nothing is under way any more. It is for who does not use Run.
func (q *Queue) DoDue(ctx context.Context) error {
	err := q.startDue(ctx)
	for err == nil {
		q.limiter.Wait()
		q.checks.Wait()
		q.mu.Lock()
		isLeft := len(q.woken)+len(q.short) > 0
		q.mu.Unlock()
		for _, k := range q.handled() {
			isLeft = isLeft || k.isMore || len(k.rest) > 0
		}
		if !isLeft {
			break
		}
		err = q.goOn(ctx)
	}
	return err
}

// startDue looks for what is due at all sites, and starts it.
func (q *Queue) startDue(ctx context.Context) error {
	if now := q.now(); now.Sub(q.purged) >= purgeInterval {
		if _, err := q.db.Write.ExecContext(ctx, purgeTasks, now.Add(-refusalRetention).UnixMilli()); err != nil {
			return database.Wrap("purging refusals", err)
		}
		q.purged = now
	}
	for _, site := range q.toProbe() {
		if err := q.probe(ctx, site); err != nil {
			return err
		}
	}
	kinds, err := q.dueKinds(ctx)
	if err != nil {
		return err
	}
	for _, k := range q.handled() {
		k.isMore = k.isMore || slices.Contains(kinds, k.Name)
	}
	defer q.forgetIdle()
	return q.goOn(ctx)
}

// goOn starts what is due at sites that were woken, and then at others, as long as there are slots.
func (q *Queue) goOn(ctx context.Context) error {
	q.isShort.Store(false)
	kinds := q.handled()
	for site := range q.takeWoken() {
		if err := q.probe(ctx, site); err != nil {
			return err
		}
		for _, k := range kinds {
			if _, err := q.startSite(ctx, k, site); err != nil {
				return err
			}
		}
	}
	for _, k := range kinds {
		if err := q.feed(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) takeWoken() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	woken := q.woken
	q.woken = make(map[string]bool)
	return woken
}

// hasSlots reports whether there may be a slot for a kind. If not, Run goes on with the kind when one is free.
func (q *Queue) hasSlots(k *handled) bool {
	q.isShort.Store(true) // first, or the slot that is freed next is not noticed
	if k.limiter.Taken() < maxDue && (k.Most == 0 || k.slots.Taken() < k.Most) {
		return true
	}
	k.isMore = true
	return false
}

// feed starts the due work of a kind at the sites that have had it longest, and so on, as long as there are slots. Sites
// that this process does not serve, however many there are, keep it from no other: it goes on behind them the next time.
func (q *Queue) feed(ctx context.Context, k *handled) (err error) {
	for (len(k.rest) > 0 || k.isMore) && q.hasSlots(k) {
		if len(k.rest) == 0 {
			if k.rest, err = q.dueSites(ctx, k.Name, k.behind); err != nil {
				return err
			}
			k.behind, k.isMore = dueSite{}, false
			if len(k.rest) == maxDueSites {
				k.behind = k.rest[maxDueSites-1]
			}
			continue
		}
		isStarted, err := q.startSite(ctx, k, k.rest[0].site)
		if err != nil {
			return err
		}
		k.rest, k.isMore = k.rest[1:], k.isMore || isStarted && k.behind != (dueSite{})
	}
	return nil
}

// startSite starts the due work of a kind at a site, within its bounds, unless its breaker is open. It reports whether there was
// any.
func (q *Queue) startSite(ctx context.Context, k *handled, site string) (bool, error) {
	_, b, isServed := q.kind(site, k.Name)
	if !isServed || !k.IsCheck && !b.IsClosed() || !q.hasSlots(k) {
		return false, nil
	}
	tasks, err := q.due(ctx, site, k.Name, q.now(), maxOfSite)
	if err != nil || len(tasks) == 0 {
		return false, err
	}
	if k.IsSerial {
		q.startSerial(k, b, site, tasks)
		return true, nil
	}
	for _, t := range tasks {
		q.beginDue(k, site, func(ctx context.Context) {
			t.holder = "" // of a lease that is over
			if a, err := q.sync(ctx, t, waiter{}); err == nil && a.Outcome != Again && len(tasks) == maxOfSite {
				q.Wake(site) // there may be more
			}
		})
	}
	return true, nil
}

// beginDue is begin for what nobody waits for, within the bound of its kind. Run looks again at a site that has no slot for it.
func (q *Queue) beginDue(k *handled, site string, do func(ctx context.Context)) bool {
	if !q.hasSlots(k) || !k.slots.TryAcquire("") {
		return false
	}
	isBegun := q.begin(k.limiter, site, maxDue, func(ctx context.Context) {
		defer k.slots.Release("")
		do(ctx)
	})
	if !isBegun {
		k.slots.Release("")
		q.mu.Lock()
		defer q.mu.Unlock()
		if k.limiter.TakenBy(site) > 0 {
			q.short[site] = true
		} else { // meanwhile
			q.woken[site] = true
			q.signal()
		}
	}
	return isBegun
}

// startSerial starts the due tasks of a serial kind at a site, one after the other in one slot,
// unless one of the site is under way: what only waits for others of the site takes no slot.
func (q *Queue) startSerial(k *handled, b *breaker, site string, tasks []Task) {
	if !q.serial.TryAcquire(serialKey(site, k.Name)) {
		return
	}
	isBegun := q.beginDue(k, site, func(ctx context.Context) {
		defer q.serial.Release(serialKey(site, k.Name))
		for _, t := range tasks {
			if ctx.Err() != nil || !k.IsCheck && !b.IsClosed() {
				return
			}
			t.holder = "" // of a lease that is over
			bounded, cancel := context.WithTimeout(ctx, 2*k.Timeout)
			a, err := q.exclusively(bounded, k.Kind, b, t, waiter{})
			cancel()
			if errors.Is(err, errHeld) || a.Outcome == Later && !a.At.After(q.now()) {
				return // another process has leased the site, or the task; or it is the turn of others
			}
			if err == nil && a.Outcome != Again && len(tasks) == maxOfSite {
				q.Wake(site) // there may be more
			}
		}
	})
	if !isBegun {
		q.serial.Release(serialKey(site, k.Name))
	}
}

// Kinds are the names of those that this process does and that may be pending, sorted.
func (q *Queue) Kinds() (names []string) {
	for _, k := range q.handled() {
		if !k.IsCheck {
			names = append(names, k.Name)
		}
	}
	return names
}

// handled are all kinds, by name.
func (q *Queue) handled() []*handled {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.SortedFunc(maps.Values(q.kinds), func(a, b *handled) int { return strings.Compare(a.Name, b.Name) })
}

// IsPersonal reports whether the titles of a kind are for the site's staff alone, as are those of one
// that this process does not know.
func (q *Queue) IsPersonal(kind string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.kinds[kind]
	return of == nil || of.IsPersonal
}

// toProbe lists the sites whose breaker is open, and whose platform is to be probed.
func (q *Queue) toProbe() (sites []string) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for site, b := range q.breakers {
		if b.IsProbeDue(now) {
			sites = append(sites, site)
		}
	}
	return sites
}

// probe tries one task of a site, due or not, if its breaker is open.
func (q *Queue) probe(ctx context.Context, site string) error {
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	if b == nil || !b.IsProbeDue(q.now()) {
		return nil
	}
	t, err := q.first(ctx, site)
	if err != nil {
		return err
	}
	if t.Kind == "" { // nothing is left, by which it could be noticed that the platform responds
		b.Succeed()
		return nil
	}
	if may, isProbe := b.Begin(q.now()); !may || !isProbe {
		return nil
	}
	isBegun := q.begin(q.limiter, site, maxDue, func(ctx context.Context) {
		defer func() { b.EndProbe(q.now()) }()
		t.holder = ""
		_, _ = q.sync(ctx, t, waiter{waits: true}) // judge notes what became of it
	})
	if !isBegun {
		b.EndProbe(q.now())
	}
	return nil
}

// first reads what is due first at a site of all that this process does, also if that is
// later, the zero Task for nothing. An attempt that fails is due behind the others, so a
// task that always fails keeps none of them from being the probe.
func (q *Queue) first(ctx context.Context, site string) (first Task, err error) {
	for _, k := range q.handled() {
		if _, _, isServed := q.kind(site, k.Name); !isServed || k.IsCheck {
			continue
		}
		tasks, err := q.due(ctx, site, k.Name, q.now().Add(2*maxBackoff), 1)
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
		q.Wake(site)
	}
	return n, err
}
