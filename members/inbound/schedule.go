package inbound

import (
	"context"
	"sync"
	"time"
)

// schedule does tasks when they are due, each at most once at a time. However many
// tasks there are, only those that are being done have a goroutine.
type schedule struct {
	now  func() time.Time
	wake chan struct{}

	mu    sync.Mutex
	tasks []*task
	soon  []*task // that may be due now
}

// task is something that is done from time to time.
type task struct {
	*schedule

	// do does it, and returns when it is due again, and how long it must not be
	// done until then; zero for none. Next zero means on request only.
	do func(context.Context) (next, rest time.Duration)

	due       time.Time // zero if it is not
	notBefore time.Time
	isDoing   bool
	isAsked   bool // while it is being done
	isSoon    bool // in the schedule's list soon
}

func newSchedule(now func() time.Time) *schedule {
	return &schedule{now: now, wake: make(chan struct{}, 1)}
}

// add adds a task that is first due at some time, or on request only.
func (s *schedule) add(do func(context.Context) (next, rest time.Duration), due time.Time) *task {
	t := &task{schedule: s, do: do, due: due}
	s.tasks = append(s.tasks, t)
	return t
}

// ask makes the task due now, or once more if it is being done.
func (t *task) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isDoing {
		t.isAsked = true
		return
	}
	t.dueNow()
}

// dueNow makes the task due, and has run look at it. The caller holds the lock.
func (t *task) dueNow() {
	t.due = t.now()
	if !t.isSoon {
		t.isSoon = true
		t.soon = append(t.soon, t)
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
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	s.mu.Lock()
	all := s.tasks
	s.mu.Unlock()
	for candidates := all; ; {
		for _, t := range candidates {
			if t.begin() {
				doing.Go(func() { t.end(t.do(ctx)) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			candidates = all
		case <-s.wake:
			candidates = s.asked()
		}
	}
}

// asked returns the tasks that were asked for.
func (s *schedule) asked() []*task {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := s.soon
	s.soon = nil
	for _, t := range tasks {
		t.isSoon = false
	}
	return tasks
}

// begin reports whether the task is to be done now.
func (t *task) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.isDoing || t.due.IsZero() || t.due.After(now) || t.notBefore.After(now) {
		return false
	}
	t.isDoing, t.isAsked = true, false
	return true
}

// end notes that the task was done.
func (t *task) end(next, rest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.isDoing, t.due, t.notBefore = false, time.Time{}, now.Add(rest)
	switch {
	case t.isAsked:
		t.dueNow()
	case next > 0:
		t.due = now.Add(next)
	}
}
