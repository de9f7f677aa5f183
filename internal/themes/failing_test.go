package themes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// An operator finds the theme whose repository cannot be read, until it is read again, or until somebody
// uploads the theme.
func TestUnreadableRepositoriesAreFound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := themes.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("themes.NewSQL: %v", err)
		}
		problem := errors.New("the repository cannot be reached")
		source := func(context.Context) ([]byte, error) { return nil, problem }
		s := &themes.Service{Site: "daily", Store: store, Now: db.Now, Repositories: map[string]themes.Source{"nightly": func(ctx context.Context) ([]byte, error) { return source(ctx) }}}
		refresh := func(want error) {
			t.Helper()
			if _, err := s.Refresh(t.Context(), "nightly"); !errors.Is(err, want) {
				t.Errorf("Refresh: %v, want %v", err, want)
			}
		}
		unread := func(want ...themes.Failing) {
			t.Helper()
			list, err := store.Unread(t.Context(), database.SitePage{Most: 10})
			if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(themes.Failing{}, "Since"), cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("themes that cannot be read (-want +got):\n%s, %v", diff, err)
			}
		}
		failing := themes.Failing{Site: "daily", Themes: 1, Name: "nightly", Problem: problem.Error()}
		refresh(problem)
		unread(failing)
		source = func(context.Context) ([]byte, error) { return []byte("manifest_version: 1\n"), nil }
		refresh(nil)
		unread()
		source = func(context.Context) ([]byte, error) { return nil, problem }
		refresh(problem)
		unread(failing)

		// The version before saves or clears the theme, and does not know that it could not be read.
		for _, change := range []string{"updated_at = unread_at", "updated_at = 0, manifest = NULL, findings = NULL"} {
			dbtest.Exec(t, db, "UPDATE themes SET begun = begun + 1, changed = begun + 1, "+change)
			unread()
			refresh(problem)
			unread(failing)
		}
		if _, err := s.Take(t.Context(), "nightly", func(context.Context) ([]byte, error) { return nil, themes.ErrNoManifest }); err != nil {
			t.Errorf("Take: %v", err)
		}
		unread()

		// An upload while the repository is read counts more than that it could not be.
		source = func(ctx context.Context) ([]byte, error) {
			_, err := s.Take(ctx, "nightly", func(context.Context) ([]byte, error) { return []byte("manifest_version: 1\n"), nil })
			return nil, errors.Join(err, problem)
		}
		refresh(problem)
		unread()
	})
}
