// Package registration keeps who has registered for events (docs/registration.md).
//
// [Readers] is for readers, who register and cancel, and [GuestList] for the staff. Anyone who changes
// a registration does so in one way, in which the number of registrations is never more than
// the event has places for. What follows from a change on the platform, the labels of members, is
// work of the kind [Kind]. [Forgetter] removes who registrants were once their members are deleted.
package registration

import (
	"context"
	"database/sql"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Service keeps the registrations of all sites of a process. It may be used by many goroutines,
// and by several processes, at once.
type Service struct {
	Readers   *Readers
	Guests    *GuestList
	Forgetter *Forgetter // needs its Run

	seats *seats
}

// New registers with the queue the kind of work that labels registrants. The store and the feed must
// be on db.
func New(db *database.DB, store *events.SQL, feed *events.Feed, queue *work.Queue, hosts LabelHosts, finders FinderHosts, changed Changed, logger *zap.Logger) *Service {
	seats := newSeats(db, store, queue)
	of := (&labels{seats, db, store, hosts, changed, logger}).kind()
	queue.Handle(of)
	queue.Handle(seats.expireOffers(of.Platform))
	return &Service{
		Readers: newReaders(seats, feed), Guests: &GuestList{lists{seats}, changed, logger},
		Forgetter: newForgetter(seats, finders, logger), seats: seats,
	}
}

var _ events.Dependent = (*Service)(nil)

// Tell has those who are registered from now on told so. It is called before the Service is used.
func (s *Service) Tell(to Notifier) { s.seats.told = to }

// Deleted has the registrants of an event labelled anew who have labels from here.
func (s *Service) Deleted(ctx context.Context, tx *sql.Tx, site, event string) error {
	type registrant struct{ member, email string }
	all, err := database.List(ctx, tx, func(row database.Row) (r registrant, err error) {
		err = row.Scan(&r.member, &r.email)
		return r, err
	}, findLabelled, site, event)
	if err != nil {
		return database.Wrap("finding registrants", err)
	}
	for _, r := range all {
		if err := enqueueLabels(ctx, tx, s.seats.work, site, r.member, r.email); err != nil {
			return err
		}
	}
	return nil
}

// Removed deletes the registrations for an event.
func (s *Service) Removed(ctx context.Context, tx *sql.Tx, site, event string) error {
	for _, text := range []string{removeRegistrations, removeWaiting, removeTaken, removeMessages} {
		if _, err := tx.ExecContext(ctx, text, site, event); err != nil {
			return database.Wrap("removing registrations", err)
		}
	}
	return nil
}
