package memberstore

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// This file finds sites whose members or webhooks are in trouble, without a query for each site.

// Backlog is how many members of a site are pending, and since when the first of them is.
type Backlog struct {
	Site    string
	Members int
	Oldest  time.Time
}

// backlogs goes by the index of pending records.
const backlogs = `SELECT site, count(*), min(updated_at) FROM members WHERE applied < version`

const nextBacklogs = backlogs + ` AND %[1]s GROUP BY site HAVING min(updated_at) < $1 ORDER BY %[2]s %[3]s`

// Backlogs lists sites with a member who was pending before a time already.
func (s queue) Backlogs(ctx context.Context, before time.Time, page database.SitePage) ([]Backlog, error) {
	query, args := page.In(s.db, nextBacklogs, database.Millis(before))
	list, err := database.List(ctx, s.db.Read, scanBacklog, query, args...)
	return list, database.Wrap("listing sites with pending members", err)
}

// LongestBacklogs lists the sites that have had a member pending for longest.
func (s queue) LongestBacklogs(ctx context.Context, before time.Time, limit int) ([]Backlog, error) {
	list, err := database.List(ctx, s.db.Read, scanBacklog, backlogs+` GROUP BY site HAVING min(updated_at) < $1 ORDER BY min(updated_at), site LIMIT $2`,
		database.Millis(before), limit)
	return list, database.Wrap("listing sites with pending members", err)
}

func scanBacklog(row database.Row) (b Backlog, err error) {
	err = row.Scan(&b.Site, &b.Members, database.Time(&b.Oldest))
	return b, err
}

// IsKept reports whether there are members or integrations of a site.
func (s syncing) IsKept(ctx context.Context, site string) (bool, error) {
	return s.db.HasSite(ctx, site, "members", "integrations")
}

// unregistered are webhooks that no edge could register. One that is being registered is claimed.
const unregistered = `SELECT site, seen_at FROM webhooks WHERE registered_at = 0 AND claimed_at > $1 AND %[1]s ORDER BY %[2]s %[3]s`

// tryTime is how long a webhook counts that an edge has tried to register. As long as one is to have it, it
// tries each minute.
const tryTime = time.Hour

// Unregistered is a site whose webhook is not registered.
type Unregistered struct {
	Site   string
	SeenAt time.Time // up to when all changes on the platform were seen
}

// UnregisteredWebhooks lists sites for which an edge tries to register one.
func (s syncing) UnregisteredWebhooks(ctx context.Context, page database.SitePage) ([]Unregistered, error) {
	query, args := page.In(s.db, unregistered, database.Millis(s.db.Now().Add(-tryTime)))
	list, err := database.List(ctx, s.db.Read, func(row database.Row) (u Unregistered, err error) {
		err = row.Scan(&u.Site, database.Time(&u.SeenAt))
		return u, err
	}, query, args...)
	return list, database.Wrap("listing webhooks that are not registered", err)
}
