package events

import (
	"context"
	"database/sql"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file is for what is kept of events beside them, in the same database.

// Dependent keeps something of events, and changes it in the transaction that changes the event.
type Dependent interface {
	// Deleted is called when an editor deletes an event. It is kept until its post is taken back.
	Deleted(ctx context.Context, tx *sql.Tx, site, id string) error

	// Removed is called when nothing of an event is kept any more.
	Removed(ctx context.Context, tx *sql.Tx, site, id string) error
}

// Find treats an event that somebody has deleted as missing. Errors: ErrNotFound, those of the
// store.
func Find(ctx context.Context, store Store, site, id string) (Event, error) {
	if !IsID(id) {
		return Event{}, ErrNotFound
	}
	return undeleted(store.Find(ctx, site, id))
}

// undeleted has ErrNotFound for an event that somebody has deleted.
func undeleted(e Event, err error) (Event, error) {
	if err == nil && e.Status == deleted {
		return Event{}, ErrNotFound
	}
	return e, err
}

// FindPublic finds the event whose page has a slug, or else the published event that has it for an
// ID. Errors: ErrNotFound, those of the database.
func (s *SQL) FindPublic(ctx context.Context, site, slug string) (Event, error) {
	return found(s.db.Read.QueryRowContext(ctx, findPublic, site, slug))
}

// HoldPublic is FindPublic in a transaction, until whose end nobody else changes the event, nor
// holds it.
func (s *SQL) HoldPublic(ctx context.Context, tx *sql.Tx, site, slug string) (Event, error) {
	return found(tx.QueryRowContext(ctx, s.holding(findPublic), site, slug))
}

// Hold is [Find] in a transaction, until whose end nobody else changes the event, nor holds it.
func (s *SQL) Hold(ctx context.Context, tx *sql.Tx, site, id string) (Event, error) {
	return found(tx.QueryRowContext(ctx, s.holding(findEvent), site, id))
}

func found(row database.Row) (Event, error) {
	e, err := undeleted(scanEvent(row))
	return e, wrap("finding an event", notFound(err))
}

func (s *SQL) holding(query string) string {
	if s.db.Kind == database.Postgres { // SQLite has one writer at a time
		query += ` FOR NO KEY UPDATE OF events` // in turn with editors, who would wait for ever beside a shared lock
	}
	return query
}

const findPublic = selectEvents + ofReader

// WithIDs finds events of a site by their IDs. Events that somebody has deleted are left out.
func (s *SQL) WithIDs(ctx context.Context, site string, ids []string) ([]Event, error) {
	list, err := s.in(ctx, site, "id", ids)
	return slices.DeleteFunc(list, func(e Event) bool { return e.Status == deleted }), err
}
