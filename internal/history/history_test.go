package history_test

import (
	"database/sql"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Of each thing the last entries are kept, for a year, and what one person changes meanwhile is one.
func TestLogKeepsLastEntriesForAYear(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		ctx := t.Context()
		log, err := history.New(ctx, db)
		if err != nil {
			t.Fatalf("history.New: %v", err)
		}
		party, ball := history.Thing{Site: "daily", Kind: "event", Key: "party"}, history.Thing{Site: "daily", Kind: "event", Key: "ball"}
		add := func(of history.Thing, entries ...history.Entry) {
			t.Helper()
			for _, e := range entries {
				if err := log.AddAlone(ctx, of, e); err != nil {
					t.Fatalf("log.AddAlone: %v", err)
				}
			}
		}
		has := func(what string, of history.Thing, want ...history.Entry) {
			t.Helper()
			got, err := log.List(ctx, of)
			if err != nil {
				t.Fatalf("log.List: %v", err)
			}
			for i := range got {
				if time.Since(got[i].At).Abs() > time.Hour {
					t.Errorf("%s: an entry of %v, want now", what, got[i].At)
				}
				got[i].At = time.Time{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got): %s", what, diff)
			}
		}
		ada := func(did string) history.Entry {
			return history.Entry{Editor: history.Editor{ID: "1", Name: "Ada"}, Did: did}
		}
		bea := history.Entry{Editor: history.Editor{ID: "2", Name: "Bea"}, Did: history.Changed, About: "Soup"}
		for _, e := range []history.Entry{ada("created"), ada(history.Changed), ada(history.Changed), bea, ada(history.Changed), ada("published")} {
			add(party, e)
		}
		add(ball, bea)
		has("a party", party, ada("published"), ada(history.Changed), bea, ada(history.Changed), ada("created"))
		has("a ball", ball, bea)

		all, err := log.ListKind(ctx, "daily", "event", 2)
		if err != nil || len(all) != 2 || len(all["party"]) != 2 || all["party"][0].Did != "published" || len(all["ball"]) != 1 {
			t.Errorf("the last two of each: got %+v, %v", all, err)
		}
		for n := range history.Most + 3 {
			add(ball, ada(strconv.Itoa(n)))
		}
		if got, _ := log.List(ctx, ball); len(got) != history.Most || got[0].Did != strconv.Itoa(history.Most+2) {
			t.Errorf("%d entries, the first %+v, want the last %d", len(got), got[0], history.Most)
		}
		if _, err := db.Write.ExecContext(ctx, `UPDATE history SET at = at - 367 * CAST(86400000 AS BIGINT) WHERE thing = 'party'`); err != nil {
			t.Fatalf("db.Write.ExecContext: %v", err)
		}
		has("a year later, while nobody does anything", party)
		if all, err := log.ListKind(ctx, "daily", "event", 2); err != nil || all["party"] != nil {
			t.Errorf("the last two of each after a year: got %+v, %v, want none of the party", all, err)
		}
		add(history.Thing{Site: "weekly", Kind: "event", Key: "fair"}, ada("published"))
		var left int
		if err := db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM history WHERE thing = 'party'`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d old entries are left after one of another site, %v, want none", left, err)
		}
		if err := db.InTx(ctx, func(tx *sql.Tx) error { return log.Drop(ctx, tx, ball) }); err != nil {
			t.Fatalf("log.Drop: %v", err)
		}
		has("deleted", ball)
	})
}
