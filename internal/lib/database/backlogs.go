package database

import (
	"context"
	"time"
)

// Backlogs are the rows of a table that wait for a platform, by site. It needs an index of such rows.
type Backlogs struct {
	From  string // the table, WHERE and the condition
	Since string // the column that says since when a row waits, as [Millis] makes it
}

// Backlog is how much of a site is pending, and since when the first of it is.
type Backlog struct {
	Site    string
	Pending int
	Oldest  time.Time
}

// List lists sites with something that was pending before a time already.
func (b Backlogs) List(ctx context.Context, db *DB, before time.Time, page SitePage) ([]Backlog, error) {
	query, args := page.In(db, b.query(" AND %[1]s", "%[2]s %[3]s"), Millis(before))
	return b.read(ctx, db, query, args)
}

// Longest lists the sites that have had something pending for longest.
func (b Backlogs) Longest(ctx context.Context, db *DB, before time.Time, most int) ([]Backlog, error) {
	return b.read(ctx, db, b.query("", "MIN("+b.Since+"), site LIMIT $2"), []any{Millis(before), most})
}

func (b Backlogs) query(condition, order string) string {
	oldest := "MIN(" + b.Since + ")"
	return "SELECT site, COUNT(*), " + oldest + " FROM " + b.From + condition + " GROUP BY site HAVING " + oldest + " < $1 ORDER BY " + order
}

func (Backlogs) read(ctx context.Context, db *DB, query string, args []any) ([]Backlog, error) {
	list, err := List(ctx, db.Read, func(row Row) (b Backlog, err error) {
		err = row.Scan(&b.Site, &b.Pending, Time(&b.Oldest))
		return b, err
	}, query, args...)
	return list, Wrap("listing sites with pending work", err)
}
