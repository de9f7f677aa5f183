package limiter

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// ErrTooLong is the cause with which a call is canceled that found no slot in the slow lane.
var ErrTooLong = errors.New("it took long, while many other platforms do not answer")

// Lanes bounds calls of which some hang. What takes long in the quick lane goes on in the
// slow one, and is canceled if that is full. What is known to hang starts in the slow lane.
// It may be used by many goroutines at once.
type Lanes struct {
	limit       time.Duration
	quick, slow *Limiter
}

// Slot is the right to make a call, until End.
type Slot struct {
	lanes  *Lanes
	slowed func()
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	lane  *Limiter // nil once it has ended
	timer *time.Timer
}

// NewLanes makes two lanes for so many calls at once. A call in the quick lane takes limit
// at most; 0 is no limit.
func NewLanes(quick, slow int, limit time.Duration) *Lanes {
	return &Lanes{limit: limit, quick: of(quick, math.MaxInt), slow: of(slow, math.MaxInt)}
}

func (l *Lanes) lane(slow bool) *Limiter {
	if slow {
		return l.slow
	}
	return l.quick
}

// Ask has granted called when there is a slot: before Ask returns, or by another goroutine
// that ends its slot. It must not block.
func (l *Lanes) Ask(slow bool, granted func(*Slot)) {
	lane := l.lane(slow)
	_, _ = lane.queue("", func() { granted(&Slot{lanes: l, lane: lane}) }) // fails only once closed, which lanes never are
	lane.grant()
}

// Acquire waits for a slot. Those who wait longest come first. Errors: that of ctx.
func (l *Lanes) Acquire(ctx context.Context, slow bool) (*Slot, error) {
	lane := l.lane(slow)
	if err := lane.Acquire(ctx, ""); err != nil {
		return nil, err
	}
	return &Slot{lanes: l, lane: lane}, nil
}

// TryAcquire takes a slot if more than half of the lane is free and nobody waits;
// otherwise it is nil. So who has a slot already leaves half of the lane to who has none.
func (l *Lanes) TryAcquire(slow bool) *Slot {
	lane := l.lane(slow)
	if !lane.TryAcquireUpTo(lane.total/2, "") {
		return nil
	}
	return &Slot{lanes: l, lane: lane}
}

// Begin derives the context of the call. The limit of the quick lane counts from now on.
// Once it has passed, slowed is called, which must not block. It is not called after End.
func (s *Slot) Begin(ctx context.Context, slowed func()) context.Context {
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.slowed = slowed
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane == s.lanes.quick && s.lanes.limit > 0 {
		s.timer = time.AfterFunc(s.lanes.limit, s.slowDown)
	}
	return ctx
}

// slowDown moves the call to the slow lane, or cancels it.
func (s *Slot) slowDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lane == nil {
		return
	}
	s.slowed()
	if !s.lanes.slow.tryMove() {
		s.cancel(ErrTooLong)
		return
	}
	s.lane = s.lanes.slow
	s.lanes.quick.Release("")
}

// tryMove takes a slot for a call that is under way, before those who wait to begin.
func (l *Limiter) tryMove() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken >= l.total {
		return false
	}
	l.take("")
	return true
}

// End ends the slot, and the context that Begin returned. It may be called again.
func (s *Slot) End() {
	s.mu.Lock()
	lane := s.lane
	s.lane = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(nil)
	}
	if lane != nil {
		lane.Release("")
	}
}
