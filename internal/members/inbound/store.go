package inbound

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Store keeps how far each site is. What is said of [members.Store] holds for it
// too.
type Store interface {
	members.Store
	Webhooks
	Comparisons
}

// Webhook is where the platform of a site sends its webhook events.
type Webhook struct {
	Site     string
	URL      string
	Previous string // the URL before, which is valid until this one is registered
	Platform string // identifies where it is registered

	// SeenAt is the time up to which all changes on the platform were seen. A
	// claim of another webhook keeps it.
	SeenAt time.Time

	// ClaimedAt is when a process began to register it, RegisteredAt when that
	// was done; zero before.
	ClaimedAt, RegisteredAt time.Time
}

// Webhooks keeps a webhook for each site.
type Webhooks interface {
	// FindWebhook reads the webhook of a site. Errors: ErrNotFound.
	FindWebhook(ctx context.Context, site string) (Webhook, error)

	// ClaimWebhook puts a webhook in place of the one of its site that has the
	// URL old, or of none if that is empty. Of several processes that try, one
	// succeeds. Errors: ErrConflict.
	ClaimWebhook(ctx context.Context, w Webhook, old string) error

	// MarkWebhookSeen notes the time up to which all changes on the platform were
	// seen.
	MarkWebhookSeen(ctx context.Context, site string, upTo time.Time) error

	// MarkWebhookRegistered notes that a webhook is registered. It does nothing
	// if there is another by now.
	MarkWebhookRegistered(ctx context.Context, site, url string, now time.Time) error
}

// Comparison is how far a comparison of all members of a site with its platform's
// is.
type Comparison struct {
	Site      string
	LastID    string    // the platform's, of the last member that was compared
	StartedAt time.Time // zero before the first

	FinishedAt time.Time // of the last one; zero before
	Surplus    int       // the platform's members that were not kept, so far
	AskedAt    time.Time // when one was asked for that starts after it, zero for never
}

// Comparisons keeps one comparison for each site, and applies its differences.
type Comparisons interface {
	// FindComparison reads the comparison of a site. It is zero but for Site if there was
	// none yet.
	FindComparison(ctx context.Context, site string) (Comparison, error)

	// RequestComparison asks for a comparison that starts at a time or after it.
	RequestComparison(ctx context.Context, site string, at time.Time) error

	// SaveComparison notes how far it is. AskedAt is not saved.
	SaveComparison(ctx context.Context, c Comparison) error

	// OnPlatform lists records of a site that have a PlatformID, tombstones too, in its
	// order, those after an ID.
	OnPlatform(ctx context.Context, site, after string, limit int) ([]members.Record, error)

	// CountOnPlatform counts the records of a site that have a PlatformID, without
	// tombstones.
	CountOnPlatform(ctx context.Context, site string) (int, error)

	// Reconcile applies differences: those that are gone become applied
	// tombstones; those that are changed are replaced, all but their emails, by
	// the next version, which is applied; those that are added are as by Insert,
	// without a MemberID. It returns those that it left as they are: records that
	// are pending, leased, of another version than read, or not text, and of
	// those to be added, records whose GUID, email or PlatformID is there.
	Reconcile(ctx context.Context, d Differences) (left Differences, err error)
}

// Differences are what a comparison has found.
type Differences struct{ Changed, Added, Gone []members.Record }

// Import is how far an import of all members of a site's platform is.
type Import struct {
	Site      string
	LastID    string // the platform's, of the last member that was seen
	Seen      int
	StartedAt time.Time
}

// Imports keeps at most one import of each site.
type Imports interface {
	// FindImport reads the import of a site that was not ended. Errors: ErrNotFound.
	FindImport(ctx context.Context, site string) (Import, error)

	// SaveImport notes how far the import is.
	SaveImport(ctx context.Context, i Import) error

	// EndImport forgets the import of a site.
	EndImport(ctx context.Context, site string) error
}
