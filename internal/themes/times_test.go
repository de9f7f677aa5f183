package themes

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// times are those of a theme, in hours since the first change; -1 for none.
type times struct{ Updated, KnownGood, Curation int }

// Staff see how old the copy is that the homepage runs on, and since when there is
// Homepage Curation.
func TestTimesOfTheKnownGoodCopy(t *testing.T) {
	without := file("manifest_version: 1\n")
	for _, test := range []struct {
		name    string
		changes []Source
		want    times
	}{
		{"valid", []Source{file(clean("A"))}, times{0, 0, 0}},
		{"valid again", []Source{file(clean("A")), file(clean("B"))}, times{1, 1, 0}},
		{"findings since", []Source{file(clean("A")), file(warned("B"))}, times{1, 0, 0}},
		{"mended", []Source{file(clean("A")), file(warned("B")), file(clean("C"))}, times{2, 2, 0}},
		{"never valid", []Source{file(warned("A"))}, times{0, -1, -1}},
		{"without curation", []Source{without}, times{0, 0, -1}},
		{"curation taken out", []Source{file(clean("A")), without}, times{1, 1, -1}},
		{"curation taken out, and back", []Source{file(clean("A")), without, file(clean("B"))}, times{2, 2, 2}},
		{"removed, and back", []Source{file(clean("A")), failing(ErrNoManifest), file(clean("B"))}, times{2, 2, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			each(t, func(t *testing.T, s *Service) {
				first := s.Now()
				for i, change := range test.changes {
					s.Now = func() time.Time { return first.Add(time.Duration(i) * time.Hour) }
					if _, err := s.Take(t.Context(), "nightly", change); err != nil {
						t.Fatalf("error %v, want none", err)
					}
				}
				theme, err := s.Find(t.Context(), "nightly")
				if err != nil {
					t.Fatalf("error %v, want none", err)
				}
				hours := func(at time.Time) int {
					if at.IsZero() {
						return -1
					}
					return int(at.Sub(first).Hours())
				}
				if diff := cmp.Diff(test.want, times{hours(theme.UpdatedAt), hours(theme.KnownGoodAt), hours(theme.CurationAt)}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Of themes that were stored before these times were, they are told where they are
// known.
func TestTimesOfEarlierThemes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		first, err := migrations.ReadFile("migrations/00001_themes.sql")
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		earlier := database.Schema{Name: Schema.Name, Files: fstest.MapFS{"migrations/00001_themes.sql": {Data: first}}}
		if err := earlier.Migrate(t.Context(), db); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		const curated, plain = `{"manifest_version":1,"homepage_curation":{"recent_limit":5}}`, `{"manifest_version":1}`
		const finding = `[{"field":"events","message":"wrong","severity":"error"}]`
		for name, row := range map[string][2]string{
			"curated": {curated, `[]`}, "plain": {plain, `[]`}, "warned": {curated, finding},
		} {
			_, err := db.Write.ExecContext(t.Context(), `INSERT INTO themes (site, name, manifest, known_good, findings, updated_at, begun, changed)
				VALUES ('daily', $1, $2, $2, $3, 3600000, 1, 1)`, name, row[0], row[1])
			if err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		got, err := store.List(t.Context(), "daily", 30)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		stored := time.UnixMilli(3600000).UTC()
		want := []Summary{
			{Name: "curated", Findings: []manifest.Finding{}, UpdatedAt: stored, IsCurated: true, KnownGoodAt: stored, CurationAt: stored},
			{Name: "plain", Findings: []manifest.Finding{}, UpdatedAt: stored, KnownGoodAt: stored},
			{
				Name: "warned", Findings: []manifest.Finding{{Field: "events", Message: "wrong", Severity: manifest.Error}}, Total: 1,
				UpdatedAt: stored, IsCurated: true, RunsOlder: true,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
