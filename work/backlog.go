package work

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// Backlog is how much of a site is pending, of all kinds, and since when the first of it is.
type Backlog struct {
	Site   string
	Tasks  int
	Oldest time.Time
}

const (
	backlogs     = `SELECT site, COUNT(*), MIN(since) FROM work WHERE` + isPending
	nextBacklogs = backlogs + ` AND %[1]s GROUP BY site HAVING MIN(since) < $1 ORDER BY %[2]s %[3]s`
)

// Backlogs lists sites with something that was pending before a time already. It needs no Queue.
func Backlogs(ctx context.Context, db *database.DB, before time.Time, page database.SitePage) ([]Backlog, error) {
	query, args := page.In(db, nextBacklogs, before.UnixMilli())
	list, err := database.List(ctx, db.Read, scanBacklog, query, args...)
	return list, database.Wrap("listing sites with pending work", err)
}

// LongestBacklogs lists the sites that have had something pending for longest.
func LongestBacklogs(ctx context.Context, db *database.DB, before time.Time, most int) ([]Backlog, error) {
	list, err := database.List(ctx, db.Read, scanBacklog, backlogs+` GROUP BY site HAVING MIN(since) < $1 ORDER BY MIN(since), site LIMIT $2`,
		before.UnixMilli(), most)
	return list, database.Wrap("listing sites with pending work", err)
}

func scanBacklog(row database.Row) (b Backlog, err error) {
	err = row.Scan(&b.Site, &b.Tasks, database.Time(&b.Oldest))
	return b, err
}
