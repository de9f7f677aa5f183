package curation

import (
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A tag has one move, whichever of its names a theme writes: the later choice counts.
func TestNamesOfOneTag(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWall(map[string][]string{"1": {"#hero"}, "2": nil})
		c := start(t, db, w)
		want := func(tag, post string) Move {
			t.Helper()
			m, err := c.store.Want(t.Context(), "daily", tag, post)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		first := want("#Hero", "1")
		second := want("hash-hero", "2")
		want("hero", "3") // another tag
		if diff := cmp.Diff([]string{"hash-hero: 2", "hero: 3"}, pending(t, c)); diff != "" {
			t.Errorf("kept: %s", diff)
		}
		if err := c.store.Done(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		now, found, err := c.store.Find(t.Context(), first)
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

// However many sites are due that nobody serves any more, one that is served is reached, and
// after it the first ones again.
func TestSitesThatAreNotServed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		w := newWall(map[string][]string{"1": nil})
		c := start(t, db, w)
		add := func(due int, sites ...string) {
			t.Helper()
			for _, site := range sites {
				m, err := c.store.Want(t.Context(), site, "#hero", "1")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.Write.ExecContext(t.Context(), "UPDATE curation_moves SET due_at = $1 WHERE site = $2", due, m.Site); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range 2*maxDue + 100 {
			add(i/3, fmt.Sprintf("gone-%04d", i))
		}
		add(2*maxDue, "daily")
		busy, done := make(map[string]bool), make(chan string, maxMoves)
		var last DueSite
		for i, want := range []DueSite{{"gone-0999", 333}, {"gone-1999", 666}, {}, {"gone-0999", 333}} {
			if last = c.beginDue(t.Context(), last, busy, done); last != want {
				t.Fatalf("look %d ends with %v, want %v", i, last, want)
			}
			if isBegun := i >= 2; busy["daily"] != isBegun {
				t.Errorf("look %d: begun: %v", i, busy)
			}
		}
		if site := <-done; site != "daily" {
			t.Errorf("done: %s", site)
		}
		if diff := cmp.Diff([]string{"1"}, w.has("#hero")); diff != "" {
			t.Error(diff)
		}
		// Those that wait longest come first where not all can be begun.
		for range maxMoves {
			c.places <- struct{}{}
		}
		if got := c.beginDue(t.Context(), last, busy, done); got != last {
			t.Errorf("without a place it goes on to %v, from %v", got, last)
		}
	})
}

// The moves of an earlier version are finished. Of two that name one tag, the later one is.
func TestMovesOfEarlierVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		first, err := migrations.ReadFile("migrations/00001_moves.sql")
		if err != nil {
			t.Fatal(err)
		}
		earlier := database.Schema{Name: Schema.Name, Files: fstest.MapFS{"migrations/00001_moves.sql": {Data: first}}}
		if err := earlier.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		for i, row := range [][2]string{{"#Hero", "1"}, {"hash-hero", "2"}, {"#hero", "3"}, {"News", "4"}, {"#Ärger", "5"}} {
			wanted := time.UnixMilli(int64(i))
			if row[0] == "hash-hero" {
				wanted = time.UnixMilli(100)
			}
			_, err := db.Write.ExecContext(t.Context(), `INSERT INTO curation_moves (site, tag, post, revision, wanted_at, due_at) VALUES ('daily', $1, $2, $3, $4, 0)`,
				row[0], row[1], i, wanted.UnixMilli())
			if err != nil {
				t.Fatal(err)
			}
		}
		w := newWall(map[string][]string{"1": nil, "2": nil, "3": {"hash-hero"}, "4": nil, "5": nil})
		c := start(t, db, w)
		moves, err := c.Pending(t.Context(), "daily")
		want := map[string]Move{
			"hash-hero":  {Site: "daily", Tag: "hash-hero", Post: "2", WantedAt: time.UnixMilli(100).UTC()},
			"news":       {Site: "daily", Tag: "News", Post: "4", WantedAt: time.UnixMilli(3).UTC()},
			"hash-ärger": {Site: "daily", Tag: "#Ärger", Post: "5", WantedAt: time.UnixMilli(4).UTC()},
		}
		if diff := cmp.Diff(want, moves, cmpopts.IgnoreUnexported(Move{})); diff != "" || err != nil {
			t.Errorf("%v: %s", err, diff)
		}
		bringDue(t, c, w)
		if diff := cmp.Diff(map[string][]string{"1": nil, "2": {"hash-hero"}, "3": {}, "4": {"News"}, "5": {"#Ärger"}}, w.posts); diff != "" {
			t.Error(diff)
		}
		if left := pending(t, c); left != nil {
			t.Errorf("pending: %v", left)
		}
	})
}
