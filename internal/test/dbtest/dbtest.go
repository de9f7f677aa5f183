// Package dbtest opens empty databases for tests, of each kind that there is.
package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// Each runs a test on an empty database of each kind. Without the environment
// variable LYCHGATE_TEST_POSTGRES, a connection string, the one on PostgreSQL
// is skipped, or fails if LYCHGATE_TEST_SERVERS says that all servers are there.
func Each(t *testing.T, test func(t *testing.T, db *database.DB)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// SQLite opens an empty database in a file.
func SQLite(t testing.TB) *database.DB {
	t.Helper()
	return open(t, database.SQLite, filepath.Join(t.TempDir(), "lychgate.db"))
}

// Postgres opens an empty schema.
func Postgres(t testing.TB) *database.DB {
	t.Helper()
	return open(t, database.Postgres, PostgresSource(t))
}

// PostgresSource is a connection string whose tables go to a schema that is made for the
// test. With the environment variable LYCHGATE_TEST_PGBOUNCER, a pool mode, it is that of a
// PgBouncer in front.
func PostgresSource(t testing.TB) string {
	t.Helper()
	source := os.Getenv("LYCHGATE_TEST_POSTGRES")
	if source == "" {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatal("LYCHGATE_TEST_POSTGRES is not set")
		}
		t.Skip("needs PostgreSQL: run e2e/postgres/start, and set LYCHGATE_TEST_POSTGRES to what it prints")
	}
	schema := fmt.Sprintf("test_%d", time.Now().UnixNano())
	admin := open(t, database.Postgres, source)
	if _, err := admin.Write.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatalf("admin.Write.ExecContext: %v", err)
	}
	t.Cleanup(func() {
		if _, err := admin.Write.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE"); err != nil {
			t.Errorf("admin.Write.ExecContext: %v", err)
		}
	})
	separator := "?"
	if strings.Contains(source, "?") {
		separator = "&"
	}
	source += separator + "search_path=" + url.QueryEscape(schema)
	if mode := os.Getenv("LYCHGATE_TEST_PGBOUNCER"); mode != "" {
		return PgBouncer(t, source, mode, "default_pool_size = 40") // for two edges in the mode session
	}
	return source
}

func open(t testing.TB, kind database.Kind, source string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), kind, source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("db.Close: %v", err)
		}
	})
	return db
}

// ByIndex fails the test if SQLite reads all rows of a table for a query, and reports whether it sorts what it
// finds: the one takes longer with each row that there is, the other with each that is found.
func ByIndex(t testing.TB, db *database.DB, query string, args ...any) (sorts bool) {
	t.Helper()
	rows, err := db.Read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("planning %s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatalf("reading the plan of %s: %v", query, err)
		}
		if strings.HasPrefix(step, "SCAN ") && !strings.Contains(step, " USING ") && step != "SCAN CONSTANT ROW" {
			t.Errorf("%s: %s", query, step)
		}
		sorts = sorts || strings.HasPrefix(step, "USE TEMP B-TREE")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("reading the plan of %s: %v", query, err)
	}
	return sorts
}

// Exec runs a statement that changes a database, and fails the test unless that works.
func Exec(t testing.TB, db *database.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Write.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
