package work

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

const (
	// MaxUnanswered is how many attempts in a row may have no response before the breaker
	// opens.
	MaxUnanswered = 5

	// The first probe may start minProbeInterval after the breaker has opened. The interval
	// doubles with each probe that fails, up to maxProbeInterval.
	minProbeInterval = time.Second
	maxProbeInterval = time.Minute
)

// breaker is the circuit breaker of a site's platform, or of another service. It is closed while that responds. While
// it is open, attempts are reduced to one probe at a time. The zero value is closed. It may be
// used by many goroutines at once.
type breaker struct {
	of      any // the platform, or the service
	site    string
	service string       // "" for the platform
	slow    atomic.Int64 // attempts that take long now
	spare   atomic.Int64 // callers that came while the site had all quick slots
	heard   atomic.Int64 // when it was heard that it responds, in Unix milliseconds

	mu         sync.Mutex
	unanswered []string // keys of the attempts in a row that had no response
	isOpen     bool
	isLogged   bool // that it has opened
	isProbing  bool
	isAsked    bool // to probe once more at once
	openedAt   time.Time
	failedAt   time.Time     // last
	interval   time.Duration // from one probe to the next
	probeAt    time.Time     // when the next probe may start
}

// IsFresh reports whether there is nothing to remember.
func (b *breaker) IsFresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.isOpen && len(b.unanswered) == 0
}

// IsOver reports whether there is nothing to remember any more: the breaker is closed, and what has failed was tried again since, or
// others have done it.
func (b *breaker) IsOver(now time.Time) bool { return !b.HasFailed(now, 2*maxBackoff) }

// HasFailed reports whether the breaker is open, or an attempt has failed within a time.
func (b *breaker) HasFailed(now time.Time, within time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen || now.Sub(b.failedAt) <= within
}

// IsClosed reports whether attempts may be made.
func (b *breaker) IsClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.isOpen
}

// OpenSince is when the breaker opened. It reports false if it is closed.
func (b *breaker) OpenSince() (since time.Time, isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openedAt, b.isOpen
}

// IsProbeDue reports whether the breaker is open and a probe may start.
func (b *breaker) IsProbeDue(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen && !b.isProbing && !now.Before(b.probeAt)
}

// Begin reports whether a probe may start, which lasts until EndProbe. If the breaker is closed there is nothing to probe.
func (b *breaker) Begin(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOpen || b.isProbing || now.Before(b.probeAt) {
		return false
	}
	b.isProbing = true
	return true
}

// EndProbe lets the next probe start after the interval.
func (b *breaker) EndProbe(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isProbing, b.probeAt = false, now.Add(b.interval)
	if b.isAsked {
		b.isAsked, b.probeAt = false, now
	}
}

// ProbeNow lets the next probe start at once.
func (b *breaker) ProbeNow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probeAt, b.isAsked = time.Time{}, b.isProbing
}

// Fail notes that an attempt had no response, and reports whether that opens the breaker. A
// key that is retried counts once: what the platform says of one member or post must not
// hold up the others.
func (b *breaker) Fail(key string, isRetry bool, now time.Time) (opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failedAt = now
	if b.isOpen {
		if b.isProbing {
			b.interval = min(2*b.interval, maxProbeInterval)
		}
		return false
	}
	if isRetry && slices.Contains(b.unanswered, key) {
		return false
	}
	if b.unanswered = append(b.unanswered, key); len(b.unanswered) < MaxUnanswered {
		return false
	}
	b.isOpen, b.openedAt, b.interval, b.probeAt = true, now, minProbeInterval, now.Add(minProbeInterval)
	return true
}

// Succeed notes that the platform responds, and reports whether that closes the breaker, and
// whether its opening was logged.
func (b *breaker) Succeed() (closes, isLogged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closes, isLogged = b.isOpen, b.isLogged
	b.unanswered, b.isOpen, b.isLogged = nil, false, false
	return closes, isLogged
}

// NoteLogged notes that the opening was logged.
func (b *breaker) NoteLogged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isLogged = b.isOpen
}

// isSlow reports whether the platform had no response lately, or an attempt takes long now.
func (b *breaker) isSlow() bool { return b != nil && (b.slow.Load() > 0 || !b.IsFresh()) }

// in has something done in a slot, which ends with it. The breaker may be nil.
func (b *breaker) in(slot *limiter.Slot, do func(ctx context.Context)) func(ctx context.Context) {
	return func(ctx context.Context) {
		var slowed atomic.Int64
		ctx = slot.Begin(ctx, func() {
			if b != nil {
				slowed.Add(1)
				b.slow.Add(1)
			}
		})
		defer func() {
			slot.End()
			if b != nil {
				b.slow.Add(-slowed.Load())
			}
		}()
		do(ctx)
	}
}

// maxBackoff bounds the time between two attempts: a platform that is back has all writes
// five minutes later, also from a process that has not seen it come back.
const maxBackoff = 5 * time.Minute

// Backoff is the time to the next attempt after so many failed attempts and one more:
// first, which doubles with each, up to five minutes. It varies by a fifth, so that not
// all come at once.
func Backoff(first time.Duration, failed int) time.Duration {
	wait := min(first<<min(failed, 20), maxBackoff)
	return wait + time.Duration((rand.Float64()-0.5)*0.4*float64(wait))
}
