package events

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file says on which days of the staff's lists an event is.

// noDate is the start of an event without a date.
var noDate = time.UnixMilli(1 << 52)

// spanOf is when an event starts and is over. An event without a date is after all others in lists.
func spanOf(e *Event) (starts, over time.Time) {
	w := e.When()
	if w.Start.IsZero() {
		return noDate, noDate
	}
	return w.Start, w.Over()
}

// daysOf is the first date of an event of whole days and the day behind its last, in UTC, and noDate
// for other events. Whole days are the same dates in each time zone: a time would put them in the month
// before, where the clocks are behind.
func daysOf(e *Event) (from, until time.Time) {
	w := e.When()
	if w.Start.IsZero() || !w.AllDay {
		return noDate, noDate
	}
	return dateIn(w.Start), w.LastDay().AddDate(0, 0, 1)
}

// zonesApart is how far one date is apart in time zones at most: they are from 12 hours behind UTC to 14
// ahead.
const zonesApart = 26 * time.Hour

// withoutDays is how many events fillDays reads at once. Their values have at most 6 MB.
const withoutDays = 50

const (
	listWithoutDays = `SELECT site, id, revision, content, shape FROM events WHERE day_from IS NULL ORDER BY site, id LIMIT $1`
	fillDay         = `UPDATE events SET day_from = $4, day_until = $5 WHERE site = $1 AND id = $2 AND revision = $3 AND day_from IS NULL`
)

// fillDays keeps the days of events that an earlier version has kept.
func fillDays(ctx context.Context, db *database.DB) error {
	for {
		list, err := database.List(ctx, db.Read, scanForDays, listWithoutDays, withoutDays)
		if err != nil {
			return database.Wrap("finding the days of events", err)
		}
		err = db.InTx(ctx, func(tx *sql.Tx) error {
			for _, e := range list {
				from, until := daysOf(&e)
				if _, err := tx.ExecContext(ctx, fillDay, e.Site, e.ID, e.Revision, from.UnixMilli(), until.UnixMilli()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(list) < withoutDays {
			return database.Wrap("keeping the days of events", err)
		}
	}
}

func scanForDays(row database.Row) (e Event, err error) {
	var content, shape string
	if err := row.Scan(&e.Site, &e.ID, &e.Revision, &content, &shape); err != nil {
		return e, err
	}
	return e, errors.Join(json.Unmarshal([]byte(content), &e.Values), json.Unmarshal([]byte(shape), &e.Shape))
}
