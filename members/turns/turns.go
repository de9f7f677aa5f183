// Package turns bounds what is done at once at all platforms of a process, so that
// platforms that hang hold up none that answers.
//
// There are two lanes with a bound each. What takes long in the quick lane goes on
// in the slow one, and is cut off if there is no room. What is known to hang is
// done in the slow lane from the start.
package turns

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// ErrTooLong is the cause with which something is cut off.
var ErrTooLong = errors.New("it took long, while many other platforms do not answer")

// Lanes gives turns. In each lane, those who wait longest come first. It may be
// used by many goroutines at once.
type Lanes struct {
	limit       time.Duration
	mu          sync.Mutex
	quick, slow lane
}

type lane struct {
	size, taken int
	waiting     list.List // of func(*Turn)
}

// Turn is the right to do something, until it is ended.
type Turn struct {
	lanes  *Lanes
	lane   *lane
	timer  *time.Timer
	slowed func()
	cutOff context.CancelCauseFunc
}

// New makes two lanes for so many at once. Limit is how long a turn in the quick
// lane takes at most; 0 for no limit.
func New(quick, slow int, limit time.Duration) *Lanes {
	return &Lanes{limit: limit, quick: lane{size: quick}, slow: lane{size: slow}}
}

// Ask has granted called when there is a turn: before Ask returns, or by another
// goroutine that ends its turn. It must not block.
func (l *Lanes) Ask(slow bool, granted func(*Turn)) {
	l.ask(slow, granted)
	l.grant()
}

func (l *Lanes) ask(slow bool, granted func(*Turn)) (withdraw func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.lane(slow)
	place := lane.waiting.PushBack(granted)
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		before := lane.waiting.Len()
		lane.waiting.Remove(place)
		return lane.waiting.Len() < before
	}
}

// Take waits for a turn. Errors: that of ctx.
func (l *Lanes) Take(ctx context.Context, slow bool) (*Turn, error) {
	turns := make(chan *Turn, 1)
	withdraw := l.ask(slow, func(t *Turn) { turns <- t })
	l.grant()
	select {
	case t := <-turns:
		return t, nil
	case <-ctx.Done():
	}
	if !withdraw() {
		(<-turns).End()
	}
	return nil, ctx.Err()
}

// TryTake returns a turn if more than half of the lane is free, or nil.
func (l *Lanes) TryTake(slow bool) *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	lane := l.lane(slow)
	if lane.waiting.Len() > 0 || lane.taken >= lane.size/2 {
		return nil
	}
	lane.taken++
	return &Turn{lanes: l, lane: lane}
}

func (l *Lanes) lane(slow bool) *lane {
	if slow {
		return &l.slow
	}
	return &l.quick
}

// grant gives turns for which there is room.
func (l *Lanes) grant() {
	for _, lane := range []*lane{&l.quick, &l.slow} {
		for granted := l.next(lane); granted != nil; granted = l.next(lane) {
			granted(&Turn{lanes: l, lane: lane})
		}
	}
}

// next takes a turn for the one who waits longest, or returns nil.
func (l *Lanes) next(lane *lane) func(*Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane.waiting.Len() == 0 || lane.taken >= lane.size {
		return nil
	}
	lane.taken++
	return lane.waiting.Remove(lane.waiting.Front()).(func(*Turn))
}

// Begin returns the context of what is done in the turn. The lanes' limit counts
// from now on. Once it has passed, slowed is called, which must not block. It is not
// called after End.
func (t *Turn) Begin(ctx context.Context, slowed func()) context.Context {
	ctx, t.cutOff = context.WithCancelCause(ctx)
	t.slowed = slowed
	t.lanes.mu.Lock()
	defer t.lanes.mu.Unlock()
	if t.lane == &t.lanes.quick && t.lanes.limit > 0 {
		t.timer = time.AfterFunc(t.lanes.limit, t.slowDown)
	}
	return ctx
}

// slowDown moves the turn to the slow lane, or cuts off what is done in it.
func (t *Turn) slowDown() {
	l := t.lanes
	l.mu.Lock()
	defer l.grant()
	defer l.mu.Unlock()
	if t.lane == nil { // it has ended
		return
	}
	t.slowed()
	if l.slow.taken == l.slow.size {
		t.cutOff(ErrTooLong)
		return
	}
	t.lane = &l.slow
	l.slow.taken++
	l.quick.taken--
}

// End ends the turn, and the context that Begin returned. It may be called again.
func (t *Turn) End() {
	l := t.lanes
	l.mu.Lock()
	if t.lane != nil {
		t.lane.taken--
		t.lane = nil
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	l.mu.Unlock()
	if t.cutOff != nil {
		t.cutOff(nil)
	}
	l.grant()
}
