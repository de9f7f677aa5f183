package sites

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// An operator finds the sites of a tenant by their label, page by page, whatever part of it another label
// is. A removed site leaves no label to the next one of its name.
func TestSitesAreFoundByLabel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := open(t, db, firstSecret)
		labelled := func(name string, labels ...string) Site {
			s := site(name)
			s.Labels = labels
			return s
		}
		a, b, c, d := labelled("a", "acme"), labelled("b", "acme-2", "trial"), labelled("c", "beta", "acme", "trial"), labelled("d")
		must(t, store.Add(t.Context(), a, b, c, d))
		check(t, store, a, b, c, d)

		for _, test := range []struct {
			name, after string
			limit       int
			labels      [][]string
			want        []string
		}{
			{"one", "", 10, [][]string{{"acme"}}, []string{"a", "c"}},
			{"the next page of one", "a", 10, [][]string{{"acme"}}, []string{"c"}},
			{"the first page of one", "", 1, [][]string{{"acme"}}, []string{"a"}},
			{"one of several", "", 10, [][]string{{"acme", "acme-2"}}, []string{"a", "b", "c"}},
			{"one of each", "", 10, [][]string{{"acme"}, {"trial", "beta"}}, []string{"c"}},
			{"lists without labels", "", 10, [][]string{nil, {}}, []string{"a", "b", "c", "d"}},
			{"a part of one", "", 10, [][]string{{"ac"}}, nil},
			{"nobody's", "", 10, [][]string{{"gamma"}}, nil},
		} {
			list, err := store.List(t.Context(), test.after, test.limit, test.labels...)
			must(t, err)
			var got []string
			for _, s := range list {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
			names, err := store.Names(t.Context(), test.labels...)
			must(t, err)
			if isWhole := test.after == "" && len(got) < test.limit; names == nil || isWhole && !slices.Equal(got, names) {
				t.Errorf("%s: Names: got %q, want %q", test.name, names, got)
			}
		}

		changed := all(t, store)[0]
		changed.Labels = []string{"beta"}
		must(t, store.Replace(t.Context(), changed))
		check(t, store, changed, b, c, d)
		must(t, store.Remove(t.Context(), "c", true))
		c.Labels = nil
		must(t, store.Add(t.Context(), c))
		check(t, store, changed, b, c, d)
	})
}
