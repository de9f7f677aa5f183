package curation

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Kind is the kind of work that moves a tag. Its keys are [manifest.TagIdentity] of tags.
const Kind = "curation"

// Move is what the slot with a tag is to hold, and does not yet.
type Move struct {
	Site, Tag string // the tag as the choice names it
	Post      string // "" for none
	WantedAt  time.Time
	Tries     int
	Problem   string // of the last try

	identity string // of the tag: the same for all its names
	revision int64  // another each time that it is asked for
}

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package, which come after those of [work.Schema].
var Schema = database.Schema{Name: "curation", Files: migrations, Sites: []string{"curation_moves"}, Content: []string{"curation_moves"}}

// SQL keeps moves in a database until the platform has them. It may be used by many
// goroutines, and by several processes, at once.
type SQL struct {
	db      *database.DB
	history *history.Log
}

// NewSQL migrates the tables and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := work.Schema.Migrate(ctx, db); err != nil { // which has what is pending
		return nil, err
	}
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	log, err := history.New(ctx, db)
	return &SQL{db, log}, err
}

const (
	wantMove = `INSERT INTO curation_moves (site, identity, tag, post, revision) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (site, identity) DO UPDATE SET tag = excluded.tag, post = excluded.post, revision = excluded.revision`

	selectMoves = `SELECT m.site, m.identity, m.tag, m.post, m.revision, w.since, w.attempts, w.reason FROM curation_moves m
		JOIN work w ON w.site = m.site AND w.kind = '` + Kind + `' AND w.key = m.identity WHERE m.site = $1`
	findMove  = selectMoves + ` AND m.identity = $2`
	listMoves = selectMoves + ` ORDER BY m.identity`

	// It may have been asked for anew by now.
	doneMove = `DELETE FROM curation_moves WHERE site = $1 AND identity = $2 AND revision = $3`
)

// wanted is a move, who asks for it, and its task.
type wanted struct {
	Move
	by   history.Entry
	task work.Task
}

// want keeps moves, each in place of one of the same tag, by whichever of its names. In the same
// transaction it enqueues them and notes who did it.
func (s *SQL) want(ctx context.Context, moves []wanted, enqueue func(context.Context, *sql.Tx, work.Task) (work.Task, error)) error {
	slices.SortFunc(moves, func(a, b wanted) int { return cmp.Compare(a.identity, b.identity) }) // so that two who swap do not wait for each other
	err := s.db.InTx(ctx, func(tx *sql.Tx) (err error) {
		for i, m := range moves {
			if _, err := tx.ExecContext(ctx, wantMove, m.Site, m.identity, m.Tag, m.Post, mathrand.Int64()); err != nil {
				return err
			}
			if _, err := s.history.Add(ctx, tx, m.thing(), m.by); err != nil {
				return err
			}
			if moves[i].task, err = enqueue(ctx, tx, work.Task{Site: m.Site, Kind: Kind, Key: m.identity, Title: m.Tag}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, m := range moves {
		if err == nil {
			audit.Note(ctx, m.Site, slotKind, m.identity, m.by.Did)
		}
	}
	return database.Wrap("keeping a move", err)
}

// Refused is what the platform did in the history of a slot. The entry is about its reason.
const Refused = "refused"

// slotKind is the kind of slots in the history. The keys are the identities of their tags.
const slotKind = "slot"

func (m Move) thing() history.Thing {
	return history.Thing{Site: m.Site, Kind: slotKind, Key: m.identity}
}

// shownEntries is how many entries of each slot are shown.
const shownEntries = 5

// History lists who filled the slots of a site, the latest first, at most shownEntries of each. The
// keys are the [manifest.TagIdentity] of the tags.
func (s *SQL) History(ctx context.Context, site string) (map[string][]history.Entry, error) {
	return s.history.ListKind(ctx, site, slotKind, shownEntries)
}

// HistoryOf lists who filled the slot with a tag, the last first.
func (s *SQL) HistoryOf(ctx context.Context, site, tag string) ([]history.Entry, error) {
	return s.history.List(ctx, moveOf(site, tag, "").thing())
}

// find takes the identity of a tag.
func (s *SQL) find(ctx context.Context, site, identity string) (Move, bool, error) {
	m, err := scanMove(s.db.Read.QueryRowContext(ctx, findMove, site, identity))
	if errors.Is(err, sql.ErrNoRows) {
		return Move{}, false, nil
	}
	return m, err == nil, database.Wrap("finding a move", err)
}

// List is in the order of the tags.
func (s *SQL) List(ctx context.Context, site string) ([]Move, error) {
	list, err := database.List(ctx, s.db.Read, scanMove, listMoves, site)
	return list, database.Wrap("listing moves", err)
}

// done forgets a move, and reports false if it was replaced.
func (*SQL) done(ctx context.Context, tx *sql.Tx, m Move) (bool, error) {
	n, err := database.Affected(tx.ExecContext(ctx, doneMove, m.Site, m.identity, m.revision))
	return n > 0, database.Wrap("removing a move", err)
}

// refused forgets a move that the platform refused for good, and notes that in the history of its slot,
// behind who asked for it. Of one that was replaced, nobody asks any more.
func (s *SQL) refused(ctx context.Context, tx *sql.Tx, m Move, reason string) error {
	if isLast, err := s.done(ctx, tx, m); err != nil || !isLast {
		return err
	}
	_, err := s.history.Add(ctx, tx, m.thing(), history.Entry{Did: Refused, About: reason})
	return err
}

func moveOf(site, tag, post string) Move {
	return Move{Site: site, Tag: tag, Post: post, identity: manifest.TagIdentity(tag)}
}

func scanMove(row database.Row) (Move, error) {
	var m Move
	err := row.Scan(&m.Site, &m.identity, &m.Tag, &m.Post, &m.revision, database.Time(&m.WantedAt), &m.Tries, &m.Problem)
	return m, err
}
