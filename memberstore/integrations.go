package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/database"
)

// Integration is a caller of the members API whose key was made by a command.
type Integration struct {
	Site               string
	Name               string // unique in its site
	Mode               string
	DuplicateEmails    bool
	PlaceholderDomain  string
	SubscribeByDefault bool
	KeyHash            string // the SHA-256 of the key, hexadecimal; unique everywhere
	CreatedAt          time.Time
	RevokedAt          time.Time // zero while the key is good
}

// ErrIntegrationTaken means that the site has an integration of that name.
var ErrIntegrationTaken = errors.New("there is an integration of this name")

// Integrations keeps integrations. What is said of [Store] holds for it too.
type Integrations interface {
	// AddIntegration adds one. Errors: ErrIntegrationTaken, also if the one
	// that has the name is revoked.
	AddIntegration(ctx context.Context, i Integration) error

	// ListIntegrations returns those of a site by name, revoked ones too.
	ListIntegrations(ctx context.Context, site string) ([]Integration, error)

	// FindIntegration returns the one of a site whose key has a hash, if it is
	// not revoked. Errors: ErrNotFound.
	FindIntegration(ctx context.Context, site, keyHash string) (Integration, error)

	// RotateIntegration gives one another key, which is good even if it was
	// revoked. The key that it had is no longer. Errors: ErrNotFound.
	RotateIntegration(ctx context.Context, site, name, keyHash string) error

	// RevokeIntegration makes a key no longer good. Errors: ErrNotFound.
	RevokeIntegration(ctx context.Context, site, name string, at time.Time) error
}

const (
	integrationColumns = `site, name, mode, duplicate_emails, placeholder_domain, subscribe_by_default, key_hash, created_at, revoked_at`

	insertIntegration = `INSERT INTO integrations (` + integrationColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL)`
	listIntegrations  = `SELECT ` + integrationColumns + ` FROM integrations WHERE site = $1 ORDER BY name`
	findIntegration   = `SELECT ` + integrationColumns + ` FROM integrations WHERE site = $1 AND key_hash = $2 AND revoked_at IS NULL`
	rotateIntegration = `UPDATE integrations SET key_hash = $3, revoked_at = NULL WHERE site = $1 AND name = $2`
	revokeIntegration = `UPDATE integrations SET revoked_at = $3 WHERE site = $1 AND name = $2`
)

// AddIntegration implements [Integrations].
func (s *SQL) AddIntegration(ctx context.Context, i Integration) error {
	_, err := s.db.Write.ExecContext(ctx, insertIntegration, i.Site, i.Name, i.Mode, i.DuplicateEmails, i.PlaceholderDomain,
		i.SubscribeByDefault, i.KeyHash, i.CreatedAt.UnixMilli())
	if database.ViolatedUnique(err) {
		err = ErrIntegrationTaken
	}
	if err != nil {
		return fmt.Errorf("adding an integration: %w", err)
	}
	return nil
}

// ListIntegrations implements [Integrations].
func (s *SQL) ListIntegrations(ctx context.Context, site string) ([]Integration, error) {
	rows, err := s.db.Read.QueryContext(ctx, listIntegrations, site)
	if err != nil {
		return nil, fmt.Errorf("listing integrations: %w", err)
	}
	defer rows.Close()
	var list []Integration
	for rows.Next() {
		i, err := scanIntegration(rows)
		if err != nil {
			return nil, fmt.Errorf("listing integrations: %w", err)
		}
		list = append(list, i)
	}
	return list, rows.Err()
}

// FindIntegration implements [Integrations].
func (s *SQL) FindIntegration(ctx context.Context, site, keyHash string) (Integration, error) {
	i, err := scanIntegration(s.db.Read.QueryRowContext(ctx, findIntegration, site, keyHash))
	if err != nil {
		return Integration{}, fmt.Errorf("finding an integration: %w", err)
	}
	return i, nil
}

// RotateIntegration implements [Integrations].
func (s *SQL) RotateIntegration(ctx context.Context, site, name, keyHash string) error {
	return s.changeIntegration(ctx, rotateIntegration, site, name, keyHash)
}

// RevokeIntegration implements [Integrations].
func (s *SQL) RevokeIntegration(ctx context.Context, site, name string, at time.Time) error {
	return s.changeIntegration(ctx, revokeIntegration, site, name, at.UnixMilli())
}

func (s *SQL) changeIntegration(ctx context.Context, query, site, name string, value any) error {
	err := changeOne(s.db.Write.ExecContext(ctx, query, site, name, value))
	if errors.Is(err, ErrConflict) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("changing an integration: %w", err)
	}
	return nil
}

func scanIntegration(row interface{ Scan(...any) error }) (Integration, error) {
	var i Integration
	var created int64
	var revoked sql.NullInt64
	err := row.Scan(&i.Site, &i.Name, &i.Mode, &i.DuplicateEmails, &i.PlaceholderDomain, &i.SubscribeByDefault, &i.KeyHash, &created, &revoked)
	if errors.Is(err, sql.ErrNoRows) {
		return Integration{}, ErrNotFound
	}
	i.CreatedAt = time.UnixMilli(created).UTC()
	if revoked.Valid {
		i.RevokedAt = time.UnixMilli(revoked.Int64).UTC()
	}
	return i, err
}

var _ Integrations = (*SQL)(nil)
