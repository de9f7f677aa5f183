package inbound

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
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
	// is maxCatchUp in time.
	catchUpTurn, maxCatchUpTime = 5 * time.Second, time.Minute
)

// checkWebhook has the platform send webhook events, and catches up on what was
// changed while it did not. It returns when it is to be called again.
func (s *site) checkWebhook(ctx context.Context, source platform.EventSource) time.Time {
	begin := s.Now()
	w := &s.webhook
	isDue := !begin.Before(w.next)
	if !isDue && (w.changed == nil || w.pause > 0) && begin.Before(w.catchUp) {
		return earlier(w.next, w.catchUp)
	}
	var isLeft bool
	var err error
	if isDue {
		err = s.register(ctx, source)
	}
	if err == nil && (w.changed != nil || !begin.Before(w.catchUp)) {
		isLeft, err = s.catchUp(ctx)
	}
	if err != nil {
		w.changes = nil
		if !s.isOver.Load() && !isEnding(ctx) {
			s.warnings.Warn(s.name, "cannot get changes from platform, they may be seen late", zap.String("problem", members.ForLog(err)))
		}
		pause := webhookInterval
		if s.Now().Sub(begin) >= silence {
			w.pause = min(max(2*w.pause, webhookInterval), catchUpInterval)
			pause = w.pause
		}
		w.next, w.catchUp = s.Now().Add(pause), s.Now().Add(pause)
		return w.next
	}
	if isLeft && ctx.Err() != nil { // it was cut off, and goes on where it was
		return s.Now().Add(webhookInterval)
	}
	if isLeft {
		return s.Now()
	}
	w.pause = 0
	return earlier(w.next, w.catchUp)
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
	if err := s.asking(ctx, func() error { return source.Subscribe(ctx, w.URL) }); err != nil {
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
	changed      *platform.Member // why, nil if it was time
	at           *paging
	pages        int
	took         time.Duration
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
	if changed := s.webhook.changed; changed != nil && !isMissed {
		if isMissed, err = s.isMissed(ctx, *changed); err != nil {
			return false, err
		}
	}
	if !isMissed && s.webhook.caughtUp && now.Sub(w.SeenAt) < catchUpInterval {
		s.webhook.changed, s.webhook.changes, s.webhook.catchUp = nil, nil, w.SeenAt.Add(catchUpInterval)
		return false, nil
	}
	if c == nil {
		c = &changes{began: now, since: w.SeenAt, changed: s.webhook.changed, at: startPaging("")}
	}
	c.isMissed = c.isMissed || isMissed
	if isLeft, err = s.catchUpOn(ctx, c); isLeft {
		s.webhook.changes, s.webhook.catchUp = c, now
		return true, nil // whatever it was cut off from
	}
	s.webhook.changes = nil
	if err != nil {
		return false, err
	}
	s.webhook.caughtUp, s.webhook.catchUp = true, c.began.Add(catchUpInterval)
	if s.webhook.changed == c.changed { // and not a later one
		s.webhook.changed = nil
	}
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
	begin := s.Now()
	defer func() { c.took += s.Now().Sub(begin) }()
	for ; c.pages < maxCatchUpPages; c.pages++ {
		if s.Now().Sub(begin) >= catchUpTurn {
			return true, nil
		}
		var page []platform.Member
		err := s.asking(ctx, func() (err error) {
			page, _, err = s.Platform.List(ctx, c.at.after, c.since.Add(-skew))
			return err
		})
		if err != nil || len(page) == 0 {
			return isCutOff(ctx), err
		}
		for _, found := range page {
			switch took := s.Now().Sub(begin); {
			case c.refreshed > maxCatchUp || c.took+took >= maxCatchUpTime:
				return false, s.CompareSoon(ctx, s.name)
			case took >= pollTimeout/2: // members of the page were refreshed one by one
				return true, nil
			}
			if err := s.refreshChanged(ctx, c, found); err != nil {
				return isCutOff(ctx), err
			}
			if err := c.at.to(found.ID); err != nil {
				return false, err
			}
		}
	}
	return false, s.CompareSoon(ctx, s.name)
}

// refreshChanged refreshes a member that is another in the store.
func (s *site) refreshChanged(ctx context.Context, c *changes, found platform.Member) error {
	if s.isOver.Load() {
		return errOver
	}
	isSame, err := s.isSame(ctx, found)
	if err != nil || isSame {
		return err
	}
	c.refreshed++
	return s.asking(ctx, func() error { return s.refresh(ctx, found.ID) })
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
