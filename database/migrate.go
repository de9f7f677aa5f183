package database

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrate brings a package's tables up to date with the migrations in a
// folder: files named 00001_name.sql and so on, in goose's format, in SQL that
// SQLite and PostgreSQL share. The name keeps the versions of one package apart
// from those of another. Several processes may do this at once.
func (db *DB) Migrate(ctx context.Context, name string, migrations fs.FS) error {
	options := []goose.ProviderOption{
		goose.WithTableName("migrations_" + name),
		goose.WithDisableGlobalRegistry(true),
	}
	dialect := goose.DialectSQLite3
	if db.Kind == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks each second, for five minutes
		if err != nil {
			return err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, db.Write, migrations, options...)
	if err != nil {
		return fmt.Errorf("migrations of %s: %w", name, err)
	}
	// SQLite has no lock that would span a migration and goose's own note of
	// it. Whoever comes second fails, and finds everything done the next time.
	for attempt := 1; ; attempt++ {
		_, err := provider.Up(ctx)
		if err == nil {
			return nil
		}
		if db.Kind == Postgres || attempt == 3 {
			return fmt.Errorf("migrating %s: %w", name, err)
		}
	}
}
