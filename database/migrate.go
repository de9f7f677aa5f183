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
// from those of another. Several processes may do this at once. Tables of a newer
// Lychgate are an error: an older one would write them without what is new, and
// the newer one would take such rows for complete (docs/deployment.md#downgrade).
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
			return checkVersion(ctx, name, provider)
		}
		if db.Kind == Postgres || attempt == 3 {
			return fmt.Errorf("migrating %s: %w", name, err)
		}
	}
}

// checkVersion returns an error if the tables have migrations that the provider
// does not know.
func checkVersion(ctx context.Context, name string, provider *goose.Provider) error {
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", name, err)
	}
	sources := provider.ListSources()
	if known := sources[len(sources)-1].Version; version > known {
		return fmt.Errorf("the store is of a newer Lychgate: %s has version %d, and this one knows %d; run the newer one, or take the store back as the page on deployment says", name, version, known)
	}
	return nil
}
