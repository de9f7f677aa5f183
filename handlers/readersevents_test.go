package handlers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/dbtest"
	"github.com/lychgate/caddy-lychgate/ratelimit"
	"github.com/lychgate/caddy-lychgate/themes"
)

type unlimited struct{ ratelimit.Limiter }

func (unlimited) Take(context.Context, ratelimit.Key) time.Duration { return 0 }

// Text that no database keeps is nothing that a store fails at.
func TestReadersEventsWithOddText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := events.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		of := events.NewFeed(store)
		h := ReadersEvents{Path: "/events", Limiter: unlimited{}, Logger: zap.NewNop()}
		got := make(map[string]Outcome)
		wanted := map[string]Outcome{
			"/events/%ff": NotFound, "/events/a%00b": NotFound, "/events/%c3.ics": NotFound,
			"/events?type=%00": Rejected, "/events?type=a%ff": Rejected, "/events.ics?type=%00": Rejected,
		}
		for target := range wanted {
			w := httptest.NewRecorder()
			got[target] = h.Serve(w, httptest.NewRequest(http.MethodGet, target, nil), "daily", func() (*events.Feed, error) { return of, nil }, netip.Addr{})
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A theme's name that no database keeps is one that the site does not have.
func TestDeclaredOfOddTheme(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := themes.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		site := EventsSite{ThemesSite: &ThemesSite{Themes: func() (*themes.Service, error) { return &themes.Service{Store: store, Site: "daily"}, nil }}}
		if declared, findings, err := site.Declared(t.Context(), "so\x00lo"); declared != nil || findings != nil || err != nil {
			t.Error(declared, findings, err)
		}
	})
}
