package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Webhook is where the platform of a site sends its notices.
type Webhook struct {
	Site     string
	URL      string
	Previous string // the URL before, which is good until this one is registered
	Platform string // identifies where it is registered

	// SeenAt is up to when all that was changed on the platform was seen. A claim
	// of another webhook keeps it.
	SeenAt time.Time

	// ClaimedAt is when an edge began to register it, RegisteredAt when that
	// was done; zero before.
	ClaimedAt, RegisteredAt time.Time
}

// Webhooks keeps a webhook for each site. What is said of [Store] holds for it
// too.
type Webhooks interface {
	// FindWebhook returns the webhook of a site. Errors: ErrNotFound.
	FindWebhook(ctx context.Context, site string) (Webhook, error)

	// ClaimWebhook puts a webhook in place of the one of its site that has the
	// URL old, or of none if that is empty. Of several edges that try, one
	// succeeds. Errors: ErrConflict.
	ClaimWebhook(ctx context.Context, w Webhook, old string) error

	// WebhookSeen notes up to when all that was changed on the platform was seen.
	WebhookSeen(ctx context.Context, site string, upTo time.Time) error

	// WebhookRegistered notes that a webhook is registered. It does nothing if
	// there is another by now.
	WebhookRegistered(ctx context.Context, site, url string, now time.Time) error
}

const (
	findWebhook = `SELECT url, previous_url, platform, claimed_at, registered_at, seen_at FROM webhooks WHERE site = $1`
	addWebhook  = `INSERT INTO webhooks (site, url, previous_url, platform, claimed_at, registered_at, seen_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6) ON CONFLICT (site) DO NOTHING`
	claimWebhook = `UPDATE webhooks SET url = $2, previous_url = $3, platform = $4, claimed_at = $5, registered_at = 0
		WHERE site = $1 AND url = $6`
	webhookSeen       = `UPDATE webhooks SET seen_at = $2 WHERE site = $1`
	webhookRegistered = `UPDATE webhooks SET registered_at = $3, previous_url = '' WHERE site = $1 AND url = $2`
)

// FindWebhook implements [Webhooks].
func (s *SQL) FindWebhook(ctx context.Context, site string) (Webhook, error) {
	w := Webhook{Site: site}
	var claimed, registered, seen int64
	err := s.db.Read.QueryRowContext(ctx, findWebhook, site).Scan(&w.URL, &w.Previous, &w.Platform, &claimed, &registered, &seen)
	if errors.Is(err, sql.ErrNoRows) {
		return Webhook{}, ErrNotFound
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("finding a webhook: %w", err)
	}
	w.ClaimedAt, w.RegisteredAt, w.SeenAt = unmillis(claimed), unmillis(registered), unmillis(seen)
	return w, nil
}

// ClaimWebhook implements [Webhooks].
func (s *SQL) ClaimWebhook(ctx context.Context, w Webhook, old string) error {
	args := []any{w.Site, w.URL, w.Previous, w.Platform, millis(w.ClaimedAt)}
	query, last := addWebhook, any(millis(w.SeenAt))
	if old != "" {
		query, last = claimWebhook, old
	}
	if err := changeOne(s.db.Write.ExecContext(ctx, query, append(args, last)...)); err != nil {
		return fmt.Errorf("claiming a webhook: %w", err)
	}
	return nil
}

// WebhookSeen implements [Webhooks].
func (s *SQL) WebhookSeen(ctx context.Context, site string, upTo time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, webhookSeen, site, millis(upTo)); err != nil {
		return fmt.Errorf("noting which changes were seen: %w", err)
	}
	return nil
}

// WebhookRegistered implements [Webhooks].
func (s *SQL) WebhookRegistered(ctx context.Context, site, url string, now time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, webhookRegistered, site, url, millis(now)); err != nil {
		return fmt.Errorf("noting that a webhook is registered: %w", err)
	}
	return nil
}

var _ Webhooks = (*SQL)(nil)
