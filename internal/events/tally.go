package events

import (
	"context"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file counts the events of a site for what narrows the staff's lists.

// MonthFormat is how a month is written.
const MonthFormat = "2006-01"

// MonthIn reads a month such as 2026-05. ok is false for other texts.
func MonthIn(month string, zone *time.Location) (from, until time.Time, ok bool) {
	first, err := time.Parse(MonthFormat, month)
	return at(first, 0, zone), at(first.AddDate(0, 1, 0), 0, zone), err == nil
}

// tallyEvents has noDate for an event that an edge of an earlier version keeps at the same time.
var tallyEvents = fmt.Sprintf(`SELECT starts_at, over_at, status, type, COALESCE(day_from, %[1]d), COALESCE(day_until, %[1]d) FROM events`, noDate.UnixMilli())

// Tally reads a row for each event of the site, since the months depend on the zone.
func (s *SQL) Tally(ctx context.Context, site string, q Query, zone *time.Location) (Tally, error) {
	var query database.Query
	query.Add(tallyEvents+` WHERE site = ? AND status <> ?`, site, string(deleted))
	s.addSeries(&query, q.Series)
	query.AddSearch("name", q.Text)
	t := Tally{Views: make(map[View]int), Types: make(map[string]int), Months: make(map[string]int)}
	now := s.db.Now().UnixMilli()
	err := database.Each(ctx, s.db.Read, func(row database.Row) error {
		var start, over, day, until int64
		var status, kind string
		if err := row.Scan(&start, &over, &status, &kind, &day, &until); err != nil {
			return err
		}
		view := viewOf(Status(status), over, now)
		isOfView, isOfType, isOfMonth := q.View == AllEvents || q.View == view, q.Type == "" || q.Type == kind, q.isWithin(start, over)
		first := time.UnixMilli(start).In(zone)
		if day != noDate.UnixMilli() {
			first, isOfMonth = time.UnixMilli(day).UTC(), q.hasDays(day, until)
		}
		if isOfType && isOfMonth {
			t.Views[view]++
			t.Views[AllEvents]++
		}
		if isOfView && isOfMonth {
			t.Types[kind]++
		}
		if isOfView && isOfType && start != noDate.UnixMilli() {
			t.Months[first.Format(MonthFormat)]++
		}
		return nil
	}, query.Text, query.Args...)
	return t, wrap("counting events", err)
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

// hasDays is isWithin for an event of whole days, by the dates of From and Until.
func (q Query) hasDays(from, until int64) bool {
	return q.From.IsZero() || from < dateIn(q.Until).UnixMilli() && until > dateIn(q.From).UnixMilli()
}

// isWithin reports whether an event is between From and Until, if these are set.
func (q Query) isWithin(start, over int64) bool {
	return q.From.IsZero() || start < q.Until.UnixMilli() && over > q.From.UnixMilli()
}
