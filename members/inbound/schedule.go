package inbound

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
)

// schedule does tasks when they are due, each at most once at a time. However many
// tasks there are, only those that are being done have a goroutine, and only those
// that are due are looked at.
type schedule struct {
	now  func() time.Time
	wake chan struct{} // another task is first by now

	doing   atomic.Int64 // tasks that are being done
	mu      sync.Mutex
	waiting taskHeap // those that are due some time, but for those that are being done
}

// task is something that is done from time to time.
type task struct {
	*schedule

	// do does it, and returns when it is due again, and how long it must not be
	// done until then; zero for none. Next zero means on request only.
	do func(context.Context) (next, rest time.Duration)

	lanes  *limiter.Lanes // that a turn is taken in to do it; nil for none
	isSlow atomic.Bool    // in the slow lane

	due       time.Time // zero if it is not
	notBefore time.Time
	again     time.Time // when it is to be done again, asked for while it is being done; or zero
	place     int       // in the heap
	isWaiting bool      // in the heap
	isDoing   bool      // or waits for a turn
	isOver    bool      // never to be done again
	cancel    context.CancelFunc
}

func newSchedule(now func() time.Time) *schedule {
	return &schedule{now: now, wake: make(chan struct{}, 1)}
}

// add adds a task that is first due at some time, or on request only.
func (s *schedule) add(do func(context.Context) (next, rest time.Duration), due time.Time, lanes *limiter.Lanes) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &task{schedule: s, do: do, due: due, lanes: lanes}
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

// first returns the first of two times. Zero is no time.
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
	if t.isWaiting {
		heap.Remove(&t.waiting, t.place)
	}
	if cutOff && t.cancel != nil {
		t.cancel()
	}
}

// at returns when the task is to be done.
func (t *task) at() time.Time {
	if t.due.Before(t.notBefore) {
		return t.notBefore
	}
	return t.due
}

// wait puts the task into the heap, at its place, if it is due some time. The
// caller holds the lock.
func (t *task) wait() {
	switch {
	case t.isWaiting:
		heap.Fix(&t.waiting, t.place)
	case t.due.IsZero() || t.isDoing || t.isOver:
		return
	default:
		heap.Push(&t.waiting, t)
	}
	if t.place > 0 {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run does what is due until ctx is done, and waits for what was begun.
func (s *schedule) run(ctx context.Context) {
	var doing sync.WaitGroup
	defer doing.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		for _, t := range s.due() {
			doing.Add(1)
			t.start(ctx, doing.Done)
		}
		timer.Reset(s.pause())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-s.wake:
		}
	}
}

// start has the task done once there is a turn. Then ended is called.
func (t *task) start(ctx context.Context, ended func()) {
	if t.lanes == nil {
		go func() {
			defer ended()
			t.perform(ctx)
		}()
		return
	}
	t.lanes.Ask(t.isSlow.Load(), func(turn *limiter.Slot) {
		go func() {
			defer ended()
			defer turn.End()
			t.perform(turn.Begin(ctx, func() {}))
		}()
	})
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

// due begins the tasks that are to be done now, and returns them.
func (s *schedule) due() (tasks []*task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) > 0 {
		first := s.waiting[0]
		if !first.begin() {
			break
		}
		tasks = append(tasks, first)
	}
	return tasks
}

// begin reports whether the task is to be done now. The caller holds the lock.
func (t *task) begin() bool {
	if !t.isWaiting || t.at().After(t.now()) {
		return false
	}
	heap.Remove(&t.waiting, t.place)
	t.isDoing, t.again = true, time.Time{}
	return true
}

// pause returns how long it is to the next task.
func (s *schedule) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return time.Hour // it is woken before
	}
	return max(s.waiting[0].at().Sub(s.now()), time.Millisecond)
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

// taskHeap has the task that is first to be done at its top.
type taskHeap []*task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].at().Before(h[j].at()) }

func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements [heap.Interface].
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.place, t.isWaiting = len(*h), true
	*h = append(*h, t)
}

// Pop implements [heap.Interface].
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h, t.isWaiting = (*h)[:last], false
	return t
}
