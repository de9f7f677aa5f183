package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

const (
	findWebhook = `SELECT url, previous_url, platform, claimed_at, registered_at, seen_at FROM webhooks WHERE site = $1`
	addWebhook  = `INSERT INTO webhooks (site, url, previous_url, platform, claimed_at, registered_at, seen_at)
		VALUES ($1, $2, $3, $4, $5, 0, $6) ON CONFLICT (site) DO NOTHING`
	claimWebhook = `UPDATE webhooks SET url = $2, previous_url = $3, platform = $4, claimed_at = $5, registered_at = 0
		WHERE site = $1 AND url = $6`
	webhookSeen       = `UPDATE webhooks SET seen_at = $2 WHERE site = $1`
	webhookRegistered = `UPDATE webhooks SET registered_at = $3, previous_url = '' WHERE site = $1 AND url = $2`
)

func (s syncing) FindWebhook(ctx context.Context, site string) (inbound.Webhook, error) {
	w := inbound.Webhook{Site: site}
	err := s.db.Read.QueryRowContext(ctx, findWebhook, site).Scan(&w.URL, &w.Previous, &w.Platform,
		database.Time(&w.ClaimedAt), database.Time(&w.RegisteredAt), database.Time(&w.SeenAt))
	if errors.Is(err, sql.ErrNoRows) {
		return inbound.Webhook{}, members.ErrNotFound
	}
	return w, database.Wrap("finding a webhook", err)
}

func (s syncing) ClaimWebhook(ctx context.Context, w inbound.Webhook, old string) error {
	args := []any{w.Site, w.URL, w.Previous, w.Platform, database.Millis(w.ClaimedAt)}
	query, last := addWebhook, any(database.Millis(w.SeenAt))
	if old != "" {
		query, last = claimWebhook, old
	}
	err := changeOne(s.db.Write.ExecContext(ctx, query, append(args, last)...))
	return database.Wrap("claiming a webhook", err)
}

func (s syncing) MarkWebhookSeen(ctx context.Context, site string, upTo time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, webhookSeen, site, database.Millis(upTo))
	return database.Wrap("noting which changes were seen", err)
}

func (s syncing) MarkWebhookRegistered(ctx context.Context, site, url string, now time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, webhookRegistered, site, url, database.Millis(now))
	return database.Wrap("noting that a webhook is registered", err)
}

var _ inbound.Webhooks = (*SQL)(nil)
