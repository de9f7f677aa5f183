package memberstore

import (
	"context"
	"fmt"
)

// Refusal is a reason for which a site's platform will not take writes, and of how many
// members.
type Refusal struct {
	Site, Reason string
	Members      int
}

// refusedPrefix is what the problem of a pending write begins with that was refused.
const refusedPrefix = "refused by the platform: "

// countRefused finds by the index of pending records.
const countRefused = `SELECT site, substr(problem, length($1) + 1), count(*) FROM members
	WHERE applied < version AND substr(problem, 1, length($1)) = $1
	GROUP BY site, problem ORDER BY site, count(*) DESC, problem`

// CountRefused returns the reasons for which platforms will not take writes, however often
// they are asked, by site, the most frequent first.
func (s *SQL) CountRefused(ctx context.Context) (list []Refusal, err error) {
	rows, err := s.db.Read.QueryContext(ctx, countRefused, refusedPrefix)
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
