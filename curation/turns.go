package curation

import (
	"context"
	"sync"
)

// turns has one move at a time at each site of a process, so that one alone asks the
// store for the lease, and bounds those that wait.
type turns struct {
	mu sync.Mutex
	of map[string]*turn // of the sites at which something is under way

	isClosed bool // nobody may enter any more
	running  sync.WaitGroup
}

type turn struct {
	users int
	taken chan struct{} // has one while the turn is taken
}

// enter counts a user of a site, and reports false if there are so many already, or all are
// closed.
func (t *turns) enter(site string, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of[site]
	if t.isClosed || of != nil && of.users >= most {
		return false
	}
	if of == nil {
		of = &turn{taken: make(chan struct{}, 1)}
		t.of[site] = of
	}
	of.users++
	t.running.Add(1)
	return true
}

func (t *turns) leave(site string) {
	defer t.running.Done()
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.of[site]; of.users > 1 {
		of.users--
	} else {
		delete(t.of, site)
	}
}

// close lets nobody enter any more, and waits until all have left.
func (t *turns) close() {
	t.mu.Lock()
	t.isClosed = true
	t.mu.Unlock()
	t.running.Wait()
}

// take waits for the turn of a site that was entered, which end ends. Those who wait
// longest come first. Errors: that of ctx.
func (t *turns) take(ctx context.Context, site string) (end func(), err error) {
	t.mu.Lock()
	taken := t.of[site].taken
	t.mu.Unlock()
	select {
	case taken <- struct{}{}:
		return func() { <-taken }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
