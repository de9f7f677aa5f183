package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Schema is the tables of a package: the folder "migrations" of Files has files named
// 00001_name.sql and so on, in goose's format, in SQL that SQLite and PostgreSQL share. The
// name keeps the versions of one package apart from those of another.
type Schema struct {
	Name  string
	Files fs.FS
	Sites []string // the tables with rows of sites, by a column site

	// Content is the tables with what staff, readers and programs made at a site, by a column
	// site. A new site with the same name would get it.
	Content []string
}

// HasContent reports whether the Content tables have rows of a site.
func (s Schema) HasContent(ctx context.Context, db *DB, site string) (has bool, err error) {
	for _, table := range s.Content {
		err = db.Read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+" WHERE site = $1)", site).Scan(&has)
		if has || err != nil {
			break
		}
	}
	return has, Wrap("looking for what is kept of site "+site, err)
}

// Forget deletes all rows of a site that is not served any more.
func (s Schema) Forget(ctx context.Context, db *DB, site string) error {
	for _, table := range s.Sites {
		if _, err := db.Write.ExecContext(ctx, "DELETE FROM "+table+" WHERE site = $1", site); err != nil {
			return Wrap("deleting what is kept of site "+site+" in "+table, err)
		}
	}
	return nil
}

// Migrate brings the tables up to date. Several processes may do this at once. Tables of a
// newer Lychgate that this one could not write rightly are an error: the newer one would
// take what is left out for complete (docs/deployment.md#two-versions-on-one-store).
func (s Schema) Migrate(ctx context.Context, db *DB) (err error) {
	provider, err := s.provider(db)
	if err != nil {
		return err
	}
	if isDone, err := s.isMigrated(ctx, db); err != nil || isDone {
		return err
	}
	if db.Kind == Postgres {
		unlock, lockErr := lockMigrations(ctx, db)
		if lockErr != nil {
			return fmt.Errorf("migrating %s: %w", s.Name, lockErr)
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	// SQLite has no lock that would span a migration and goose's own note of
	// it. One that comes second fails, and finds everything done the next time.
	for attempt := 1; ; attempt++ {
		if isDone, err := s.isMigrated(ctx, db); err != nil || isDone {
			return err
		}
		if err = s.up(ctx, db, provider); err != nil && (db.Kind == Postgres || attempt == 3) {
			return fmt.Errorf("migrating %s: %w", s.Name, err)
		}
	}
}

// isMigrated reports whether the tables can be used as they are.
func (s Schema) isMigrated(ctx context.Context, db *DB) (bool, error) {
	v, err := s.Version(ctx, db)
	if err != nil {
		return false, err
	}
	if !v.IsUsable() {
		return false, fmt.Errorf("the store is of a newer Lychgate: %s has version %d, and this one knows %d; run the newer one, or stop all and run its command: caddy lychgate downgrade %s=%d", s.Name, v.Has, v.Known, s.Name, v.Known)
	}
	return v.Has >= v.Known, nil
}

// CheckDown reports whether Down can take the tables back to a version, 1 or more, and which they have. Errors: a version that the
// tables are not above, tables that are newer than the Schema.
func (s Schema) CheckDown(ctx context.Context, db *DB, version int64) (from int64, err error) {
	v, err := s.Version(ctx, db)
	switch {
	case err != nil:
		return 0, err
	case v.Has > v.Known:
		return 0, fmt.Errorf("the tables of %s have version %d, and this Lychgate knows %d: run the one that knows it", s.Name, v.Has, v.Known)
	case v.Has <= 1:
		return 0, fmt.Errorf("the tables of %s have version %d, and there is none before it", s.Name, v.Has)
	case version < 1 || version >= v.Has:
		return 0, fmt.Errorf("the tables of %s have version %d, so write one from 1 to %d", s.Name, v.Has, v.Has-1)
	}
	return v.Has, nil
}

// Down takes the tables back to a version, with what newer versions keep in them. Nothing else may use them meanwhile. It returns the
// version before. Errors: those of CheckDown.
func (s Schema) Down(ctx context.Context, db *DB, version int64) (from int64, err error) {
	from, err = s.CheckDown(ctx, db, version)
	if err != nil {
		return 0, err
	}
	provider, err := s.provider(db)
	if err == nil {
		_, err = provider.DownTo(ctx, version)
	}
	return from, Wrap("taking the tables of "+s.Name+" back", err)
}

// compatible is the table of the lowest versions that may still be used. A migration after
// which that is not 0 sets it itself, so that both are there at once.
const compatible = "CREATE TABLE IF NOT EXISTS migrations_compatible (name TEXT PRIMARY KEY, version BIGINT NOT NULL)"

func (s Schema) up(ctx context.Context, db *DB, provider *goose.Provider) error {
	if _, err := db.Write.ExecContext(ctx, compatible); err != nil {
		return err
	}
	if _, err := db.Write.ExecContext(ctx, "INSERT INTO migrations_compatible (name, version) VALUES ($1, 0) ON CONFLICT DO NOTHING", s.Name); err != nil {
		return err
	}
	_, err := provider.Up(ctx)
	return err
}

// migrationTimeout is how long a process waits for the migrations of another.
const migrationTimeout = 5 * time.Minute

// lockMigrations waits until no other process migrates. The lock is that of a transaction: one
// of a session would stay with a pooler's connection (docs/fleet.md#pgbouncer).
func lockMigrations(ctx context.Context, db *DB) (unlock func() error, err error) {
	tx, err := db.Write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if _, err := tx.ExecContext(waiting, "SELECT pg_advisory_xact_lock($1)", lock.DefaultLockID); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the migrations of another edge: %w", err), rollback(tx))
	}
	return func() error { return rollback(tx) }, nil
}

func (s Schema) provider(db *DB) (*goose.Provider, error) {
	files, err := fs.Sub(s.Files, "migrations")
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectSQLite3
	if db.Kind == Postgres {
		dialect = goose.DialectPostgres
	}
	provider, err := goose.NewProvider(dialect, db.Write, files,
		goose.WithTableName(s.versionTable()),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return nil, fmt.Errorf("migrations of %s: %w", s.Name, err)
	}
	return provider, nil
}

// versionTable is where goose keeps the version of the tables.
func (s Schema) versionTable() string { return "migrations_" + s.Name }

// Version is how the tables of a database compare with a Schema.
type Version struct {
	Has        int64 // the migrations that were made, 0 if there are no tables
	Known      int64 // the version to which Migrate would bring them
	Compatible int64 // the lowest Known with which tables of a higher version may be used
}

// IsUsable reports whether the tables can be used once Migrate has run.
func (v Version) IsUsable() bool { return v.Has <= v.Known || v.Compatible <= v.Known }

// Version reads the version of a database's tables. It changes nothing.
func (s Schema) Version(ctx context.Context, db *DB) (Version, error) {
	provider, err := s.provider(db)
	if err != nil {
		return Version{}, err
	}
	sources := provider.ListSources()
	v := Version{Known: sources[len(sources)-1].Version}
	err = db.Read.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+s.versionTable()).Scan(&v.Has)
	if err != nil && !isNoTable(err) {
		return Version{}, fmt.Errorf("reading the version of %s: %w", s.Name, err)
	}
	err = db.Read.QueryRowContext(ctx, "SELECT version FROM migrations_compatible WHERE name = $1", s.Name).Scan(&v.Compatible)
	switch {
	case err == nil:
	case errors.Is(err, sql.ErrNoRows), isNoTable(err):
		v.Compatible = v.Has // made before there was such a version, by a development build
	default:
		return Version{}, fmt.Errorf("reading the version of %s: %w", s.Name, err)
	}
	return v, nil
}
