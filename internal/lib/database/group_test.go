package database_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

func numbers(t *testing.T, db *database.DB) map[int]bool {
	t.Helper()
	rows, err := db.Read.QueryContext(t.Context(), "SELECT n FROM numbers")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	defer rows.Close()
	found := make(map[int]bool)
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		found[n] = true
	}
	return found
}

func withNumbers(t *testing.T, db *database.DB) {
	t.Helper()
	if _, err := db.Write.ExecContext(t.Context(), "CREATE TABLE numbers (n BIGINT PRIMARY KEY)"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
}

const insert = "INSERT INTO numbers (n) VALUES ($1)"

// Whatever others do at the same time, what was acknowledged is there, and what
// was not is not.
func TestTransactionsOfManyCallers(t *testing.T) {
	db := dbtest.SQLite(t)
	withNumbers(t, db)
	mine := errors.New("mine")
	want := make(map[int]bool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for caller := range 64 {
		wg.Go(func() {
			for i := range 25 {
				n := caller*25 + i
				ctx, cancel := context.WithCancel(t.Context())
				err := func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = fmt.Errorf("panicked: %v", p)
						}
					}()
					return db.InTx(ctx, func(tx *sql.Tx) error {
						if n%7 == 3 {
							cancel() // the caller leaves
						}
						if _, err := tx.ExecContext(ctx, insert, n); err != nil {
							return err
						}
						switch n % 5 {
						case 1:
							return fmt.Errorf("%d: %w", n, mine)
						case 2:
							panic(n)
						case 3:
							_, err := tx.ExecContext(ctx, insert, n)
							return err
						}
						return nil
					})
				}()
				cancel()
				switch {
				case n%7 == 3:
					if !errors.Is(err, context.Canceled) {
						t.Errorf("%d left: %v", n, err)
					}
				case n%5 == 1:
					if !errors.Is(err, mine) || err.Error() != fmt.Sprintf("%d: mine", n) {
						t.Errorf("%d failed: %v", n, err)
					}
				case n%5 == 2:
					if err == nil || err.Error() != fmt.Sprintf("panicked: %d", n) {
						t.Errorf("%d panicked: %v", n, err)
					}
				case n%5 == 3:
					if !database.ViolatedUnique(err) {
						t.Errorf("%d twice: %v", n, err)
					}
				case err != nil:
					t.Errorf("transaction %d: %v", n, err)
				default:
					mu.Lock()
					want[n] = true
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, numbers(t, db)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// together runs works in one transaction: they wait while another is under way.
func together(t *testing.T, db *database.DB, works ...func(*sql.Tx) error) []error {
	t.Helper()
	errs := make([]error, len(works))
	var wg sync.WaitGroup
	err := db.InTx(t.Context(), func(*sql.Tx) error {
		for i, work := range works {
			wg.Go(func() { errs[i] = db.InTx(t.Context(), work) })
		}
		database.WaitForWaiting(db, len(works))
		return nil
	})
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	wg.Wait()
	return errs
}

// If SQLite takes the whole transaction back, nobody who shares it is told that
// it stands, and those who come later are not hurt.
func TestSharedTransactionBreaks(t *testing.T) {
	db := dbtest.SQLite(t)
	withNumbers(t, db)
	put := func(n int) func(*sql.Tx) error {
		return func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), insert, n)
			return err
		}
	}
	for i, err := range together(t, db, put(1), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "INSERT OR ROLLBACK INTO numbers (n) VALUES ($1), ($1)", 2)
		return err
	}, put(3)) {
		if err == nil {
			t.Errorf("%d: no error", i)
		}
	}
	for i, err := range together(t, db, put(4), put(5)) {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	if diff := cmp.Diff(map[int]bool{4: true, 5: true}, numbers(t, db)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Anyone who leaves while others are at work is not kept waiting, and nothing is
// done.
func TestLeavingBeforeTheTurn(t *testing.T) {
	db := dbtest.SQLite(t)
	withNumbers(t, db)
	err := db.InTx(t.Context(), func(*sql.Tx) error {
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() {
			result <- db.InTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, insert, 1)
				return err
			})
		}()
		database.WaitForWaiting(db, 1)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("left: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("error %v, want none", err)
	}
	if diff := cmp.Diff(map[int]bool{}, numbers(t, db)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A statement that is kept gives right answers after the tables have changed,
// and while rows of it are open.
func TestKeptStatements(t *testing.T) {
	db := dbtest.SQLite(t)
	withNumbers(t, db)
	const query = "SELECT * FROM numbers WHERE n >= $1"
	if _, err := db.Write.ExecContext(t.Context(), insert, 1); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	columns := func() int {
		rows, err := db.Write.QueryContext(t.Context(), query, 0)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		defer rows.Close()
		names, err := rows.Columns()
		if err != nil || !rows.Next() {
			t.Errorf("Columns = %v, %v, want no error and a row", err, rows.Err())
		}
		return len(names)
	}
	if n := columns(); n != 1 {
		t.Errorf("%d columns", n)
	}
	if _, err := db.Write.ExecContext(t.Context(), "ALTER TABLE numbers ADD COLUMN more TEXT NOT NULL DEFAULT ''"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if n := columns(); n != 2 {
		t.Errorf("%d columns after another was added", n)
	}
	err := db.InTx(t.Context(), func(tx *sql.Tx) error {
		outer, err := tx.QueryContext(t.Context(), query, 0)
		if err != nil {
			return err
		}
		defer outer.Close()
		var n, m int
		var more string
		if err := tx.QueryRowContext(t.Context(), query, 1).Scan(&m, &more); err != nil {
			return err
		}
		if !outer.Next() {
			return errors.Join(errors.New("no row"), outer.Err())
		}
		if err := outer.Scan(&n, &more); err != nil || n != 1 || m != 1 {
			t.Errorf("Scan = %v, %v, %v, want no error, n 1, m 1", n, m, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// A transaction that does not wait for the disk leaves the connection as it
// was for those that do, however it ends.
func TestSoonIsForOneTransaction(t *testing.T) {
	db := dbtest.SQLite(t)
	withNumbers(t, db)
	const full, normal = 2, 1
	synchronous := func(e interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	},
	) (n int) {
		t.Helper()
		if err := e.QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&n); err != nil {
			t.Errorf("error %v, want none", err)
		}
		return n
	}
	for i, end := range []func() error{
		func() error { return nil },
		func() error { return errors.New("failed") },
		func() error { panic("stop") },
	} {
		func() {
			defer func() { recover() }()
			db.InTxSoon(t.Context(), func(tx *sql.Tx) error {
				if got := synchronous(tx); got != normal {
					t.Errorf("%d: synchronous is %d within", i, got)
				}
				return end()
			})
		}()
		if got := synchronous(db.Write); got != full {
			t.Errorf("%d: synchronous is %d afterwards", i, got)
		}
		err := db.InTx(t.Context(), func(tx *sql.Tx) error {
			if got := synchronous(tx); got != full {
				t.Errorf("%d: synchronous is %d in the next", i, got)
			}
			return nil
		})
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
	}
}
