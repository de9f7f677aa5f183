package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// An operator who looks at another store than Caddy's, as another user does by default, reads so.
func TestAnotherStoreThanTheRunningOneIsReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lychgate.db")
	same := Result{"store sqlite " + file, OK, "is not there yet; Caddy makes it when it starts, #are free", ""}
	for running, want := range map[string]Result{
		"":   same,
		file: same,
		"/var/lib/lychgate/lychgate.db": {
			"store sqlite " + file, Warning, "is not there yet; Caddy makes it when it starts, #are free, but the Caddy that runs has its store at /var/lib/lychgate/lychgate.db",
			"reload Caddy if the configuration has changed, or run this as the user that Caddy runs as, and with its environment",
		},
	} {
		c := Config{Store: &Store{Kind: database.SQLite, Source: file}, RunningStore: func(context.Context) string { return running }}
		if diff := cmp.Diff([]Result{want}, results(t, c)); diff != "" {
			t.Errorf("Caddy's store at %q (-want +got):\n%s", running, diff)
		}
	}
}

// An operator learns of a store that will not take writes before a CRM does, and
// looking changes nothing.
func TestUnwritableStoresAreReported(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(file("text"), []byte("this is a text, not a database"), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	lite := func(name string, statements ...string) {
		db, err := database.Open(t.Context(), database.SQLite, file(name))
		if err != nil {
			t.Fatalf("database.Open: %v", err)
		}
		defer db.Close()
		if name != "empty.db" {
			if _, err := memberstore.NewSQL(t.Context(), db); err != nil {
				t.Fatalf("memberstore.NewSQL: %v", err)
			}
			if _, err := themes.NewSQL(t.Context(), db); err != nil && name != "no themes.db" {
				t.Fatalf("themes.NewSQL: %v", err)
			}
			if _, err := events.NewSQL(t.Context(), db); err != nil {
				t.Fatalf("events.NewSQL: %v", err)
			}
			if _, err := curation.NewSQL(t.Context(), db); err != nil {
				t.Fatalf("curation.NewSQL: %v", err)
			}
		}
		for _, statement := range statements {
			dbtest.Exec(t, db, statement)
		}
	}
	lite("good.db")
	lite("empty.db")
	lite("newer.db", "INSERT INTO migrations_members (version_id, is_applied) VALUES (99, 1)", "UPDATE migrations_compatible SET version = 99 WHERE name = 'members'")
	lite("newer beside.db", "INSERT INTO migrations_events (version_id, is_applied) VALUES (99, 1)")
	lite("older.db", "DELETE FROM migrations_members WHERE version_id > 1")
	lite("newer themes.db", "INSERT INTO migrations_themes (version_id, is_applied) VALUES (99, 1)", "UPDATE migrations_compatible SET version = 99 WHERE name = 'themes'")
	lite("newer curation.db", "INSERT INTO migrations_curation (version_id, is_applied) VALUES (99, 1)", "DROP TABLE migrations_compatible")
	lite("no themes.db", "DROP TABLE migrations_themes")
	lite("refusing.db", "CREATE TRIGGER no BEFORE UPDATE ON migrations_members BEGIN SELECT RAISE(ABORT, 'no more'); END")
	for name, want := range map[string]Result{
		"good.db":           {"", OK, "can be read and written, #are free", ""},
		"empty.db":          {"", OK, "has no tables of events yet; Caddy makes them when it starts, #are free", ""},
		"a/b/new.db":        {"", OK, "is not there yet; Caddy makes it when it starts, #are free", ""},
		"newer themes.db":   {"", Failed, "is of a newer Lychgate: its tables of themes have version 99, and this one knows 5", "run the newer Lychgate"},
		"newer curation.db": {"", Failed, "is of a newer Lychgate: its tables of curation have version 99, and this one knows 3", "run the newer Lychgate"},
		"newer beside.db":   {"", OK, "is of a newer Lychgate, beside which this one may run: its tables of events have version 99, and this one knows 13, #are free", ""},
		"no themes.db":      {"", OK, "has no tables of themes yet; Caddy makes them when it starts, #are free", ""},
		"newer.db":          {"", Failed, "is of a newer Lychgate: its tables of members have version 99, and this one knows 13", "run the newer Lychgate"},
		"older.db":          {"", Warning, "is of an older Lychgate: its tables of members have version 1, and this one brings them to 13 when Caddy starts", "back it up before you start this one"},
		"refusing.db":       {"", Failed, "writing to the store: constraint failed: no more (1811)", "see that it answers, and that its user may write"},
		"text":              {"", Failed, "opening the sqlite store: " + file("text") + " is not an SQLite database: write the path of another file, which is made if it is not there", ""},
		"text/below/x.db":   {"", Failed, "opening the sqlite store: " + file("text/below/x.db") + " cannot be written: give it and its folder to the user that Caddy runs as, or write another path: mkdir " + file("text") + ": not a directory", "run this as the user that Caddy runs as, if it is another"},
	} {
		want.Subject = "store sqlite " + file(name)
		if diff := cmp.Diff([]Result{want}, results(t, Config{Store: &Store{Kind: database.SQLite, Source: file(name), Members: true, Themes: true, Curation: true, Events: true}})); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, diff)
		}
	}
	if _, err := os.Stat(file("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a store that is not there was made: %v", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 10 {
		t.Errorf("os.ReadDir = %v, %v, want no error, 10 entries", entries, err)
	}
}

// An operator learns which writes of CRMs are nowhere but here, and why, without whose.
func TestRefusedWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lychgate.db")
	db, err := database.Open(t.Context(), database.SQLite, file)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	store, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	check := func(want []Result) {
		t.Helper()
		got := results(t, Config{Store: &Store{Kind: database.SQLite, Source: file, Members: true}})[1:]
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	}
	check(nil)
	n := 0
	refuse := func(site string, reasons ...string) {
		for _, reason := range reasons {
			n++
			m := members.Record{Site: site, Member: members.Member{GUID: strconv.Itoa(n), Email: fmt.Sprintf("m%d@example.com", n)}, Version: 1}
			if err := store.Insert(t.Context(), m, "", members.Lease{}); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
			if err := store.RefuseCreate(t.Context(), m.GUID, m.Version, reason, time.Now()); err != nil {
				t.Fatalf("store.RefuseCreate: %v", err)
			}
		}
	}
	refuse("weekly", "There is no newsletter 1.")
	refuse("daily", "Invalid note.", "There is no newsletter 1.", "There is no newsletter 1.", "Invalid label.", "Invalid name.")
	check([]Result{{
		"refused writes", Warning,
		"the platform will not take the last write of 5 members of site daily (2: There is no newsletter 1.; 1: Invalid label.; 1: Invalid name.; …), 1 member of site weekly (1: There is no newsletter 1.)",
		"correct or delete these members: /lychgate/pending on the admin API has their guids, and caddy lychgate members show says who they are",
	}})
}

func TestPostgresStores(t *testing.T) {
	source := dbtest.PostgresSource(t)
	db, err := database.Open(t.Context(), database.Postgres, source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	check := func(source string, want Result) {
		t.Helper()
		got := results(t, Config{Store: &Store{Kind: database.Postgres, Source: source, Members: true}})
		want.Subject = "store postgres #/postgres"
		if diff := cmp.Diff([]Result{want}, got); diff != "" {
			t.Errorf("got (-want +got):\n%s", diff)
		}
	}
	check(source, Result{Status: OK, Message: "has no tables of members yet; Caddy makes them when it starts"})
	if _, err := memberstore.NewSQL(t.Context(), db); err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	check(source, Result{Status: OK, Message: "can be read and written"})
	check(source+"&options="+strings.ReplaceAll(url.QueryEscape("-c default_transaction_read_only=on"), "+", "%20"),
		Result{Status: Failed, Message: "writing to the store: ERROR: cannot execute UPDATE in a read-only transaction (SQLSTATE 25006)", Fix: "see that it answers, and that its user may write"})

	got := results(t, Config{Store: &Store{Kind: database.Postgres, Members: true, Source: "postgres://caddy:s3cret@127.0.0.1:1/lychgate?sslmode=disable"}})
	if len(got) != 1 || got[0].Status != Failed || got[0].Subject != "store postgres #/lychgate" || strings.Contains(got[0].Message, "s3cret") {
		t.Errorf(`results = %+v, want 1 values, status %v, subject "store postgres #/lychgate", message without "s3cret"`, got, Failed)
	}
}

// An edge that lost its Redis goes on, so it is a warning.
func TestUnusableRedisIsAWarning(t *testing.T) {
	server := redistest.Start(t)
	got := results(t, Config{Redis: "redis://caddy:s3cret@" + server.Address + "/0"})
	if len(got) != 1 || got[0].Status != Warning || !strings.Contains(got[0].Message, "WRONGPASS") || strings.Contains(fmt.Sprint(got), "s3cret") {
		t.Errorf("a wrong password: %+v", got)
	}
	good := Result{"redis redis://#", OK, "can be written", ""}
	if diff := cmp.Diff([]Result{good}, results(t, Config{Redis: "redis://" + server.Address})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	server.Kill()
	down := Result{"redis redis://#", Warning, "does not answer, so each edge goes on by itself: dial tcp #: connect: connection refused", "start it, or correct its address, user or password in redis"}
	if diff := cmp.Diff([]Result{down}, results(t, Config{Redis: "redis://" + server.Address})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestFreeSpace(t *testing.T) {
	for free, want := range map[uint64]Result{
		2 << 30:       {Status: OK, Message: "good, 2.0 GiB are free"},
		1<<30 - 1<<20: {Status: Warning, Message: "good, 1023 MiB are free", Fix: "make room on the disk"},
		1 << 20:       {Status: Failed, Message: "good, 1.0 MiB are free, so writes are about to fail", Fix: "make room on the disk"},
	} {
		if diff := cmp.Diff(want, freeSpace(ok("good"), free)); diff != "" {
			t.Errorf("freeSpace (-want +got):\n%s", diff)
		}
	}
}

// Anyone who runs the doctor learns that an edge would not open the keys of sites in the
// store, and of which.
func TestSitesInTheStore(t *testing.T) {
	const first, second = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	keyring := func(secrets ...string) *seal.Keyring {
		keys, err := seal.NewKeyring(secrets...)
		if err != nil {
			t.Fatalf("seal.NewKeyring: %v", err)
		}
		return keys
	}
	file := filepath.Join(t.TempDir(), "lychgate.db")
	check := func(secrets ...string) []Result {
		all := results(t, Config{Store: &Store{Kind: database.SQLite, Source: file, Keys: keyring(secrets...)}})
		return all[1:]
	}
	db, err := database.Open(t.Context(), database.SQLite, file)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	if got := check(first); len(got) != 0 {
		t.Errorf("without a table: %+v", got)
	}
	store, err := sites.NewSQL(t.Context(), db, keyring(first))
	if err != nil {
		t.Fatalf("sites.NewSQL: %v", err)
	}
	for _, site := range []sites.Site{
		{Name: "daily", Settings: []byte("{}"), Secrets: map[string]string{"key": "x"}}, {Name: "plain", Settings: []byte("{}")},
	} {
		if err := store.Add(t.Context(), site); err != nil {
			t.Fatalf("store.Add: %v", err)
		}
	}
	const mend = "write the secret that sealed them behind the others in secret, or give each its key again: caddy lychgate site update <name> --admin-key -"
	for name, test := range map[string]struct {
		secrets []string
		want    Result
	}{
		"its secret":     {[]string{second, first}, Result{"sites in the store", OK, "2 sites, whose keys can be opened", ""}},
		"another secret": {[]string{second}, Result{"sites in the store", Failed, "the keys of 1 of 2 sites cannot be opened: daily (it was sealed with another secret)", mend}},
		"no secret":      {nil, Result{"sites in the store", Failed, "the keys of 1 of 2 sites cannot be opened: daily (it was sealed with another secret)", mend}},
	} {
		if diff := cmp.Diff([]Result{test.want}, check(test.secrets...)); diff != "" {
			t.Errorf("%s: check (-want +got):\n%s", name, diff)
		}
	}
}
