package database_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// An older binary does not write to tables of a newer one: what it leaves out, the
// newer one would take for done.
func TestMigrateRefusesNewerTables(t *testing.T) {
	files := func(n int) fstest.MapFS {
		list := fstest.MapFS{}
		for i := range n {
			sql := fmt.Sprintf("-- +goose Up\nCREATE TABLE t%d (id INTEGER);\n-- +goose Down\nDROP TABLE t%d;\n", i, i)
			list[fmt.Sprintf("migrations/%05d_t.sql", i+1)] = &fstest.MapFile{Data: []byte(sql)}
		}
		return list
	}
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		for _, step := range []struct {
			versions int
			want     string
		}{
			{1, ""},
			{3, ""},
			{2, "the store is of a newer Lychgate: things has version 3, and this one knows 2; run the newer one, or take the store back as the page on deployment says"},
			{3, ""},
		} {
			got := ""
			if err := (database.Schema{Name: "things", Files: files(step.versions)}).Migrate(t.Context(), db); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("by one that knows %d: %s", step.versions, diff)
			}
		}
	})
}
