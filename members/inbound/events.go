package inbound

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/errcode"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// refreshInterval is how long after a failure a member is refreshed again. It doubles with each, up to
	// maxRefreshInterval. After refreshAttempts, some 20 minutes, all members are compared instead: the
	// platform may have invented the member.
	refreshInterval, maxRefreshInterval = 5 * time.Second, 5 * time.Minute
	refreshAttempts                     = 10

	// concurrency bounds the members of a site that are refreshed at once.
	concurrency = 4
)

// ErrGone means that the platform sends webhook events to an address that is no
// longer this site's, and should stop.
var ErrGone = errcode.New(errcode.Gone, "no webhook events are wanted at this address", "No webhook events are wanted at this address.")

// ErrTooMany means that no more webhook events can be kept.
var ErrTooMany = errcode.New(errcode.Busy, "too many webhook events at once", "There are too many webhook events at once.")

// WebhookURL builds the address of a site's webhook events, which ends with a token.
// Errors: ErrGone.
func (s *Sync) WebhookURL(ctx context.Context, site, token string) (string, error) {
	found, ok := s.find(site)
	if !ok || found.events() == nil {
		return "", ErrGone
	}
	w, err := s.Store.FindWebhook(ctx, site)
	if err != nil && !errors.Is(err, members.ErrNotFound) {
		return "", err
	}
	for _, url := range []string{w.URL, w.Previous} {
		if strings.HasSuffix(url, "/"+token) {
			return url, nil
		}
	}
	return "", ErrGone
}

// Receive takes a webhook event that was sent to one of a site's addresses, and
// has Run refresh the member that it is about, if it is about one. The function header
// returns the value of one of its headers. Errors: ErrGone, platform.ErrForged,
// platform.ErrMalformed, ErrTooMany.
func (s *Sync) Receive(site, url string, header func(name string) string, body []byte) error {
	found, ok := s.find(site)
	if !ok || found.events() == nil {
		return ErrGone
	}
	source := found.events()
	id, err := source.ReadEvent(url, header(source.SignatureHeader()), body, s.Now())
	if err != nil {
		return err
	}
	found.webhook.hasArrived.Store(true)
	if id == "" {
		return nil // it was a test
	}
	if !found.queue.add(id, time.Time{}) {
		return ErrTooMany
	}
	found.askRefresh()
	return nil
}

func (s *site) events() platform.EventSource {
	source, ok := s.Platform.(platform.EventSource)
	if !ok || s.Site.WebhookURL == "" {
		return nil
	}
	return source
}

// refreshDue refreshes the members that events were about, several at a time.
// Those that fail are kept for later.
func (s *site) refreshDue(ctx context.Context) (next, rest time.Duration) {
	var refreshes sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	for id, a := range s.queue.due(s.Now()) {
		slots <- struct{}{}
		if s.isOver.Load() {
			s.queue.addAgain(id, a) // for the site that is in place of this one
			<-slots
			continue
		}
		refreshes.Go(func() {
			defer func() { <-slots }()
			s.refreshEvent(ctx, id, a)
		})
	}
	refreshes.Wait()
	if s.isOver.Load() {
		s.askRefresh()
	}
	if s.queue.isEmpty() {
		return 0, 0
	}
	const least = time.Second // so that many that failed one after the other are one batch
	return max(s.queue.next().Sub(s.Now()), least), 0
}

func (s *site) refreshEvent(ctx context.Context, id string, a attempt) {
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout+2*s.Timeout)
	defer cancel()
	err := s.refresh(ctx, id)
	if err == nil {
		s.endSilence()
		if s.Responds != nil {
			s.Responds(s.name)
		}
		return
	}
	pause := min(refreshInterval<<a.failures, maxRefreshInterval)
	a.notBefore, a.failures = s.Now().Add(pause), a.failures+1
	if a.failures >= refreshAttempts || !s.queue.addAgain(id, a) {
		s.warnings.Warn(s.name, "gave up refreshing changed member, all are compared instead", zap.String("problem", members.ForLog(err)))
		s.CompareLater(s.name)
		return
	}
	if ctx.Err() == nil {
		s.warnings.Warn(s.name, "cannot refresh changed member", zap.String("problem", members.ForLog(err)))
	}
}
