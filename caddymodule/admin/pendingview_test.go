package admin

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// All kinds are in one view, in which nothing of a member is but its GUID, and nothing of a registrant but the UUID. It says also since when
// a platform does not respond.
func TestViewHasAllKindsWithoutPersonalData(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		now := time.UnixMilli(1000).UTC()
		clock := func() time.Time { return now }
		queue, err := work.New(t.Context(), db, zap.NewNop(), clock)
		if err != nil {
			t.Fatalf("work.New: %v", err)
		}
		store, err := memberstore.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("memberstore.NewSQL: %v", err)
		}
		for _, kind := range []string{"events", "registrations"} {
			queue.Handle(work.Kind{Name: kind, Platform: func(string) any { return nil }, IsPersonal: kind == "registrations"})
		}
		outbox.New(outbox.Config{Store: store, Tasks: store.Tasks(clock), Work: queue, Logger: zap.NewNop(), Now: clock, Platform: func(string) platform.Platform { return nil }})
		err = db.InTx(t.Context(), func(tx *sql.Tx) error {
			for _, task := range []work.Task{{Kind: "events", Key: "e1", Title: "Party"}, {Kind: "registrations", Key: "u1", Title: "jane@example.com"}} {
				task.Site = "daily"
				if _, err := queue.Enqueue(t.Context(), tx, task); err != nil {
					return err
				}
			}
			return nil
		})
		record := func(guid string) members.Record {
			return members.Record{Site: "daily", Member: members.Member{GUID: guid, Email: guid + "@example.com", Status: "free", CreatedAt: now, UpdatedAt: now}, Named: [5]int64{1}}
		}
		err = errors.Join(err,
			store.Insert(t.Context(), record("g1"), "", members.Lease{}), store.Insert(t.Context(), record("g2"), "", members.Lease{}),
			store.MarkFailed(t.Context(), "g1", outbox.Failure{Problem: "It is down.", Next: now}, ""),
			store.RefuseCreate(t.Context(), "g2", 1, "No.", now))
		if err != nil {
			t.Fatalf("what is pending: %v", err)
		}
		const want = `{"pending":{"events":1,"members":1,"registrations":1},"items":[` +
			`{"kind":"events","key":"e1","title":"Party","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"},` +
			`{"kind":"registrations","key":"u1","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"","next_attempt":"1970-01-01T00:00:01Z"},` +
			`{"kind":"members","key":"g1","since":"1970-01-01T00:00:01Z","attempts":1,"reason":"It is down.","next_attempt":"1970-01-01T00:00:01Z"}],` +
			`"refused":[{"kind":"members","key":"g2","since":"1970-01-01T00:00:01Z","attempts":0,"reason":"No."}]}`
		site, err := pendingAt(t.Context(), queue, "daily", 10)
		text, marshalErr := json.Marshal(site)
		if diff := cmp.Diff(want, string(text)); diff != "" || err != nil || marshalErr != nil {
			t.Errorf("want -, got +: %s; %v, %v", diff, err, marshalErr)
		}
		tried, err := queue.TryNow(t.Context(), "daily")
		if diff := cmp.Diff(map[string]int{"events": 1, "members": 1, "registrations": 1}, tried); diff != "" || err != nil {
			t.Errorf("tried now, want -, got +: %s; %v", diff, err)
		}

		queue.Handle(work.Kind{
			Name: "events", Timeout: time.Minute, Platform: func(site string) any { return site },
			Do: func(context.Context, work.Task) work.Result {
				return work.Result{Outcome: work.Again, IsUnanswered: true}
			},
		})
		for range work.MaxUnanswered {
			for _, key := range []string{"e1", "e2", "e3", "e4", "e5"} {
				err := db.InTx(t.Context(), func(tx *sql.Tx) error {
					_, err := queue.Enqueue(t.Context(), tx, work.Task{Site: "daily", Kind: "events", Key: key})
					return err
				})
				if err != nil {
					t.Fatalf("queue.Enqueue: %v", err)
				}
			}
			if err := queue.DoDue(t.Context()); err != nil {
				t.Fatalf("queue.DoDue: %v", err)
			}
		}
		site, err = pendingAt(t.Context(), queue, "daily", 10)
		if err != nil || site.PausedSince == nil || !site.PausedSince.Equal(now) {
			t.Errorf("paused since %v, %v, want since %s", site.PausedSince, err, now)
		}
	})
}
