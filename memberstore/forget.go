package memberstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

const (
	// forgetSize is how many members are deleted in one transaction.
	forgetSize = 1000

	// Each has an index of its own.
	forgetMembers = `DELETE FROM members WHERE guid IN (SELECT guid FROM members WHERE site = $1 AND NOT deleted LIMIT $2)`
	forgetDeleted = `DELETE FROM members WHERE guid IN (SELECT guid FROM members WHERE site = $1 AND deleted LIMIT $2)`
)

// tablesOfSites are those that have a site's rows besides its members.
var tablesOfSites = []string{"integrations", "idempotency", "webhooks", "comparisons", "imports"}

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
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		for _, table := range tablesOfSites {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE site = $1", site); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("deleting the data of site %s: %w", site, err)
	}
	return nil
}
