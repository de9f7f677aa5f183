package memberstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// An email that was sent to the platform without a response stays known through later
// writes.
func TestEmailsSentWithoutResponseStayKnown(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		lingers := func(exceptGUID string) bool {
			t.Helper()
			lingers, err := store.EmailLingers(t.Context(), "daily", "JOE@example.com", exceptGUID)
			if err != nil {
				t.Fatalf("store.EmailLingers: %v", err)
			}
			return lingers
		}
		m := joe()
		m.Sent, m.SentAt = "Joe@Example.com", then
		insert(t, store, m)
		if lingers("") {
			t.Error("the email that the member has: got lingering, want not")
		}
		m.Email = "joseph@example.com"
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatalf("store.Update: %v", err)
		}
		m.Version = 2
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
		if !lingers("") || lingers("guid-joe") {
			t.Errorf("lingers: %t, without the member itself: %t", lingers(""), lingers("guid-joe"))
		}

		if err := store.MarkFailed(t.Context(), "guid-joe", outbox.Failure{Problem: "down", Next: later}, ""); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		m.Attempts, m.Problem, m.NextAttempt = 1, "down", later
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.MarkSent(t.Context(), "guid-joe", m.Email, later); err != nil {
			t.Fatalf("store.MarkSent: %v", err)
		}
		m.Sent, m.SentAt = m.Email, later
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.MarkFailed(t.Context(), "guid-joe", outbox.Failure{Problem: "key", Next: later, NotSent: true}, ""); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		m.Sent, m.SentAt, m.Attempts, m.Problem = "", time.Time{}, 2, "key"
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))

		if err := store.MarkSent(t.Context(), "guid-joe", m.Email, later); err != nil {
			t.Fatalf("store.MarkSent: %v", err)
		}
		m.Applied, m.PlatformID = 2, "p-1"
		if _, err := store.MarkApplied(t.Context(), m, ""); err != nil {
			t.Fatalf("store.MarkApplied: %v", err)
		}
		m.Attempts, m.Problem, m.NextAttempt = 0, "", time.Time{}
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
	})
}

func TestRecordsToApplyAgainStayPending(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		m := joe()
		m.Sent, m.SentAt = m.Email, then
		if err := store.Insert(t.Context(), m, "", members.Lease{Owner: "me", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
		if err := store.MarkFailed(t.Context(), "guid-joe", outbox.Failure{Problem: "down", Next: then, UnansweredAt: then, PlatformID: "p-1"}, "me"); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		m.Attempts, m.Problem, m.NextAttempt, m.UnansweredAt, m.PlatformID = 1, "down", then, then, "p-1"
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
		if err := store.MarkApplyAgain(t.Context(), m, outbox.Failure{Problem: "again", Next: later}, "me"); err != nil {
			t.Fatalf("store.MarkApplyAgain: %v", err)
		}
		m.Attempts, m.Problem, m.NextAttempt, m.PlatformID, m.Sent, m.SentAt, m.Confirmed = 0, "again", later, "p-1", "", time.Time{}, 1
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
		m.Applied = 1
		if _, err := store.MarkApplied(t.Context(), m, "me"); err != nil {
			t.Fatalf("store.MarkApplied: %v", err)
		}
		m.Problem, m.NextAttempt, m.UnansweredAt = "", time.Time{}, time.Time{}
		same(t, m, find(t, store, members.Key{Site: "daily", GUID: "guid-joe"}))
	})
}

func TestRecordsAreDueUntilApplied(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		guids := func(now time.Time) (list []string) {
			tasks, err := store.Tasks(func() time.Time { return now }).Due(t.Context(), "daily", outbox.Kind, now, 10)
			if err != nil {
				t.Fatalf("Due: %v", err)
			}
			for _, task := range tasks {
				list = append(list, task.Key)
			}
			if len(list) == 2 && tasks[0].DueAt.Equal(tasks[1].DueAt) {
				slices.Sort(list) // both are due since the same time
			}
			return list
		}
		now := time.Now()
		insert(t, store, jane()) // is applied
		for i, lease := range []members.Lease{{}, {}, {Owner: "me", Until: now.Add(time.Hour)}} {
			m := joe()
			m.GUID, m.Email = fmt.Sprint("guid-", i), fmt.Sprint(i, "@example.com")
			if err := store.Insert(t.Context(), m, "", lease); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
		}
		if err := store.MarkFailed(t.Context(), "guid-0", outbox.Failure{Problem: "down", Next: now.Add(time.Minute)}, "me"); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		if diff := cmp.Diff([]string{"guid-1"}, guids(now)); diff != "" {
			t.Errorf("due now: %s", diff)
		}
		if diff := cmp.Diff([]string{"guid-1", "guid-0"}, guids(now.Add(time.Minute))); diff != "" {
			t.Errorf("due in a minute: %s", diff)
		}
		if n, err := store.CountPending(t.Context(), "daily"); n != 3 || err != nil {
			t.Errorf("%d are pending, want 3: %v", n, err)
		}
		waiting := find(t, store, members.Key{Site: "daily", Email: "0@example.com"})
		if want := now.Add(time.Minute).UTC().Truncate(time.Millisecond); !waiting.NextAttempt.Equal(want) || waiting.Problem != "down" || waiting.Attempts != 1 {
			t.Errorf("waits %+v, want until %s", waiting, want)
		}
		if n, err := store.Tasks(time.Now).MakeDue(t.Context(), "daily"); n[outbox.Kind] != 3 || err != nil {
			t.Errorf("%v are due now, want 3: %v", n, err)
		}
		if diff := cmp.Diff([]string{"guid-0", "guid-1"}, guids(now)); diff != "" {
			t.Errorf("made due: %s", diff)
		}
		// Written meanwhile: the version that was applied is not the last.
		m := find(t, store, members.Key{Site: "daily", Email: "1@example.com"})
		if err := store.Update(t.Context(), m); err != nil {
			t.Fatalf("store.Update: %v", err)
		}
		applied := func(m members.Record, version int64, want bool) {
			t.Helper()
			m.Applied, m.PlatformID = version, "p-9"
			if pending, err := store.MarkApplied(t.Context(), m, "me"); pending != want || err != nil {
				t.Errorf("pending %t, %v", pending, err)
			}
		}
		applied(m, 1, true)
		applied(m, 2, false)
		applied(m, 1, false) // processes may report in any order
		m.GUID = "guid-missing"
		if _, err := store.MarkApplied(t.Context(), m, "me"); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("a member that does not exist: %v", err)
		}
	})
}

func TestRefusedWritesAreReverted(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, jane())
		before := find(t, store, members.Key{Site: "daily", Email: "jane@example.com"})
		refused := before
		refused.Email, refused.Name = "bad@example.com", "Bad"
		if err := store.Update(t.Context(), refused); err != nil {
			t.Fatalf("store.Update: %v", err)
		}
		if err := store.Revert(t.Context(), members.Write{After: members.Record{Member: members.Member{GUID: before.GUID}, Version: 2}, Before: &before}); err != nil {
			t.Fatalf("store.Revert: %v", err)
		}
		want := before
		want.Version, want.Applied = 3, 3
		same(t, want, find(t, store, members.Key{Site: "daily", Email: "jane@example.com"}))
		if err := store.Revert(t.Context(), members.Write{After: members.Record{Member: members.Member{GUID: before.GUID}, Version: 2}, Before: &before}); !errors.Is(err, members.ErrConflict) {
			t.Errorf("after a further write: %v", err)
		}

		// A new member is removed.
		insert(t, store, joe())
		if err := store.Revert(t.Context(), members.Write{After: members.Record{Member: members.Member{GUID: "guid-joe"}, Version: 1}, Before: nil}); err != nil {
			t.Fatalf("store.Revert: %v", err)
		}
		if _, err := store.Find(t.Context(), members.Key{Site: "daily", Email: "joe@example.com"}); !errors.Is(err, members.ErrNotFound) {
			t.Errorf("a refused new member is there: %v", err)
		}
	})
}

// DueSites finds the sites with a due record, also those of other processes, and no
// others.
func TestDueSites(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		now := time.Now()
		for site, set := range map[string]func(*members.Record, *members.Lease){
			"due":     func(*members.Record, *members.Lease) {},
			"applied": func(r *members.Record, _ *members.Lease) { r.Applied = 1 },
			"leased":  func(_ *members.Record, l *members.Lease) { l.Owner, l.Until = "me", now.Add(time.Minute) },
			"waiting": func(*members.Record, *members.Lease) {},
		} {
			for i := range 2 {
				r, lease := joe(), members.Lease{}
				r.Site, r.GUID, r.Email = site, fmt.Sprint(site, i), fmt.Sprint(i, "@example.com")
				set(&r, &lease)
				if err := store.Insert(t.Context(), r, "", lease); err != nil {
					t.Fatalf("store.Insert: %v", err)
				}
				if site != "waiting" {
					continue
				}
				if err := store.MarkFailed(t.Context(), r.GUID, outbox.Failure{Problem: "down", Next: now.Add(time.Hour)}, ""); err != nil {
					t.Fatalf("store.MarkFailed: %v", err)
				}
			}
		}
		for after, want := range map[time.Duration][]string{
			0: {"due"}, 2 * time.Minute: {"due", "leased"}, 2 * time.Hour: {"due", "leased", "waiting"},
		} {
			sites, err := store.Tasks(func() time.Time { return now.Add(after) }).DueSites(t.Context(), outbox.Kind, work.DueSite{})
			var got []string
			for _, of := range sites {
				got = append(got, of.Site)
			}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("after %s: %s, %v", after, diff, err)
			}
		}
	})
}

// A write that was not tried is no failed attempt: its backoff does not grow.
func TestMarkUntried(t *testing.T) {
	each(t, func(t *testing.T, store *SQL) {
		insert(t, store, joe())
		f := outbox.Failure{Problem: "not tried", Next: time.Now(), Untried: true}
		if err := store.MarkFailed(t.Context(), "guid-joe", f, "me"); err != nil {
			t.Fatalf("store.MarkFailed: %v", err)
		}
		r := find(t, store, members.Key{Site: "daily", GUID: "guid-joe"})
		if r.Attempts != 0 || r.Problem != "not tried" {
			t.Errorf("%d attempts, %q", r.Attempts, r.Problem)
		}
	})
}

// What is pending of sites that nobody serves any more costs nothing each second: the
// sites are found in an index, and one record of each is looked for.
func TestDueSitesIsIndexed(t *testing.T) {
	db := dbtest.SQLite(t)
	if _, err := NewSQL(t.Context(), db); err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	plan := planOf(t, db, dueSites, 0, "", 1)
	for line := range strings.SplitSeq(strings.TrimSpace(plan), "\n") {
		if strings.HasPrefix(line, "SCAN m") || strings.HasPrefix(line, "SEARCH m") && !strings.Contains(line, "INDEX members_behind") {
			t.Errorf("%s, in\n%s", line, plan)
		}
	}
}

func planOf(t *testing.T, db *database.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("db.Read.QueryContext: %v", err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatalf("rows.Scan: %v", err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("rows.Err: %v", err)
	}
	return plan.String()
}
