package events

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
)

// This file counts the events of a site for what narrows the staff's lists.

// MonthFormat is how a month is written.
const MonthFormat = "2006-01"

// MonthIn reads a month such as 2026-05. ok is false for other texts.
func MonthIn(month string, zone *time.Location) (from, until time.Time, ok bool) {
	from, err := time.ParseInLocation(MonthFormat, month, zone)
	return from, from.AddDate(0, 1, 0), err == nil
}

// Tally reads a row for each event of the site, since the months depend on the zone.
func (s *SQL) Tally(ctx context.Context, site string, q Query, zone *time.Location) (Tally, error) {
	var query database.Query
	query.Add(`SELECT starts_at, over_at, status, type FROM events WHERE site = ? AND status <> ?`, site, string(deleted))
	query.AddSearch("name", q.Text)
	rows, err := s.db.Read.QueryContext(ctx, query.Text, query.Args...)
	if err != nil {
		return Tally{}, wrap("counting events", err)
	}
	defer rows.Close()
	t := Tally{Views: make(map[View]int), Types: make(map[string]int), Months: make(map[string]int)}
	now := s.db.Now().UnixMilli()
	for rows.Next() {
		var start, over int64
		var status, kind string
		if err := rows.Scan(&start, &over, &status, &kind); err != nil {
			return Tally{}, wrap("counting events", err)
		}
		view := viewOf(Status(status), over, now)
		isOfView, isOfType, isOfMonth := q.View == AllEvents || q.View == view, q.Type == "" || q.Type == kind, q.isWithin(start, over)
		if isOfType && isOfMonth {
			t.Views[view]++
			t.Views[AllEvents]++
		}
		if isOfView && isOfMonth {
			t.Types[kind]++
		}
		if isOfView && isOfType && start != noDate.UnixMilli() {
			t.Months[time.UnixMilli(start).In(zone).Format(MonthFormat)]++
		}
	}
	return t, wrap("counting events", rows.Err())
}

// viewOf is the view besides AllEvents.
func viewOf(status Status, over, now int64) View {
	switch {
	case status == Draft:
		return Drafts
	case over > now:
		return Upcoming
	}
	return Past
}

// isWithin reports whether an event is between From and Until, if these are set.
func (q Query) isWithin(start, over int64) bool {
	return q.From.IsZero() || start < q.Until.UnixMilli() && over > q.From.UnixMilli()
}
