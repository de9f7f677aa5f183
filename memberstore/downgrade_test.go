package memberstore

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// The statements with which operators take the members back are right on both databases, and a
// newer binary makes the migration again.
func TestDowngradeAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/deployment.md")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	_, section, _ := strings.Cut(string(page), "## Downgrade\n")
	_, statements, _ := strings.Cut(section, "```sql\nBEGIN;\n")
	statements, _, isThere := strings.Cut(statements, "COMMIT;\n```")
	if !isThere {
		t.Fatal("docs/deployment.md has no statements below Downgrade, want them between BEGIN and COMMIT")
	}
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		if _, err := NewSQL(t.Context(), db); err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		dbtest.Exec(t, db, statements)
		check := func(has int64) {
			t.Helper()
			got, err := Schema.Version(t.Context(), db)
			if diff := cmp.Diff(database.Version{Has: has, Known: 13}, got); diff != "" || err != nil {
				t.Errorf("Schema.Version: got error %v (-want +got):\n%s", err, diff)
			}
		}
		check(7)
		if _, err := NewSQL(t.Context(), db); err != nil {
			t.Fatalf("NewSQL, after the members were taken back: %v", err)
		}
		check(13)
	})
}
