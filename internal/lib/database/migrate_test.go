package database_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A Lychgate goes on with tables to which a newer one only added, so that edges are replaced
// one by one, and back. It does not write to those of which the newer one says that it would
// leave out what is needed, and so would be taken for complete.
func TestMigrateBesideNewerTables(t *testing.T) {
	const needs4 = "UPDATE migrations_compatible SET version = 4 WHERE name = 'things';\n"
	files := func(n int) fstest.MapFS {
		list := fstest.MapFS{}
		for i := range n {
			sql := fmt.Sprintf("-- +goose Up\nCREATE TABLE t%d (id INTEGER);\n", i)
			if i+1 == 5 {
				sql += needs4
			}
			list[fmt.Sprintf("migrations/%05d_t.sql", i+1)] = &fstest.MapFile{Data: []byte(sql)}
		}
		return list
	}
	refused := func(has, knows int) string {
		return fmt.Sprintf("the store is of a newer Lychgate: things has version %d, and this one knows %d; run the newer one, or stop all and run its command: caddy lychgate downgrade things=%d", has, knows, knows)
	}
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		for _, step := range []struct {
			versions  int
			statement string // before it
			want      string
		}{
			{versions: 1},
			{versions: 3},
			{versions: 2},
			{versions: 3},
			{versions: 5},
			{versions: 3, want: refused(5, 3)},
			{versions: 4},
			{versions: 5},
			{versions: 4, statement: "DROP TABLE migrations_compatible", want: refused(5, 4)}, // by a development build
			{versions: 6},
			{versions: 5},
		} {
			if step.statement != "" {
				if _, err := db.Write.ExecContext(t.Context(), step.statement); err != nil {
					t.Fatalf("db.Write.ExecContext: %v", err)
				}
			}
			got := ""
			if err := (database.Schema{Name: "things", Files: files(step.versions)}).Migrate(t.Context(), db); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("by one that knows %d: (-want +got):\n%s", step.versions, diff)
			}
		}
	})
}
