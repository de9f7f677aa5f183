package events

import (
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// This file lists for the staff who has registered.

// Registrant is a member who has registered for an event.
type Registrant struct {
	Member       string // the platform's UUID
	Email, Name  string // when they registered
	RegisteredAt time.Time
	CancelledAt  time.Time // zero while they are registered
}

// RegistrantQuery says which registrants are listed, in the order in which they registered.
type RegistrantQuery struct {
	Text  string // in the email or the name; each word counts
	After string // the Next of the page before, "" for the first one
	Most  int    // on a page, from 1 to 100
}

// RegistrantPage is a page of registrants, with the counts of all.
type RegistrantPage struct {
	Registrants           []Registrant
	Registered, Cancelled int
	Most                  int    // registrations, 0 for any number
	Next                  string // where the next page begins, "" for none
}

const countRegistrants = `SELECT COUNT(*), COUNT(cancelled_at) FROM registrations WHERE site = $1 AND event = $2`

// Registrants lists who has registered for an event, and who has cancelled. Errors: ErrNotFound,
// those of the store.
func (r *Registrar) Registrants(ctx context.Context, site, event string, q RegistrantQuery) (RegistrantPage, error) {
	if !isID(event) {
		return RegistrantPage{}, ErrNotFound
	}
	e, err := scanEvent(r.db.Read.QueryRowContext(ctx, findEvent, site, event))
	if err == nil && e.Status == deleted {
		err = ErrNotFound
	}
	if err != nil {
		return RegistrantPage{}, wrap("finding an event", notFound(err))
	}
	page := RegistrantPage{Most: e.terms().Most}
	var all int
	if err := r.db.Read.QueryRowContext(ctx, countRegistrants, site, event).Scan(&all, &page.Cancelled); err != nil {
		return RegistrantPage{}, wrap("counting registrants", err)
	}
	page.Registered = all - page.Cancelled

	var list statement
	list.add(`SELECT member, email, name, registered_at, COALESCE(cancelled_at, 0) FROM registrations WHERE site = ? AND event = ?`, site, event)
	words := strings.Fields(strings.ToLower(q.Text))
	for _, word := range words[:min(len(words), maxWords)] {
		like := "%" + likeEscaper.Replace(word) + "%"
		list.add(` AND search LIKE ? ESCAPE '!'`, like)
	}
	if at, member, ok := strings.Cut(q.After, "."); ok && isText(member) && utf8.ValidString(member) {
		if since, err := strconv.ParseInt(at, 10, 64); err == nil {
			list.add(` AND (registered_at > ? OR registered_at = ? AND member > ?)`, since, since, member)
		}
	}
	list.add(` ORDER BY registered_at, member LIMIT ?`, q.Most+1)
	rows, err := r.db.Read.QueryContext(ctx, list.text, list.args...)
	if err != nil {
		return RegistrantPage{}, wrap("listing registrants", err)
	}
	defer rows.Close()
	for rows.Next() {
		var of Registrant
		var at, cancelled int64
		if err := rows.Scan(&of.Member, &of.Email, &of.Name, &at, &cancelled); err != nil {
			return RegistrantPage{}, wrap("listing registrants", err)
		}
		of.RegisteredAt = time.UnixMilli(at).UTC()
		if cancelled > 0 {
			of.CancelledAt = time.UnixMilli(cancelled).UTC()
		}
		page.Registrants = append(page.Registrants, of)
	}
	if len(page.Registrants) > q.Most {
		page.Registrants = page.Registrants[:q.Most]
		last := page.Registrants[q.Most-1]
		page.Next = strconv.FormatInt(last.RegisteredAt.UnixMilli(), 10) + "." + last.Member
	}
	return page, wrap("listing registrants", rows.Err())
}
