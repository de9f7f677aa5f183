// Package eventstest fills a store with events, for tests and measurements of what readers get.
package eventstest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Fill keeps published events of a site: event-0, event-1 and so on, an hour apart from the
// next hour on. Each has so many bytes, of which 500 are the least.
func Fill(ctx context.Context, db *database.DB, site string, count, size int) error {
	if _, err := events.NewSQL(ctx, db); err != nil {
		return err
	}
	return db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO events_sites (site, version, looked_at, image_size, calendar_name, messages)
			VALUES ($1, 1, 0, '', '', '{}')`, site)
		for n := 0; n < count && err == nil; n++ {
			_, err = tx.ExecContext(ctx, insert, row(site, n, size)...)
		}
		return err
	})
}

const insert = `INSERT INTO events (site, id, slug, public, starts_at, over_at, updated_at, created_at, theme, type, content, status, revision,
		shape, post, late_at, post_id, name)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $7, 'solo', 'webinar', '{"access":"free"}', 'published', 1,
		'{"fields":["access"]}', '{}', 0, $3, 'event')`

// row has the values of insert, in its order.
func row(site string, n, size int) []any {
	now := time.Now().UTC()
	start := now.Truncate(time.Hour).Add(time.Duration(n+2) * time.Hour)                           // not begun when it is asked for
	id := strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, fmt.Sprintf("%026d", n)) // as events have them
	slug := fmt.Sprintf("event-%d", n)
	public := fmt.Sprintf(`{"id":%q,"slug":%[2]q,"type":"webinar","status":"published","name":"Event %[3]d","description":"%%s",`+
		`"url":"https://news.example.com/%s/","feature_image":"https://news.example.com/content/images/2026/11/picture-%[3]d.jpg",`+
		`"event_date":%[5]q,"event_time_start":%[6]q,"event_time_end":"","event_time_zone":"UTC","start":%[7]q,"end":null,"all_day":false,`+
		`"deadline":null,"location":"The Pier","max_attendees":120,"access":"free","fields":{"speaker":"Ada Lovelace"},"updated_at":%[8]q}`,
		id, slug, n, slug, start.Format(time.DateOnly), start.Format("15:04"), start.Format(time.RFC3339), now.Format(time.RFC3339))
	public = strings.Replace(public, "%s", strings.Repeat("About. ", max(1, (size-len(public))/len("About. "))), 1)
	return []any{site, id, slug, public, start.UnixMilli(), start.UnixMilli(), now.UnixMilli()}
}

// Publish keeps an event with all fields that readers find, as the platform would have it.
func Publish(ctx context.Context, db *database.DB, e events.Event) error {
	store, err := events.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	e.Status, e.Revision, e.Post.Status = events.Published, 1, platform.Published
	e.CreatedAt = db.Now().UTC().Truncate(time.Millisecond)
	e.UpdatedAt, e.Shape.Fields = e.CreatedAt, events.EditorKeys()
	if err := store.Insert(ctx, e, events.Editor{}); err != nil {
		return err
	}
	_, err = db.Write.ExecContext(ctx, `UPDATE events SET slug = $1, public = '{}' WHERE site = $2 AND id = $3`, e.Post.Slug, e.Site, e.ID)
	return err
}

// Hide has readers find an event no longer, which becomes a draft.
func Hide(ctx context.Context, db *database.DB, site, id string) error {
	_, err := db.Write.ExecContext(ctx, `UPDATE events SET slug = NULL, public = '', status = 'draft' WHERE site = $1 AND id = $2`, site, id)
	return err
}
