package work

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A task that is pending keeps who asked for it when a poll enqueues it again. What is pending after
// that was done is nobody's.
func TestAskerStays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		b.do = func(context.Context, Task) Result { return Result{Outcome: Later, At: time.Now().Add(time.Hour)} }
		enqueue := func(name string) {
			t.Helper()
			ctx := WithAsker(t.Context(), Asker{Name: name})
			if err := b.store.db.InTx(ctx, func(tx *sql.Tx) error {
				_, err := b.Enqueue(ctx, tx, Task{Site: "daily", Kind: "posts", Key: "1"})
				return err
			}); err != nil {
				t.Fatalf("b.store.db.InTx: %v", err)
			}
		}
		asked := func(what, want string) {
			t.Helper()
			list, _, err := b.Pending(t.Context(), "daily", 10)
			if err != nil || len(list) != 1 || list[0].AskedBy != want {
				t.Errorf("%s: got %+v, %v; want one task that %q asked for", what, list, err, want)
			}
		}
		enqueue("Jane")
		enqueue("")
		asked("enqueued again by a poll", "Jane")
		enqueue("Bea")
		asked("asked for by somebody else", "Bea")
		if _, err := b.Sync(t.Context(), "daily", "posts", "1"); err != nil {
			t.Fatalf("b.Sync: %v", err)
		}
		enqueue("")
		asked("enqueued by a poll when the platform has it", "")
	})
}

// Who asked for what is pending is kept with it. Nobody waits for an attempt at a platform that
// has just not answered, and what was asked for is done all the same.
func TestPendingWorkKeepsWhoAsked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		b := newBench(t, db, "daily")
		ctx := WithAsker(t.Context(), Asker{Name: "Jane", IsUnanswered: true})
		enqueue := b.Enqueuer("daily", "posts")
		var task Task
		err := b.store.db.InTx(ctx, func(tx *sql.Tx) (err error) {
			task, err = enqueue(ctx, tx, Task{Site: "daily", Kind: "posts", Key: "1"})
			return err
		})
		if err != nil {
			t.Fatalf("b.store.db.InTx: %v", err)
		}
		if a, isKnown := b.Try(ctx, task); isKnown {
			t.Errorf("an attempt was made: got %+v, want none", a)
		}
		list, _, err := b.Pending(t.Context(), "daily", 10)
		if err != nil || len(list) != 1 || list[0].AskedBy != "Jane" {
			t.Errorf("pending: got %+v, %v; want one task that Jane asked for", list, err)
		}
		b.settleAll()
		if diff := cmp.Diff([]string{"1"}, b.done); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
	})
}
