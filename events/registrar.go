package events

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/recent"
	"github.com/lychgate/caddy-lychgate/work"
)

// Registrar registers readers for events, on the database that has the events. It may be used
// by many goroutines, and by several processes, at once. What it says to readers who only ask
// may be a second old.
type Registrar struct {
	db     *database.DB
	feed   *Feed // which bounds what readers ask the store
	work   *work.Queue
	logger *zap.Logger
	offers *recent.Cache[offerKey, offer]
	places *recent.Cache[placeKey, time.Time] // when a member registered, zero if not
	writes *semaphore.Weighted

	// changed is told the platform's ID of each member who was changed there.
	changed func(ctx context.Context, site, id string) error

	forgetting forgetting
}

// NewRegistrar returns a Registrar for the events of a store and of its feed, and has a queue
// label registrants. changed is told the platform's ID of each member whose labels were changed, or
// who was made.
func NewRegistrar(store *SQL, feed *Feed, queue *work.Queue, hosts LabelHosts, changed func(ctx context.Context, site, id string) error, logger *zap.Logger) *Registrar {
	r := &Registrar{
		db: store.db, feed: feed, work: queue, logger: logger, changed: changed,
		offers: recent.New[offerKey, offer](maxOffers, versionTTL), places: recent.New[placeKey, time.Time](maxPlaces, versionTTL),
	}
	r.forgetting.said, r.forgetting.rounds = make(map[string][]string), make(map[string]round)
	r.writes = semaphore.NewWeighted(maxWrites)
	if store.db.Kind == database.SQLite {
		r.writes = semaphore.NewWeighted(maxGrouped)
	}
	queue.Handle(r.labelKind(hosts))
	return r
}

const (
	// maxOffers and maxPlaces bound what is kept for readers who ask, some 1 KB and 300 bytes
	// each.
	maxOffers = 1000
	maxPlaces = 10000

	// maxWrites bounds the registrations that are under way on PostgreSQL, so that others get
	// one of its 16 connections: those for one event wait for each other anyway. On SQLite
	// maxGrouped of them share a transaction.
	maxWrites  = 6
	maxGrouped = 64
)

type offerKey struct{ site, slug string }

type placeKey struct{ site, event, member string }

// offer is what an event offers to those who register.
type offer struct {
	event       string // its ID
	page        string // its URL
	terms       Terms
	platformURL string
	taken       int
	hasLabels   bool // for those who register
}

// Reader is somebody who looks at an event's page, as the platform knows them.
type Reader struct {
	Member      string // the platform's UUID, "" for a guest
	Email, Name string
	Membership  Membership
}

// Registration is how an event stands for a reader.
type Registration struct {
	State  State
	Reason Reason // of RegistrationClosed

	// Message is what staff wrote for the state, "" for nothing.
	Message string

	Terms Terms
	Taken int // how many are registered

	// RegisteredAt is zero unless the reader is registered.
	RegisteredAt time.Time

	// PlatformURL is the online event link, "" unless the reader is registered or anyone may.
	PlatformURL string
}

// Find returns how the event whose page has a slug, or that has this for its ID, stands for a reader. Errors: ErrNotFound,
// ErrNoRegistration, ErrBusy, those of the store.
func (r *Registrar) Find(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	of, err := r.offer(ctx, site, slug)
	if err != nil {
		return Registration{}, err
	}
	var at time.Time
	if reader.Member != "" {
		if at, err = r.place(ctx, placeKey{site, of.event, reader.Member}); err != nil {
			return Registration{}, err
		}
	}
	known, err := r.feed.site(ctx, site)
	if err != nil {
		return Registration{}, err
	}
	return r.registration(known.settings, of, reader, at), nil
}

// offer reads what an event offers, unless it was read a moment ago.
func (r *Registrar) offer(ctx context.Context, site, slug string) (offer, error) {
	key := offerKey{site, slug}
	if of, ok := r.offers.Get(key); ok {
		return of, nil
	}
	found, err, _ := r.feed.flights.Do("offer "+site+"/"+slug, func() (any, error) {
		began := time.Now()
		var of offer
		err := r.feed.read(ctx, func(ctx context.Context) (err error) {
			of, err = readOffer(ctx, r.db.Read, findOffer, site, slug)
			if err == nil && of.terms.Access == "" {
				err = ErrNoRegistration
			}
			return err
		})
		if err == nil {
			r.offers.Put(key, of, began)
		}
		return of, err
	})
	return found.(offer), err
}

// place reads when a member registered, unless that was read a moment ago.
func (r *Registrar) place(ctx context.Context, key placeKey) (at time.Time, err error) {
	if at, ok := r.places.Get(key); ok {
		return at, nil
	}
	began := time.Now()
	err = r.feed.read(ctx, func(ctx context.Context) error {
		at, err = readPlace(ctx, r.db.Read, key)
		return err
	})
	if err == nil {
		r.places.Put(key, at, began)
	}
	return at, err
}

// registration says how an event stands.
func (r *Registrar) registration(settings Settings, of offer, reader Reader, at time.Time) Registration {
	found := Registration{Terms: of.terms, Taken: of.taken, RegisteredAt: at}
	found.State, found.Reason = of.terms.State(r.db.Now(), reader.Membership, !at.IsZero(), of.taken)
	found.Message = settings.Messages[string(found.State)]
	if !at.IsZero() || of.terms.Access == AccessAnyone {
		found.PlatformURL = of.platformURL
	}
	return found
}

// Register registers a member for the event whose page has a slug, if its state is CanRegister
// for them, and returns how it stands then. A member who is registered stays so. What is
// returned is durable: there are never more registered than the event has places for. Errors:
// those of Find.
func (r *Registrar) Register(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.register(ctx, site, slug, reader, func(*sql.Tx, string) (bool, error) { return true, nil })
}

// register is Register where may, which gets the event's ID, says so.
func (r *Registrar) register(ctx context.Context, site, slug string, reader Reader, may func(tx *sql.Tx, event string) (bool, error)) (Registration, error) {
	return r.change(ctx, site, slug, reader, func(tx *sql.Tx, of *offer, at *time.Time) (changed bool, err error) {
		now := r.db.Now()
		if state, _ := of.terms.State(now, reader.Membership, !at.IsZero(), of.taken); state != CanRegister {
			return false, nil
		}
		if ok, err := may(tx, of.event); !ok || err != nil {
			return false, err
		}
		if err := seat(ctx, tx, site, of, of.terms.Most, reader, now, ""); err != nil {
			return false, err
		}
		*at = now
		return true, nil
	})
}

// Cancel takes back a member's registration, unless the event is over, and returns how it stands
// then. It is not an error if there is none. Errors: those of Find.
func (r *Registrar) Cancel(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.change(ctx, site, slug, reader, func(tx *sql.Tx, of *offer, at *time.Time) (changed bool, err error) {
		now := r.db.Now()
		if state, _ := of.terms.State(now, reader.Membership, !at.IsZero(), of.taken); at.IsZero() || state == EventPassed {
			return false, nil
		}
		if err := unseat(ctx, tx, site, of, reader.Member, now, ""); err != nil {
			return false, err
		}
		*at = time.Time{}
		return true, nil
	})
}

// seat registers a member who is not registered, unless most are already. by is the name of the
// staff who did it, "" for the member.
func seat(ctx context.Context, tx *sql.Tx, site string, of *offer, most int, who Reader, now time.Time, by string) error {
	if err := takePlaceOf(ctx, tx, site, of, most); err != nil {
		return err
	}
	return only(exec(ctx, tx, register, site, of.event, who.Member, who.Email, who.Name, strings.ToLower(who.Email+" "+who.Name), now.UnixMilli(), by))
}

// takePlaceOf counts one more, unless most are registered, 0 for any number. Errors: errFull.
func takePlaceOf(ctx context.Context, tx *sql.Tx, site string, of *offer, most int) error {
	isTaken, err := exec(ctx, tx, takePlace, site, of.event, most)
	if err == nil && !isTaken {
		err = errFull
	}
	of.taken++
	return err
}

// unseat cancels the registration of a member who is registered.
func unseat(ctx context.Context, tx *sql.Tx, site string, of *offer, member string, now time.Time, by string) error {
	if err := only(exec(ctx, tx, leavePlace, site, of.event)); err != nil {
		return err
	}
	of.taken--
	return only(exec(ctx, tx, cancelRegistration, site, of.event, member, now.UnixMilli(), by))
}

// only fails if a statement changed nothing, so that the number of places stays that of the
// registrations.
func only(changed bool, err error) error {
	if err == nil && !changed {
		err = errUnchanged
	}
	return err
}

var errUnchanged = errors.New("another transaction has changed the registration")

// errFull rolls a registration back that had no place.
var errFull = errors.New("the event is full")

// change changes a member's registration in a transaction, in which the event cannot be removed.
func (r *Registrar) change(ctx context.Context, site, slug string, reader Reader, change func(*sql.Tx, *offer, *time.Time) (changed bool, err error)) (Registration, error) {
	if reader.Member == "" {
		return r.Find(ctx, site, slug, reader)
	}
	known, err := r.feed.site(ctx, site) // before anything is changed: afterwards nothing may fail
	if err != nil {
		return Registration{}, err
	}
	var of offer
	var at time.Time
	var isEnqueued bool
	err = r.inEvent(ctx, findOffer, site, slug, func(tx *sql.Tx, found offer) (err error) {
		of = found
		if of.terms.Access == "" {
			return ErrNoRegistration
		}
		if at, err = readPlace(ctx, tx, placeKey{site, of.event, reader.Member}); err != nil {
			return err
		}
		changed, err := change(tx, &of, &at)
		if err == nil && changed {
			isEnqueued = of.hasLabels || at.IsZero() // who cancels may have labels that the event had before
			if isEnqueued {
				err = enqueueLabels(ctx, tx, r.work, site, reader.Member, reader.Email)
			}
		}
		return err
	})
	if errors.Is(err, errFull) { // others had the last places at this moment
		at, of.taken, err = time.Time{}, max(of.taken, of.terms.Most), nil
	}
	if err != nil {
		return Registration{}, wrap("changing a registration", err)
	}
	if isEnqueued {
		r.work.Wake()
	}
	now := time.Now()
	r.offers.Put(offerKey{site, slug}, of, now)
	r.places.Put(placeKey{site, of.event, reader.Member}, at, now)
	return r.registration(known.settings, of, reader, at), nil
}

// inEvent runs do in a transaction, in which nobody else changes the event or its registrations.
// query finds the event by a site and a key. Errors: ErrNotFound, ErrBusy, those of do and of the
// store.
func (r *Registrar) inEvent(ctx context.Context, query, site, key string, do func(*sql.Tx, offer) error) error {
	if r.writes.Acquire(ctx, 1) != nil {
		return ErrBusy
	}
	defer r.writes.Release(1)
	if r.db.Kind == database.Postgres { // SQLite has one writer at a time
		query += ` FOR NO KEY UPDATE OF events` // in turn with editors, who would wait for ever beside a shared lock
	}
	return r.db.InTx(ctx, func(tx *sql.Tx) error {
		of, err := readOffer(ctx, tx, query, site, key)
		if err != nil {
			return err
		}
		return do(tx, of)
	})
}

const (
	findOffer = selectEvents + ofReader
	findTaken = `SELECT taken FROM registrations_taken WHERE site = $1 AND event = $2`
	findPlace = `SELECT registered_at FROM registrations WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NULL`

	// listVersion is that of an event's list, after the statement that counted a change.
	listVersion = `(SELECT version FROM registrations_taken WHERE site = $1 AND event = $2)`

	register = `INSERT INTO registrations (site, event, member, email, name, search, registered_at, added_by, changed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ` + listVersion + `)
		ON CONFLICT (site, event, member) DO UPDATE SET email = excluded.email, name = excluded.name, search = excluded.search,
			registered_at = excluded.registered_at, added_by = excluded.added_by, cancelled_at = NULL, cancelled_by = '',
			checked_in_at = NULL, check_changed_at = 0, changed = excluded.changed
		WHERE registrations.cancelled_at IS NOT NULL`
	takePlace = `INSERT INTO registrations_taken (site, event, taken) VALUES ($1, $2, 1)
		ON CONFLICT (site, event) DO UPDATE SET taken = registrations_taken.taken + 1, version = registrations_taken.version + 1
		WHERE $3 = 0 OR registrations_taken.taken < $3`
	cancelRegistration = `UPDATE registrations SET cancelled_at = $4, cancelled_by = $5, changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NULL`
	leavePlace = `UPDATE registrations_taken SET taken = taken - 1, version = version + 1 WHERE site = $1 AND event = $2`

	removeRegistrations = `DELETE FROM registrations WHERE site = $1 AND event = $2`
	removeTaken         = `DELETE FROM registrations_taken WHERE site = $1 AND event = $2`
	forgetRegistrations = `DELETE FROM registrations WHERE site = $1`
	forgetTaken         = `DELETE FROM registrations_taken WHERE site = $1`
)

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readOffer reads what an event offers. Errors: ErrNotFound, those of the database.
func readOffer(ctx context.Context, from querier, query, site, slug string) (offer, error) {
	e, err := scanEvent(from.QueryRowContext(ctx, query, site, slug))
	if err != nil {
		return offer{}, wrap("finding an event for a reader", notFound(err))
	}
	if e.Status == deleted {
		return offer{}, ErrNotFound
	}
	of := offer{event: e.ID, page: strings.Clone(e.Post.URL), terms: e.terms(), platformURL: strings.Clone(textOf(e.shown(), "platform_url")), hasLabels: len(e.registrantLabels()) > 0}
	err = from.QueryRowContext(ctx, findTaken, site, e.ID).Scan(&of.taken)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return of, wrap("counting registrations", err)
}

// readPlace reads when a member registered, zero if they are not.
func readPlace(ctx context.Context, from querier, key placeKey) (time.Time, error) {
	var at int64
	err := from.QueryRowContext(ctx, findPlace, key.site, key.event, key.member).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	return time.UnixMilli(at).UTC(), wrap("finding a registration", err)
}

// exec runs a statement, and reports whether it changed anything.
func exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
