package outbox

import (
	"context"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

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

// result is what the queue is told of an attempt. What a platform says of one member is no word about the platform, unless it
// takes none.
func (s *site) result(h *observed, outcome work.Outcome) work.Result {
	switch {
	case h.silent && (errors.Is(h.problem, platform.ErrKeyRejected) || s.Work.IsPaused(s.name)):
		s.Contacts.Note(s.name, h.problem)
	case h.answered && !h.silent:
		s.Contacts.Note(s.name, nil)
	}
	return work.Result{Outcome: outcome, IsUnanswered: h.silent, IsUnasked: !h.silent && !h.answered}
}
