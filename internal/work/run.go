package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// This file has what is due done.

// Run does what is due, until ctx is done. It returns when nothing is under way any more.
func (q *Queue) Run(ctx context.Context) {
	defer q.end()
	q.began = q.store.now()
	var polled time.Time
	var took time.Duration    // of the last poll
	timer := time.NewTimer(1) // as timers of 0 in a bubble of testing/synctest crash Go 1.26's race detector
	defer timer.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			polled = time.Now()
			q.purge(ctx)
			err = q.startDue(ctx)
			took = time.Since(polled)
		case <-q.wake:
			err = q.goOn(ctx)
		}
		if err != nil && ctx.Err() == nil {
			q.warn.Warn("", "cannot read what is due", zap.Error(err))
		}
		timer.Reset(max(time.Until(polled.Add(max(q.interval(), 2*took))), 1)) // polls take half of the time at most
	}
}

// end lets nothing begin any more, and returns when nothing is under way.
func (q *Queue) end() {
	q.cancel()
	for _, slots := range q.bulkheads() {
		slots.Close()
	}
	q.working.Wait()
	q.calls.Wait() // those who call have their attempt
}

// wait returns when nothing is under way that Run has started, if nothing else is started.
func (q *Queue) wait() {
	q.working.Wait()
	for _, slots := range q.bulkheads() {
		slots.Wait()
	}
}

// bulkheads have the slots of all that nobody waits for.
func (q *Queue) bulkheads() []*limiter.Bulkhead {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.AppendSeq([]*limiter.Bulkhead{q.checks, q.polls}, maps.Values(q.services))
}

// within bounds how long the store is asked.
func within[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return ask(ctx)
}

// purge removes what is kept for a while only, from time to time.
func (q *Queue) purge(ctx context.Context) {
	if q.store.now().Sub(q.purged) < purgeInterval {
		return
	}
	q.purged = q.store.now()
	q.working.Go(func() { // which may take longer than a look
		ctx, cancel := context.WithTimeout(ctx, purgeInterval/2)
		defer cancel()
		for _, table := range q.tables() {
			if err := table.Purge(ctx); err != nil && ctx.Err() == nil {
				q.warn.Warn("", "cannot remove what is old", zap.Error(err))
			}
		}
	})
}

// interval is the time until Run polls again.
func (q *Queue) interval() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.store.now()
	if now.Sub(q.began) < troubledTime {
		return troubledInterval
	}
	for _, b := range q.breakers {
		if b.HasFailed(now, troubledTime) {
			return troubledInterval
		}
	}
	return pollInterval
}

// DoDue does what is due, once, and returns when nothing is under way any more. It is for who does not use Run.
func (q *Queue) DoDue(ctx context.Context) error {
	err := q.startDue(ctx)
	for err == nil {
		q.wait()
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
	defer q.forgetIdle()
	var errs []error
	for _, table := range q.tables() {
		kinds, err := within(ctx, table.DueKinds)
		errs = append(errs, err)
		for _, k := range q.handled() {
			k.isMore = k.isMore || k.Table == table && slices.Contains(kinds, k.Name)
		}
	}
	errs = append(errs, q.probe(ctx, q.allBreakers()))
	return errors.Join(append(errs, q.goOn(ctx))...)
}

// goOn starts what is due at sites that were woken, and then at others, as long as there are slots. What fails of one kind
// keeps no other waiting.
func (q *Queue) goOn(ctx context.Context) error {
	q.isShort.Store(false)
	errs := []error{q.startWoken(ctx)}
	for _, k := range q.handled() {
		errs = append(errs, q.feed(ctx, k))
	}
	return errors.Join(errs...)
}

// startWoken starts what is due at sites that were woken. After an error the others are looked at the next time.
func (q *Queue) startWoken(ctx context.Context) error {
	kinds := q.handled()
	woken := q.takeWoken()
	for site := range woken {
		delete(woken, site)
		err := q.retry(ctx, site)
		if err == nil {
			err = q.probe(ctx, q.breakersOf(site))
		}
		for _, k := range kinds {
			if err == nil {
				_, err = q.startSite(ctx, k, site)
			}
		}
		if err != nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			maps.Copy(q.woken, woken)
			return err
		}
	}
	return nil
}

// retry makes all due that is pending of a site, if TrySoon has asked for it.
func (q *Queue) retry(ctx context.Context, site string) error {
	q.mu.Lock()
	isAsked := q.retried[site]
	delete(q.retried, site)
	q.mu.Unlock()
	if !isAsked {
		return nil
	}
	_, err := within(ctx, func(ctx context.Context) (map[string]int, error) { return q.TryNow(ctx, site) })
	if err != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.retried[site], q.woken[site] = true, true
	}
	return err
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
	if !k.due.IsFull(false) && (k.Most == 0 || k.slots.Taken() < k.Most) {
		return true
	}
	k.isMore = true
	return false
}

// feed starts the due work of a kind at the sites that have had it longest, and so on, as long as there are slots. Sites
// that this process does not serve, however many there are, keep it from no other: it goes on behind them the next time.
func (q *Queue) feed(ctx context.Context, k *handled) (err error) {
	for pages := 0; (len(k.rest) > 0 || k.isMore) && q.hasSlots(k); {
		if len(k.rest) == 0 {
			k.rest, err = within(ctx, func(ctx context.Context) ([]DueSite, error) { return k.Table.DueSites(ctx, k.Name, k.behind) })
			if err != nil {
				return err
			}
			k.behind, k.isMore = DueSite{}, false
			if pages++; len(k.rest) == MaxDueSites {
				k.behind, k.isMore = k.rest[MaxDueSites-1], pages < maxPages
			}
			continue
		}
		isStarted, err := q.startSite(ctx, k, k.rest[0].Site)
		if err != nil {
			return err
		}
		k.rest, k.isMore = k.rest[1:], k.isMore || isStarted && k.behind != (DueSite{})
	}
	return nil
}

// startSite starts the due work of a kind at a site, within its bounds, unless its breaker is open. It reports whether there was
// any.
func (q *Queue) startSite(ctx context.Context, k *handled, site string) (bool, error) {
	_, b, isServed := q.kind(site, k.Name)
	if !isServed || !k.IsCheck && !b.IsClosed() || !q.hasSlots(k) || !k.IsCheck && k.due.IsFull(b.isSlow()) {
		return false, nil
	}
	q.mu.Lock()
	under := k.batches[site]
	if under != nil {
		under.isAsked = true
	}
	q.mu.Unlock()
	if under != nil {
		return false, nil
	}
	tasks, err := within(ctx, func(ctx context.Context) ([]Task, error) {
		return k.Table.Due(ctx, site, k.Name, q.store.now(), maxBatch)
	})
	if err != nil || len(tasks) == 0 {
		return false, err
	}
	(&batch{Queue: q, k: k, breaker: b, site: site, tasks: tasks, isFull: len(tasks) == maxBatch}).start()
	return true, nil
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
