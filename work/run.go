package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
)

// This file has what is due done.

// Run does what is due, until ctx is done. It returns when nothing is under way any more.
func (q *Queue) Run(ctx context.Context) {
	defer q.end()
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
	q.due.Close()
	q.checks.Close()
	q.working.Wait()
	q.calls.Wait() // those who call have their attempt
}

// wait returns when nothing is under way that Run has started, if nothing else is started.
func (q *Queue) wait() {
	q.working.Wait()
	q.due.Wait()
	q.checks.Wait()
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
	for _, site := range q.toProbe() {
		if err := q.probe(ctx, site); err != nil {
			errs = append(errs, err)
			break
		}
	}
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
		err := q.probe(ctx, site)
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

// batch is due work of a kind at a site that was read at once. The mutex of the Queue guards it.
type batch struct {
	tasks   []Task // that have not begun
	workers int
	isFull  bool // as many as are read at once, so there may be others
	isAsked bool // the site was woken meanwhile
	isOver  bool // no other task of it is to begin
	didSome bool
	yields  bool // to other sites, which have no slot
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
	q.startBatch(k, b, site, &batch{tasks: tasks, isFull: len(tasks) == maxBatch})
	return true, nil
}

// startBatch starts as many tasks of a batch as there are slots for the site: of a serial kind, and of a platform that did not respond
// lately, one.
func (q *Queue) startBatch(k *handled, b *breaker, site string, of *batch) {
	if k.IsSerial && !q.serial.TryAcquire(serialKey(site, k.Name)) {
		return // what only waits for others of the site takes no slot
	}
	most := len(of.tasks)
	if k.IsSerial || !k.IsCheck && b.isSlow() {
		most = 1
	}
	var slots []*limiter.Slot
	for len(slots) < most {
		slot := k.slot(site, b)
		if slot == nil {
			break
		}
		slots = append(slots, slot)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if of.workers = len(slots); of.workers > 0 {
		k.batches[site] = of
		for _, slot := range slots {
			q.working.Go(func() { q.doBatch(k, b, site, of, slot) })
		}
		return
	}
	if k.IsSerial {
		q.serial.Release(serialKey(site, k.Name))
	}
	if k.due.TakenBy(site) > 0 {
		q.short[site] = true
	} else { // meanwhile
		q.woken[site] = true
		q.signal()
	}
}

// slot is nil if there is none now.
func (k *handled) slot(site string, b *breaker) *limiter.Slot {
	if !k.slots.TryAcquire("") {
		return nil
	}
	slot := k.due.TryAcquire(site, !k.IsCheck && b.isSlow())
	if slot == nil {
		k.slots.Release("")
	}
	return slot
}

// doBatch does tasks of a batch, one after the other, each in a slot of its own, as long as there is one.
func (q *Queue) doBatch(k *handled, b *breaker, site string, of *batch, slot *limiter.Slot) {
	defer q.freed(site)
	slows := b
	if k.IsCheck { // which may take long at a platform that responds to all else
		slows = nil
	}
	for isLeft := true; isLeft; {
		slows.in(slot, func(ctx context.Context) {
			t, ok := q.next(k, site, of)
			if !ok {
				return
			}
			didIt, goesOn := q.doDue(ctx, k, b, t)
			q.mu.Lock()
			defer q.mu.Unlock()
			of.didSome = of.didSome || didIt
			of.yields = of.yields || k.IsCheck && k.due.IsFull(false)
			of.isOver = of.isOver || of.yields || !goesOn || q.ctx.Err() != nil
		})(q.ctx)
		k.slots.Release("")
		if isLeft = q.isLeft(k, b, of); isLeft {
			slot = k.slot(site, b)
			isLeft = slot != nil
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if of.workers--; of.workers > 0 {
		return
	}
	if k.batches[site] == of {
		delete(k.batches, site)
	}
	if k.IsSerial {
		q.serial.Release(serialKey(site, k.Name))
	}
	if !of.yields && (of.isAsked || of.isFull && of.didSome || len(of.tasks) > 0 && !of.isOver) {
		q.woken[site] = true
		q.signal()
	}
}

// next takes a task of a batch. Once that was the last one, another batch may begin.
func (q *Queue) next(k *handled, site string, of *batch) (t Task, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(of.tasks) == 0 || of.isOver {
		return Task{}, false
	}
	t, of.tasks = of.tasks[0], of.tasks[1:]
	if len(of.tasks) == 0 && !k.IsSerial && k.batches[site] == of {
		delete(k.batches, site)
	}
	t.Holder = "" // of a lease that is over
	return t, true
}

// isLeft reports whether another task of a batch is to begin.
func (q *Queue) isLeft(k *handled, b *breaker, of *batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of.isOver = of.isOver || !k.IsCheck && !b.IsClosed()
	return len(of.tasks) > 0 && !of.isOver
}

// doDue does a task that nobody waits for, and reports whether the next of its batch is to be done.
func (q *Queue) doDue(ctx context.Context, k *handled, b *breaker, t Task) (didIt, goesOn bool) {
	var a Attempt
	var err error
	if k.IsSerial {
		bounded, cancel := context.WithTimeout(ctx, 2*k.Timeout)
		defer cancel()
		a, err = q.exclusively(bounded, k.Kind, b, t, waiter{})
		if errors.Is(err, ErrHeld) || a.Outcome == Later && !a.At.After(q.store.now()) {
			return true, false // another process has leased the site, or the task; or it is the turn of others
		}
	} else {
		a, err = q.sync(ctx, t, waiter{})
	}
	isOther := errors.Is(err, ErrHeld) || errors.Is(err, ErrEarly) // who does it, or has done it
	if err != nil && !isOther && !errors.Is(err, ErrNotServed) && !errors.Is(err, ErrLost) && ctx.Err() == nil {
		q.warn.Warn(t.Site, "cannot do what is due", zap.String("kind", t.Kind), zap.Error(err))
	}
	return err == nil && a.Outcome != Again, err == nil || isOther || k.IsSerial
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
	now := q.store.now()
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
	if b == nil || !b.IsProbeDue(q.store.now()) {
		return nil
	}
	slot := q.due.TryAcquire(site, true)
	if slot == nil {
		return nil // until the next look
	}
	t, err := q.first(ctx, site)
	if err == nil && t.Kind == "" { // nothing is left, by which it could be noticed that the platform responds
		b.Succeed()
	}
	if err != nil {
		slot.End()
		return err
	}
	if may, isProbe := b.Begin(q.store.now()); !may || !isProbe {
		slot.End()
		return nil
	}
	q.inSlot(slot, site, b, func(ctx context.Context) {
		defer func() { b.EndProbe(q.store.now()) }()
		t.Holder = ""
		_, _ = q.sync(ctx, t, waiter{waits: true}) // judge notes what became of it
	})
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

// TryNow is MakeDue, also of a platform that does not respond.
func (q *Queue) TryNow(ctx context.Context, site string) (map[string]int, error) {
	q.mu.Lock()
	b := q.breakers[site]
	q.mu.Unlock()
	if b != nil {
		b.ProbeNow()
	}
	return q.MakeDue(ctx, site)
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
