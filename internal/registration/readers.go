package registration

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
)

// Readers registers readers for events. What it says to those who only ask may be a second old.
type Readers struct {
	*seats

	feed    *events.Feed // which bounds what readers ask the store
	flights singleflight.Group
	offers  *recent.Cache[offerKey, offer]
}

type offerKey struct{ site, slug string }

// maxOffers bounds what is kept for readers who ask, some 1 KB each.
const maxOffers = 1000

func newReaders(s *seats, feed *events.Feed) *Readers {
	return &Readers{seats: s, feed: feed, offers: recent.New[offerKey, offer](maxOffers, placeTTL)}
}

// Registration is how an event stands for a reader.
type Registration struct {
	State  messaging.State
	Reason messaging.Reason // of RegistrationClosed

	// Message is what staff wrote for the state, "" for nothing.
	Message string

	Terms events.Terms
	Taken int // how many are registered

	// RegisteredAt is zero unless the reader is registered.
	RegisteredAt time.Time

	// Waiting is nil where nobody can wait for a place, and the reader does not.
	Waiting *Waiting

	// PlatformURL is the online event link, "" unless the reader is registered or anyone may, and of an event that is cancelled.
	PlatformURL string
}

// ErrNoRegistration means that the event takes no registrations.
var ErrNoRegistration = errcode.New(errcode.NotFound, "the event takes no registrations", "This event takes no registrations.")

// Find takes the slug of an event's page, or the event's ID. Errors: events.ErrNotFound,
// ErrNoRegistration, events.ErrBusy, those of the store.
func (r *Readers) Find(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
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
	settings, err := r.feed.Settings(ctx, site)
	if err != nil {
		return Registration{}, err
	}
	return r.registration(ctx, settings, placeKey{site, of.event, reader.Member}, of, reader, at)
}

// offer reads what an event offers, unless it was read a moment ago.
func (r *Readers) offer(ctx context.Context, site, slug string) (offer, error) {
	key := offerKey{site, slug}
	if of, ok := r.offers.Get(key); ok {
		return of, nil
	}
	found, err, _ := r.flights.Do(site+"/"+slug, func() (any, error) {
		began := time.Now()
		var of offer
		err := r.feed.Read(ctx, func(ctx context.Context) error {
			e, err := r.events.FindPublic(ctx, site, slug)
			if err != nil {
				return err
			}
			if of, err = offerOf(ctx, r.db.Read, &e); err == nil && of.terms.Access == "" {
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
func (r *Readers) place(ctx context.Context, key placeKey) (at time.Time, err error) {
	if at, ok := r.places.Get(key); ok {
		return at, nil
	}
	began := time.Now()
	err = r.feed.Read(ctx, func(ctx context.Context) error {
		at, err = readPlace(ctx, r.db.Read, key)
		return err
	})
	if err == nil {
		r.places.Put(key, at, began)
	}
	return at, err
}

// registration says how an event stands. Errors: those of the store.
func (r *Readers) registration(ctx context.Context, settings events.Settings, key placeKey, of offer, reader Reader, at time.Time) (found Registration, err error) {
	found = Registration{Terms: of.terms, Taken: of.taken, RegisteredAt: at}
	found.State, found.Reason = StateOf(of.terms, r.db.Now(), reader.Membership, !at.IsZero(), of.taken)
	isThere := found.State != messaging.EventPassed && !of.terms.IsCancelled
	if isThere && (found.Reason == messaging.IsFull || of.waiting > 0 && at.IsZero()) {
		if found.Waiting, err = r.waiting(ctx, key, of); err != nil {
			return Registration{}, err
		}
	}
	if w := found.Waiting; w != nil {
		withPlace, reason := StateOf(of.terms, r.db.Now(), reader.Membership, false, 0)
		switch {
		case w.OfferedUntil.After(r.db.Now()): // the place is counted
			found.State, found.Reason = withPlace, reason
		case w.Since.IsZero():
			w.JoinAs = withPlace
		}
	}
	found.Message = settings.Messages[string(found.State)]
	if !of.terms.IsCancelled && (!at.IsZero() || of.terms.Access == events.AccessAnyone) {
		found.PlatformURL = of.platformURL
	}
	return found, nil
}

// Register registers a member for the event whose page has a slug, if its state is CanRegister
// for them, and returns how it stands then. A member who is registered stays so. What is
// returned is durable: there are never more registered than the event has places for. Errors:
// those of Find.
func (r *Readers) Register(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.register(ctx, site, slug, reader, func(*booking) (permission, error) { return permission{registers: true}, nil })
}

// permission is what a reader may do.
type permission struct{ registers, waits bool }

// register is Register, or Wait, where may says so.
func (r *Readers) register(ctx context.Context, site, slug string, reader Reader, may func(*booking) (permission, error)) (Registration, error) {
	return r.change(ctx, site, slug, reader, func(b *booking, state messaging.State) error {
		permitted, err := may(b)
		switch {
		case err != nil:
			return err
		case state != messaging.CanRegister && permitted.waits:
			return b.wait(ctx, reader)
		case state != messaging.CanRegister, !permitted.registers:
			return nil
		}
		if b.of.hasLabels {
			b.relabel(reader.Email)
		}
		return b.seat(ctx, b.of.terms.Most, reader, "")
	})
}

// Cancel takes back a member's registration, unless the event is over, and returns how it stands
// then. It is not an error if there is none. Errors: those of Find.
func (r *Readers) Cancel(ctx context.Context, site, slug string, reader Reader) (Registration, error) {
	return r.change(ctx, site, slug, reader, func(b *booking, state messaging.State) error {
		if b.at.IsZero() || state == messaging.EventPassed {
			return nil
		}
		b.relabel(reader.Email) // who cancels may have labels that the event had before
		return b.unseat(ctx, "")
	})
}

// Registrant finds a member who has registered for an event, or has cancelled. Errors: ErrNoRegistrant, those of the store.
func (r *Readers) Registrant(ctx context.Context, site, event, member string) (Registrant, error) {
	return lists{r.seats}.Registrant(ctx, site, event, member)
}

// CancelByMail is Cancel for a registrant who came by the link of a mail. Errors: those of Cancel.
func (r *Readers) CancelByMail(ctx context.Context, site, event string, guest Registrant) (Registration, error) {
	return r.Cancel(ctx, site, event, Reader{Member: guest.Member, Email: guest.Email})
}

// change has do change a member's registration, of which it gets the state.
func (r *Readers) change(ctx context.Context, site, slug string, reader Reader, do func(*booking, messaging.State) error) (Registration, error) {
	if reader.Member == "" {
		return r.Find(ctx, site, slug, reader)
	}
	settings, err := r.feed.Settings(ctx, site) // before anything is changed: afterwards nothing may fail
	if err != nil {
		return Registration{}, err
	}
	hold := func(tx *sql.Tx) (events.Event, error) { return r.events.HoldPublic(ctx, tx, site, slug) }
	done, err := r.seats.change(ctx, hold, site, reader.Member, func(b *booking) error {
		if b.of.terms.Access == "" {
			return ErrNoRegistration
		}
		taken := b.of.taken
		if isKept, err := b.isKept(ctx); isKept || err != nil {
			if taken = 0; err != nil {
				return err
			}
		}
		state, _ := StateOf(b.of.terms, b.now, reader.Membership, !b.at.IsZero(), taken)
		return do(b, state)
	})
	now := time.Now()
	if errors.Is(err, errFull) { // others had the last places at this moment
		done.at, done.of.taken, err = time.Time{}, max(done.of.taken, done.of.terms.Most), nil
		r.places.Put(done.key, done.at, now)
	}
	if err != nil {
		return Registration{}, err
	}
	r.offers.Put(offerKey{site, slug}, done.of, now)
	return r.registration(ctx, settings, done.key, done.of, reader, done.at)
}
