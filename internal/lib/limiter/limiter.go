// Package limiter bounds what is done at once.
//
// There are two types, because there are two reasons. A [Limiter] bounds what is under way
// in all and for each key, such as a site, so that one site leaves slots for others. A
// [Bulkhead] is two Limiters for calls that may hang: a call that takes long leaves the quick
// part for the slow one. So platforms that hang do not fill the slots of those that respond,
// although nobody knew before that they would hang.
package limiter

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
)

// ErrClosed is the error of Acquire once the Limiter is closed.
var ErrClosed = errors.New("the limiter is closed")

// Limiter bounds what is under way. It may be used by many goroutines at once.
type Limiter struct {
	total, perKey int

	mu       sync.Mutex
	taken    int
	of       map[string]int // taken slots by key
	waiting  list.List      // of *waiter, the longest waiting first
	isClosed bool
	changed  sync.Cond // something ended
}

type waiter struct {
	key     string
	granted chan struct{}
}

// New makes a Limiter of total slots, of which a key may have perKey. 0 is no bound.
func New(total, perKey int) *Limiter {
	unbounded := func(n int) int {
		if n == 0 {
			return math.MaxInt
		}
		return n
	}
	l := &Limiter{total: unbounded(total), perKey: unbounded(perKey), of: make(map[string]int)}
	l.changed.L = &l.mu
	return l
}

// TryAcquire takes a slot if one is free and nobody waits for it. Release returns it.
func (l *Limiter) TryAcquire(key string) bool { return l.tryAcquire(key, false) }

// tryAcquireFairly is TryAcquire, and leaves the second half to keys without a slot. So a few keys whose calls take long do not
// keep the others from theirs.
func (l *Limiter) tryAcquireFairly(key string) bool { return l.tryAcquire(key, true) }

func (l *Limiter) tryAcquire(key string, isFair bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isFair && l.taken >= l.total/2 && l.of[key] > 0 {
		return false
	}
	if l.isClosed || l.taken >= l.total || l.of[key] >= l.perKey || l.mayNext() != nil {
		return false
	}
	l.take(key)
	return true
}

func (l *Limiter) isFull() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken >= l.total
}

func (l *Limiter) take(key string) {
	l.taken++
	l.of[key]++
}

// Acquire waits for a slot. Those who wait longest come first; one whose key has all its
// slots lets others pass. Errors: ErrClosed, that of ctx.
func (l *Limiter) Acquire(ctx context.Context, key string) error {
	w := &waiter{key, make(chan struct{})}
	l.mu.Lock()
	if l.isClosed {
		l.mu.Unlock()
		return ErrClosed
	}
	place := l.waiting.PushBack(w)
	l.mu.Unlock()
	l.grant()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	before := l.waiting.Len()
	l.waiting.Remove(place)
	isGranted := l.waiting.Len() == before // meanwhile
	l.changed.Broadcast()
	l.mu.Unlock()
	if isGranted {
		l.Release(key)
	}
	return ctx.Err()
}

// grant gives free slots to those who wait.
func (l *Limiter) grant() {
	for next := l.next(); next != nil; next = l.next() {
		close(next.granted)
	}
}

// next takes a slot for the one who waits longest and may have one, or returns nil.
func (l *Limiter) next() *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.mayNext()
	if e == nil {
		return nil
	}
	w := l.waiting.Remove(e).(*waiter)
	l.take(w.key)
	return w
}

// mayNext finds who has waited longest of those that may have a slot, nil for none.
func (l *Limiter) mayNext() *list.Element {
	for e := l.waiting.Front(); e != nil && l.taken < l.total; e = e.Next() {
		if l.of[e.Value.(*waiter).key] < l.perKey {
			return e
		}
	}
	return nil
}

// Release frees a slot of key, for the next that waits.
func (l *Limiter) Release(key string) {
	l.mu.Lock()
	l.taken--
	if l.of[key]--; l.of[key] == 0 {
		delete(l.of, key)
	}
	l.changed.Broadcast()
	l.mu.Unlock()
	l.grant()
}

// Taken counts the slots in use.
func (l *Limiter) Taken() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// TakenBy counts the slots in use by a key.
func (l *Limiter) TakenBy(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[key]
}

// Close lets nobody take a slot any more but those who wait already, and returns once all
// slots are free.
func (l *Limiter) Close() {
	l.mu.Lock()
	l.isClosed = true
	l.mu.Unlock()
	l.Wait()
}

// Wait returns once all slots are free.
func (l *Limiter) Wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.taken > 0 || l.waiting.Len() > 0 {
		l.changed.Wait()
	}
}
