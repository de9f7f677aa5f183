package inbound

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// registrationTTL is how long the platform is trusted to send webhook events
	// before the webhook is registered anew: somebody may have removed it.
	registrationTTL = 24 * time.Hour

	// claimTimeout is how long a process may take to register a webhook before
	// another does.
	claimTimeout = time.Minute

	// webhookInterval is how often the registration is looked at.
	webhookInterval = time.Minute

	// catchUpInterval is how often the platform is asked for changes of which no
	// event came.
	catchUpInterval = time.Hour
)

// checkWebhook has the platform send webhook events, and catches up on what was
// changed while it did not.
func (s *site) checkWebhook(ctx context.Context) (next, rest time.Duration) {
	if s.events() == nil {
		return 0, 0
	}
	err := s.register(ctx, s.events())
	if err == nil {
		err = s.catchUp(ctx)
	}
	if err != nil && ctx.Err() == nil {
		s.warnings.Warn("what is changed on the platform may be seen late", zap.String("problem", members.ForLog(err)))
	}
	return webhookInterval, 0
}

// register registers the webhook if that is due, and no other process does.
func (s *site) register(ctx context.Context, source platform.EventSource) error {
	now := s.Now()
	w, err := s.Store.FindWebhook(ctx, s.name)
	switch {
	case errors.Is(err, members.ErrNotFound):
		w.SeenAt = now // a site that is new has missed nothing
	case err != nil:
		return err
	case s.isMine(w, source) && now.Sub(w.RegisteredAt) < registrationTTL:
		return nil
	case w.RegisteredAt.IsZero() && s.isMine(w, source) && now.Sub(w.ClaimedAt) < claimTimeout:
		return nil // another process does it
	}
	old := w
	w = Webhook{
		Site: s.name, URL: s.WebhookURL + "/" + strings.ToLower(rand.Text()), Previous: old.URL,
		Platform: source.Identity(), ClaimedAt: now, SeenAt: old.SeenAt,
	}
	if old.RegisteredAt.IsZero() {
		w.Previous = old.Previous
	}
	if err := s.Store.ClaimWebhook(ctx, w, old.URL); err != nil {
		if errors.Is(err, members.ErrConflict) {
			err = nil // another process does it
		}
		return err
	}
	if err := source.Subscribe(ctx, w.URL); err != nil {
		return err
	}
	return s.Store.MarkWebhookRegistered(ctx, s.name, w.URL, now)
}

// isMine reports whether a webhook is registered where this process would.
func (s *site) isMine(w Webhook, source platform.EventSource) bool {
	return w.Platform == source.Identity() && strings.HasPrefix(w.URL, s.WebhookURL+"/")
}

// catchUp refreshes the members that were changed on the platform since this was
// last done, if that is due: when the process starts, and every hour.
func (s *site) catchUp(ctx context.Context) error {
	w, err := s.Store.FindWebhook(ctx, s.name)
	now := s.Now()
	if err != nil || w.RegisteredAt.IsZero() || !s.caughtUp.IsZero() && now.Sub(w.SeenAt) < catchUpInterval {
		return err
	}
	if err := s.catchUpSince(ctx, w.SeenAt); err != nil {
		return err
	}
	s.caughtUp = now
	return s.Store.MarkWebhookSeen(ctx, s.name, now)
}

// catchUpSince refreshes the members that were changed on the platform since a
// time.
func (s *site) catchUpSince(ctx context.Context, since time.Time) error {
	const skew = time.Minute // between the two clocks
	for at := startPaging(""); ; {
		page, _, err := s.Platform.List(ctx, at.after, since.Add(-skew))
		if err != nil || len(page) == 0 {
			return err
		}
		if err := at.next(page); err != nil {
			return err
		}
		for _, found := range page {
			isSame, err := s.isSame(ctx, found)
			if err != nil {
				return err
			}
			if isSame {
				continue
			}
			if err := s.refresh(ctx, found.ID); err != nil {
				return err
			}
		}
	}
}

// isSame reports whether the store has a member just as the platform.
func (s *site) isSame(ctx context.Context, found platform.Member) (bool, error) {
	r, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: found.ID})
	if errors.Is(err, members.ErrNotFound) {
		return false, nil
	}
	_, changed := r.Merge(found)
	return !changed, err
}
