package members

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
)

// KeyService makes, rotates, limits and revokes the keys of integrations. A key is returned once,
// and only its hash is kept.
type KeyService struct {
	Store Integrations

	// Now is the clock.
	Now func() time.Time
}

// Add adds an integration, with a new key. Errors: ErrIntegrationTaken, those of the store.
func (s *KeyService) Add(ctx context.Context, i Integration) (key string, added Integration, err error) {
	key, i.KeyHash = newKey(i.Name)
	i.CreatedAt = s.Now()
	err = s.Store.AddIntegration(ctx, i)
	return key, i, noted(ctx, err, i.Site, i.Name, "added")
}

// Rotate gives an integration another key, and revokes the one before. Errors:
// ErrNotFound, those of the store.
func (s *KeyService) Rotate(ctx context.Context, site, name string) (key string, err error) {
	key, hash := newKey(name)
	err = s.Store.RotateIntegration(ctx, site, name, hash, s.Now())
	return key, noted(ctx, err, site, name, "rotated")
}

// Revoke revokes the key of an integration. Errors: ErrNotFound, those of the store.
func (s *KeyService) Revoke(ctx context.Context, site, name string) error {
	err := s.Store.RevokeIntegration(ctx, site, name, s.Now())
	return noted(ctx, err, site, name, "revoked")
}

// Limit gives an integration another rate limit. Errors: ErrNotFound, those of the store.
func (s *KeyService) Limit(ctx context.Context, site, name string, limit Limit) error {
	err := s.Store.LimitIntegration(ctx, site, name, limit)
	return noted(ctx, err, site, name, "limited")
}

// noted notes a change of an integration in the audit log, unless it failed.
func noted(ctx context.Context, err error, site, name, action string) error {
	if err == nil {
		audit.Note(ctx, site, "integration", name, action)
	}
	return err
}

// newKey makes a key for an integration. It says whose it is, so that one who finds it
// somewhere knows what to revoke.
func newKey(integration string) (string, KeyHash) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	key := "lg_" + integration + "_" + hex.EncodeToString(secret[:])
	return key, HashKey(key)
}
