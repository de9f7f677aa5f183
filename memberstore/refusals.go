package memberstore

import (
	"context"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// Refusal is a reason for which a site's platform refused the last write of members for
// good, and of how many.
type Refusal struct {
	Site, Reason string
	Members      int
}

const countReasons = `SELECT site, refused, count(*) FROM members WHERE refused <> ''
	GROUP BY site, refused ORDER BY site, count(*) DESC, refused`

// CountRefused returns these reasons by site, the most frequent first.
func (s queue) CountRefused(ctx context.Context) ([]Refusal, error) {
	list, err := database.List(ctx, s.db.Read, func(row database.Row) (r Refusal, err error) {
		err = row.Scan(&r.Site, &r.Reason, &r.Members)
		return r, err
	}, countReasons)
	return list, database.Wrap("counting refused writes", err)
}
