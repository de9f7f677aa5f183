package members

import (
	"time"

	"github.com/google/uuid"
)

// Member is a member of a site as callers of the API see it.
type Member struct {
	GUID       string // unique everywhere
	Email      string // unique in its site, as emailaddr.Key compares
	Name       string
	Note       string
	Subscribed bool
	Labels     []string
	TierID     *string
	Status     string // free, paid or complimentary
	CreatedAt  time.Time
	UpdatedAt  time.Time

	// MemberID is the member's identifier in the integration, in Custom ID mode.
	// It is empty otherwise.
	MemberID string
}

// NewGUID identifies a new member. The identifiers are ordered by time (RFC 9562, version
// 7), so the store grows at its end.
func NewGUID() string { return uuid.Must(uuid.NewV7()).String() }

// Newsletter is a newsletter that a member was signed up for or off.
type Newsletter struct {
	ID     string `json:"id"`
	Status string `json:"status,omitempty"` // active, which is the default, or inactive
}

// IsActive reports whether the member gets the newsletter.
func (n Newsletter) IsActive() bool { return n.Status != "inactive" }
