package memberstore

import (
	"context"
	"fmt"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

const (
	// forgetSize is how many members are deleted in one transaction.
	forgetSize = 1000

	// Each has an index of its own.
	forgetMembers = `DELETE FROM members WHERE guid IN (SELECT guid FROM members WHERE site = $1 AND NOT deleted LIMIT $2)`
	forgetDeleted = `DELETE FROM members WHERE guid IN (SELECT guid FROM members WHERE site = $1 AND deleted LIMIT $2)`
)

// Forget deletes all that is kept of a site that is not served any more: members, also
// those with pending writes, keys, and how far it was. It is not one step, and can be
// done again.
func (s records) Forget(ctx context.Context, site string) error {
	for _, query := range []string{forgetMembers, forgetDeleted} {
		for n := int64(forgetSize); n == forgetSize; {
			var err error
			if n, err = database.Affected(s.db.Write.ExecContext(ctx, query, site, forgetSize)); err != nil {
				return fmt.Errorf("deleting the members of site %s: %w", site, err)
			}
		}
	}
	return Schema.Forget(ctx, s.db, site)
}
