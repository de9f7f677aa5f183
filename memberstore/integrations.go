package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

const (
	integrationColumns = `site, name, mode, duplicate_emails, placeholder_domain, subscribe_by_default, key_hash, created_at, revoked_at, last_used_at,
		limit_requests, limit_window, adopt, rotated_at`

	insertIntegration = `INSERT INTO integrations (site, name, mode, duplicate_emails, placeholder_domain, subscribe_by_default,
			key_hash, created_at, limit_requests, limit_window, adopt)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	listIntegrations  = `SELECT ` + integrationColumns + ` FROM integrations WHERE site = $1 ORDER BY name`
	findIntegration   = `SELECT ` + integrationColumns + ` FROM integrations WHERE site = $1 AND key_hash = $2 AND revoked_at IS NULL`
	rotateIntegration = `UPDATE integrations SET key_hash = $3, rotated_at = $4, revoked_at = NULL, last_used_at = NULL WHERE site = $1 AND name = $2`
	limitIntegration  = `UPDATE integrations SET limit_requests = $3, limit_window = $4 WHERE site = $1 AND name = $2`
	revokeIntegration = `UPDATE integrations SET revoked_at = $3 WHERE site = $1 AND name = $2`
	useIntegration    = `UPDATE integrations SET last_used_at = $4
		WHERE site = $1 AND name = $2 AND key_hash = $3 AND (last_used_at IS NULL OR last_used_at <= $5)`
)

func (s callers) AddIntegration(ctx context.Context, i members.Integration) error {
	_, err := s.db.Write.ExecContext(ctx, insertIntegration, i.Site, i.Name, i.Mode, i.DuplicateEmails, i.PlaceholderDomain,
		i.SubscribeByDefault, i.KeyHash.String(), i.CreatedAt.UnixMilli(), i.Limit.Requests, i.Limit.Window, i.Adopt)
	if database.ViolatedUnique(err) {
		err = members.ErrIntegrationTaken
	}
	return database.Wrap("adding an integration", err)
}

func (s callers) ListIntegrations(ctx context.Context, site string) ([]members.Integration, error) {
	list, err := database.List(ctx, s.db.Read, scanIntegration, listIntegrations, site)
	return list, database.Wrap("listing integrations", err)
}

func (s callers) FindIntegration(ctx context.Context, site string, key members.KeyHash) (members.Integration, error) {
	i, err := scanIntegration(s.db.Read.QueryRowContext(ctx, findIntegration, site, key.String()))
	return i, database.Wrap("finding an integration", err)
}

func (s callers) RotateIntegration(ctx context.Context, site, name string, key members.KeyHash, at time.Time) error {
	return s.changeIntegration(ctx, rotateIntegration, site, name, key.String(), at.UnixMilli())
}

func (s callers) RevokeIntegration(ctx context.Context, site, name string, at time.Time) error {
	return s.changeIntegration(ctx, revokeIntegration, site, name, at.UnixMilli())
}

func (s callers) LimitIntegration(ctx context.Context, site, name string, limit members.Limit) error {
	return s.changeIntegration(ctx, limitIntegration, site, name, limit.Requests, limit.Window)
}

func (s callers) UseIntegration(ctx context.Context, i members.Integration, at time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, useIntegration, i.Site, i.Name, i.KeyHash.String(), at.UnixMilli(), at.Add(-members.UseInterval).UnixMilli())
	return database.Wrap("keeping when an integration was used", err)
}

func (s callers) changeIntegration(ctx context.Context, query, site, name string, values ...any) error {
	err := changeOne(s.db.Write.ExecContext(ctx, query, append([]any{site, name}, values...)...))
	if errors.Is(err, members.ErrConflict) {
		err = members.ErrNotFound
	}
	return database.Wrap("changing an integration", err)
}

func scanIntegration(row database.Row) (members.Integration, error) {
	var i members.Integration
	var key string
	err := row.Scan(&i.Site, &i.Name, &i.Mode, &i.DuplicateEmails, &i.PlaceholderDomain, &i.SubscribeByDefault, &key,
		database.Time(&i.CreatedAt), database.Time(&i.RevokedAt), database.Time(&i.LastUsedAt),
		&i.Limit.Requests, &i.Limit.Window, &i.Adopt, database.Time(&i.RotatedAt))
	if errors.Is(err, sql.ErrNoRows) {
		return members.Integration{}, members.ErrNotFound
	}
	if err == nil {
		i.KeyHash, err = members.ParseKeyHash(key)
	}
	return i, err
}

var _ members.Integrations = (*SQL)(nil)
