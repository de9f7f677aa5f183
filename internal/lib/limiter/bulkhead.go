package limiter

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTooLong is the cause with which a call is canceled that found no slot in the slow
// part.
var ErrTooLong = errors.New("the call took too long, while many other platforms do not respond")

// Bulkhead keeps calls that hang from using up all slots. What takes long in the quick
// part goes on in the slow one, and is canceled if that is full. What is known to hang
// starts in the slow part. It may be used by many goroutines at once.
type Bulkhead struct {
	// KeepsSlow has a call for which the slow part is full stay where it is, rather than be canceled. It is set before the first call.
	KeepsSlow bool

	limit       time.Duration
	quick, slow *Limiter
}

// Slot is the right to make a call, until End.
type Slot struct {
	bulkhead *Bulkhead
	key      string
	slowed   func()
	cancel   context.CancelCauseFunc

	mu    sync.Mutex
	part  *Limiter // nil once it has ended
	timer *time.Timer
}

// NewBulkhead makes parts for so many calls at once, of which a key, such as a site, may have perKey in each; 0 is no
// bound. A call in the quick part takes limit at most; 0 is no limit.
func NewBulkhead(quick, slow, perKey int, limit time.Duration) *Bulkhead {
	return &Bulkhead{limit: limit, quick: New(quick, perKey), slow: New(slow, perKey)}
}

func (b *Bulkhead) part(slow bool) *Limiter {
	if slow {
		return b.slow
	}
	return b.quick
}

// Acquire waits for a slot. Those who wait longest come first. Errors: ErrClosed, that of ctx.
func (b *Bulkhead) Acquire(ctx context.Context, key string, slow bool) (*Slot, error) {
	part := b.part(slow)
	if err := part.Acquire(ctx, key); err != nil {
		return nil, err
	}
	return &Slot{bulkhead: b, key: key, part: part}, nil
}

// TryAcquire takes a slot if one is free and nobody waits for it; otherwise it is nil. A key that has one already leaves half
// of the part to keys that have none.
func (b *Bulkhead) TryAcquire(key string, slow bool) *Slot {
	part := b.part(slow)
	if !part.tryAcquireFairly(key) {
		return nil
	}
	return &Slot{bulkhead: b, key: key, part: part}
}

// IsFull reports whether no slot of a part is free.
func (b *Bulkhead) IsFull(slow bool) bool { return b.part(slow).isFull() }

// TakenBy counts the slots in use by a key.
func (b *Bulkhead) TakenBy(key string) int { return b.quick.TakenBy(key) + b.slow.TakenBy(key) }

// HasAll reports whether a key has all that it may have of the quick part.
func (b *Bulkhead) HasAll(key string) bool { return b.quick.TakenBy(key) >= b.quick.perKey }

// Close is [Limiter.Close] of both parts.
func (b *Bulkhead) Close() {
	b.quick.Close() // what is moved meanwhile is waited for next
	b.slow.Close()
}

// Wait returns once all slots are free.
func (b *Bulkhead) Wait() {
	b.quick.Wait()
	b.slow.Wait()
}

// Begin derives the context of the call. The limit of the quick part counts from now on.
// Once it has passed, slowed is called, which must not block. It is not called after End.
func (s *Slot) Begin(ctx context.Context, slowed func()) context.Context {
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.slowed = slowed
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.part == s.bulkhead.quick && s.bulkhead.limit > 0 {
		s.timer = time.AfterFunc(s.bulkhead.limit, s.slowDown)
	}
	return ctx
}

// slowDown moves the call to the slow part, or cancels it.
func (s *Slot) slowDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.part == nil {
		return
	}
	s.slowed()
	if !s.bulkhead.slow.tryMove(s.key) {
		if !s.bulkhead.KeepsSlow {
			s.cancel(ErrTooLong)
		}
		return
	}
	s.part = s.bulkhead.slow
	s.bulkhead.quick.Release(s.key)
}

// tryMove takes a slot for a call that is under way, before those who wait to begin.
func (l *Limiter) tryMove(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken >= l.total || l.of[key] >= l.perKey {
		return false
	}
	l.take(key)
	return true
}

// End ends the slot, and the context that Begin returned. It may be called again.
func (s *Slot) End() {
	s.mu.Lock()
	part := s.part
	s.part = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(nil)
	}
	if part != nil {
		part.Release(s.key)
	}
}
