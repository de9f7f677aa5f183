// Package database opens the database that Lychgate keeps its state in, SQLite
// or PostgreSQL, and brings its schema up to date. What differs between the two
// is settled here, so that the packages above write one SQL for both: with
// parameters $1, $2, …, and times as Unix milliseconds.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Kind is a kind of database.
type Kind string

// The kinds that there are.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// busyTimeout is how long a write to SQLite waits for another process.
const busyTimeout = 5 * time.Second

// DB is an open database. It may be used by many goroutines at once.
type DB struct {
	Kind Kind

	// Read runs statements that change nothing.
	Read *sql.DB

	// Write runs all others. SQLite has one writer at a time, so there it is
	// one connection, and each of its transactions takes the lock at once.
	Write *sql.DB

	group       group        // of transactions on SQLite
	reconnector *reconnector // nil on SQLite

	ahead atomic.Int64     // of the database's clock before this process's, in nanoseconds
	clock func() time.Time // this process's
}

// IsReconnecting reports whether the server went away a moment ago, so that callers wait for it. A caller who has an older
// answer may give that meanwhile.
func (db *DB) IsReconnecting() bool { return db.reconnector != nil && db.reconnector.isWaiting() }

// Check reports what can be seen to be wrong with a source without opening it.
func Check(kind Kind, source string) error {
	if kind == SQLite {
		return checkSQLite(source)
	}
	_, err := parsePostgres(source)
	return err
}

// checkSQLite checks a file if there is one that may be read.
func checkSQLite(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		if err == nil {
			return fmt.Errorf("%s is a folder: write the file in it too, such as %s", path, filepath.Join(path, "lychgate.db"))
		}
		return nil // to be made, or for another user
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read
	const magic = "SQLite format 3\x00" // https://sqlite.org/fileformat.html
	start := make([]byte, len(magic))
	if n, err := io.ReadFull(file, start); n > 0 && (err != nil || string(start) != magic) {
		return notSQLite(path)
	}
	return nil
}

// Open opens a database and checks that it answers. The source is SQLite's
// file, which is made, with its folder, if it is not there, readable for its
// owner alone; or PostgreSQL's connection string.
func Open(ctx context.Context, kind Kind, source string) (*DB, error) {
	var db *DB
	var err error
	switch kind {
	case SQLite:
		db, err = openSQLite(source)
	case Postgres:
		db, err = openPostgres(ctx, source)
	default:
		return nil, fmt.Errorf("store %q: known are sqlite and postgres", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the %s store: %w", kind, explain(source, err))
	}
	if err := db.Write.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the %s store: %w", kind, explain(source, err)), db.Close())
	}
	if err := db.ReadClock(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func explain(source string, err error) error { return explainPostgres(explainSQLite(source, err)) }

// Now is the time by the database's clock, as far as ReadClock has read it. All processes
// that share a database go by it, so that they agree on what is due and on whose turn it
// is, however far apart their own clocks are. It is in milliseconds, as columns are.
func (db *DB) Now() time.Time {
	return db.clock().Add(time.Duration(db.ahead.Load())).Truncate(time.Millisecond)
}

// Bytewise is a column to be compared and ordered as Go does, byte by byte, whatever the database's
// collation is.
func (db *DB) Bytewise(column string) string {
	if db.Kind == Postgres {
		return column + ` COLLATE "C"`
	}
	return column
}

// ReadClock reads the database's clock. SQLite has that of the process.
func (db *DB) ReadClock(ctx context.Context) error {
	ahead, err := db.Ahead(ctx)
	if err == nil {
		db.ahead.Store(int64(ahead))
	}
	return err
}

// Ahead measures how far the database's clock is ahead of this process's, to the tenth of
// a second. SQLite has the same.
func (db *DB) Ahead(ctx context.Context) (time.Duration, error) {
	if db.Kind == SQLite {
		return 0, nil
	}
	start := db.clock()
	var there time.Time
	if err := db.Read.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		return 0, Wrap("reading the clock of the store", err)
	}
	now := start.Add(db.clock().Sub(start) / 2) // it was asked on the way there
	return there.Sub(now).Round(100 * time.Millisecond), nil
}

func openSQLite(path string) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// SQLite gives its other files the mode of this one.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	options := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
	}}
	writer, err := openKept(dsn(path, options, "_txlock", "immediate"))
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	reader, err := openKept(dsn(path, options, "_pragma", "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	connections := max(4, runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(connections)
	reader.SetMaxIdleConns(connections)
	return &DB{Kind: SQLite, Read: reader, Write: writer, clock: time.Now}, nil
}

func dsn(path string, options url.Values, key, value string) string {
	all := url.Values{key: {value}}
	for key, values := range options {
		all[key] = append(slices.Clip(values), all[key]...)
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: all.Encode()}).String()
}

// Close closes the database.
func (db *DB) Close() error {
	if db.Read == db.Write {
		return db.Write.Close()
	}
	return errors.Join(db.Read.Close(), db.Write.Close())
}

// InTx runs work in a transaction, which is committed if work returns no error
// and rolled back otherwise. If PostgreSQL is lost before the commit was sent, as
// in a failover, work runs again, once, in another transaction: it must not count
// on variables that it set before. On SQLite the transaction may be shared with other
// callers, and work may run in the goroutine of another; still it is kept or
// taken back for itself, and InTx returns once it is on disk. Work must not end
// the transaction.
func (db *DB) InTx(ctx context.Context, work func(*sql.Tx) error) error {
	return db.inTx(ctx, true, work, nil)
}

// InIdempotentTx is InTx for work that changes nothing if it was done before. It also runs again,
// once, if PostgreSQL was lost in the commit. mayBeDone is true then: whether the first run was kept
// is not known.
func (db *DB) InIdempotentTx(ctx context.Context, work func(tx *sql.Tx, mayBeDone bool) error) error {
	return db.inTx(ctx, true, func(tx *sql.Tx) error { return work(tx, false) }, func(tx *sql.Tx) error { return work(tx, true) })
}

// InTxSoon is InTx for what may be lost if the power fails within the next
// moments: on SQLite it does not wait for the disk. Nothing that is written
// later survives without it.
func (db *DB) InTxSoon(ctx context.Context, work func(*sql.Tx) error) error {
	return db.inTx(ctx, false, work, nil)
}

// inTx runs again after a loss in the commit if again is not nil.
func (db *DB) inTx(ctx context.Context, durable bool, work, again func(*sql.Tx) error) error {
	if db.Kind == SQLite {
		return db.group.inTx(ctx, db.Write, durable, work)
	}
	loss, err := db.inOneTx(ctx, work)
	if loss == inWork {
		again = work
	}
	if loss != notLost && again != nil && ctx.Err() == nil {
		db.reconnector.note(err)
		_, err = db.inOneTx(ctx, again)
	}
	return err
}

// loss is when the connection of a transaction was lost.
type loss int

const (
	notLost  loss = iota
	inWork        // nothing was kept
	inCommit      // it is not known whether anything was kept
)

// inOneTx is one attempt of inTx on PostgreSQL.
func (db *DB) inOneTx(ctx context.Context, work func(*sql.Tx) error) (loss, error) {
	tx, err := db.begin(ctx)
	if err != nil {
		return notLost, err
	}
	if err := work(tx); err != nil {
		failure := rollback(tx) // nil for a transaction that ended with ctx
		if failure != nil {
			return inWork, errors.Join(err, failure)
		}
		return notLost, err
	}
	if err := tx.Commit(); err != nil {
		if IsAway(err) {
			return inCommit, err
		}
		return notLost, err
	}
	return notLost, nil
}

// begin begins a transaction on PostgreSQL. Of connections that are lost it tries others, for failoverTime.
func (db *DB) begin(ctx context.Context) (*sql.Tx, error) {
	for began := time.Now(); ; {
		tx, err := db.Write.BeginTx(ctx, nil)
		_, isConnecting := errors.AsType[*pgconn.ConnectError](err) // which has waited for the server
		if err == nil || isConnecting || !IsAway(err) || ctx.Err() != nil || time.Since(began) > failoverTime {
			return tx, err
		}
		db.reconnector.note(err)
	}
}
