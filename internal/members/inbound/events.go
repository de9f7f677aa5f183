package inbound

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// refreshes is the kind of work that refreshes members of whom webhook events have told. Its keys are the platform's
// IDs.
const refreshes = "refreshes"

const (
	// refreshAttempts is after how many failures, some 13 minutes, all members are compared instead of refreshing one: the
	// platform may have invented it.
	refreshAttempts = 10

	// maxEvents bounds the members of a site that are to be refreshed.
	maxEvents = 10_000
)

// handle has platforms polled, members of events refreshed, and all members compared.
func (s *Sync) handle(queue *work.Queue) {
	of := func(site string) any {
		if found, ok := s.find(site); ok && !found.isSilent.Load() {
			return found.Platform
		}
		return nil
	}
	there := func(site string) any {
		if found, ok := s.find(site); ok {
			return found.Platform
		}
		return nil
	}
	queue.Handle(work.Kind{Name: Polls, Timeout: pollTimeout, IsCheck: true, IsPoll: true, Table: s.polls, Platform: there, Do: s.pollDue})
	queue.Handle(work.Kind{Name: refreshes, Timeout: members.StoreTimeout + 2*s.Timeout, IsCheck: true, Platform: of, Do: s.refreshDue})
	queue.Handle(work.Kind{Name: comparisons, Timeout: compareTimeout, IsCheck: true, IsSerial: true, Most: maxComparisons, Platform: of, Do: s.compareDue})
}

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
// has Config.Work refresh the member that it is about, if it is about one. The function header
// returns the value of one of its headers. Errors: ErrGone, platform.ErrForged,
// platform.ErrMalformed, ErrTooMany, those of the store.
func (s *Sync) Receive(ctx context.Context, site, url string, header func(name string) string, body []byte) error {
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
	if strings.Contains(id, "\x00") { // PostgreSQL takes none
		return platform.ErrMalformed
	}
	isKept, err := s.Work.Check(ctx, site, refreshes, id, time.Time{}, maxEvents)
	if err == nil && !isKept {
		err = ErrTooMany
	}
	return err
}

func (s *site) events() platform.EventSource {
	source, ok := s.Platform.(platform.EventSource)
	if !ok || s.Site.WebhookURL == "" {
		return nil
	}
	return source
}

// refreshDue refreshes the member of a task. Its failures are nobody's fault but of the one member, or are found by counts.
func (s *Sync) refreshDue(ctx context.Context, t work.Task) work.Result {
	found, ok := s.find(t.Site)
	if !ok {
		return work.Result{Outcome: work.Again, IsUnasked: true}
	}
	ctx, cancel := found.whileThere(ctx)
	defer cancel()
	begin := s.Now()
	err := found.refresh(ctx, t.Key)
	found.judge(ctx, err, begin)
	switch {
	case err == nil:
		found.endSilence()
		s.Work.Heard(ctx, t.Site)
		return work.Result{Outcome: work.Done}
	case t.Attempts+1 >= refreshAttempts:
		s.warnings.Warn(t.Site, "gave up refreshing changed member, all are compared instead", zap.String("problem", members.ForLog(err)))
		if err := s.CompareLater(ctx, t.Site); err != nil {
			break
		}
		return work.Result{Outcome: work.Done, IsUnasked: true}
	case ctx.Err() == nil:
		s.warnings.Warn(t.Site, "cannot refresh changed member", zap.String("problem", members.ForLog(err)))
	}
	return work.Result{Outcome: work.Again, Reason: platform.ReasonOf(err), IsUnasked: true}
}
