package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file is the circuit breaker of each site's platform. While the platform does
// not answer, writes are queued without being tried, and retries are reduced to one
// probe at a time.

const (
	// maxSilent is how many attempts in a row may have no answer before the
	// breaker opens.
	maxSilent = 5

	// minProbePause is how long after the breaker has opened the first probe may
	// begin. The pause doubles with each that fails, up to maxProbePause.
	minProbePause = time.Second
	maxProbePause = time.Minute
)

// breaker is closed while the platform answers. The zero value is closed.
type breaker struct {
	mu        sync.Mutex
	silent    []string // GUIDs of the attempts in a row that had no answer
	isOpen    bool
	isLogged  bool // that it has opened
	isProbing bool
	pause     time.Duration // from one probe to the next
	probeAt   time.Time     // when the next probe may begin
}

// isFresh reports whether there is nothing to remember.
func (b *breaker) isFresh() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.isOpen && len(b.silent) == 0
}

func (b *breaker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.isOpen
}

// isProbeDue reports whether the breaker is open and a probe may begin.
func (b *breaker) isProbeDue(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isOpen && !b.isProbing && !now.Before(b.probeAt)
}

// begin reports whether retries may begin. If the breaker is open that is for one
// alone, until endProbe.
func (b *breaker) begin(now time.Time) (may, isProbe bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.isOpen {
		return true, false
	}
	if b.isProbing || now.Before(b.probeAt) {
		return false, false
	}
	b.isProbing = true
	return true, true
}

// endProbe lets the next probe begin after a pause.
func (b *breaker) endProbe(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isProbing, b.probeAt = false, now.Add(b.pause)
}

// probeNow lets the next probe begin at once.
func (b *breaker) probeNow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probeAt = time.Time{}
}

// fail notes that an attempt had no answer, and reports whether that opens the
// breaker. A record that is retried counts once: what Ghost says of one member must
// not hold up the others.
func (b *breaker) fail(guid string, isRetry bool, now time.Time) (opens bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOpen {
		if b.isProbing {
			b.pause = min(2*b.pause, maxProbePause)
		}
		return false
	}
	if isRetry && slices.Contains(b.silent, guid) {
		return false
	}
	if b.silent = append(b.silent, guid); len(b.silent) < maxSilent {
		return false
	}
	b.isOpen, b.pause, b.probeAt = true, minProbePause, now.Add(minProbePause)
	return true
}

// succeed notes that the platform answers, and reports whether that closes the
// breaker, and whether its opening was logged.
func (b *breaker) succeed() (closes, isLogged bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	closes, isLogged = b.isOpen, b.isLogged
	b.silent, b.isOpen, b.isLogged = nil, false, false
	return closes, isLogged
}

func (b *breaker) noteLogged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isLogged = b.isOpen
}

// heard is a platform for one attempt that remembers whether it answered.
type heard struct {
	platform.Platform
	answered, silent bool
}

// note takes the error of a call. A refusal is an answer.
func (h *heard) note(err error) {
	_, refused := errors.AsType[*platform.Refusal](err)
	if err == nil || refused || errors.Is(err, platform.ErrNotFound) {
		h.answered = true
		return
	}
	h.silent = true
}

// Create implements [platform.Platform].
func (h *heard) Create(ctx context.Context, m platform.Member) (platform.Member, error) {
	m, err := h.Platform.Create(ctx, m)
	h.note(err)
	return m, err
}

// Update implements [platform.Platform].
func (h *heard) Update(ctx context.Context, id string, c platform.Change) (platform.Member, error) {
	m, err := h.Platform.Update(ctx, id, c)
	h.note(err)
	return m, err
}

// Delete implements [platform.Platform].
func (h *heard) Delete(ctx context.Context, id string) error {
	err := h.Platform.Delete(ctx, id)
	h.note(err)
	return err
}

// Get implements [platform.Platform].
func (h *heard) Get(ctx context.Context, id string) (platform.Member, error) {
	m, err := h.Platform.Get(ctx, id)
	h.note(err)
	return m, err
}

// FindByEmail implements [platform.Platform].
func (h *heard) FindByEmail(ctx context.Context, email string) (platform.Member, error) {
	m, err := h.Platform.FindByEmail(ctx, email)
	h.note(err)
	return m, err
}

// judge tells the breaker whether the platform answered an attempt.
func (s *site) judge(ctx context.Context, a attempt, h *heard) {
	switch {
	case h.silent:
		const opened = "the platform does not answer, so writes are queued without being tried until it does"
		if s.breaker.fail(a.After.GUID, a.isRetry, s.Now()) && s.warnings.Warn(s.name, opened) {
			s.breaker.noteLogged()
		}
	case h.answered:
		if closes, isLogged := s.breaker.succeed(); closes {
			s.resume(ctx, isLogged)
		}
	}
}

// resume has all that is pending retried now that the platform answers.
func (s *site) resume(ctx context.Context, isLogged bool) {
	if isLogged {
		s.logger().Info("the platform answers again")
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	if _, err := s.Store.MakeDue(ctx, s.name); err != nil {
		s.logger().Error("pending members could not be made due", zap.Error(err)) // each comes later
	}
	s.more.Store(true)
	s.Wake()
}

// probe tries one pending record, due or not.
func (s *site) probe(ctx context.Context) error {
	defer func() { s.breaker.endProbe(s.Now()) }()
	slot, err := s.retries.Acquire(ctx, true)
	if err != nil {
		return err
	}
	defer slot.End()
	for _, until := range []time.Time{s.Now(), s.Now().Add(2 * maxBackoff)} {
		list, err := s.due(ctx, until, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		if err := s.retryServed(ctx, list[0].GUID, slot); !errors.Is(err, errNotServed) {
			return err
		}
		return nil
	}
	return nil
}
