package memberstore

import (
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/worktest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Pending members keep the contract of tables of work.
func TestTasks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, now := newStore(t, db), time.Now()
		worktest.Table(t, worktest.Bench{
			Table: store.Tasks(func() time.Time { return now }), Kind: outbox.Kind, Now: &now,
			Add: func(site, key string) {
				m := joe()
				m.Site, m.GUID, m.Email, m.UpdatedAt = site, key, key+"@example.com", now
				if err := store.Insert(t.Context(), m, "", members.Lease{}); err != nil {
					t.Fatalf("store.Insert: %v", err)
				}
				if err := store.MarkFailed(t.Context(), key, outbox.Failure{Next: now, Untried: true}, ""); err != nil { // each is due since another time
					t.Fatalf("store.MarkFailed: %v", err)
				}
			},
			Fail: func(task work.Task, until time.Time) {
				if err := store.MarkFailed(t.Context(), task.Key, outbox.Failure{Problem: "It is down.", Next: until}, task.Holder); err != nil {
					t.Fatalf("store.MarkFailed: %v", err)
				}
			},
			Done: func(task work.Task) {
				m := find(t, store, members.Key{Site: task.Site, GUID: task.Key})
				m.Applied = m.Version
				if _, err := store.MarkApplied(t.Context(), m, task.Holder); err != nil {
					t.Fatalf("store.MarkApplied: %v", err)
				}
			},
		})
	})
}
