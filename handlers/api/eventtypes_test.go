package api

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// A theme's name that no database keeps is one that the site does not have.
func TestDeclaredOfOddTheme(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := themes.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("themes.NewSQL: %v", err)
		}
		site := EventsSite{Site: &Site{Themes: func() (*themes.Service, error) { return &themes.Service{Store: store, Site: "daily"}, nil }}}
		if declared, findings, err := site.Declared(t.Context(), "so\x00lo"); declared != nil || findings != nil || err != nil {
			t.Errorf("got %v, %v, %v, want nothing and no error", declared, findings, err)
		}
	})
}
