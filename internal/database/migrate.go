package database

import (
	"context"
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
}

// Migrate brings the tables up to date. Several processes may do this at once. Tables of a
// newer Lychgate are an error: an older one would write them without what is new, and the
// newer one would take such rows for complete (docs/deployment.md#downgrade).
func (s Schema) Migrate(ctx context.Context, db *DB) (err error) {
	provider, err := s.provider(db)
	if err != nil {
		return err
	}
	if db.Kind == Postgres {
		unlock, err := lockMigrations(ctx, db)
		if err != nil {
			return fmt.Errorf("migrating %s: %w", s.Name, err)
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	// SQLite has no lock that would span a migration and goose's own note of
	// it. Whoever comes second fails, and finds everything done the next time.
	for attempt := 1; ; attempt++ {
		_, err := provider.Up(ctx)
		if err == nil {
			return s.checkVersion(ctx, provider)
		}
		if db.Kind == Postgres || attempt == 3 {
			return fmt.Errorf("migrating %s: %w", s.Name, err)
		}
	}
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

// Version reads the version of a database's tables, 0 if there are none, and the one to
// which Migrate would bring them. It changes nothing.
func (s Schema) Version(ctx context.Context, db *DB) (has, latest int64, err error) {
	provider, err := s.provider(db)
	if err != nil {
		return 0, 0, err
	}
	latest = latestOf(provider)
	err = db.Read.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+s.versionTable()).Scan(&has)
	if err != nil && !isNoTable(err) {
		return 0, 0, fmt.Errorf("reading the version of %s: %w", s.Name, err)
	}
	return has, latest, nil
}

func latestOf(provider *goose.Provider) int64 {
	sources := provider.ListSources()
	return sources[len(sources)-1].Version
}

// checkVersion refuses tables with migrations that the provider does not know: a newer
// program has made them.
func (s Schema) checkVersion(ctx context.Context, provider *goose.Provider) error {
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", s.Name, err)
	}
	if known := latestOf(provider); version > known {
		return fmt.Errorf("the store is of a newer Lychgate: %s has version %d, and this one knows %d; run the newer one, or take the store back as the page on deployment says", s.Name, version, known)
	}
	return nil
}
