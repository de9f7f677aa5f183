package work

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// This file does due tasks of a site that were read at once.

// batch is due work of a kind at a site that was read at once. The mutex of the Queue guards what changes of it.
type batch struct {
	*Queue
	k    *handled
	site string

	breaker *breaker

	tasks   []Task          // that have not begun
	lines   map[string]bool // of which a task is under way
	workers int
	isFull  bool // as many as are read at once, so there may be others
	isAsked bool // the site was woken meanwhile
	isOver  bool // no other task of it is to begin
	didSome bool
	yields  bool // to other sites, which have no slot, or since a task has paused the kind
}

// start starts as many tasks of a batch as there are slots for the site: of a serial kind, and of a platform that did not respond
// lately, one.
func (b *batch) start() {
	if b.k.IsSerial && !b.serial.TryAcquire(serialKey(b.site, b.k.Name)) {
		return // what only waits for others of the site takes no slot
	}
	most := len(b.tasks)
	if b.k.IsSerial || !b.k.IsCheck && b.breaker.isSlow() {
		most = 1
	}
	var slots []*limiter.Slot
	for len(slots) < most {
		slot := b.k.slot(b.site, b.breaker)
		if slot == nil {
			break
		}
		slots = append(slots, slot)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers = len(slots); b.workers > 0 {
		b.k.batches[b.site] = b
		for _, slot := range slots {
			b.working.Go(func() { b.do(slot) })
		}
		return
	}
	if b.k.IsSerial {
		b.serial.Release(serialKey(b.site, b.k.Name))
	}
	if b.k.due.TakenBy(laneOf(b.site, b.k.Service)) > 0 {
		b.short[b.site] = true
	} else { // meanwhile
		b.woken[b.site] = true
		b.signal()
	}
}

// slot is nil if there is none now.
func (k *handled) slot(site string, b *breaker) *limiter.Slot {
	if !k.slots.TryAcquire("") {
		return nil
	}
	slot := k.due.TryAcquire(laneOf(site, k.Service), !k.IsCheck && b.isSlow())
	if slot == nil {
		k.slots.Release("")
	}
	return slot
}

// do does tasks of a batch, one after the other, each in a slot of its own, as long as there is one.
func (b *batch) do(slot *limiter.Slot) {
	defer b.freed(b.site)
	slows := b.breaker
	if b.k.IsCheck { // which may take long at a platform that responds to all else
		slows = nil
	}
	for isLeft := true; isLeft; {
		slows.in(slot, func(ctx context.Context) {
			t, ok := b.next()
			if !ok {
				return
			}
			didIt, goesOn, pauses := b.doDue(ctx, t)
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.lines, b.line(t))
			b.didSome = b.didSome || didIt
			b.yields = b.yields || pauses || b.k.IsCheck && b.k.due.IsFull(false)
			b.isOver = b.isOver || b.yields || !goesOn || b.ctx.Err() != nil
		})(b.ctx)
		b.k.slots.Release("")
		if isLeft = b.isLeft(); isLeft {
			slot = b.k.slot(b.site, b.breaker)
			isLeft = slot != nil
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.workers--; b.workers > 0 {
		return
	}
	if b.k.batches[b.site] == b {
		delete(b.k.batches, b.site)
	}
	if b.k.IsSerial {
		b.serial.Release(serialKey(b.site, b.k.Name))
	}
	if !b.yields && (b.isAsked || b.isFull && b.didSome || len(b.tasks) > 0 && !b.isOver) {
		b.woken[b.site] = true
		b.signal()
	}
}

// next takes a task of a batch. Once that was the last one, another batch may begin.
func (b *batch) next() (t Task, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.first()
	if i < 0 || b.isOver {
		return Task{}, false
	}
	t = b.tasks[i]
	b.tasks = slices.Delete(b.tasks, i, i+1)
	if b.lines == nil {
		b.lines = make(map[string]bool)
	}
	b.lines[b.line(t)] = true
	if len(b.tasks) == 0 && !b.k.IsSerial && b.k.batches[b.site] == b {
		delete(b.k.batches, b.site)
	}
	t.Holder = "" // of a lease that is over
	return t, true
}

// first is the first task that waits for no other one of its line, -1 if there is none.
func (b *batch) first() int {
	return slices.IndexFunc(b.tasks, func(t Task) bool { return !b.lines[b.line(t)] })
}

func (b *batch) line(t Task) string {
	if b.k.Line == nil {
		return t.Key
	}
	return b.k.Line(t.Key)
}

// isLeft reports whether another task of a batch is to begin.
func (b *batch) isLeft() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isOver = b.isOver || !b.k.IsCheck && !b.breaker.IsClosed()
	return b.first() >= 0 && !b.isOver
}

// doDue does a task that nobody waits for, and reports whether the next of its batch is to be done, and whether it pauses all of them.
func (b *batch) doDue(ctx context.Context, t Task) (didIt, goesOn, pauses bool) {
	var a Attempt
	var err error
	if b.k.IsSerial {
		bounded, cancel := context.WithTimeout(ctx, 2*b.k.Timeout)
		defer cancel()
		a, err = b.exclusively(bounded, b.k.Kind, b.breaker, t, waiter{})
		if errors.Is(err, ErrHeld) || a.Outcome == Later && !a.At.After(b.store.now()) {
			return true, false, false // another process has leased the site, or the task; or it is the turn of others
		}
	} else {
		a, err = b.sync(ctx, t, waiter{})
	}
	isOther := errors.Is(err, ErrHeld) || errors.Is(err, ErrEarly) // who does it, or has done it
	if err != nil && !isOther && !errors.Is(err, ErrNotServed) && !errors.Is(err, ErrLost) && ctx.Err() == nil {
		b.warn.Warn(t.Site, "cannot do what is due", zap.String("kind", t.Kind), zap.Error(err))
	}
	return err == nil && a.Outcome != Again, err == nil || isOther || b.k.IsSerial, err == nil && a.Pauses
}
