package work_test

import (
	"database/sql"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// The table of this package keeps the contract of tables.
func TestTable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		now := time.Now()
		queue, err := work.New(t.Context(), db, zap.NewNop(), func() time.Time { return now })
		if err != nil {
			t.Fatalf("work.New: %v", err)
		}
		settle := func(task work.Task, r work.Result) {
			t.Helper()
			if _, err := queue.Table().Settle(t.Context(), task, r); err != nil {
				t.Fatalf("Settle: %v", err)
			}
		}
		worktest.Table(t, worktest.Bench{
			Table: queue.Table(), Kind: "posts", Now: &now,
			Add: func(site, key string) {
				err := db.InTx(t.Context(), func(tx *sql.Tx) error {
					_, err := queue.Enqueue(t.Context(), tx, work.Task{Site: site, Kind: "posts", Key: key})
					return err
				})
				if err != nil {
					t.Fatalf("queue.Enqueue: %v", err)
				}
			},
			Fail: func(task work.Task, _ time.Time) {
				settle(task, work.Result{Outcome: work.Again, Reason: "It is down."})
			},
			Done: func(task work.Task) { settle(task, work.Result{}) },
		})
	})
}
