// Package sites keeps the sites that are added, changed and removed while edges run,
// rather than in their configuration.
package sites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Site is a publication.
type Site struct {
	Name string // unique

	// Hosts are the names at which it is live, as they appear in requests. A host
	// belongs to one site only.
	Hosts []string

	// Settings are all else that is kept of it, a JSON object.
	Settings json.RawMessage

	// Secrets are those of its settings, by where they belong. They are sealed in the
	// store.
	Secrets map[string]string

	// Locked is why Secrets is nil though the site has some. The site is otherwise
	// whole. It is nil if they were opened.
	Locked error

	// Damaged is why its row cannot be read. Then Hosts is nil.
	Damaged error

	// Revision is that of the last change. A later change, of whichever site, has a
	// higher one.
	Revision int64

	// CreatedAt and UpdatedAt are to the millisecond. RemovedAt is zero while it is
	// not removed; then hosts, settings and secrets are gone.
	CreatedAt, UpdatedAt, RemovedAt time.Time
}

// Store keeps sites. It may be used by many goroutines, and by several processes, at
// once. Each change is one step: all of it is done, or nothing.
type Store interface {
	// Add adds sites. Errors: *ExistsError, *HostTakenError, ErrLeaving, ErrNoSecret.
	Add(ctx context.Context, list ...Site) error

	// Replace replaces sites that are still at the revisions that were read, so that
	// hosts can also move from one to another. Errors: ErrConflict, *HostTakenError, ErrNoSecret.
	Replace(ctx context.Context, list ...Site) error

	// Remove removes a site. Its name can be used again when what was kept of it is
	// purged; at once, if that is to be kept for another of its name. Errors:
	// ErrNotFound.
	Remove(ctx context.Context, name string, keep bool) error

	// Find returns a site that is not removed. Errors: ErrNotFound.
	Find(ctx context.Context, name string) (Site, error)

	// List returns sites that are not removed, by name, those after a name.
	List(ctx context.Context, after string, limit int) ([]Site, error)

	// Changes returns the sites that were changed after a revision, removed ones too,
	// in the order of their revisions, and the last revision that there is. Less than
	// that after which was asked means that the store was put back to an earlier state.
	Changes(ctx context.Context, after int64) ([]Site, int64, error)

	// ClaimPurge returns a site that was removed before some time and is not purged, for
	// its caller alone until another time. Errors: ErrNotFound, if there is none.
	ClaimPurge(ctx context.Context, before, until time.Time) (Site, error)

	// MarkPurged notes that nothing is kept any more of a site that was claimed.
	MarkPurged(ctx context.Context, s Site) error

	// Reseal seals the secrets of a site anew if they were sealed with another secret
	// than the first. It reports whether it did. Errors: ErrNotFound, or why they
	// cannot be opened.
	Reseal(ctx context.Context, name string) (bool, error)
}

var (
	// ErrNotFound means that there is no such site.
	ErrNotFound = errors.New("there is no such site")

	// ErrConflict means that a site was changed or removed after it was read.
	ErrConflict = errors.New("the site was changed meanwhile")

	// ErrLeaving means that a removed site had the name, and that what was kept of it
	// is not purged yet.
	ErrLeaving = errors.New("what was kept of a removed site of this name is still being deleted")

	// ErrNoSecret means that there is no secret to seal the keys of a site with.
	ErrNoSecret = errors.New("there is no secret to seal its keys with")
)

// ExistsError means that there is a site of a name.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return "there is a site " + e.Name }

// HostTakenError means that a host belongs to another site.
type HostTakenError struct{ Host, Name, Owner string }

func (e *HostTakenError) Error() string {
	return fmt.Sprintf("host %s of site %s already belongs to site %s", e.Host, e.Name, e.Owner)
}
