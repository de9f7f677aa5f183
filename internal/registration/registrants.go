package registration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// lists are the registrants of events as staff see them.
type lists struct{ *seats }

// Registrant is a member who has registered for an event.
type Registrant struct {
	Member       string // the platform's UUID
	Email, Name  string // when they registered
	RegisteredAt time.Time
	AddedBy      string    // the name of the staff who registered them, "" if they did it themselves
	CancelledAt  time.Time // zero while they are registered
	CancelledBy  string    // the name of the staff who cancelled for them, "" if they did it themselves
	CheckedInAt  time.Time // zero while they are not checked in, or not registered
	Language     string    // of the page where they registered, one of messages, "" for the publication's
	QuietAt      time.Time // when they wanted no more mails that they can do without, zero for never
	Refused      *RefusedMail
}

// RefusedMail is the last mail to a registrant about an event, which the mail server refused for good.
type RefusedMail struct {
	Kind string // as package mails has them
	At   time.Time
	Text string // what the server said, or why the mail was not sent
}

// refusedMail reads what lastRefusal has, nil for none.
func refusedMail(text string) *RefusedMail {
	first, said, ok := strings.Cut(text, "\n")
	fields := strings.Fields(first)
	if !ok || len(fields) < 2 {
		return nil
	}
	at, _ := strconv.ParseInt(fields[0], 10, 64)
	return &RefusedMail{Kind: fields[1], At: time.UnixMilli(at).UTC(), Text: said}
}

// registeredAt is zero for a registrant who has cancelled.
func (r *Registrant) registeredAt() time.Time {
	if !r.CancelledAt.IsZero() {
		return time.Time{}
	}
	return r.RegisteredAt
}

// maxGuestText bounds an email, a name, and the name of staff, in code points. It is Ghost's bound
// of the first two.
const maxGuestText = 191

// ErrNoRegistrant means that a member has not registered for an event.
var ErrNoRegistrant = errcode.New(errcode.NotFound, "the member has not registered", "This member has not registered for the event.")

func isLine(text string) bool { return events.IsLine(text, maxGuestText) }

// RegistrantQuery says which registrants are listed, in the order in which they registered.
type RegistrantQuery struct {
	Text  string // in the email or the name; each word counts
	After string // the Next of the page before, "" for the first one
	Most  int    // on a page, from 1 to MaxRegistrants
}

// MaxRegistrants bounds a page of registrants, some 500 bytes each.
const MaxRegistrants = 1000

// RegistrantPage is a page of registrants, with the counts of all.
type RegistrantPage struct {
	Registrants []Registrant
	Tally       Tally
	Next        string // where the next page begins, "" for none

	// Changes is what [GuestList.Changes] continues after.
	Changes string
}

// Tally counts the registrants of an event.
type Tally struct {
	Registered, Cancelled int
	CheckedIn             int // of those who are registered
	Waiting, Offered      int // who wait for a place, and for how many of them one is kept
	Most                  int // registrations, 0 for any number
}

const (
	// lastRefusal is "" if the server took the last mail.
	lastRefusal = `COALESCE((SELECT CASE WHEN refusal = '' THEN '' ELSE sent_at || ' ' || reason || '
' || refusal END FROM mails m WHERE m.site = registrations.site AND m.event = registrations.event AND m.member = registrations.member
		ORDER BY sent_at DESC, reason DESC LIMIT 1), '')`

	registrantColumns = `member, email, name, registered_at, added_by, COALESCE(cancelled_at, 0), cancelled_by, COALESCE(checked_in_at, 0), language, COALESCE(quiet_at, 0), ` +
		lastRefusal + `, changed`

	countRegistrants = `SELECT COUNT(*), COUNT(cancelled_at), COUNT(CASE WHEN cancelled_at IS NULL THEN checked_in_at END),
			(` + countWaiting + `), (SELECT COUNT(offered_until) FROM registrations_waiting WHERE site = $1 AND event = $2)
		FROM registrations WHERE site = $1 AND event = $2`

	selectRegistrants = `SELECT ` + registrantColumns + ` FROM registrations WHERE site = ? AND event = ?`
	findRegistrant    = `SELECT ` + registrantColumns + ` FROM registrations WHERE site = $1 AND event = $2 AND member = $3`
	registeredEmails  = `SELECT email FROM registrations WHERE site = $1 AND event = $2 AND cancelled_at IS NULL AND email <> ''`
	countMailed       = `SELECT COUNT(*), COUNT(quiet_at) FROM registrations WHERE site = $1 AND event = $2 AND cancelled_at IS NULL AND email <> ''`
	findVersion       = `SELECT COALESCE((SELECT version FROM registrations_taken WHERE site = $1 AND event = $2), 0)`
)

// Registrants lists who has registered for an event, and who has cancelled. Errors: events.ErrNotFound,
// those of the store.
func (l lists) Registrants(ctx context.Context, site, event string, q RegistrantQuery) (RegistrantPage, error) {
	page, err := l.emptyPage(ctx, site, event)
	if err != nil {
		return RegistrantPage{}, err
	}
	var list database.Query
	list.Add(selectRegistrants, site, event)
	list.AddSearch("search", q.Text)
	if at, member, ok := cursorOf(q.After); ok {
		list.Add(` AND (registered_at, member) > (?, ?)`, at, member)
	}
	list.Add(` ORDER BY registered_at, member LIMIT ?`, q.Most+1)
	if page.Registrants, _, err = l.registrants(ctx, list); err != nil {
		return RegistrantPage{}, err
	}
	if len(page.Registrants) > q.Most {
		page.Registrants = page.Registrants[:q.Most]
		last := page.Registrants[q.Most-1]
		page.Next = cursor(last.RegisteredAt.UnixMilli(), last.Member)
	}
	return page, nil
}

// Changes lists the registrants that were changed after a page of theirs, in the order of their
// last change; most at most. after is the Changes of that page, "" for all registrants. Next says
// whether there are more. Errors: those of Registrants.
func (l lists) Changes(ctx context.Context, site, event, after string, most int) (RegistrantPage, error) {
	page, err := l.emptyPage(ctx, site, event)
	if err != nil {
		return RegistrantPage{}, err
	}
	var list database.Query
	list.Add(selectRegistrants, site, event)
	if version, member, ok := cursorOf(after); ok {
		list.Add(` AND (changed, member) > (?, ?)`, version, member)
	}
	list.Add(` ORDER BY changed, member LIMIT ?`, most+1)
	found, versions, err := l.registrants(ctx, list)
	if err != nil {
		return RegistrantPage{}, err
	}
	page.Registrants = found
	if len(found) > most {
		page.Registrants = found[:most]
		page.Changes = cursor(versions[most-1], found[most-1].Member)
		page.Next = page.Changes
	}
	return page, nil
}

// cursor is a place in a list that is ordered by a number and a member.
func cursor(n int64, member string) string { return strconv.FormatInt(n, 10) + "." + member }

// cursorOf reads what cursor has written.
func cursorOf(text string) (n int64, member string, ok bool) {
	number, member, ok := strings.Cut(text, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	return n, member, ok && err == nil && isLine(member)
}

// emptyPage has the version of a list and its counts. The version is read first, so that what
// changes meanwhile is listed again after it.
func (l lists) emptyPage(ctx context.Context, site, event string) (page RegistrantPage, err error) {
	_, most, version, err := l.list(ctx, site, event)
	if err != nil {
		return RegistrantPage{}, err
	}
	page.Changes = cursor(version+1, "")
	page.Tally, err = l.tally(ctx, site, event, most)
	return page, err
}

// Tally counts the registrants of an event. Errors: those of Registrants.
func (l lists) Tally(ctx context.Context, site, event string) (Tally, error) {
	_, most, _, err := l.list(ctx, site, event)
	if err != nil {
		return Tally{}, err
	}
	return l.tally(ctx, site, event, most)
}

func (l lists) tally(ctx context.Context, site, event string, most int) (Tally, error) {
	of := Tally{Most: most}
	var all int
	err := l.db.Read.QueryRowContext(ctx, countRegistrants, site, event).Scan(&all, &of.Cancelled, &of.CheckedIn, &of.Waiting, &of.Offered)
	of.Registered = all - of.Cancelled
	return of, database.Wrap("counting registrants", err)
}

// ListTag changes whenever the list of an event's registrants does, or the event. It has letters,
// digits and dots. Errors: those of Registrants.
func (l lists) ListTag(ctx context.Context, site, event string) (string, error) {
	revision, _, version, err := l.list(ctx, site, event)
	return fmt.Sprintf("%d.%d", revision, version), err
}

// list reads what is known of a list without reading it.
func (l lists) list(ctx context.Context, site, event string) (revision int64, most int, version int64, err error) {
	e, err := events.Find(ctx, l.events, site, event)
	if err != nil {
		return 0, 0, 0, err
	}
	err = l.db.Read.QueryRowContext(ctx, findVersion, site, event).Scan(&version)
	return e.Revision, e.Terms().Most, version, database.Wrap("finding the version of a list", err)
}

// registrants runs a query of selectRegistrants, and returns the version of each row.
func (l lists) registrants(ctx context.Context, q database.Query) (found []Registrant, versions []int64, err error) {
	err = database.Each(ctx, l.db.Read, func(row database.Row) error {
		of, version, err := scanRegistrant(row)
		found, versions = append(found, of), append(versions, version)
		return err
	}, q.Text, q.Args...)
	return found, versions, database.Wrap("listing registrants", err)
}

func scanRegistrant(row database.Row) (of Registrant, version int64, err error) {
	refused := ""
	err = row.Scan(&of.Member, &of.Email, &of.Name, database.Time(&of.RegisteredAt), &of.AddedBy,
		database.Time(&of.CancelledAt), &of.CancelledBy, database.Time(&of.CheckedInAt), &of.Language, database.Time(&of.QuietAt), &refused, &version)
	of.Refused = refusedMail(refused)
	if !of.CancelledAt.IsZero() {
		of.CheckedInAt = time.Time{}
	}
	return of, version, err
}

// registrant reads a registrant in a transaction. Errors: ErrNoRegistrant, those of the database.
func registrant(ctx context.Context, from querier, key placeKey) (Registrant, error) {
	of, _, err := scanRegistrant(from.QueryRowContext(ctx, findRegistrant, key.site, key.event, key.member))
	if errors.Is(err, sql.ErrNoRows) {
		return Registrant{}, ErrNoRegistrant
	}
	return of, database.Wrap("finding a registrant", err)
}

// Registrant finds a member who has registered for an event, or has cancelled. Errors:
// ErrNoRegistrant, those of the store.
func (l lists) Registrant(ctx context.Context, site, event, member string) (Registrant, error) {
	if !events.IsID(event) || !isLine(member) {
		return Registrant{}, ErrNoRegistrant
	}
	return registrant(ctx, l.db.Read, placeKey{site, event, member})
}

// Registered calls each with the email of everybody who is registered for an event and has one, as it was when they registered.
// Errors: those of the store.
func (l lists) Registered(ctx context.Context, site, event string, each func(email string)) error {
	err := database.Each(ctx, l.db.Read, func(row database.Row) error {
		var email string
		err := row.Scan(&email)
		each(email)
		return err
	}, registeredEmails, site, event)
	return database.Wrap("listing registrants", err)
}

// NoteMail has the list changed for those who read it again, in the transaction that notes a mail which was refused, or the next one
// that was not.
func (lists) NoteMail(ctx context.Context, tx *sql.Tx, site, event, member string) error {
	_, err := tx.ExecContext(ctx, countChange, site, event)
	if err == nil {
		_, err = tx.ExecContext(ctx, mailed, site, event, member)
	}
	return database.Wrap("noting a mail", err)
}

// Mailed counts who is registered for an event and has an email, and who of them wants no mails that they can do without. Errors: those
// of the store.
func (l lists) Mailed(ctx context.Context, site, event string) (all, quiet int, err error) {
	err = l.db.Read.QueryRowContext(ctx, countMailed, site, event).Scan(&all, &quiet)
	return all, quiet, database.Wrap("counting registrants with an email", err)
}

// pageTimeout bounds the reading of each page.
const pageTimeout = 20 * time.Second

// AllRegistrants reads all registrants of an event in pages, so that few are in memory. It ends
// with the first error, which is one of Registrants. A page is read within 20 seconds.
func (l lists) AllRegistrants(ctx context.Context, site, event string) iter.Seq2[[]Registrant, error] {
	return func(yield func([]Registrant, error) bool) {
		q := RegistrantQuery{Most: MaxRegistrants}
		for {
			reading, cancel := context.WithTimeout(ctx, pageTimeout)
			page, err := l.Registrants(reading, site, event, q)
			cancel()
			if !yield(page.Registrants, err) || err != nil || page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// Taken counts the registered of some events of a site, by ID. Events without any are left out.
func (l lists) Taken(ctx context.Context, site string, ids []string) (map[string]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var find database.Query
	find.Add(`SELECT event, taken - (SELECT COUNT(offered_until) FROM registrations_waiting w WHERE w.site = t.site AND w.event = t.event)
		FROM registrations_taken t WHERE site = ? AND `, site)
	find.AddIn("event", ids)
	taken, err := database.Map[string, int](ctx, l.db.Read, find.Text, find.Args...)
	return taken, database.Wrap("counting registrations", err)
}
