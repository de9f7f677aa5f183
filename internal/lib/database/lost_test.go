package database_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// A change whose server ends in the middle of it is made once more, by itself, and once in all. Nothing
// else is tried again.
func TestServerLostInTransaction(t *testing.T) {
	db := dbtest.Postgres(t)
	if err := notesSchema.Migrate(t.Context(), db); err != nil {
		t.Fatalf("notesSchema.Migrate: %v", err)
	}
	end := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		if err == nil {
			t.Error("pg_terminate_backend: the connection stays, want it ended")
		}
		return err
	}
	errOwn := errors.New("no")
	tests := map[string]struct {
		then       func(ctx context.Context, leave func(), tx *sql.Tx, run int) error
		runs, rows int
		fails      bool
	}{
		"lost once": {func(ctx context.Context, _ func(), tx *sql.Tx, run int) error {
			if run == 1 {
				return end(ctx, tx)
			}
			return nil
		}, 2, 1, false},
		"lost twice": {func(ctx context.Context, _ func(), tx *sql.Tx, _ int) error { return end(ctx, tx) }, 2, 0, true},
		"lost with its caller": {func(ctx context.Context, leave func(), tx *sql.Tx, _ int) error {
			defer leave()
			return end(ctx, tx)
		}, 1, 0, true},
		"an error of its own": {func(context.Context, func(), *sql.Tx, int) error { return errOwn }, 1, 0, true},
		"not lost":            {func(context.Context, func(), *sql.Tx, int) error { return nil }, 1, 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			runs := 0
			err := db.InTx(ctx, func(tx *sql.Tx) error {
				runs++
				if _, err := tx.ExecContext(ctx, "INSERT INTO notes (id) VALUES ($1)", name); err != nil {
					return err
				}
				return test.then(ctx, leave, tx, runs)
			})
			var rows int
			if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notes WHERE id = $1", name).Scan(&rows); err != nil {
				t.Fatalf("counting notes: %v", err)
			}
			if runs != test.runs || rows != test.rows || (err != nil) != test.fails {
				t.Errorf("ran %d times, %d rows, the error %v, want %d times, %d rows, an error: %t", runs, rows, err, test.runs, test.rows, test.fails)
			}
			if name == "lost twice" && !database.IsAway(err) {
				t.Errorf("the error %v, want one that stands for a store that is away", err)
			}
		})
	}
}

// A change whose server is lost in its commit may have been kept. One that finds what it has done is
// made again, by itself, and is there once. Of another, the caller is told that it is not known.
func TestServerLostInCommit(t *testing.T) {
	for name, isKept := range map[string]bool{"kept": true, "not kept": false} {
		for _, isIdempotent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, idempotent %t", name, isIdempotent), func(t *testing.T) {
				db, lose := dbtest.LossyPostgres(t)
				if err := notesSchema.Migrate(t.Context(), db); err != nil {
					t.Fatalf("notesSchema.Migrate: %v", err)
				}
				lose("notes", isKept)
				var runs []bool
				work := func(tx *sql.Tx, mayBeDone bool) error {
					runs = append(runs, mayBeDone)
					_, err := tx.ExecContext(t.Context(), "INSERT INTO notes (id) VALUES ('a') ON CONFLICT DO NOTHING")
					return err
				}
				var err error
				want, wantRows := []bool{false}, 0
				if isIdempotent {
					want = []bool{false, true}
					err = db.InIdempotentTx(t.Context(), work)
				} else {
					err = db.InTx(t.Context(), func(tx *sql.Tx) error { return work(tx, false) })
				}
				if isIdempotent || isKept {
					wantRows = 1
				}
				var rows int
				// The connection that counts may have been lost too, and the server may still be at the commit.
				wait.Until(t, func() string {
					if err := db.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM notes").Scan(&rows); err != nil {
						return err.Error()
					}
					if rows < wantRows {
						return fmt.Sprintf("%d rows, want %d", rows, wantRows)
					}
					return ""
				})
				if !slices.Equal(runs, want) || rows != wantRows || (err == nil) != isIdempotent {
					t.Errorf("ran with mayBeDone %v, %d rows, the error %v, want %v, %d rows, an error: %t", runs, rows, err, want, wantRows, !isIdempotent)
				}
				if err != nil && !database.IsAway(err) {
					t.Errorf("the error %v, want one that stands for a store that is away", err)
				}
			})
		}
	}
}
