package inbound

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
)

// schedule runs tasks when they are due, each at most once at a time. However many
// tasks there are, only those that run have a goroutine: the others are timers of
// the runtime's.
type schedule struct {
	now   func() time.Time
	doing atomic.Int64 // tasks that are being done

	mu      sync.Mutex
	ctx     context.Context // of run; nil before it
	waiting map[*task]bool  // the tasks that have a timer, or get one with run
	running sync.WaitGroup
}

// task is something that is done from time to time.
type task struct {
	*schedule

	// do does it, and returns when it is due again, and how long it must not be
	// done until then; zero for none. Next zero means on request only.
	do func(context.Context) (next, rest time.Duration)

	bulkhead *limiter.Bulkhead // whose slots bound it; nil for none
	isSlow   atomic.Bool       // in the slow part

	timer     *time.Timer // nil until the task is due for the first time
	due       time.Time   // zero for on request only
	notBefore time.Time
	again     time.Time // when to run again, requested during a run; or zero
	isDoing   bool      // or waits for a slot
	isOver    bool      // never to run again
	cancel    context.CancelFunc
}

func newSchedule(now func() time.Time) *schedule {
	return &schedule{now: now, waiting: make(map[*task]bool)}
}

// add adds a task that is first due at some time, or on request only.
func (s *schedule) add(do func(context.Context) (next, rest time.Duration), due time.Time, bulkhead *limiter.Bulkhead) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{schedule: s, do: do, due: due, bulkhead: bulkhead}
	t.wait()
	return t
}

// ask makes the task due now, or once more if it is being done.
func (t *task) ask() { t.askBy(t.now()) }

// askBy makes the task due at a time, unless it is due before. If it is being done,
// it is done once more then.
func (t *task) askBy(when time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDoing {
		t.again = first(t.again, when)
		return
	}
	t.due = first(t.due, when)
	t.wait()
}

// first is the earlier time. Zero is no time.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// finish lets the task not be done any more. If it is being done, it comes to its
// end, or is cut off.
func (t *task) finish(cutOff bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isOver = true
	t.stop()
	if cutOff && t.cancel != nil {
		t.cancel()
	}
}

// stop takes the task's timer back. The caller holds the lock.
func (t *task) stop() {
	delete(t.waiting, t)
	if t.timer != nil {
		t.timer.Stop()
	}
}

func (t *task) at() time.Time {
	if t.due.Before(t.notBefore) {
		return t.notBefore
	}
	return t.due
}

// wait sets the task's timer, if it is due some time. The caller holds the lock.
func (t *task) wait() {
	if t.due.IsZero() || t.isDoing || t.isOver || t.ctx != nil && t.ctx.Err() != nil {
		return
	}
	t.waiting[t] = true
	// Several goroutines that set timers of 0 in a bubble of testing/synctest crash Go 1.26's race detector.
	left := max(t.at().Sub(t.now()), 1)
	switch {
	case t.ctx == nil: // run does it
	case t.timer == nil:
		t.timer = time.AfterFunc(left, t.fire)
	default:
		t.timer.Reset(left)
	}
}

// run runs what is due until ctx is done, and waits for what was begun.
func (s *schedule) run(ctx context.Context) {
	s.mu.Lock()
	s.ctx = ctx
	for t := range s.waiting {
		t.wait()
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	for t := range s.waiting { // or they would stay in memory until they are due
		t.stop()
	}
	s.mu.Unlock()
	s.running.Wait() // ctx is done, so no task begins any more
}

// fire runs the task, if it is due, once there is a slot.
func (t *task) fire() {
	t.mu.Lock()
	begun := t.begin()
	if begun {
		t.running.Add(1)
	}
	ctx := t.ctx
	t.mu.Unlock()
	switch {
	case !begun:
	case t.bulkhead == nil:
		defer t.running.Done()
		t.perform(ctx)
	default:
		t.bulkhead.Ask("", t.isSlow.Load(), func(slot *limiter.Slot) {
			go func() {
				defer t.running.Done()
				defer slot.End()
				t.perform(slot.Begin(ctx, func() {}))
			}()
		})
	}
}

// begin reports whether the task is to be done now. The caller holds the lock.
func (t *task) begin() bool {
	switch {
	case !t.waiting[t] || t.ctx != nil && t.ctx.Err() != nil: // the run ended
		return false
	case t.at().After(t.now()): // the clock was set, or the task has its rest
		t.wait()
		return false
	}
	delete(t.waiting, t)
	t.isDoing, t.again = true, time.Time{}
	return true
}

// perform does a task that has begun, unless it or the run is over by now.
func (t *task) perform(ctx context.Context) {
	t.doing.Add(1)
	defer t.doing.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.mu.Lock()
	t.cancel = cancel
	isOver := t.isOver || isEnding(ctx) // by now
	t.mu.Unlock()
	if isOver {
		return
	}
	t.end(t.do(ctx))
}

// end notes that the task was done.
func (t *task) end(next, rest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.isDoing, t.cancel, t.due, t.notBefore = false, nil, t.again, now.Add(rest)
	if next > 0 {
		t.due = first(t.due, now.Add(next))
	}
	t.wait()
}

// isEnding reports whether ctx is done because Run ends or the site is removed.
func isEnding(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), limiter.ErrTooLong)
}
