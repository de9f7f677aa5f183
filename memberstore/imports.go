package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Import is how far bringing in all members of a site's platform is.
type Import struct {
	Site      string
	LastID    string // of the platform's, of the last member that was looked at
	Done      int    // how many were
	StartedAt time.Time
}

// Imports keeps at most one import of each site. What is said of [Store] holds
// for it too.
type Imports interface {
	// FindImport returns the import of a site that was not ended. Errors:
	// ErrNotFound.
	FindImport(ctx context.Context, site string) (Import, error)

	// SaveImport notes how far the import is.
	SaveImport(ctx context.Context, i Import) error

	// EndImport forgets the import of a site.
	EndImport(ctx context.Context, site string) error
}

const (
	findImport = `SELECT last_id, done, started_at FROM imports WHERE site = $1`
	saveImport = `INSERT INTO imports (site, last_id, done, started_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (site) DO UPDATE SET last_id = $2, done = $3, started_at = $4`
	endImport = `DELETE FROM imports WHERE site = $1`
)

// FindImport implements [Imports].
func (s *SQL) FindImport(ctx context.Context, site string) (Import, error) {
	i := Import{Site: site}
	var started int64
	err := s.db.Read.QueryRowContext(ctx, findImport, site).Scan(&i.LastID, &i.Done, &started)
	if errors.Is(err, sql.ErrNoRows) {
		return Import{}, ErrNotFound
	}
	if err != nil {
		return Import{}, fmt.Errorf("finding an import: %w", err)
	}
	i.StartedAt = unmillis(started)
	return i, nil
}

// SaveImport implements [Imports].
func (s *SQL) SaveImport(ctx context.Context, i Import) error {
	if _, err := s.db.Write.ExecContext(ctx, saveImport, i.Site, i.LastID, i.Done, millis(i.StartedAt)); err != nil {
		return fmt.Errorf("saving an import: %w", err)
	}
	return nil
}

// EndImport implements [Imports].
func (s *SQL) EndImport(ctx context.Context, site string) error {
	if _, err := s.db.Write.ExecContext(ctx, endImport, site); err != nil {
		return fmt.Errorf("ending an import: %w", err)
	}
	return nil
}

var _ Imports = (*SQL)(nil)
