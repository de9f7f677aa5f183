package members

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Mode is how an integration identifies members (docs/members_api.md).
type Mode string

// The modes.
const (
	EmailMode    Mode = "email"
	CustomIDMode Mode = "custom_id"
)

// Integration is a caller of the members API.
type Integration struct {
	Site string
	Name string // unique in its site
	Mode Mode

	// DuplicateEmails lets several members of an integration in Custom ID mode
	// share an email: all but the first are kept under a placeholder address at
	// PlaceholderDomain.
	DuplicateEmails   bool
	PlaceholderDomain string

	// Adopt lets a create of an integration in Custom ID mode give its MemberID to a member who has the
	// email already, and has none of the integration yet.
	Adopt bool

	// SubscribeByDefault is what is_subscribed is when a new member's is left
	// out.
	SubscribeByDefault bool

	// Limit is the rate limit of the integration's key. The zero Limit is the one that all
	// keys have.
	Limit Limit

	// KeyHash is that of the integration's key. It is zero for an integration of
	// the configuration whose key is in the store.
	KeyHash KeyHash

	// CreatedAt, RotatedAt and RevokedAt are those of a key in the store. RotatedAt is zero
	// until the key was rotated, RevokedAt while it is valid.
	CreatedAt, RotatedAt, RevokedAt time.Time

	// LastUsedAt is when a key in the store was used last, up to 10 minutes early. It is
	// zero if it never was.
	LastUsedAt time.Time
}

// Limit is a rate limit: at most so many requests in any span of the window's length.
type Limit struct {
	Requests int
	Window   time.Duration
}

// ShortWindow writes the window as people do: 1m, not 1m0s.
func (l Limit) ShortWindow() string {
	text := l.Window.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// KeyHash is the SHA-256 of an integration key. A key itself is never kept.
type KeyHash [sha256.Size]byte

// HashKey is all that the store has of a key.
func HashKey(key string) KeyHash { return sha256.Sum256([]byte(key)) }

// String is hexadecimal.
func (h KeyHash) String() string { return hex.EncodeToString(h[:]) }

// ParseKeyHash undoes String.
func ParseKeyHash(text string) (h KeyHash, err error) {
	if len(text) != hex.EncodedLen(len(h)) {
		return KeyHash{}, fmt.Errorf("a key's hash has %d digits, not %d", hex.EncodedLen(len(h)), len(text))
	}
	_, err = hex.Decode(h[:], []byte(text))
	return h, err
}

// ErrIntegrationTaken means that the site has an integration of that name.
var ErrIntegrationTaken = errors.New("there is an integration of this name")

// Integrations keeps integrations whose keys were made by a command. What is said
// of [Store] holds for it too.
type Integrations interface {
	// AddIntegration adds one. Errors: ErrIntegrationTaken, also if the one that
	// has the name is revoked.
	AddIntegration(ctx context.Context, i Integration) error

	// ListIntegrations lists those of a site by name, revoked ones too.
	ListIntegrations(ctx context.Context, site string) ([]Integration, error)

	// FindIntegration finds the one of a site by the hash of its key, if it is not
	// revoked. Errors: ErrNotFound.
	FindIntegration(ctx context.Context, site string, key KeyHash) (Integration, error)

	// RotateIntegration gives one another key, which is valid even if the
	// integration was revoked, and was never used. The key before it is not valid.
	// Errors: ErrNotFound.
	RotateIntegration(ctx context.Context, site, name string, key KeyHash, at time.Time) error

	// LimitIntegration gives one another rate limit. Errors: ErrNotFound.
	LimitIntegration(ctx context.Context, site, name string, limit Limit) error

	// UseIntegration keeps when the key of an integration was used last, unless it has
	// another one by now, or a use is kept that was less than 10 minutes before.
	UseIntegration(ctx context.Context, i Integration, at time.Time) error

	// RevokeIntegration revokes a key. Errors: ErrNotFound.
	RevokeIntegration(ctx context.Context, site, name string, at time.Time) error
}
