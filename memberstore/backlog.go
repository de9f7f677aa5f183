package memberstore

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file finds sites whose members or webhooks are in trouble, without a query for each site.

// Backlogs are the pending members.
var Backlogs = database.Backlogs{From: "members WHERE applied < version", Since: "updated_at"}

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
