// Package sites keeps the sites that are added, changed and removed while edges run,
// rather than in their configuration.
package sites

import (
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

	// Labels are words of the operator's, such as the tenant whose site it is: lower-case letters,
	// digits and hyphens.
	Labels []string

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

var (
	// ErrNotFound means that there is no such site.
	ErrNotFound = errors.New("there is no such site")

	// ErrConflict means that a site was changed or removed after it was read.
	ErrConflict = errors.New("the site was changed meanwhile")

	// ErrLeaving means that a removed site had the name, and that what was kept of it
	// is not purged yet.
	ErrLeaving = errors.New("the data of a removed site of this name is still being deleted")

	// ErrNoSecret means that there is no secret to seal the keys of a site with.
	ErrNoSecret = errors.New("there is no secret to seal its keys with")
)

// ExistsError means that there is a site of a name.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string {
	return "there is a site " + e.Name + " already: change that one, or take another name"
}

// HostTakenError means that a host belongs to another site.
type HostTakenError struct{ Host, Name, Owner string }

func (e *HostTakenError) Error() string {
	return fmt.Sprintf("host %s of site %s already belongs to site %s", e.Host, e.Name, e.Owner)
}
