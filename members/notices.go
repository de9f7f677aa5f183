package members

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// subscriptionLife is how long the platform is trusted to send notices
	// before it is asked to anew: somebody may have removed the webhook.
	subscriptionLife = 24 * time.Hour

	// claimTime is how long an edge may take to register a webhook before
	// another does.
	claimTime = time.Minute

	// subscribePause is how long after a failure, and how often at all, it is
	// looked whether notices are sent.
	subscribePause = time.Minute

	// makeUpPause is how often it is looked for changes that no notice came of.
	makeUpPause = time.Hour

	// maxNoticed bounds how many members are remembered to be refreshed.
	maxNoticed = 10_000

	// refreshPause is how long after a failure a member is refreshed again.
	refreshPause = 5 * time.Second

	// lastWords bounds how long what was noticed is worked off when Run ends.
	lastWords = 2 * time.Second
)

// ErrGone means that the platform sends notices to an address that is no longer
// this site's, and should stop.
var ErrGone = errors.New("no notices are wanted at this address")

// ErrTooMany means that more was noticed than can be remembered.
var ErrTooMany = errors.New("too many notices at once")

// NoticeURLOf returns the address of this site's notices that has a token at its
// end. Errors: ErrGone.
func (s *Service) NoticeURLOf(ctx context.Context, token string) (string, error) {
	if _, ok := s.Platform.(platform.Notifier); !ok || s.NoticeURL == "" {
		return "", ErrGone
	}
	w, err := s.Webhooks.FindWebhook(ctx, s.Site)
	if err != nil && !errors.Is(err, memberstore.ErrNotFound) {
		return "", err
	}
	for _, url := range []string{w.URL, w.Previous} {
		if strings.HasSuffix(url, "/"+token) {
			return url, nil
		}
	}
	return "", ErrGone
}

// Notice takes a notice of the platform's that was sent to one of this site's
// addresses, and has the member that it is about refreshed by Run. Errors:
// ErrGone, platform.ErrForged, ErrTooMany.
func (s *Service) Notice(url, signature string, body []byte) error {
	notifier, ok := s.Platform.(platform.Notifier)
	if !ok {
		return ErrGone
	}
	id, err := notifier.ReadNotice(url, signature, body, s.Now())
	if err != nil {
		return err
	}
	if !s.noticed.add(id, time.Time{}) {
		return ErrTooMany
	}
	return nil
}

// noticed holds the members to be refreshed. A notice is no more than a hint:
// several of one member are one.
type noticed struct {
	mu   *sync.Mutex
	ids  map[string]time.Time // of the platform's → not before
	wake chan struct{}
}

func newNoticed() noticed {
	return noticed{new(sync.Mutex), make(map[string]time.Time), make(chan struct{}, 1)}
}

func (n noticed) add(id string, notBefore time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ids) >= maxNoticed {
		return false
	}
	n.ids[id] = notBefore
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return true
}

// take returns the members that are due.
func (n noticed) take(now time.Time) (ids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, notBefore := range n.ids {
		if !notBefore.After(now) {
			ids = append(ids, id)
			delete(n.ids, id)
		}
	}
	return ids
}

// watch refreshes what is noticed until ctx is done.
func (s *Service) watch(ctx context.Context) {
	ticker := time.NewTicker(refreshPause)
	defer ticker.Stop()
	for {
		s.refresh(ctx, s.noticed.take(s.Now()))
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
			defer cancel()
			s.refresh(ctx, s.noticed.take(s.Now()))
			return
		case <-s.noticed.wake:
		case <-ticker.C:
		}
	}
}

// refresh refreshes members, several at a time. Those that fail are noticed
// again.
func (s *Service) refresh(ctx context.Context, ids []string) {
	each(ids, func(id string) {
		ctx, cancel := context.WithTimeout(ctx, storeTime+2*s.Timeout)
		defer cancel()
		err := s.Refresh(ctx, id)
		if err == nil {
			return
		}
		s.noticed.add(id, s.Now().Add(refreshPause))
		if ctx.Err() == nil {
			s.warnings.Warn("a member that was changed on the platform could not be refreshed", zap.String("problem", kind(err)))
		}
	})
}

// listen has the platform send notices, until ctx is done, and catches up on
// what was changed while it did not.
func (s *Service) listen(ctx context.Context) {
	notifier, ok := s.Platform.(platform.Notifier)
	if !ok || s.NoticeURL == "" {
		return
	}
	for {
		err := s.subscribe(ctx, notifier)
		if err == nil {
			err = s.makeUp(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.warnings.Warn("what is changed on the platform may be seen late", zap.String("problem", kind(err)))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(subscribePause):
		}
	}
}

// subscribe sees to it that the platform sends notices.
func (s *Service) subscribe(ctx context.Context, notifier platform.Notifier) error {
	now := s.Now()
	w, err := s.Webhooks.FindWebhook(ctx, s.Site)
	switch {
	case errors.Is(err, memberstore.ErrNotFound):
		w.SeenAt = now // a site that is new has missed nothing
	case err != nil:
		return err
	case s.isMine(w) && now.Sub(w.RegisteredAt) < subscriptionLife:
		return nil
	case w.RegisteredAt.IsZero() && s.isMine(w) && now.Sub(w.ClaimedAt) < claimTime:
		return nil // another edge is at it
	}
	old := w
	w = memberstore.Webhook{
		Site: s.Site, URL: s.NoticeURL + "/" + strings.ToLower(rand.Text()), Previous: old.URL,
		Platform: notifier.Identity(), ClaimedAt: now, SeenAt: old.SeenAt,
	}
	if old.RegisteredAt.IsZero() {
		w.Previous = old.Previous
	}
	if err := s.Webhooks.ClaimWebhook(ctx, w, old.URL); err != nil {
		if errors.Is(err, memberstore.ErrConflict) {
			err = nil // another edge is at it
		}
		return err
	}
	if err := notifier.Subscribe(ctx, w.URL); err != nil {
		return err
	}
	return s.Webhooks.WebhookRegistered(ctx, s.Site, w.URL, now)
}

// makeUp refreshes what was changed on the platform while no notices came, or
// came in vain: since the last time that this was done, when the service starts,
// and then from time to time.
func (s *Service) makeUp(ctx context.Context) error {
	w, err := s.Webhooks.FindWebhook(ctx, s.Site)
	now := s.Now()
	if err != nil || w.RegisteredAt.IsZero() || !s.madeUp.IsZero() && now.Sub(w.SeenAt) < makeUpPause {
		return err
	}
	if err := s.catchUpSince(ctx, w.SeenAt); err != nil {
		return err
	}
	s.madeUp = now
	return s.Webhooks.WebhookSeen(ctx, s.Site, now)
}

// isMine reports whether a webhook is registered where this service would.
func (s *Service) isMine(w memberstore.Webhook) bool {
	notifier, ok := s.Platform.(platform.Notifier)
	return ok && w.Platform == notifier.Identity() && strings.HasPrefix(w.URL, s.NoticeURL+"/")
}

// catchUpSince refreshes the members that were changed on the platform since a
// time.
func (s *Service) catchUpSince(ctx context.Context, since time.Time) error {
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
			if known, err := s.knows(ctx, found); err != nil {
				return err
			} else if !known {
				if err := s.Refresh(ctx, found.ID); err != nil {
					return err
				}
			}
		}
	}
}

// knows reports whether the store has a member just as the platform.
func (s *Service) knows(ctx context.Context, found platform.Member) (bool, error) {
	m, err := s.Store.Find(ctx, memberstore.Key{Site: s.Site, PlatformID: found.ID})
	if errors.Is(err, memberstore.ErrNotFound) {
		return false, nil
	}
	_, changed := merge(m, found)
	return !changed, err
}
