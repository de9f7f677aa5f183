package curation

import (
	"database/sql"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A tag has one move, whichever of its names a theme writes: the later choice counts.
func TestNamesOfOneTag(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		w := newPlatform(map[string][]string{"1": {"#hero"}, "2": nil})
		c := start(t, db, w)
		first := keep(t, c, "daily", "#Hero", "1")
		second := keep(t, c, "daily", "hash-hero", "2")
		keep(t, c, "daily", "hero", "3") // another tag
		if diff := cmp.Diff([]string{"hash-hero: 2", "hero: 3"}, pending(t, c)); diff != "" {
			t.Errorf("kept: %s", diff)
		}
		if err := db.InTx(t.Context(), func(tx *sql.Tx) error {
			isLast, err := c.done(t.Context(), tx, first)
			if isLast {
				t.Error("the move that was replaced is the last one, want false")
			}
			return err
		}); err != nil {
			t.Fatalf("db.InTx: %v", err)
		}
		now, found, err := c.find(t.Context(), "daily", first.identity)
		second.WantedAt, second.revision = now.WantedAt, now.revision
		if diff := cmp.Diff(second, now, cmp.AllowUnexported(Move{})); diff != "" || !found || err != nil {
			t.Errorf("in the place of the first: %t, %v: %s", found, err, diff)
		}
		home := Homepage{Site: "daily", Posts: w, Curator: c}
		shown, err := home.Show(t.Context(), []manifest.Slot{{Key: "lead", Tag: "#hero"}})
		if err != nil || shown[0].Move == nil || shown[0].Move.Post != "2" {
			t.Errorf("a slot with another name of the tag: %+v, %v", shown, err)
		}
	})
}

// The moves of an earlier version are finished. Of two that name one tag, the later one is.
func TestMovesOfEarlierVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		first, err := migrations.ReadFile("migrations/00001_moves.sql")
		if err != nil {
			t.Fatalf("migrations.ReadFile: %v", err)
		}
		earlier := database.Schema{Name: Schema.Name, Files: fstest.MapFS{"migrations/00001_moves.sql": {Data: first}}}
		if err := earlier.Migrate(t.Context(), db); err != nil {
			t.Fatalf("earlier.Migrate: %v", err)
		}
		for i, row := range [][2]string{{"#Hero", "1"}, {"hash-hero", "2"}, {"#hero", "3"}, {"News", "4"}, {"#Ärger", "5"}} {
			wanted := time.UnixMilli(int64(i))
			if row[0] == "hash-hero" {
				wanted = time.UnixMilli(100)
			}
			_, err := db.Write.ExecContext(t.Context(), `INSERT INTO curation_moves (site, tag, post, revision, wanted_at, due_at) VALUES ('daily', $1, $2, $3, $4, 0)`,
				row[0], row[1], i, wanted.UnixMilli())
			if err != nil {
				t.Fatalf("db.Write.ExecContext: %v", err)
			}
		}
		w := newPlatform(map[string][]string{"1": nil, "2": nil, "3": {"hash-hero"}, "4": nil, "5": nil})
		c := start(t, db, w)
		moves, err := c.Pending(t.Context(), "daily")
		want := map[string]Move{
			"hash-hero":  {Site: "daily", Tag: "hash-hero", Post: "2", WantedAt: time.UnixMilli(100).UTC()},
			"news":       {Site: "daily", Tag: "News", Post: "4", WantedAt: time.UnixMilli(3).UTC()},
			"hash-ärger": {Site: "daily", Tag: "#Ärger", Post: "5", WantedAt: time.UnixMilli(4).UTC()},
		}
		if diff := cmp.Diff(want, moves, cmpopts.IgnoreUnexported(Move{})); diff != "" || err != nil {
			t.Errorf("Pending: %v, moves (-want +got):\n%s", err, diff)
		}
		syncAll(t, c)
		if diff := cmp.Diff(map[string][]string{"1": nil, "2": {"hash-hero"}, "3": {}, "4": {"News"}, "5": {"#Ärger"}}, w.Tags); diff != "" {
			t.Errorf("w.Tags (-want +got):\n%s", diff)
		}
		if left := pending(t, c); left != nil {
			t.Errorf("pending: %v", left)
		}
	})
}

// A move that is pending in the tables of the last version is after the upgrade, with what is
// known of it.
func TestUpgradeOfPendingMoves(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		earlier := fstest.MapFS{}
		for _, name := range []string{"migrations/00001_moves.sql", "migrations/00002_identity.sql"} {
			data, err := migrations.ReadFile(name)
			if err != nil {
				t.Fatalf("migrations.ReadFile: %v", err)
			}
			earlier[name] = &fstest.MapFile{Data: data}
		}
		if err := (database.Schema{Name: Schema.Name, Files: earlier}).Migrate(t.Context(), db); err != nil {
			t.Fatalf("(database.Schema{Name: Schema.Name, Files: earlier}).Migrate: %v", err)
		}
		dbtest.Exec(t, db, `INSERT INTO curation_moves (site, identity, tag, post, revision, wanted_at, due_at, tries, problem)
			VALUES ('daily', 'hash-hero', '#Hero', '2', 1, 5, 6, 3, 'It is down.')`)
		newCurator(t, db, nil)
		text, err := migrations.ReadFile("migrations/00003_work.sql")
		if err != nil {
			t.Fatalf("migrations.ReadFile: %v", err)
		}
		_, down, _ := strings.Cut(string(text), "-- +goose Down") // taken back, as the page on deployment says, and made again
		for statement := range strings.SplitSeq(strings.TrimSpace(down)+"\nDELETE FROM migrations_curation WHERE version_id = 3", ";\n") {
			dbtest.Exec(t, db, statement)
		}
		w := newPlatform(map[string][]string{"1": {"#Hero"}, "2": nil})
		c := start(t, db, w)
		got, err := c.Pending(t.Context(), "daily")
		want := map[string]Move{"hash-hero": {Site: "daily", Tag: "#Hero", Post: "2", WantedAt: time.UnixMilli(5).UTC(), Tries: 3, Problem: "It is down."}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Move{})); diff != "" || err != nil {
			t.Errorf("pending, want -, got +: %s; %v", diff, err)
		}
		syncAll(t, c)
		if diff := cmp.Diff([]string{"2"}, w.PostsByTag()["#Hero"]); diff != "" || pending(t, c) != nil {
			t.Errorf("the tag's posts, want -, got +: %s; pending: %v", diff, pending(t, c))
		}
	})
}
