package themes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A list has the first findings of each theme and how many there are, however many and however
// long they are, and knows on what Homepage Curation runs.
func TestListHasTheFirstFindings(t *testing.T) {
	each(t, func(t *testing.T, s *Service) {
		const curated = "manifest_version: 1\nhomepage_curation: {sections: [{key: top, name: Top, slots: [{key: lead, label: Lead, tag: \"#lead\"}]}]}\n"
		// wrong is a manifest with findings, each of which has a field in it.
		wrong := func(n int, field string) string {
			return curated + "events: {types: {a: {post_template: a, supported_fields: [" + strings.Repeat(field+", ", n) + "]}}}"
		}
		long := strings.Repeat("\u00e9", 300)
		for _, upload := range [][2]string{
			{"curated", curated},
			{"older", curated},
			{"older", wrong(2, "x")},
			{"many", wrong(9000, "x")},
			{"long", wrong(200, long)},
			{"ignored", "manifest_version: 2"},
			{"mended", wrong(5, "x")},
			{"mended", curated},
			{"named", "manifest_version: 1\nevents: {types: {homepage_curation: {post_template: a}}}"},
			{"removed", curated},
		} {
			if _, err := s.Take(t.Context(), upload[0], file(upload[1])); err != nil {
				t.Fatalf("error %v, want none", err)
			}
		}
		if _, err := s.Take(t.Context(), "removed", func(context.Context) ([]byte, error) { return nil, ErrNoManifest }); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		for _, most := range []int{3, 30, AllFindings} {
			list, err := s.List(t.Context(), most)
			if err != nil {
				t.Fatalf("error %v, want none", err)
			}
			want := []Summary{
				{Name: "curated", IsCurated: true},
				{Name: "ignored", Total: 1},
				{Name: "long", Total: 200},
				{Name: "many", Total: 9000},
				{Name: "mended", IsCurated: true},
				{Name: "named"},
				{Name: "older", Total: 2, IsCurated: true, RunsOlder: true},
			}
			if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(Summary{}, "Findings", "UpdatedAt", "KnownGoodAt", "CurationAt")); diff != "" {
				t.Errorf("%d findings: %s", most, diff)
			}
			for _, theme := range list {
				kept, err := s.Find(t.Context(), theme.Name)
				if err != nil {
					t.Fatalf("error %v, want none", err)
				}
				first := kept.Findings[:min(most, len(kept.Findings))]
				if diff := cmp.Diff(first, theme.Findings); diff != "" {
					t.Errorf("%s, %d findings: %d of %d: %.300s", theme.Name, most, len(theme.Findings), theme.Total, diff)
				}
				times := fmt.Sprint(kept.UpdatedAt, kept.KnownGoodAt, kept.CurationAt)
				if got := fmt.Sprint(theme.UpdatedAt, theme.KnownGoodAt, theme.CurationAt); got != times || (kept.Curation() != nil) != theme.IsCurated {
					t.Errorf("%s: %s, want %s", theme.Name, got, times)
				}
			}
		}
	})
}
