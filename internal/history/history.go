// Package history keeps who of the staff did what to a thing of a site, such as an event, and when.
//
// Of each thing the last [Most] entries are kept, for a year at most: they have names of people in them.
package history

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the table of this package.
var Schema = database.Schema{Name: "history", Files: migrations, Sites: []string{"history"}, Content: []string{"history"}}

const (
	// Most is how many entries of a thing are kept: 5 KB.
	Most = 50

	// maxName bounds a name, and what an entry is about, in code points.
	maxName = 200

	// retention is how long an entry is kept.
	retention = 366 * 24 * time.Hour

	// togetherSpan is how long changes of one person, with nothing in between, are one entry. A
	// draft is saved each second while somebody types.
	togetherSpan = time.Hour
)

// Changed is what was done where nothing else says more.
const Changed = "changed"

// Thing is what an entry is about.
type Thing struct{ Site, Kind, Key string }

// Editor is a member of the staff.
type Editor struct {
	ID   string // the platform's own, "" for somebody who did it on the platform
	Name string // for people
}

// Entry is what somebody did.
type Entry struct {
	Editor

	At    time.Time
	Did   string
	About string // what else it was about, such as the title of a post, "" for nothing
}

// Log keeps entries. It may be used by many goroutines, and by several processes, at once.
type Log struct{ db *database.DB }

// New brings the table up to date and returns the log.
func New(ctx context.Context, db *database.DB) (*Log, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return &Log{db}, nil
}

const (
	ofThing = ` WHERE site = $1 AND kind = $2 AND thing = $3`

	addEntry  = `INSERT INTO history (site, kind, thing, at, id, editor, name, did, about) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	lastEntry = `SELECT at, id, editor, did FROM history` + ofThing + ` ORDER BY at DESC, id DESC LIMIT 1`
	moveEntry = `UPDATE history SET at = $5, name = $6` + ofThing + ` AND at = $4 AND id = $7`
	list      = `SELECT at, editor, name, did, about, thing FROM history` + ofThing + ` AND at >= $5 ORDER BY at DESC, id DESC LIMIT $4`
	listKind  = `SELECT at, editor, name, did, about, thing FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY thing ORDER BY at DESC, id DESC) AS n
		FROM history WHERE site = $1 AND kind = $2 AND at >= $4) AS numbered WHERE n <= $3 ORDER BY thing, n`

	dropMore = `DELETE FROM history` + ofThing + ` AND at < (SELECT MIN(at) FROM (SELECT at FROM history` + ofThing + ` ORDER BY at DESC, id DESC LIMIT $4) AS kept)`
	dropOld  = `DELETE FROM history WHERE at < $1`
	drop     = `DELETE FROM history` + ofThing
)

// Add keeps an entry with the time of the store, in the transaction that does what it says. An entry
// of the same moment as the last one is a millisecond later. isNew is false for a change that the last
// entry stands for too.
func (l *Log) Add(ctx context.Context, tx *sql.Tx, of Thing, e Entry) (isNew bool, err error) {
	now := l.db.Now().Truncate(time.Millisecond)
	var at, id int64
	var editor, did string
	err = tx.QueryRowContext(ctx, lastEntry, of.Site, of.Kind, of.Key).Scan(&at, &id, &editor, &did)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, database.Wrap("adding to the history", err)
	}
	last := time.UnixMilli(at)
	isTogether := e.Did == Changed && did == Changed && editor == e.ID && now.Sub(last) <= togetherSpan
	if !now.After(last) {
		now = last.Add(time.Millisecond)
	}
	if isTogether {
		_, err := tx.ExecContext(ctx, moveEntry, of.Site, of.Kind, of.Key, at, now.UnixMilli(), clip.Text(e.Name, maxName), id)
		return false, database.Wrap("adding to the history", err)
	}
	for _, step := range []struct {
		text string
		args []any
	}{
		{addEntry, []any{of.Site, of.Kind, of.Key, now.UnixMilli(), rand.Int64(), e.ID, clip.Text(e.Name, maxName), e.Did, clip.Text(e.About, maxName)}},
		{dropMore, []any{of.Site, of.Kind, of.Key, Most}},
		{dropOld, []any{l.oldest()}},
	} {
		if _, err := tx.ExecContext(ctx, step.text, step.args...); err != nil {
			return false, database.Wrap("adding to the history", err)
		}
	}
	return true, nil
}

// oldest is the time before which entries are not kept, as in the table. They are not shown any more,
// and go with the next entry of any site.
func (l *Log) oldest() int64 { return l.db.Now().Add(-retention).UnixMilli() }

// AddAlone is Add in a transaction of its own.
func (l *Log) AddAlone(ctx context.Context, of Thing, e Entry) error {
	return l.db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := l.Add(ctx, tx, of, e)
		return err
	})
}

// List reads the entries of a thing, the latest first, at most Most.
func (l *Log) List(ctx context.Context, of Thing) ([]Entry, error) {
	found, err := l.read(ctx, list, of.Site, of.Kind, of.Key, Most, l.oldest())
	return found[of.Key], err
}

// ListKind reads the latest entries of all things of a kind, up to most of each. The keys are
// those of the things.
func (l *Log) ListKind(ctx context.Context, site, kind string, most int) (map[string][]Entry, error) {
	return l.read(ctx, listKind, site, kind, most, l.oldest())
}

func (l *Log) read(ctx context.Context, query string, args ...any) (map[string][]Entry, error) {
	found := make(map[string][]Entry)
	err := database.Each(ctx, l.db.Read, func(row database.Row) error {
		var e Entry
		var key string
		err := row.Scan(database.Time(&e.At), &e.ID, &e.Name, &e.Did, &e.About, &key)
		found[key] = append(found[key], e)
		return err
	}, query, args...)
	return found, database.Wrap("reading the history", err)
}

// Drop deletes the entries of a thing, in the transaction that deletes the thing.
func (*Log) Drop(ctx context.Context, tx *sql.Tx, of Thing) error {
	_, err := tx.ExecContext(ctx, drop, of.Site, of.Kind, of.Key)
	return database.Wrap("deleting a history", err)
}
