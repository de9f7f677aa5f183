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
	provider, err := db.provider(name, migrations)
	if err != nil {
		return err
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

// provider returns what migrates a package's tables.
func (db *DB) provider(name string, migrations fs.FS) (*goose.Provider, error) {
	options := []goose.ProviderOption{
		goose.WithTableName(versionTable(name)),
		goose.WithDisableGlobalRegistry(true),
	}
	dialect := goose.DialectSQLite3
	if db.Kind == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks each second, for five minutes
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(dialect, db.Write, migrations, options...)
	if err != nil {
		return nil, fmt.Errorf("migrations of %s: %w", name, err)
	}
	return provider, nil
}

// versionTable is the table that has the version of a package's tables.
func versionTable(name string) string { return "migrations_" + name }

// Version returns the version of a package's tables, 0 if there are none, and the
// one that [DB.Migrate] would bring them to. It changes nothing.
func (db *DB) Version(ctx context.Context, name string, migrations fs.FS) (has, latest int64, err error) {
	provider, err := db.provider(name, migrations)
	if err != nil {
		return 0, 0, err
	}
	latest = latestOf(provider)
	err = db.Read.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+versionTable(name)).Scan(&has)
	if err != nil && !isNoTable(err) {
		return 0, 0, fmt.Errorf("reading the version of %s: %w", name, err)
	}
	return has, latest, nil
}

// latestOf returns the version of the last migration.
func latestOf(provider *goose.Provider) int64 {
	sources := provider.ListSources()
	return sources[len(sources)-1].Version
}

// checkVersion returns an error if the tables have migrations that the provider
// does not know.
func checkVersion(ctx context.Context, name string, provider *goose.Provider) error {
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return fmt.Errorf("reading the version of %s: %w", name, err)
	}
	if known := latestOf(provider); version > known {
		return fmt.Errorf("the store is of a newer Lychgate: %s has version %d, and this one knows %d; run the newer one, or take the store back as the page on deployment says", name, version, known)
	}
	return nil
}
