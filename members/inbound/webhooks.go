package inbound

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
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
	// again, and also if another process registers the webhook. After failures for which
	// the platform took longer than silence it doubles, up to catchUpInterval: they
	// keep slots from others.
	webhookInterval = time.Minute

	// catchUpInterval is how often the platform is asked for changes of which no
	// event came.
	catchUpInterval = time.Hour

	// maxCatchUp bounds the members that are caught up on one by one, and maxCatchUpPages the list of those that
	// may have to be. If there are more, all are compared, which takes turns with the other sites.
	maxCatchUp, maxCatchUpPages = 1000, 100

	// catchUpTurn is how long the platform is asked before other sites have their turn, and maxCatchUpTime
	// is maxCatchUp in time. Waiting for slots does not count: it is longest when comparisons are slow,
	// which would then be more.
	catchUpTurn, maxCatchUpTime = 5 * time.Second, time.Minute
)

// checkWebhook has the platform send webhook events, and catches up on what was
// changed while it did not.
func (s *site) checkWebhook(ctx context.Context) (next, rest time.Duration) {
	source := s.events()
	if source == nil || s.isSilent.Load() { // or until the platform responds
		return 0, 0
	}
	if s.webhook.changes == nil {
		s.webhook.took = 0
	}
	s.webhook.until = s.webhook.took + catchUpTurn
	var isLeft bool
	var err error
	if !s.Now().Before(s.webhook.next) {
		err = s.timed(ctx, s.polls, func(ctx context.Context) error { return s.register(ctx, source) })
	}
	if err == nil && (s.webhook.changed.Load() != nil || !s.Now().Before(s.webhook.catchUp)) {
		isLeft, err = s.catchUp(ctx)
	}
	if err != nil {
		if !s.isOver.Load() && !isEnding(ctx) {
			s.warnings.Warn(s.name, "cannot get changes from platform, they may be seen late", zap.String("problem", members.ForLog(err)))
		}
		return s.webhook.retry()
	}
	if isLeft {
		return time.Millisecond, 0
	}
	s.webhook.pause = 0
	return max(first(s.webhook.next, s.webhook.catchUp).Sub(s.Now()), time.Second), 0
}

// retry says when what has failed is tried again.
func (r *registered) retry() (next, rest time.Duration) {
	if r.took < silence {
		return webhookInterval, 0
	}
	r.pause = min(max(2*r.pause, webhookInterval), catchUpInterval)
	return r.pause, r.pause // whatever the platform responds to meanwhile
}

// timed is callIn, and counts the time that the call takes.
func (s *site) timed(ctx context.Context, slots *limiter.Bulkhead, do func(context.Context) error) error {
	return s.callIn(ctx, slots, func(ctx context.Context) error {
		begin := s.Now()
		defer func() { s.webhook.took += s.Now().Sub(begin) }()
		return do(ctx)
	})
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

// changes is a look for changes that is under way.
type changes struct {
	began, since time.Time
	at           *paging
	pages        int
	refreshed    int  // members
	isMissed     bool // a count has seen one of which no event seems to have come
}

// catchUp refreshes the members that were changed on the platform since this was
// last done, if that is due. It is due every hour, when the site was added, and whenever a count has seen a change of which no event
// came. isLeft means that its turn ended before it did.
func (s *site) catchUp(ctx context.Context) (isLeft bool, err error) {
	now := s.Now()
	s.webhook.catchUp = now.Add(webhookInterval)
	w, err := s.Store.FindWebhook(ctx, s.name)
	if err != nil || w.RegisteredAt.IsZero() {
		return false, err
	}
	if source := s.events(); source != nil && !s.isMine(w, source) {
		s.webhook.next = now // another process has registered another one
	}
	c := s.webhook.changes
	isMissed := c != nil && c.isMissed
	if changed := s.webhook.changed.Swap(nil); changed != nil && !isMissed {
		if isMissed, err = s.isMissed(ctx, *changed); err != nil {
			s.webhook.changed.CompareAndSwap(nil, changed)
			return false, err
		}
	}
	if !isMissed && s.webhook.caughtUp && now.Sub(w.SeenAt) < catchUpInterval {
		s.webhook.changes, s.webhook.catchUp = nil, w.SeenAt.Add(catchUpInterval)
		return false, nil
	}
	if c == nil {
		c = &changes{began: now, since: w.SeenAt, at: startPaging("")}
	}
	c.isMissed = c.isMissed || isMissed
	if isLeft, err = s.catchUpOn(ctx, c); isLeft {
		s.webhook.changes, s.webhook.catchUp = c, now
		return true, nil
	}
	s.webhook.changes = nil
	if err != nil {
		return false, err
	}
	s.webhook.caughtUp, s.webhook.catchUp = true, c.began.Add(catchUpInterval)
	s.noteMissed(c)
	return false, s.Store.MarkWebhookSeen(ctx, s.name, c.began)
}

// isMissed reports whether the platform may send no event of a change: none has come yet, or what is kept is not as the
// platform has it.
func (s *site) isMissed(ctx context.Context, changed platform.Member) (bool, error) {
	if !s.webhook.hasArrived.Load() {
		return true, nil
	}
	isSame, err := s.isSame(ctx, changed)
	return !isSame, err
}

// noteMissed warns if the platform sends no events at all. Of a single change the event may still be on its way.
func (s *site) noteMissed(c *changes) {
	if s.webhook.hasArrived.Load() || !c.isMissed || c.refreshed == 0 {
		return
	}
	if s.webhook.missed++; s.webhook.missed > 1 {
		now := s.Now()
		s.webhook.unheard.CompareAndSwap(nil, &now)
		s.warnings.Warn(s.name, "the platform sends no webhook events of its changes, so it is asked for them every minute; the doctor says why", zap.String("webhooks", s.Site.WebhookURL))
	}
}

// Unheard lists the sites whose platforms send no events to this process, and since when that is known.
func (s *Sync) Unheard() map[string]time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	unheard := make(map[string]time.Time)
	for name, site := range s.sites {
		if since := site.webhook.unheard.Load(); since != nil && !site.webhook.hasArrived.Load() {
			unheard[name] = *since
		}
	}
	return unheard
}

// catchUpOn refreshes the members that were changed, until it is done or its turn ends. It asks for
// a comparison if they are too many.
func (s *site) catchUpOn(ctx context.Context, c *changes) (isLeft bool, err error) {
	const skew = time.Minute // between the two clocks
	for ; c.pages < maxCatchUpPages; c.pages++ {
		if s.webhook.took >= s.webhook.until {
			return true, nil
		}
		var page []platform.Member
		err := s.timed(ctx, s.polls, func(ctx context.Context) (err error) {
			page, _, err = s.Platform.List(ctx, c.at.after, c.since.Add(-skew))
			return err
		})
		if err != nil || len(page) == 0 {
			return false, err
		}
		if err := c.at.next(page); err != nil {
			return false, err
		}
		for part := range slices.Chunk(page, refreshesPerSlot) {
			err := s.timed(ctx, s.calls, func(ctx context.Context) error {
				n, err := s.refreshChanged(ctx, part)
				c.refreshed += n
				return err
			})
			if err != nil {
				return false, err
			}
			if c.refreshed > maxCatchUp || s.webhook.took >= maxCatchUpTime {
				return false, s.CompareSoon(ctx, s.name)
			}
		}
	}
	return false, s.CompareSoon(ctx, s.name)
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
