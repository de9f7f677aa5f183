package trouble_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

func open(t testing.TB, db *database.DB) *trouble.Store {
	t.Helper()
	store, err := trouble.Open(t.Context(), db)
	if err != nil {
		t.Fatalf("trouble.Open: %v", err)
	}
	return store
}

func execute(t testing.TB, db *database.DB, statement string, args ...any) {
	t.Helper()
	dbtest.Exec(t, db, statement, args...)
}

const (
	addMember = `INSERT INTO members (guid, site, email, email_key, name, note, subscribed, labels, newsletters, status, created_at, updated_at,
		version, applied, deleted, sent_email, sent_key, sent_at, unanswered_at, attempts, next_attempt, problem, lease_owner, lease_until)
		VALUES ($1, $2, $1, $1, '', '', TRUE, '[]', 'null', 'free', $3, $3, 2, 1, FALSE, '', '', 0, 0, 0, 0, '', '', 0)`
	addWork = `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until)
		VALUES ($1, 'events', $2, '', 1, $3, $3, 0, '', '', 0)`
	addContact = `INSERT INTO contacts (site, outcome, since, problem, responded_at, asked_at) VALUES ($1, $2, $3, 'problem', $4, $3)`
	addWebhook = `INSERT INTO webhooks (site, url, previous_url, platform, claimed_at, registered_at, seen_at) VALUES ($1, '', '', '', $2, $3, $2)`
	addTheme   = `INSERT INTO themes (site, name, findings, finding_count, updated_at, begun, unread_at, unread) VALUES ($1, $2, '[]', $3, $4, 1, $5, $6)`
)

func all(string) bool { return true }

// lines has a line for each reason.
func lines(list []trouble.Site) (text []string) {
	for _, site := range list {
		for _, r := range site.Reasons {
			line := fmt.Sprintf("%s %s %d %s", site.Name, r.State, r.Pending, r.Problem)
			text = append(text, strings.TrimSpace(line))
		}
	}
	return text
}

// Each state is found where it is kept, and nothing that is as it should be: what was written a moment
// ago, what was done, a webhook that is registered, a theme without findings, a platform that responds,
// and what remains of sites that are gone.
func TestSitesInTroubleAreFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db)
		now := db.Now().UnixMilli()
		old := now - (6 * time.Minute).Milliseconds()
		execute(t, db, addMember, "g1", "both", old)
		execute(t, db, addMember, "g2", "both", now)
		execute(t, db, addMember, "g3", "new", now)
		execute(t, db, addWork, "both", "a", old-1000)
		execute(t, db, addWork, "events", "a", old)
		execute(t, db, addWork, "events-new", "a", now)
		execute(t, db, addContact, "away", "away", old, 0)
		execute(t, db, addContact, "both", "rejected", old, old-1000)
		execute(t, db, addContact, "fine", "responds", old, old)
		execute(t, db, addContact, "gone", "away", old, old)
		execute(t, db, addWebhook, "hook", old, 0)
		execute(t, db, addWebhook, "hooked", old, old)
		execute(t, db, addTheme, "themes", "a", 2, old, 0, "")
		execute(t, db, addTheme, "themes", "b", 1, old, 0, "")
		execute(t, db, addTheme, "theme", "a", 1, old, old, "the repository cannot be reached")
		execute(t, db, addTheme, "valid", "a", 0, old, 1, "it could not be read long ago")
		want := []string{
			"away platform_away 0 problem",
			"both key_rejected 0 problem", "both writes_pending 3",
			"events writes_pending 1",
			"hook webhook_missing 0 the platform has not taken the webhooks, so what changes there is seen late",
			"locked keys_locked 0 secret",
			"theme manifest_findings 0 the manifest of theme a has 1 finding", "theme theme_unreadable 0 theme a: the repository cannot be reached",
			"themes manifest_findings 0 the manifests of theme a and 1 more have 3 findings",
		}
		served := func(site string) bool { return site != "gone" }
		locked := trouble.Known(trouble.KeysLocked, map[string]trouble.Reason{"locked": {State: trouble.KeysLocked, Problem: "secret"}})
		got, err := store.List(t.Context(), trouble.Failing, database.SitePage{Most: 100}, served, locked)
		if diff := cmp.Diff(want, lines(got)); diff != "" || err != nil {
			t.Fatalf("(-want +got):\n%s, %v", diff, err)
		}
		if since := got[1].Reasons[1].Since.UnixMilli(); since != old-1000 || got[1].LastContact.UnixMilli() != old-1000 || got[0].LastContact != nil {
			t.Errorf("pending since %d, last contact %v and %v, want %d twice and none", since, got[1].LastContact, got[0].LastContact, old-1000)
		}
		for _, of := range trouble.States {
			wanted := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return !strings.Contains(line, " "+string(of)+" ") })
			got, err := store.List(t.Context(), of, database.SitePage{Most: 100}, served, locked)
			if diff := cmp.Diff(wanted, lines(got), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%s (-want +got):\n%s, %v", of, diff, err)
			}
		}
		some := database.SitePage{Most: 100, Among: []string{"away", "fine", "gone", "locked", "theme"}}
		got, err = store.List(t.Context(), trouble.Failing, some, served, locked)
		if diff := cmp.Diff([]string{want[0], want[5], want[6], want[7]}, lines(got)); diff != "" || err != nil {
			t.Errorf("among some (-want +got):\n%s, %v", diff, err)
		}
		some.After = "away"
		got, err = store.List(t.Context(), trouble.ThemeUnreadable, some, served, locked)
		if diff := cmp.Diff([]string{want[7]}, lines(got)); diff != "" || err != nil {
			t.Errorf("the next page among some (-want +got):\n%s, %v", diff, err)
		}
		if got, err := store.List(t.Context(), trouble.Failing, database.SitePage{Most: 100, Among: []string{}}, served, locked); len(got) > 0 || err != nil {
			t.Errorf("among none: got %v, %v, want none", lines(got), err)
		}
		var paged []string
		for after := ""; ; {
			page, err := store.List(t.Context(), trouble.Failing, database.SitePage{After: after, Most: 1}, served, locked)
			if err != nil {
				t.Fatalf("List after %q: %v", after, err)
			}
			if paged = append(paged, lines(page)...); len(page) == 0 {
				break
			}
			after = page[0].Name
		}
		if diff := cmp.Diff(want, paged); diff != "" {
			t.Errorf("site by site (-want +got):\n%s", diff)
		}
	})
}

// Of thousands of sites in trouble, a page is read without reading all of them, and metrics name ten.
func TestManySites(t *testing.T) {
	lineartest.Volume(t)
	const sites = 10_000
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db)
		fill(t, db, sites)
		begin, n := time.Now(), 0
		for after := ""; ; {
			page, err := store.List(t.Context(), trouble.Failing, database.SitePage{After: after, Most: 1000}, all)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			if n += len(page); len(page) < 1000 {
				break
			}
			after = page[len(page)-1].Name
		}
		if n != sites {
			t.Errorf("%d sites, want %d", n, sites)
		}
		t.Logf("all %d sites in pages of 1000: %v", sites, time.Since(begin))
		begin = time.Now()
		if _, err := store.List(t.Context(), trouble.Failing, database.SitePage{Most: 100}, all); err != nil {
			t.Fatalf("List: %v", err)
		}
		t.Logf("the first 100: %v", time.Since(begin))
		begin = time.Now()
		for _, of := range []trouble.State{trouble.KeyRejected, trouble.PlatformAway, trouble.WritesPending} {
			longest, err := store.Longest(t.Context(), of, 10, all)
			if err != nil || len(longest) != 10 {
				t.Errorf("%s: %d sites, %v, want 10", of, len(longest), err)
			}
		}
		t.Logf("what the metrics name: %v", time.Since(begin))
	})
}

// A tenant who may see few sites among thousands in trouble is answered without reading those of others.
func TestFewOfManySites(t *testing.T) {
	lineartest.Volume(t)
	const sites = 10_000
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db)
		fill(t, db, sites)
		for _, test := range []struct {
			name  string
			among []string
			want  int
		}{
			{"none in trouble", []string{"fine-1", "fine-2"}, 0},
			{"two in trouble", []string{"fine-1", "site-00007", "site-09999"}, 2},
		} {
			asked := 0
			begin := time.Now()
			got, err := store.List(t.Context(), trouble.Failing, database.SitePage{Most: 101, Among: test.among}, func(string) bool {
				asked++
				return true
			})
			t.Logf("%s of %d: %v", test.name, sites, time.Since(begin))
			if err != nil || len(got) != test.want || asked != test.want {
				t.Errorf("%s: got %d sites of %d that were read, %v, want %d", test.name, len(got), asked, err, test.want)
			}
		}
	})
}

// fill has each site in trouble in three ways, and as many members that are fine.
func fill(t *testing.T, db *database.DB, sites int) {
	t.Helper()
	tx, err := db.Write.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatalf("BeginTx: %v", err)
	}
	now := db.Now().UnixMilli()
	old := now - (6 * time.Minute).Milliseconds()
	for i := range sites {
		site := fmt.Sprintf("site-%05d", i)
		outcome := []string{"away", "rejected"}[i%2]
		for _, s := range []struct {
			text string
			args []any
		}{
			{addMember, []any{site, site, old - int64(i)}},
			{addContact, []any{site, outcome, old - int64(i), old}},
			{addTheme, []any{site, "a", 1, old, 0, ""}},
		} {
			if _, err := tx.ExecContext(t.Context(), s.text, s.args...); err != nil {
				t.Fatalf("%s: %v", s.text, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

// A key that is rejected explains that the webhooks are not registered: it is one thing to do. Who asks for
// missing webhooks sees them all the same.
func TestRejectedKeyExplainsMissingWebhooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db)
		old := db.Now().UnixMilli() - (6 * time.Minute).Milliseconds()
		execute(t, db, addContact, "daily", "rejected", old, 0)
		execute(t, db, addWebhook, "daily", old, 0)
		execute(t, db, addWebhook, "hook", old, 0)
		const missing = " webhook_missing 0 the platform has not taken the webhooks, so what changes there is seen late"
		for of, want := range map[trouble.State][]string{
			trouble.Failing:        {"daily key_rejected 0 problem", "hook" + missing},
			trouble.WebhookMissing: {"daily" + missing, "hook" + missing},
		} {
			got, err := store.List(t.Context(), of, database.SitePage{Most: 100}, all)
			if diff := cmp.Diff(want, lines(got)); diff != "" || err != nil {
				t.Errorf("%s (-want +got):\n%s, %v", of, diff, err)
			}
		}
	})
}
