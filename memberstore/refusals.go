package memberstore

import (
	"context"
	"fmt"
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
func (s queue) CountRefused(ctx context.Context) (list []Refusal, err error) {
	rows, err := s.db.Read.QueryContext(ctx, countReasons)
	if err != nil {
		return nil, fmt.Errorf("counting refused writes: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r Refusal
		if err := rows.Scan(&r.Site, &r.Reason, &r.Members); err != nil {
			return nil, fmt.Errorf("counting refused writes: %w", err)
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
