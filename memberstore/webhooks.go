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

	// WebhookRegistered notes that a webhook is registered. It does nothing if
	// there is another by now.
	WebhookRegistered(ctx context.Context, site, url string, now time.Time) error
}

const (
	findWebhook = `SELECT url, previous_url, platform, claimed_at, registered_at FROM webhooks WHERE site = $1`
	addWebhook  = `INSERT INTO webhooks (site, url, previous_url, platform, claimed_at, registered_at)
		VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (site) DO NOTHING`
	claimWebhook = `UPDATE webhooks SET url = $2, previous_url = $3, platform = $4, claimed_at = $5, registered_at = 0
		WHERE site = $1 AND url = $6`
	webhookRegistered = `UPDATE webhooks SET registered_at = $3, previous_url = '' WHERE site = $1 AND url = $2`
)

// FindWebhook implements [Webhooks].
func (s *SQL) FindWebhook(ctx context.Context, site string) (Webhook, error) {
	w := Webhook{Site: site}
	var claimed, registered int64
	err := s.db.Read.QueryRowContext(ctx, findWebhook, site).Scan(&w.URL, &w.Previous, &w.Platform, &claimed, &registered)
	if errors.Is(err, sql.ErrNoRows) {
		return Webhook{}, ErrNotFound
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("finding a webhook: %w", err)
	}
	w.ClaimedAt, w.RegisteredAt = unmillis(claimed), unmillis(registered)
	return w, nil
}

// ClaimWebhook implements [Webhooks].
func (s *SQL) ClaimWebhook(ctx context.Context, w Webhook, old string) error {
	query, args := addWebhook, []any{w.Site, w.URL, w.Previous, w.Platform, millis(w.ClaimedAt)}
	if old != "" {
		query, args = claimWebhook, append(args, old)
	}
	if err := changeOne(s.db.Write.ExecContext(ctx, query, args...)); err != nil {
		return fmt.Errorf("claiming a webhook: %w", err)
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
