package database_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sync/errgroup"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Edges behind PgBouncer start, migrate in turn, and write, in both of its modes: no prepared
// statement and no lock stays on a connection that another edge gets.
func TestPgBouncer(t *testing.T) {
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			source := dbtest.PgBouncer(t, dbtest.PostgresSource(t), mode, "default_pool_size = 20")
			var edges errgroup.Group
			for edge := range 4 {
				edges.Go(func() error {
					db, err := database.Open(t.Context(), database.Postgres, source)
					if err != nil {
						return err
					}
					defer func() { _ = db.Close() }() // when all is written
					if err := notesSchema.Migrate(t.Context(), db); err != nil {
						return err
					}
					var writers errgroup.Group
					for writer := range 4 {
						writers.Go(func() error {
							for note := range 25 {
								err := db.InTx(t.Context(), func(tx *sql.Tx) error {
									_, err := tx.ExecContext(t.Context(), "INSERT INTO notes (id) VALUES ($1)", fmt.Sprint(edge, writer, note))
									return err
								})
								if err != nil {
									return err
								}
							}
							return nil
						})
					}
					return writers.Wait()
				})
			}
			if err := edges.Wait(); err != nil {
				t.Fatalf("an edge: %v", err)
			}
			db, err := database.Open(t.Context(), database.Postgres, source)
			if err != nil {
				t.Fatalf("database.Open: %v", err)
			}
			defer func() { _ = db.Close() }() // it only reads
			var notes int
			if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notes").Scan(&notes); err != nil || notes != 400 {
				t.Errorf("got %d notes and the error %v, want 400", notes, err)
			}
			wait.Until(t, func() string { // other tests' migrations have theirs at the same time, in transactions
				var locks int
				err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND state = 'idle'").Scan(&locks)
				if err != nil || locks > 0 {
					return fmt.Sprintf("%d locks stay on connections that nobody uses, %v", locks, err)
				}
				return ""
			})
		})
	}
}

// An operator whose PostgreSQL has no connection left reads which two numbers to change.
func TestNoConnectionLeft(t *testing.T) {
	source := dbtest.PostgresSource(t)
	admin, err := database.Open(t.Context(), database.Postgres, source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer func() { _ = admin.Close() }() // all is done
	u, err := url.Parse(source)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	role := u.Query().Get("search_path")
	run := func(statement string) {
		t.Helper()
		if _, err := admin.Write.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run("CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 1")
	defer run("DROP ROLE " + role)
	u.User = url.User(role)
	const want = "PostgreSQL has no connection left: raise max_connections there, or give each edge fewer with pool_max_conns in its connection string: "
	isLeft := func(before string, err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), before+want) || strings.Count(err.Error(), want) != 1 || !database.IsAway(err) {
			t.Errorf("got the error %v, want one that begins with %q, once, and stands for a store that is away", err, before+want)
		}
	}
	var running *database.DB
	wait.Until(t, func() string { // the backend of its first connection may not have ended when it opens the next
		var err error
		if running, err = database.Open(t.Context(), database.Postgres, u.String()); err != nil {
			return err.Error()
		}
		return ""
	})
	defer func() { _ = running.Close() }()
	conn, err := running.Write.Conn(t.Context())
	if err != nil {
		t.Fatalf("running.Write.Conn: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_, err = running.Write.ExecContext(t.Context(), "SELECT 1")
	isLeft("", err)
	isLeft("doing: ", database.Wrap("doing", err))
	_, err = database.Open(t.Context(), database.Postgres, u.String())
	isLeft("opening the postgres store: ", err)
}

var notesSchema = database.Schema{Name: "notes", Files: fstest.MapFS{"migrations/00001_notes.sql": &fstest.MapFile{
	Data: []byte("-- +goose Up\nCREATE TABLE notes (id TEXT PRIMARY KEY);\n-- +goose Down\nDROP TABLE notes;\n"),
}}}
