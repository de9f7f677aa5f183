package members

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"
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
	return key, i, s.Store.AddIntegration(ctx, i)
}

// Rotate gives an integration another key, and revokes the one before. Errors:
// ErrNotFound, those of the store.
func (s *KeyService) Rotate(ctx context.Context, site, name string) (key string, err error) {
	key, hash := newKey(name)
	return key, s.Store.RotateIntegration(ctx, site, name, hash)
}

// Revoke revokes the key of an integration. Errors: ErrNotFound, those of the store.
func (s *KeyService) Revoke(ctx context.Context, site, name string) error {
	return s.Store.RevokeIntegration(ctx, site, name, s.Now())
}

// Limit gives an integration another rate limit. Errors: ErrNotFound, those of the store.
func (s *KeyService) Limit(ctx context.Context, site, name string, limit Limit) error {
	return s.Store.LimitIntegration(ctx, site, name, limit)
}

// newKey makes a key for an integration. It says whose it is, so that one who finds it
// somewhere knows what to revoke.
func newKey(integration string) (string, KeyHash) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	key := "lg_" + integration + "_" + hex.EncodeToString(secret[:])
	return key, HashKey(key)
}
