package inbound

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
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

	// webhookInterval is how long after a failure the registration is looked at
	// again, and also if another process registers the webhook.
	webhookInterval = time.Minute

	// catchUpInterval is how often the platform is asked for changes of which no
	// event came.
	catchUpInterval = time.Hour

	// maxCatchUp bounds the members that are caught up on one by one, and maxCatchUpPages the list of those that
	// may have to be. If there are more, all are compared, which takes turns with the other sites.
	maxCatchUp, maxCatchUpPages = 1000, 100
)

// checkWebhook has the platform send webhook events, and catches up on what was
// changed while it did not.
func (s *site) checkWebhook(ctx context.Context) (next, rest time.Duration) {
	source := s.events()
	if source == nil || s.isSilent.Load() { // or until the platform responds
		return 0, 0
	}
	var err error
	if !s.Now().Before(s.webhook.next) {
		err = s.callIn(ctx, s.polls, func(ctx context.Context) error { return s.register(ctx, source) })
	}
	if err == nil && !s.Now().Before(s.webhook.catchUp) {
		err = s.catchUp(ctx)
	}
	if err != nil {
		if !s.isOver.Load() && !isEnding(ctx) {
			s.warnings.Warn(s.name, "cannot get changes from platform, they may be seen late", zap.String("problem", members.ForLog(err)))
		}
		return webhookInterval, 0
	}
	return max(first(s.webhook.next, s.webhook.catchUp).Sub(s.Now()), time.Second), 0
}

// register registers the webhook if that is due, and no other process does.
func (s *site) register(ctx context.Context, source platform.EventSource) error {
	now := s.Now()
	s.webhook.next = now.Add(webhookInterval)
	ttl := registrationTTL - time.Duration(s.spread*float64(registrationTTL)/10)
	w, err := s.Store.FindWebhook(ctx, s.name)
	switch {
	case errors.Is(err, members.ErrNotFound):
		w.SeenAt = now // a site that is new has missed nothing
	case err != nil:
		return err
	case s.isMine(w, source) && now.Sub(w.RegisteredAt) < ttl:
		s.webhook.next = w.RegisteredAt.Add(ttl)
		return nil
	case w.RegisteredAt.IsZero() && s.isMine(w, source) && now.Sub(w.ClaimedAt) < claimTimeout:
		return nil // another process does it
	}
	old := w
	w = Webhook{
		Site: s.name, URL: s.Site.WebhookURL + "/" + strings.ToLower(rand.Text()), Previous: old.URL,
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
	if err := s.Store.MarkWebhookRegistered(ctx, s.name, w.URL, now); err != nil {
		return err
	}
	s.webhook.next = now.Add(ttl)
	return nil
}

// isMine reports whether a webhook is registered where this process would.
func (s *site) isMine(w Webhook, source platform.EventSource) bool {
	return w.Platform == source.Identity() && strings.HasPrefix(w.URL, s.Site.WebhookURL+"/")
}

// catchUp refreshes the members that were changed on the platform since this was
// last done, if that is due: when the site was added, unless another process has done it
// since, and every hour.
func (s *site) catchUp(ctx context.Context) error {
	now := s.Now()
	s.webhook.catchUp = now.Add(webhookInterval)
	w, err := s.Store.FindWebhook(ctx, s.name)
	if err != nil || w.RegisteredAt.IsZero() {
		return err
	}
	if source := s.events(); source != nil && !s.isMine(w, source) {
		s.webhook.next = now // another process has registered another one
	}
	if (s.webhook.caughtUp || s.isPolledElsewhere.Load()) && now.Sub(w.SeenAt) < catchUpInterval {
		s.webhook.catchUp = w.SeenAt.Add(catchUpInterval)
		return nil
	}
	if err := s.catchUpSince(ctx, w.SeenAt); err != nil {
		return err
	}
	s.webhook.caughtUp, s.webhook.catchUp = true, now.Add(catchUpInterval)
	return s.Store.MarkWebhookSeen(ctx, s.name, now)
}

// catchUpSince refreshes the members that were changed on the platform since a
// time, or asks for a comparison if they are too many.
func (s *site) catchUpSince(ctx context.Context, since time.Time) error {
	const skew = time.Minute // between the two clocks
	refreshed, at := 0, startPaging("")
	for range maxCatchUpPages {
		var page []platform.Member
		err := s.callIn(ctx, s.polls, func(ctx context.Context) (err error) {
			page, _, err = s.Platform.List(ctx, at.after, since.Add(-skew))
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		if err := at.next(page); err != nil {
			return err
		}
		for part := range slices.Chunk(page, refreshesPerSlot) {
			err := s.call(ctx, func(ctx context.Context) error {
				n, err := s.refreshChanged(ctx, part)
				refreshed += n
				return err
			})
			if err != nil {
				return err
			}
		}
		if refreshed > maxCatchUp {
			break
		}
	}
	return s.CompareSoon(ctx, s.name)
}

// refreshesPerSlot is how many members are refreshed before the next slot is waited
// for, so that none takes long.
const refreshesPerSlot = 20

// refreshChanged refreshes members that are others in the store, and counts them.
func (s *site) refreshChanged(ctx context.Context, list []platform.Member) (refreshed int, err error) {
	for _, found := range list {
		if s.isOver.Load() {
			return refreshed, errOver
		}
		isSame, err := s.isSame(ctx, found)
		if err != nil {
			return refreshed, err
		}
		if isSame {
			continue
		}
		if err := s.refresh(ctx, found.ID); err != nil {
			return refreshed, err
		}
		refreshed++
	}
	return refreshed, nil
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
