package events

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file lists events for the staff, and counts them.

// maxListBytes bounds the values of the events on a page of the staff's lists, in bytes of JSON,
// as maxPage does for readers. Only one event more is there.
const maxListBytes = 256 << 10

const countMade = `SELECT COALESCE(SUM(CASE WHEN status = $2 THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN created_at > $3 THEN 1 ELSE 0 END), 0)
	FROM events WHERE site = $1`

// CountMade also counts events that are being deleted as made.
func (s *SQL) CountMade(ctx context.Context, site string, span time.Duration) (drafts, made int, err error) {
	since := s.db.Now().Add(-span).UnixMilli()
	err = s.db.Read.QueryRowContext(ctx, countMade, site, string(Draft), since).Scan(&drafts, &made)
	return drafts, made, wrap("counting events", err)
}

// List counts the events of all pages with a query of its own.
func (s *SQL) List(ctx context.Context, site string, q Query) (Page, error) {
	var where database.Query
	where.Add(` WHERE site = ? AND status <> ?`, site, string(deleted))
	now := s.db.Now().UnixMilli()
	order, beyond := "", ">"
	switch q.View {
	case Upcoming:
		where.Add(` AND status <> ? AND over_at > ?`, string(Draft), now)
	case Past:
		where.Add(` AND status <> ? AND over_at <= ?`, string(Draft), now)
	case Drafts:
		where.Add(` AND status = ?`, string(Draft))
	case AllEvents:
	}
	if q.View == Past || q.IsLatestFirst {
		order, beyond = " DESC", "<"
	}
	if q.Type != "" {
		where.Add(` AND type = ?`, q.Type)
	}
	if !q.From.IsZero() {
		where.Add(` AND starts_at < ?`, q.Until.Add(zonesApart).UnixMilli()) // for the index
		where.Add(` AND (day_from < ? AND day_until > ? OR COALESCE(day_from, ?) = ? AND starts_at < ? AND over_at > ?)`,
			dateIn(q.Until).UnixMilli(), dateIn(q.From).UnixMilli(), noDate.UnixMilli(), noDate.UnixMilli(), q.Until.UnixMilli(), q.From.UnixMilli())
	}
	s.addSeries(&where, q.Series)
	where.AddSearch("name", q.Text)
	page := Page{}
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM events`+where.Text, where.Args...).Scan(&page.Total); err != nil {
		return Page{}, wrap("counting events", err)
	}
	if starts, id, ok := parseCursor(q.After); ok {
		where.Add(` AND (starts_at `+beyond+` ? OR starts_at = ? AND id `+beyond+` ?)`, starts, starts, id)
	}
	where.Add(` ORDER BY starts_at`+order+`, id`+order+` LIMIT ?`, q.Most+1)
	var err error
	var hasMore bool
	if page.Events, hasMore, err = s.list(ctx, maxListBytes, selectEvents+where.Text, where.Args...); err != nil {
		return Page{}, err
	}
	if len(page.Events) > q.Most {
		page.Events, hasMore = page.Events[:q.Most], true
	}
	if hasMore {
		last := page.Events[len(page.Events)-1]
		starts, _ := spanOf(&last)
		page.Next = strconv.FormatInt(starts.UnixMilli(), 10) + "." + last.ID
	}
	return page, nil
}

// OfPosts includes the posts of events that are being deleted.
func (s *SQL) OfPosts(ctx context.Context, site string, posts []string) ([]string, error) {
	if len(posts) == 0 {
		return nil, nil
	}
	var some database.Query
	some.Add(`SELECT post_id FROM events WHERE site = ? AND `, site)
	some.AddIn("post_id", posts)
	return s.texts(ctx, "finding events of posts", some.Text, some.Args...)
}

func parseCursor(text string) (starts int64, id string, ok bool) {
	first, id, ok := strings.Cut(text, ".")
	starts, err := strconv.ParseInt(first, 10, 64)
	return starts, id, ok && err == nil && IsID(id)
}
