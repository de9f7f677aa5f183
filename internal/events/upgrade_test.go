package events

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// down takes a migration back, as the page on deployment says.
func (r *bench) down(name string) {
	r.t.Helper()
	text, err := migrations.ReadFile("migrations/" + name)
	if err != nil {
		r.t.Fatalf("migrations.ReadFile: %v", err)
	}
	_, down, _ := strings.Cut(string(text), "-- +goose Down")
	for statement := range strings.SplitSeq(strings.TrimSpace(down), ";\n") {
		r.exec(statement)
	}
}

// Events that were pending, or to be checked, in the tables of an earlier version are so after
// the upgrade, and come to the platform.
func TestUpgradeOfPendingEvents(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		earlier := fstest.MapFS{}
		for _, name := range []string{"migrations/00001_events.sql", "migrations/00002_made.sql"} {
			data, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatalf("migrations.ReadFile: %v", err)
			}
			earlier[name] = &fstest.MapFile{Data: data}
		}
		if err := (database.Schema{Name: Schema.Name, Files: earlier}).Migrate(t.Context(), db); err != nil {
			t.Fatalf("(database.Schema{Name: Schema.Name, Files: earlier}).Migrate: %v", err)
		}
		const content, shape = `{"event_date": "2031-05-01", "name": "Party"}`, `{"label": "Webinar", "fields": ["name", "event_date"]}`
		add := func(id, status, post string, due any, wanted, tries, late int64) {
			t.Helper()
			dbtest.Exec(t, db, `INSERT INTO events (site, id, theme, type, content, status, revision, created_at, updated_at, shape, post_id, post,
				due_at, wanted_at, tries, problem, holder, leased_until, late_at, name, starts_at, over_at, public)
				VALUES ('daily', $1, 'solo', 'webinar', $2, $3, 1, 0, 0, $4, '', $5, $6, $7, $8, 'It is down.', '', 0, $9, 'party', 0, 0, '')`,
				id, content, status, shape, post, due, wanted, tries, late)
		}
		far := time.Now().Add(time.Hour).UnixMilli()
		add("pending", "published", "{}", far, 5, 2, 0)
		add("checked", "draft", "{}", far, 0, 0, far)
		add("deleted", "deleted", "{}", far, 7, 1, far)
		add("synced", "draft", "{}", nil, 0, 0, 0)

		r := newBench(t, db)
		r.down("00013_waiting_paid.sql")
		r.down("00012_mail_settings.sql")
		r.down("00011_messages.sql")
		r.down("00010_waiting.sql")
		r.down("00009_mails.sql")
		r.down("00004_registrations.sql")
		r.down("00003_work.sql")
		var tries, at int64
		if err := db.Read.QueryRowContext(t.Context(), `SELECT tries, due_at FROM events WHERE id = 'pending' AND problem = 'It is down.' AND wanted_at = 5`).Scan(&tries, &at); err != nil || tries != 2 || at != far {
			t.Errorf("taken back: tried %d times, due at %d; want 2, %d; %v", tries, at, far, err)
		}
		r.exec(`DELETE FROM migrations_events WHERE version_id >= 3`)
		if err := Schema.Migrate(t.Context(), db); err != nil {
			t.Fatalf("Schema.Migrate: %v", err)
		}
		got := make(map[string]*Pending)
		for _, id := range []string{"pending", "checked", "deleted", "synced"} {
			got[id] = want[Event](t)(r.store.Find(t.Context(), "daily", id)).Pending
		}
		wanted := map[string]*Pending{
			"pending": {time.UnixMilli(5).UTC(), 2, "It is down."}, "deleted": {time.UnixMilli(7).UTC(), 1, "It is down."}, "checked": nil, "synced": nil,
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("pending after the upgrade, want -, got +: %s", diff)
		}
		for _, id := range []string{"checked", "pending"} { // that nobody knew to have been made
			r.ghost.AddEventsPost(platform.EventPost{Title: "Party", Slug: draftSlug(id), Status: platform.Draft})
		}
		r.exec(`UPDATE events SET late_at = 1 WHERE late_at > 0`)
		for _, id := range []string{"pending", "checked", "deleted", "synced"} {
			r.sync(id)
		}
		var titles []string
		for _, p := range r.ghost.EventsPostsInOrder() {
			titles = append(titles, p.Slug+" "+p.Status)
		}
		if diff := cmp.Diff([]string{"party published"}, titles); diff != "" {
			t.Errorf("posts, want -, got +: %s", diff)
		}
		var left int
		if err := db.Read.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM work WHERE since > 0`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d events are pending still, want 0; %v", left, err)
		}
	})
}
