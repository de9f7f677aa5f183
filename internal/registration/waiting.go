package registration

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file is the list of those who wait for a place (docs/registration.md#waiting-list). Each change of an event's registrations
// gives the places that are free to who waits, in its own transaction, before and after what it does: so nobody is passed over.

const (
	// MaxWaiting bounds the list of an event, some 500 bytes each.
	MaxWaiting = 5000

	// offers is the kind of check that ends offers which nobody took. Its keys are events' IDs.
	offers = "waiting_offers"

	offersTimeout = 30 * time.Second
)

// ErrManyWait means that nobody can join a waiting list any more.
var ErrManyWait = errcode.New(errcode.Conflict, "the waiting list is full", "The waiting list is full.")

// ErrNotWaiting means that a member does not wait for a place.
var ErrNotWaiting = errcode.New(errcode.NotFound, "the member does not wait", "This guest is not on the waiting list.")

// Waiting is how a reader waits for a place.
type Waiting struct {
	Since        time.Time // zero for a reader who does not wait
	Ahead        int       // how many wait before them, or all for a reader who does not wait
	OfferedUntil time.Time // a place is kept for them until then, zero for none

	// JoinAs is the state that they would be in if there were a place, "" for one who waits.
	JoinAs messaging.State
}

// Waiter is somebody who waits, as staff see them.
type Waiter struct {
	Member, Email, Name string
	Since, OfferedUntil time.Time
	Language            string // of the page where they joined, one of messages, "" for the publication's
	IsPaid              bool   // when they last joined
}

const (
	countWaiting = `SELECT COUNT(*) FROM registrations_waiting WHERE site = $1 AND event = $2`

	// findWaiting finds nobody who is passed over, $4 for nobody, unless a place is kept for them. It counts those who are not passed over,
	// have no place kept for them and came before.
	findWaiting = `SELECT since, COALESCE(offered_until, 0), (SELECT COUNT(*) FROM registrations_waiting o WHERE o.site = w.site AND o.event = w.event
			AND o.offered_until IS NULL AND ($4 OR o.is_paid) AND (o.since, o.member) < (w.since, w.member)) FROM registrations_waiting w
		WHERE site = $1 AND event = $2 AND member = $3 AND ($4 OR is_paid OR offered_until IS NOT NULL)`

	joinWaiting  = `INSERT INTO registrations_waiting (site, event, member, email, name, language, since, is_paid) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	joinAgain    = `UPDATE registrations_waiting SET is_paid = $4 WHERE site = $1 AND event = $2 AND member = $3`
	lastWaiting  = `SELECT COALESCE(MAX(since), 0) FROM registrations_waiting WHERE site = $1 AND event = $2`
	leaveWaiting = `DELETE FROM registrations_waiting WHERE site = $1 AND event = $2 AND member = $3 RETURNING COALESCE(offered_until, 0)`

	selectWaiters = `SELECT member, email, name, since, COALESCE(offered_until, 0), language, is_paid FROM registrations_waiting`
	selectWaiting = selectWaiters + ` WHERE site = $1 AND event = $2`
	firstWaiting  = selectWaiting + ` AND offered_until IS NULL AND ($3 OR is_paid) ORDER BY since, member LIMIT 1`
	findWaiter    = selectWaiting + ` AND member = $3`

	listOffers = selectWaiting + ` AND offered_until IS NOT NULL ORDER BY since, member`
	offerPlace = `UPDATE registrations_waiting SET offered_until = $4 WHERE site = $1 AND event = $2 AND member = $3`
	nextExpiry = `SELECT COALESCE(MIN(offered_until), 0) FROM registrations_waiting WHERE site = $1 AND event = $2`

	removeWaiting = `DELETE FROM registrations_waiting WHERE site = $1 AND event = $2`
	listWaitedFor = `SELECT event FROM registrations_waiting WHERE site = $1 AND member = $2 ORDER BY event`
)

func scanWaiter(row database.Row) (w Waiter, err error) {
	err = row.Scan(&w.Member, &w.Email, &w.Name, database.Time(&w.Since), database.Time(&w.OfferedUntil), &w.Language, &w.IsPaid)
	return w, err
}

// fill gives free places to those who wait and whom the event's access admits, in their order: the place itself, or an offer of it.
func (s *seats) fill(ctx context.Context, b *booking) error {
	for b.of.waiting > 0 && b.of.terms.MovesUp(b.now) && (b.of.terms.Most == 0 || b.of.taken < b.of.terms.Most) {
		next, err := scanWaiter(b.tx.QueryRowContext(ctx, firstWaiting, b.key.site, b.key.event, b.of.admitsAll()))
		if errors.Is(err, sql.ErrNoRows) { // the others have offers, or do not pay
			return nil
		}
		if err != nil {
			return database.Wrap("finding who waits first", err)
		}
		give := s.giveTo
		if b.of.invites() {
			give = s.offerTo
		}
		if err := s.give(ctx, b, next, give); err != nil {
			return err
		}
	}
	return nil
}

// give has a place given to somebody who waits. An edge of the last release, which knows no list, may have registered them.
func (s *seats) give(ctx context.Context, b *booking, next Waiter, give func(context.Context, *booking, Waiter) error) error {
	at, err := readPlace(ctx, b.tx, placeKey{b.key.site, b.key.event, next.Member})
	if err != nil {
		return err
	}
	if !at.IsZero() {
		return s.quit(ctx, b, next.Member)
	}
	b.moved = append(b.moved, next.Member)
	return give(ctx, b, next)
}

// invites reports whether who is next in line is asked whether they take a place.
func (of *offer) invites() bool {
	return of.terms.Waiting == events.WaitingInvites && of.terms.Most > 0
}

// admitsAll reports whether members need not pay to register.
func (of *offer) admitsAll() bool { return of.terms.Access != events.AccessPaid }

// settle ends the offers that nobody took in time, and gives free places to those who wait. Those who have an offer from before the event
// gave places at once have the place, if its access admits them.
func (s *seats) settle(ctx context.Context, b *booking) error {
	if b.of.waiting == 0 {
		return nil
	}
	list, err := database.List(ctx, b.tx, scanWaiter, listOffers, b.key.site, b.key.event)
	if err != nil {
		return database.Wrap("finding offers", err)
	}
	for _, w := range list {
		switch {
		case !w.OfferedUntil.After(b.now):
			err = s.quit(ctx, b, w.Member)
		case !b.of.invites() && b.of.terms.MovesUp(b.now) && (b.of.admitsAll() || w.IsPaid):
			err = s.give(ctx, b, w, s.giveTo)
		}
		if err != nil {
			return err
		}
	}
	return s.fill(ctx, b)
}

// giveTo registers somebody who waits.
func (s *seats) giveTo(ctx context.Context, b *booking, next Waiter) error {
	theirs := &booking{tx: b.tx, key: placeKey{b.key.site, b.key.event, next.Member}, of: b.of, now: b.now, wasWaiting: true}
	if b.of.hasLabels {
		b.labelled = append(b.labelled, labelledOne{next.Member, next.Email})
	}
	err := theirs.seat(ctx, 0, Reader{Member: next.Member, Email: next.Email, Name: next.Name, Language: next.Language}, "")
	if err == nil {
		err = s.tell(ctx, theirs)
	}
	b.of = theirs.of
	return err
}

// offerTo keeps a place for somebody who waits.
func (s *seats) offerTo(ctx context.Context, b *booking, next Waiter) error {
	settings, err := s.events.SettingsIn(ctx, b.tx, b.key.site)
	if err != nil {
		return err
	}
	until := b.now.Add(settings.Mails.OfferTime())
	if last := b.of.terms.LastMoment(); !last.IsZero() && until.After(last) {
		until = last
	}
	if _, err := exec(ctx, b.tx, offerPlace, b.key.site, b.key.event, next.Member, until.UnixMilli()); err != nil {
		return err
	}
	if err := only(exec(ctx, b.tx, takePlace, b.key.site, b.key.event, 0)); err != nil {
		return err
	}
	b.of.taken++
	if err := s.work.PlanIn(ctx, b.tx, b.key.site, offers, b.key.event, until); err != nil {
		return err
	}
	if s.told == nil {
		return nil
	}
	return s.told.Invited(ctx, b.tx, b.key.site, b.key.event, next.Member, next.Email)
}

// leave takes a member off the list, and reports whether a place was kept for them, which stays counted as taken.
func (b *booking) leave(ctx context.Context) (wasThere, hadOffer bool, err error) {
	if b.of.waiting == 0 {
		return false, false, nil
	}
	var until int64
	err = b.tx.QueryRowContext(ctx, leaveWaiting, b.key.site, b.key.event, b.key.member).Scan(&until)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	b.of.waiting--
	return err == nil, until > 0, database.Wrap("leaving a waiting list", err)
}

// isKept reports whether a place is kept for the member.
func (b *booking) isKept(ctx context.Context) (bool, error) {
	if b.of.waiting == 0 {
		return false, nil
	}
	w, err := waiter(ctx, b.tx, b.key)
	if errors.Is(err, ErrNotWaiting) {
		return false, nil
	}
	return w.OfferedUntil.After(b.now), err
}

// quit takes a member off the list, and frees the place that was kept for them.
func (s *seats) quit(ctx context.Context, b *booking, member string) error {
	theirs := &booking{tx: b.tx, key: placeKey{b.key.site, b.key.event, member}, of: b.of}
	wasThere, hadOffer, err := theirs.leave(ctx)
	if err != nil || !wasThere {
		return err
	}
	change := countChange
	if hadOffer {
		change = leavePlace
		theirs.of.taken--
	}
	b.of, b.moved = theirs.of, append(b.moved, member)
	return only(exec(ctx, b.tx, change, b.key.site, b.key.event))
}

// Wait registers a reader if there is a place, or else puts them on the waiting list, if the event has one and its access admits them.
// One who waits stays where they are, and is noted as paying or not. Errors: those of Find, ErrManyWait.
func (r *Readers) Wait(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.register(ctx, site, slug, reader, func(*booking) (permission, error) { return permission{true, true}, nil })
}

// wait puts a reader on the waiting list, if there is one and the event's access admits them. Errors: ErrManyWait.
func (b *booking) wait(ctx context.Context, who Reader) error {
	isPaid := who.Membership == PaidMember
	if isThere, err := exec(ctx, b.tx, joinAgain, b.key.site, b.key.event, who.Member, isPaid); isThere || err != nil {
		return err
	}
	if admitted, _ := StateOf(b.of.terms, b.now, who.Membership, !b.at.IsZero(), 0); admitted != messaging.CanRegister || !b.of.terms.MovesUp(b.now) {
		return nil
	}
	if b.of.waiting >= MaxWaiting {
		return ErrManyWait
	}
	var last int64
	if err := b.tx.QueryRowContext(ctx, lastWaiting, b.key.site, b.key.event).Scan(&last); err != nil {
		return database.Wrap("finding who waits last", err)
	}
	since := max(b.now.UnixMilli(), last+1) // behind who has joined in the same millisecond
	if _, err := exec(ctx, b.tx, joinWaiting, b.key.site, b.key.event, who.Member, who.Email, who.Name, who.Language, since, isPaid); err != nil {
		return err
	}
	b.of.waiting++
	return only(exec(ctx, b.tx, countChange, b.key.site, b.key.event))
}

// Leave takes a reader off the waiting list. It is no error if they are not on it. Errors: those of Find.
func (r *Readers) Leave(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.change(ctx, site, slug, reader, func(b *booking, _ messaging.State) error { return r.quit(ctx, b, reader.Member) })
}

// waiting is how a member waits, nil if there is no list, and they are on none. One who is passed over, since they do not pay or have not
// said so, does not wait.
func (r *Readers) waiting(ctx context.Context, key placeKey, of offer) (*Waiting, error) {
	w := &Waiting{Ahead: of.waiting}
	if of.waiting > 0 && key.member != "" {
		err := r.feed.Read(ctx, func(ctx context.Context) error {
			return r.db.Read.QueryRowContext(ctx, findWaiting, key.site, of.event, key.member, of.admitsAll()).Scan(database.Time(&w.Since), database.Time(&w.OfferedUntil), &w.Ahead)
		})
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, database.Wrap("finding who waits", err)
		}
		if err == nil {
			return w, nil
		}
	}
	if !of.terms.MovesUp(r.db.Now()) || of.terms.Most == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return w, nil
}

// WaitingPage is a page of those who wait for a place at an event, in their order.
type WaitingPage struct {
	Waiters []Waiter
	Next    string // where the next page begins, "" for none
}

// WaitingList lists who waits for a place at an event, MaxWaiting at most. Errors: events.ErrNotFound, those of the store.
func (l lists) WaitingList(ctx context.Context, site, event string, q RegistrantQuery) (page WaitingPage, err error) {
	if _, err := events.Find(ctx, l.events, site, event); err != nil {
		return WaitingPage{}, err
	}
	var list database.Query
	list.Add(selectWaiters+` WHERE site = ? AND event = ?`, site, event)
	if since, member, ok := cursorOf(q.After); ok {
		list.Add(` AND (since, member) > (?, ?)`, since, member)
	}
	words, most := strings.Fields(fold.Text(q.Text)), q.Most+1
	if len(words) > 0 {
		most = MaxWaiting // few wait, so nothing is kept for a search
	}
	list.Add(` ORDER BY since, member LIMIT ?`, most)
	page.Waiters, err = database.List(ctx, l.db.Read, scanWaiter, list.Text, list.Args...)
	page.Waiters = slices.DeleteFunc(page.Waiters, func(w Waiter) bool {
		text := fold.Text(w.Email + " " + w.Name)
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
	})
	if len(page.Waiters) > q.Most {
		page.Waiters = page.Waiters[:q.Most]
		last := page.Waiters[q.Most-1]
		page.Next = cursor(last.Since.UnixMilli(), last.Member)
	}
	return page, database.Wrap("listing who waits", err)
}

// Waiting counts who waits for a place at some events of a site, by ID. Events for which nobody waits are left out.
func (l lists) Waiting(ctx context.Context, site string, ids []string) (map[string]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var find database.Query
	find.Add(`SELECT event, COUNT(*) FROM registrations_waiting WHERE site = ? AND `, site)
	find.AddIn("event", ids)
	find.Add(` GROUP BY event`)
	waiting, err := database.Map[string, int](ctx, l.db.Read, find.Text, find.Args...)
	return waiting, database.Wrap("counting who waits", err)
}

// Waiter finds somebody who waits. Errors: ErrNotWaiting, those of the store.
func (l lists) Waiter(ctx context.Context, site, event, member string) (Waiter, error) {
	if !events.IsID(event) || !isLine(member) {
		return Waiter{}, ErrNotWaiting
	}
	return waiter(ctx, l.db.Read, placeKey{site, event, member})
}

func waiter(ctx context.Context, from querier, key placeKey) (Waiter, error) {
	w, err := scanWaiter(from.QueryRowContext(ctx, findWaiter, key.site, key.event, key.member))
	if errors.Is(err, sql.ErrNoRows) {
		return w, ErrNotWaiting
	}
	return w, database.Wrap("finding who waits", err)
}

// MoveUp registers somebody who waits, whoever is ahead of them. It returns false for somebody who is registered already. Errors:
// ErrNotWaiting, and those of Restore.
func (g *GuestList) MoveUp(ctx context.Context, site, event, member, by string, isOverLimit bool) (moved Registrant, isNew bool, err error) {
	return g.seat(ctx, site, event, member, isOverLimit, func(b *booking, most int) error {
		w, err := waiter(ctx, b.tx, b.key)
		if err != nil {
			return err
		}
		b.wasWaiting, b.did = true, "moved up"
		return b.seat(ctx, most, Reader{Member: w.Member, Email: w.Email, Name: w.Name, Language: w.Language}, clip.Text(cmp.Or(by, "Staff"), maxGuestText))
	})
}

// RemoveWaiting takes somebody off the waiting list. Errors: ErrNotWaiting, events.ErrNotFound, those of the store.
func (g *GuestList) RemoveWaiting(ctx context.Context, site, event, member string) error {
	switch {
	case !events.IsID(event):
		return events.ErrNotFound
	case !isLine(member):
		return ErrNotWaiting
	}
	const did = "removed from the waiting list"
	hold := func(tx *sql.Tx) (events.Event, error) { return g.events.Hold(ctx, tx, site, event) }
	_, err := g.seats.change(ctx, hold, site, member, func(b *booking) error {
		before := b.of.waiting
		err := g.quit(ctx, b, member)
		if err == nil && b.of.waiting == before && b.did != did { // in the commit that was lost, which was kept
			err = ErrNotWaiting
		}
		b.did = did
		return err
	})
	if err == nil {
		audit.Note(ctx, site, "guest", event+"/"+member, did)
	}
	return err
}

// forgetWaiting takes a member who was deleted off the waiting lists. A place that is kept for them goes to the next.
func (s *seats) forgetWaiting(ctx context.Context, site, member string) error {
	list, err := database.List(ctx, s.db.Read, database.Text, listWaitedFor, site, member)
	for i := 0; i < len(list) && err == nil; i++ {
		hold := func(tx *sql.Tx) (events.Event, error) { return s.events.Hold(ctx, tx, site, list[i]) }
		_, err = s.change(ctx, hold, site, member, func(b *booking) error { return s.quit(ctx, b, member) })
		if errors.Is(err, events.ErrNotFound) { // it was deleted, and nobody moves up
			_, err = s.db.Write.ExecContext(ctx, leaveWaiting, site, list[i], member)
		}
	}
	return database.Wrap("forgetting who waits", err)
}

// Changed gives the places that a change of an event has freed to who waits, in its transaction, which holds the event.
func (s *Service) Changed(ctx context.Context, tx *sql.Tx, e *events.Event) error {
	of, err := offerOf(ctx, tx, e)
	if err != nil {
		return err
	}
	b := &booking{tx: tx, key: placeKey{e.Site, e.ID, ""}, of: of, now: s.seats.db.Now()}
	if err := s.seats.settle(ctx, b); err != nil {
		return err
	}
	return s.seats.label(ctx, b)
}

// expireOffers is the kind of work that ends offers.
func (s *seats) expireOffers(served func(site string) any) work.Kind {
	return work.Kind{Name: offers, Platform: served, IsCheck: true, Most: 4, Timeout: offersTimeout, Do: func(ctx context.Context, t work.Task) work.Result {
		var next time.Time
		hold := func(tx *sql.Tx) (events.Event, error) { return s.events.Hold(ctx, tx, t.Site, t.Key) }
		_, err := s.change(ctx, hold, t.Site, "", func(b *booking) error {
			return database.Wrap("finding the next offer", b.tx.QueryRowContext(ctx, nextExpiry, t.Site, t.Key).Scan(database.Time(&next)))
		})
		switch {
		case errors.Is(err, events.ErrNotFound), err == nil && next.IsZero():
			return work.Result{Outcome: work.Done, IsUnasked: true}
		case err != nil:
			return work.Result{Outcome: work.Again, Reason: "the store does not respond", IsUnasked: true}
		}
		return work.Result{Outcome: work.Later, At: next, IsUnasked: true}
	}}
}
