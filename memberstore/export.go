package memberstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

const (
	// Pages are in the order of the GUIDs, which never change: who is kept all the
	// while is listed once. The site is an expression so that SQLite walks along
	// the primary key. By an index on the site it would sort all members for each
	// page.
	pageOfMembers = `SELECT COALESCE(i.member_id, ''), ` + shown + `
		FROM members m LEFT JOIN member_ids i ON i.guid = m.guid AND i.integration = $2
		WHERE m.site || '' = $1 AND m.guid > $3 AND NOT m.deleted
			AND NOT (m.refused <> '' AND m.platform_id IS NULL AND m.applied >= m.version)
		ORDER BY m.guid LIMIT $4`

	pageSize = 500 // members
)

// All lists the members of a site, ordered by GUID, each with its MemberID in an
// integration. It reads page by page, so it keeps no transaction open and no more
// than a page in memory. Tombstones are left out. After an error nothing follows.
func (s records) All(ctx context.Context, site, integration string) iter.Seq2[members.Member, error] {
	return func(yield func(members.Member, error) bool) {
		for after := ""; ; {
			page, err := database.List(ctx, s.db.Read, scanMember, pageOfMembers, site, integration, after, pageSize)
			if err != nil {
				yield(members.Member{}, fmt.Errorf("listing members: %w", err))
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			after = page[len(page)-1].GUID
		}
	}
}

func scanMember(row database.Row) (m members.Member, err error) {
	err = scanShown(row, &m)
	return m, err
}
