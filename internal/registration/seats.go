package registration

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file seats registrants: it alone changes who is registered, together with the number of
// places that are taken.

// seats keeps who is registered for which event.
type seats struct {
	db     *database.DB
	events *events.SQL
	work   *work.Queue
	places *recent.Cache[placeKey, time.Time] // when a member registered, zero if not
	writes *semaphore.Weighted
	told   Notifier // nil for nobody
}

// Notifier has a member told that they are registered, in the transaction that registers them.
type Notifier interface {
	Registered(ctx context.Context, tx *sql.Tx, site, event, member, email string) error

	// MovedUp is for a member who has waited, and Invited for one for whom a place is kept.
	MovedUp(ctx context.Context, tx *sql.Tx, site, event, member, email string) error
	Invited(ctx context.Context, tx *sql.Tx, site, event, member, email string) error
}

type placeKey struct{ site, event, member string }

const (
	// maxPlaces bounds what is kept for readers who ask, some 300 bytes each, and placeTTL how long.
	maxPlaces = 10000
	placeTTL  = time.Second

	// maxWrites bounds the registrations that are under way on PostgreSQL, so that others get
	// one of its 16 connections: those for one event wait for each other anyway. On SQLite
	// maxGrouped of them share a transaction.
	maxWrites  = 6
	maxGrouped = 64
)

func newSeats(db *database.DB, store *events.SQL, queue *work.Queue) *seats {
	most := int64(maxWrites)
	if db.Kind == database.SQLite {
		most = maxGrouped
	}
	return &seats{db, store, queue, recent.New[placeKey, time.Time](maxPlaces, placeTTL), semaphore.NewWeighted(most), nil}
}

// booking is one member's registration for an event, in a transaction in which nobody else changes
// the event or its registrations.
type booking struct {
	tx  *sql.Tx
	key placeKey
	of  offer
	at  time.Time // when the member registered, zero if they are not registered
	now time.Time

	isRelabelled bool
	isSeated     bool
	wasWaiting   bool          // before they were seated
	moved        []string      // members who waited, and whose place has changed
	labelled     []labelledOne // those of them who are labelled anew
	did          string        // of staff, for the audit log; "" for nothing
	email        string        // for those who see that the labels are pending
}

// change runs do with the booking of a member for the event that hold finds. What it has done is
// durable when change returns nil. Errors: ErrBusy, those of hold, of do and of the store.
func (s *seats) change(ctx context.Context, hold func(*sql.Tx) (events.Event, error), site, member string, do func(*booking) error) (b *booking, err error) {
	if s.writes.Acquire(ctx, 1) != nil {
		return nil, events.ErrBusy
	}
	defer s.writes.Release(1)
	err = s.db.InIdempotentTx(ctx, func(tx *sql.Tx, mayBeDone bool) error {
		e, err := hold(tx)
		if err != nil {
			return err
		}
		before := b
		b = &booking{tx: tx, key: placeKey{site, e.ID, member}, now: s.db.Now()}
		if mayBeDone {
			b.isRelabelled, b.did, b.email = before.isRelabelled, before.did, before.email
		}
		if b.of, err = offerOf(ctx, tx, &e); err != nil {
			return err
		}
		if err := s.settle(ctx, b); err != nil {
			return err
		}
		if b.at, err = readPlace(ctx, tx, b.key); err != nil {
			return err
		}
		if err := do(b); err != nil {
			return err
		}
		if err := s.tell(ctx, b); err != nil {
			return err
		}
		if err := s.fill(ctx, b); err != nil {
			return err
		}
		return s.label(ctx, b)
	})
	if err != nil {
		return b, database.Wrap("changing a registration", err)
	}
	if b.isRelabelled || b.isSeated || len(b.moved) > 0 {
		s.work.Wake(site)
	}
	for _, member := range b.moved {
		s.places.Forget(placeKey{site, b.key.event, member})
	}
	s.places.Put(b.key, b.at, time.Now())
	return b, nil
}

// tell has a member who was registered told so.
func (s *seats) tell(ctx context.Context, b *booking) error {
	switch {
	case !b.isSeated || s.told == nil || isWalkIn(b.key.member):
		return nil
	case b.wasWaiting:
		return s.told.MovedUp(ctx, b.tx, b.key.site, b.key.event, b.key.member, b.email)
	}
	return s.told.Registered(ctx, b.tx, b.key.site, b.key.event, b.key.member, b.email)
}

// labelledOne is a member who is to be labelled anew.
type labelledOne struct{ member, email string }

// label has those labelled whose registrations a change has touched, in one order for all events, so that no two changes wait for each
// other.
func (s *seats) label(ctx context.Context, b *booking) error {
	all := b.labelled
	if b.isRelabelled {
		all = append(all, labelledOne{b.key.member, b.email})
	}
	slices.SortFunc(all, func(x, y labelledOne) int { return strings.Compare(x.member, y.member) })
	for _, one := range all {
		if err := enqueueLabels(ctx, b.tx, s.work, b.key.site, one.member, one.email); err != nil {
			return err
		}
	}
	return nil
}

// relabel has the member labelled as the registrations say. A walk-in is none.
func (b *booking) relabel(email string) { b.isRelabelled, b.email = !isWalkIn(b.key.member), email }

// seat registers a member who is not registered, unless most are already, 0 for any number. by is
// the name of the staff who did it, "" for the member. Errors: errFull.
func (b *booking) seat(ctx context.Context, most int, who Reader, by string) error {
	if err := b.take(ctx, most); err != nil {
		return err
	}
	b.at, b.isSeated, b.email = b.now, true, who.Email
	return only(exec(ctx, b.tx, register, b.key.site, b.key.event, who.Member, who.Email, who.Name, database.Searchable(who.Email+" "+who.Name), b.now.UnixMilli(), by, who.Language))
}

// seatAgain takes back that a registration was cancelled, unless most are registered. Errors:
// errFull.
func (b *booking) seatAgain(ctx context.Context, most int) error {
	if err := b.take(ctx, most); err != nil {
		return err
	}
	return only(exec(ctx, b.tx, restore, b.key.site, b.key.event, b.key.member))
}

// take counts one more, unless most are registered, 0 for any number. Who waits does so no longer. A place that was kept for them is
// theirs. Errors: errFull.
func (b *booking) take(ctx context.Context, most int) error {
	_, hadOffer, err := b.leave(ctx)
	if err != nil {
		return err
	}
	if hadOffer {
		return only(exec(ctx, b.tx, countChange, b.key.site, b.key.event))
	}
	isTaken, err := exec(ctx, b.tx, takePlace, b.key.site, b.key.event, most)
	if err == nil && !isTaken {
		err = errFull
	}
	b.of.taken++
	return err
}

// unseat cancels the registration of a member who is registered.
func (b *booking) unseat(ctx context.Context, by string) error {
	if err := only(exec(ctx, b.tx, leavePlace, b.key.site, b.key.event)); err != nil {
		return err
	}
	b.of.taken--
	b.at = time.Time{}
	return only(exec(ctx, b.tx, cancelRegistration, b.key.site, b.key.event, b.key.member, b.now.UnixMilli(), by))
}

// checkIn notes that a registered member was seen at a time, or that they were not.
func (b *booking) checkIn(ctx context.Context, isIn bool, at time.Time) (isChanged bool, err error) {
	var checkedIn any
	if isIn {
		checkedIn = at.UnixMilli()
	}
	if err := only(exec(ctx, b.tx, countChange, b.key.site, b.key.event)); err != nil {
		return false, err
	}
	return exec(ctx, b.tx, checkIn, b.key.site, b.key.event, b.key.member, checkedIn, at.UnixMilli())
}

// confirmCheckIn records the time of a press that changes nothing.
func (b *booking) confirmCheckIn(ctx context.Context, at time.Time) error {
	_, err := exec(ctx, b.tx, confirmCheckIn, b.key.site, b.key.event, b.key.member, at.UnixMilli())
	return err
}

// only fails if a statement changed nothing, so that the number of places stays that of the
// registrations.
func only(changed bool, err error) error {
	if err == nil && !changed {
		err = errUnchanged
	}
	return err
}

// exec runs a statement, and reports whether it changed anything.
func exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (bool, error) {
	n, err := database.Affected(tx.ExecContext(ctx, query, args...))
	return n > 0, err
}

var (
	errUnchanged = errors.New("another transaction has changed the registration")

	// errFull rolls a registration back that had no place.
	errFull = errors.New("the event is full")
)

// offer is what an event offers to those who register.
type offer struct {
	event       string // its ID
	page        string // its URL
	terms       events.Terms
	platformURL string
	taken       int
	waiting     int  // how many wait for a place
	hasLabels   bool // for those who register
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func offerOf(ctx context.Context, from querier, e *events.Event) (offer, error) {
	of := offer{event: e.ID, page: strings.Clone(e.Post.URL), terms: e.Terms(), platformURL: strings.Clone(e.Text("platform_url")), hasLabels: len(e.RegistrantLabels()) > 0}
	err := from.QueryRowContext(ctx, findCounts, e.Site, e.ID).Scan(&of.taken, &of.waiting)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return of, database.Wrap("counting registrations", err)
}

// readPlace reads when a member registered, zero if they are not.
func readPlace(ctx context.Context, from querier, key placeKey) (at time.Time, err error) {
	err = from.QueryRowContext(ctx, findPlace, key.site, key.event, key.member).Scan(database.Time(&at))
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, database.Wrap("finding a registration", err)
}

const (
	findCounts = `SELECT taken, (` + countWaiting + `) FROM registrations_taken WHERE site = $1 AND event = $2`
	findPlace  = `SELECT registered_at FROM registrations WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NULL`

	// listVersion is that of an event's list, after the statement that counted a change.
	listVersion = `(SELECT version FROM registrations_taken WHERE site = $1 AND event = $2)`

	register = `INSERT INTO registrations (site, event, member, email, name, search, registered_at, added_by, language, changed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ` + listVersion + `)
		ON CONFLICT (site, event, member) DO UPDATE SET email = excluded.email, name = excluded.name, search = excluded.search,
			registered_at = excluded.registered_at, added_by = excluded.added_by, language = excluded.language, quiet_at = NULL, cancelled_at = NULL, cancelled_by = '',
			checked_in_at = NULL, check_changed_at = 0, changed = excluded.changed
		WHERE registrations.cancelled_at IS NOT NULL`
	takePlace = `INSERT INTO registrations_taken (site, event, taken) VALUES ($1, $2, 1)
		ON CONFLICT (site, event) DO UPDATE SET taken = registrations_taken.taken + 1, version = registrations_taken.version + 1
		WHERE $3 = 0 OR registrations_taken.taken < $3`
	restore = `UPDATE registrations SET cancelled_at = NULL, cancelled_by = '', changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NOT NULL`
	cancelRegistration = `UPDATE registrations SET cancelled_at = $4, cancelled_by = $5, changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NULL`
	leavePlace = `UPDATE registrations_taken SET taken = taken - 1, version = version + 1 WHERE site = $1 AND event = $2`

	countChange = `UPDATE registrations_taken SET version = version + 1 WHERE site = $1 AND event = $2`
	mailed      = `UPDATE registrations SET changed = ` + listVersion + ` WHERE site = $1 AND event = $2 AND member = $3`
	checkIn     = `UPDATE registrations SET checked_in_at = $4, check_changed_at = $5, changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND check_changed_at <= $5`
	confirmCheckIn = `UPDATE registrations SET check_changed_at = $4
		WHERE site = $1 AND event = $2 AND member = $3 AND check_changed_at < $4`
)
