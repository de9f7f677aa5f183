package outbox

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file tells the circuit breaker of each site's platform what attempts became of. While
// it is open, writes are queued without being tried.

// observed is a platform for one attempt that remembers whether it responded.
type observed struct {
	platform.Platform
	answered, silent bool

	problem error // of the last call that had no response
}

// note takes the error of a call. A refusal is a response.
func (h *observed) note(err error) {
	_, refused := errors.AsType[*platform.Refusal](err)
	if err == nil || refused || errors.Is(err, platform.ErrNotFound) {
		h.answered = true
		return
	}
	h.silent, h.problem = true, err
}

func (h *observed) Create(ctx context.Context, m platform.Member) (platform.Member, error) {
	m, err := h.Platform.Create(ctx, m)
	h.note(err)
	return m, err
}

func (h *observed) Update(ctx context.Context, id string, c platform.Change) (platform.Member, error) {
	m, err := h.Platform.Update(ctx, id, c)
	h.note(err)
	return m, err
}

func (h *observed) Delete(ctx context.Context, id string) error {
	err := h.Platform.Delete(ctx, id)
	h.note(err)
	return err
}

func (h *observed) Get(ctx context.Context, id string) (platform.Member, error) {
	m, err := h.Platform.Get(ctx, id)
	h.note(err)
	return m, err
}

func (h *observed) FindByEmail(ctx context.Context, email string) (platform.Member, error) {
	m, err := h.Platform.FindByEmail(ctx, email)
	h.note(err)
	return m, err
}

// judge tells the breaker whether the platform responded to an attempt.
func (s *site) judge(ctx context.Context, a attempt, h *observed) {
	switch {
	case h.silent:
		const opened = "the platform does not answer, so writes are queued without being tried until it does"
		if s.breaker.Fail(a.After.GUID, a.isRetry, s.Now()) && s.warnings.Warn(s.name, opened) {
			s.breaker.NoteLogged()
		}
		// What Ghost says of one member is no word about the platform, until the breaker opens.
		if errors.Is(h.problem, platform.ErrKeyRejected) || !s.breaker.IsClosed() {
			s.Contacts.Note(s.name, h.problem)
		}
	case h.answered:
		s.Contacts.Note(s.name, nil)
		if closes, isLogged := s.breaker.Succeed(); closes {
			s.resume(ctx, isLogged)
		}
	}
}

// resume has all that is pending retried now that the platform responds.
func (s *site) resume(ctx context.Context, isLogged bool) {
	if isLogged {
		s.logger().Info("the platform responds again")
	}
	ctx, cancel := members.Detached(ctx)
	defer cancel()
	if _, err := s.Store.MakeDue(ctx, s.name); err != nil {
		s.logger().Error("cannot make pending members due", zap.Error(err)) // each comes later
	}
	s.more.Store(true)
	s.Wake()
}
