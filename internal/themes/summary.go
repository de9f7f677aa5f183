package themes

import (
	"time"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Summary is what a list tells of a theme. It has no manifests, which may be long.
type Summary struct {
	Name string

	// Findings are the first ones of the last upload or refresh, and Total is how many
	// there are. UpdatedAt is when that was.
	Findings  []manifest.Finding
	Total     int
	UpdatedAt time.Time

	// IsCurated reports whether Homepage Curation is active, and RunsOlder whether the
	// known-good copy is not the latest manifest. The times are those of [Theme].
	IsCurated, RunsOlder    bool
	KnownGoodAt, CurationAt time.Time
}

// Status is the text of the Manifest Status column.
func (s Summary) Status() string { return Status(s.Total) }
