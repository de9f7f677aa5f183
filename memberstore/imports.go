package memberstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

const (
	findImport = `SELECT last_id, done, started_at FROM imports WHERE site = $1`
	saveImport = `INSERT INTO imports (site, last_id, done, started_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (site) DO UPDATE SET last_id = $2, done = $3, started_at = $4`
	endImport = `DELETE FROM imports WHERE site = $1`
)

func (s syncing) FindImport(ctx context.Context, site string) (inbound.Import, error) {
	i := inbound.Import{Site: site}
	err := s.db.Read.QueryRowContext(ctx, findImport, site).Scan(&i.LastID, &i.Seen, database.Time(&i.StartedAt))
	if errors.Is(err, sql.ErrNoRows) {
		return inbound.Import{}, members.ErrNotFound
	}
	return i, database.Wrap("finding an import", err)
}

func (s syncing) SaveImport(ctx context.Context, i inbound.Import) error {
	_, err := s.db.Write.ExecContext(ctx, saveImport, i.Site, i.LastID, i.Seen, database.Millis(i.StartedAt))
	return database.Wrap("saving an import", err)
}

func (s syncing) EndImport(ctx context.Context, site string) error {
	_, err := s.db.Write.ExecContext(ctx, endImport, site)
	return database.Wrap("ending an import", err)
}

var _ inbound.Imports = (*SQL)(nil)
