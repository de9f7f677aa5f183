package database

import (
	"encoding/json"
	"fmt"
)

// SitePage is a page of rows that are ordered by the column site, as Go orders names.
type SitePage struct {
	After string
	Most  int

	// Among has the only sites that count, by name. Nil is all.
	Among []string
}

// In puts the page into a query, of which these are the arguments: %[1]s is its condition, %[2]s the column and %[3]s the
// limit.
func (p SitePage) In(db *DB, query string, args ...any) (string, []any) {
	site := db.Bytewise("site")
	args = append(args, p.After, p.Most)
	condition, limit := fmt.Sprintf("%s > $%d", site, len(args)-1), fmt.Sprintf("LIMIT $%d", len(args))
	if p.Among != nil {
		names, _ := json.Marshal(p.Among) // strings always can be
		args = append(args, string(names))
		each := "SELECT value FROM json_each($%d)"
		if db.Kind == Postgres {
			each = "SELECT jsonb_array_elements_text($%d::jsonb)"
		}
		condition += fmt.Sprintf(" AND site IN ("+each+")", len(args))
	}
	return fmt.Sprintf(query, condition, site, limit), args
}
