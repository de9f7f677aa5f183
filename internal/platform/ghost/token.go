package ghost

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// tokenLife is how long a token is good; Ghost takes 5 minutes at most.
	tokenLife = 4 * time.Minute

	// tokenMargin is how much of that is left when a new one is made.
	tokenMargin = time.Minute
)

// tokens makes tokens for the Admin API, and keeps the last one while it is
// good.
type tokens struct {
	signer jose.Signer

	mu      sync.Mutex
	token   string
	expires time.Time
}

func newTokens(id string, key []byte) (*tokens, error) {
	options := new(jose.SignerOptions).WithType("JWT").WithHeader("kid", id)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, options)
	if err != nil {
		return nil, fmt.Errorf("making a signer from the admin_key: %w", err)
	}
	return &tokens{signer: signer}, nil
}

func (t *tokens) current() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Before(t.expires.Add(-tokenMargin)) {
		return t.token, nil
	}
	expires := now.Add(tokenLife)
	token, err := jwt.Signed(t.signer).Claims(jwt.Claims{
		Audience: jwt.Audience{"/admin/"},
		// A little earlier, for a Ghost whose clock is behind.
		IssuedAt: jwt.NewNumericDate(now.Add(-5 * time.Second)),
		Expiry:   jwt.NewNumericDate(expires),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	t.token, t.expires = token, expires
	return token, nil
}
