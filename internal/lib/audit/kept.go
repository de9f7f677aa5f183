package audit

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file keeps the changes of commands in the store until an edge logs them: a command has not
// the log of the service, and may run where no edge does.

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the table of this package.
var Schema = database.Schema{Name: "audit", Files: migrations}

const (
	keepChanges = `INSERT INTO audit_changes (at, id, change) VALUES `
	anyKept     = `SELECT COUNT(*) FROM (SELECT 1 FROM audit_changes LIMIT 1) AS first`

	// maxLogged bounds what is logged in a transaction.
	maxLogged = 500

	takeKept = `DELETE FROM audit_changes WHERE id IN (SELECT id FROM audit_changes ORDER BY at, id LIMIT $1) RETURNING id, change`

	// interval is how often an edge looks for changes of commands.
	interval = 5 * time.Second

	// timeout bounds what is asked of the store.
	timeout = 10 * time.Second
)

// Keep keeps changes until an edge logs them.
func Keep(ctx context.Context, db *database.DB, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := Schema.Migrate(ctx, db); err != nil {
		return err
	}
	err := db.InTx(ctx, func(tx *sql.Tx) error {
		first := rand.Int64N(math.MaxInt64 - int64(len(changes))) // IDs that follow keep the order in a millisecond
		for part := range slices.Chunk(changes, maxLogged) {
			var q database.Query
			q.Add(keepChanges)
			for i, c := range part {
				text, err := json.Marshal(c)
				if err != nil {
					return err
				}
				q.AddRow(i == 0, c.At.UnixMilli(), first, string(text))
				first++
			}
			if _, err := tx.ExecContext(ctx, q.Text, q.Args...); err != nil {
				return err
			}
		}
		return nil
	})
	return database.Wrap("keeping changes for the audit log", err)
}

// LogKept logs the changes that commands have kept, in their order. Of several edges one logs a
// change. One that ends meanwhile may have logged some that are logged again.
func LogKept(ctx context.Context, db *database.DB, log Log) error {
	var n int
	if err := db.Read.QueryRowContext(ctx, anyKept).Scan(&n); err != nil || n == 0 {
		return database.Wrap("reading changes for the audit log", err)
	}
	for {
		var taken []Change
		err := db.InTx(ctx, func(tx *sql.Tx) (err error) {
			if taken, err = take(ctx, tx); err != nil {
				return err
			}
			for _, c := range taken { // before they are gone, so that none is lost
				log(c)
			}
			return nil
		})
		if err != nil || len(taken) < maxLogged {
			return database.Wrap("logging changes of commands", err)
		}
	}
}

// take takes the oldest changes out of the store, at most maxLogged.
func take(ctx context.Context, tx *sql.Tx) ([]Change, error) {
	type kept struct {
		id int64
		Change
	}
	list, err := database.List(ctx, tx, func(row database.Row) (k kept, err error) {
		var text string
		err = row.Scan(&k.id, &text)
		if json.Unmarshal([]byte(text), &k.Change) != nil { // of a command that this edge does not know
			k.Change = Change{Actor: Actor{Via: ViaCommand}, Action: "unreadable", Kind: "change"}
		}
		return k, err
	}, takeKept, maxLogged)
	slices.SortFunc(list, func(a, b kept) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.id, b.id)) })
	taken := make([]Change, len(list))
	for i, k := range list {
		taken[i] = k.Change
	}
	return taken, err
}

// Run logs what commands keep, until ctx is done. It tells failed when that begins to fail.
func Run(ctx context.Context, db *database.DB, log Log, failed func(error)) {
	isFailing := false
	for {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		err := LogKept(bounded, db, log)
		cancel()
		if err != nil && ctx.Err() == nil && !isFailing {
			failed(err)
		}
		isFailing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}
