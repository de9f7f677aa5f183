package curation

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Move is what the slot with a tag is to hold, and does not yet.
type Move struct {
	Site, Tag string // the tag as the choice names it
	Post      string // "" for none
	WantedAt  time.Time
	Tries     int
	Problem   string // of the last try

	identity string // of the tag: the same for all its names
	revision int64
}

// Store keeps moves until the platform has them.
//
// It may be used by many goroutines, and by several processes, at once. A method that
// returns nil has made its change durable.
type Store interface {
	// Want keeps a move, in place of one of the same tag, by whichever of its names. It is
	// due at once.
	Want(ctx context.Context, site, tag, post string) (Move, error)

	// Find returns what is kept of the tag of a move now, and false if that is nothing.
	Find(ctx context.Context, m Move) (Move, bool, error)

	// List returns the moves of a site, in the order of their tags.
	List(ctx context.Context, site string) ([]Move, error)

	// Due returns the sites that have moves that are due, at most maxDue: those that have
	// been due longest first, of them only the ones behind another, which may be zero.
	Due(ctx context.Context, behind DueSite) ([]DueSite, error)

	// DueOf returns the moves of a site that are due, the first ones first.
	DueOf(ctx context.Context, site string) ([]Move, error)

	// Done forgets a move, and Postpone tries it later, unless it was replaced.
	Done(ctx context.Context, m Move) error
	Postpone(ctx context.Context, m Move, by time.Duration, problem string) error

	// Hold leases a site to a holder, or prolongs the lease, and reports false if it is
	// another's. Release ends the lease.
	Hold(ctx context.Context, site, holder string, by time.Duration) (bool, error)
	Release(ctx context.Context, site, holder string) error
}

// DueSite is a site that has moves that are due.
type DueSite struct {
	Site  string
	Since int64 // when the first of them was, in Unix milliseconds
}

// maxDue is how many sites Due returns.
const maxDue = 1000

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package.
var Schema = database.Schema{Name: "curation", Files: migrations}

// SQL is a [Store] on a database, by whose clock it goes.
type SQL struct{ db *database.DB }

// NewSQL brings the tables up to date and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return &SQL{db}, nil
}

const (
	moveColumns = `site, identity, tag, post, revision, wanted_at, tries, problem`

	wantMove = `INSERT INTO curation_moves (site, identity, tag, post, revision, wanted_at, due_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (site, identity) DO UPDATE SET tag = excluded.tag, post = excluded.post, revision = excluded.revision, wanted_at = excluded.wanted_at,
		due_at = excluded.due_at, tries = 0, problem = ''`
	findMove  = `SELECT ` + moveColumns + ` FROM curation_moves WHERE site = $1 AND identity = $2`
	listMoves = `SELECT ` + moveColumns + ` FROM curation_moves WHERE site = $1 ORDER BY identity`
	listDue   = `SELECT site, MIN(due_at) FROM curation_moves WHERE due_at <= $1 GROUP BY site
		HAVING MIN(due_at) > $2 OR MIN(due_at) = $2 AND site > $3 ORDER BY MIN(due_at), site LIMIT $4`
	listDueOf    = `SELECT ` + moveColumns + ` FROM curation_moves WHERE site = $1 AND due_at <= $2 ORDER BY due_at LIMIT 100`
	doneMove     = `DELETE FROM curation_moves WHERE site = $1 AND identity = $2 AND revision = $3`
	postponeMove = `UPDATE curation_moves SET due_at = $4, tries = tries + 1, problem = $5 WHERE site = $1 AND identity = $2 AND revision = $3`

	holdSite = `INSERT INTO curation_leases (site, holder, leased_until) VALUES ($1, $2, $3)
		ON CONFLICT (site) DO UPDATE SET holder = excluded.holder, leased_until = excluded.leased_until
		WHERE curation_leases.leased_until <= $4 OR curation_leases.holder = excluded.holder`
	releaseSite = `DELETE FROM curation_leases WHERE site = $1 AND holder = $2`

	forgetMoves  = `DELETE FROM curation_moves WHERE site = $1`
	forgetLeases = `DELETE FROM curation_leases WHERE site = $1`
)

// Want implements [Store].
func (s *SQL) Want(ctx context.Context, site, tag, post string) (Move, error) {
	m := Move{
		Site: site, Tag: tag, Post: post, WantedAt: s.db.Now().UTC().Truncate(time.Millisecond),
		identity: manifest.TagIdentity(tag), revision: rand.Int64(),
	}
	if _, err := s.db.Write.ExecContext(ctx, wantMove, site, m.identity, tag, post, m.revision, m.WantedAt.UnixMilli()); err != nil {
		return Move{}, fmt.Errorf("keeping a move: %w", err)
	}
	return m, nil
}

// Find implements [Store].
func (s *SQL) Find(ctx context.Context, m Move) (Move, bool, error) {
	m, err := scanMove(s.db.Read.QueryRowContext(ctx, findMove, m.Site, m.identity))
	if errors.Is(err, sql.ErrNoRows) {
		return Move{}, false, nil
	}
	if err != nil {
		return Move{}, false, fmt.Errorf("finding a move: %w", err)
	}
	return m, true, nil
}

// List implements [Store].
func (s *SQL) List(ctx context.Context, site string) ([]Move, error) {
	return s.list(ctx, listMoves, site)
}

// DueOf implements [Store].
func (s *SQL) DueOf(ctx context.Context, site string) ([]Move, error) {
	return s.list(ctx, listDueOf, site, s.db.Now().UnixMilli())
}

func (s *SQL) list(ctx context.Context, query string, args ...any) ([]Move, error) {
	rows, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("listing moves: %w", err)
	}
	defer rows.Close()
	var list []Move
	for rows.Next() {
		m, err := scanMove(rows)
		if err != nil {
			return nil, fmt.Errorf("listing moves: %w", err)
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// Due implements [Store].
func (s *SQL) Due(ctx context.Context, behind DueSite) (sites []DueSite, err error) {
	rows, err := s.db.Read.QueryContext(ctx, listDue, s.db.Now().UnixMilli(), behind.Since, behind.Site, maxDue)
	if err != nil {
		return nil, fmt.Errorf("finding due moves: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var site DueSite
		if err := rows.Scan(&site.Site, &site.Since); err != nil {
			return nil, fmt.Errorf("finding due moves: %w", err)
		}
		sites = append(sites, site)
	}
	return sites, rows.Err()
}

// Done implements [Store].
func (s *SQL) Done(ctx context.Context, m Move) error {
	if _, err := s.db.Write.ExecContext(ctx, doneMove, m.Site, m.identity, m.revision); err != nil {
		return fmt.Errorf("forgetting a move: %w", err)
	}
	return nil
}

// Postpone implements [Store].
func (s *SQL) Postpone(ctx context.Context, m Move, by time.Duration, problem string) error {
	if _, err := s.db.Write.ExecContext(ctx, postponeMove, m.Site, m.identity, m.revision, s.db.Now().Add(by).UnixMilli(), problem); err != nil {
		return fmt.Errorf("postponing a move: %w", err)
	}
	return nil
}

// Hold implements [Store].
func (s *SQL) Hold(ctx context.Context, site, holder string, by time.Duration) (bool, error) {
	now := s.db.Now()
	result, err := s.db.Write.ExecContext(ctx, holdSite, site, holder, now.Add(by).UnixMilli(), now.UnixMilli())
	if err != nil {
		return false, fmt.Errorf("leasing a site: %w", err)
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// Release implements [Store].
func (s *SQL) Release(ctx context.Context, site, holder string) error {
	if _, err := s.db.Write.ExecContext(ctx, releaseSite, site, holder); err != nil {
		return fmt.Errorf("releasing a site: %w", err)
	}
	return nil
}

// Forget deletes all that is kept of a site that is not served any more.
func (s *SQL) Forget(ctx context.Context, site string) error {
	for _, statement := range []string{forgetMoves, forgetLeases} {
		if _, err := s.db.Write.ExecContext(ctx, statement, site); err != nil {
			return fmt.Errorf("deleting the moves of site %s: %w", site, err)
		}
	}
	return nil
}

func scanMove(row interface{ Scan(...any) error }) (Move, error) {
	var m Move
	var wanted int64
	err := row.Scan(&m.Site, &m.identity, &m.Tag, &m.Post, &m.revision, &wanted, &m.Tries, &m.Problem)
	m.WantedAt = time.UnixMilli(wanted).UTC()
	return m, err
}

var _ Store = (*SQL)(nil)
