package caddymodule

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
)

// themesState is what theme_manifest runs on, of one configuration.
type themesState struct {
	fileName  string // of manifests
	store     *openStore
	kept      atomic.Pointer[themes.SQL] // nil while the store is away
	strangers *api.AuthLimiter
}

// staffLimit is the rate limit of each address for sessions that are not valid.
var staffLimit = ratelimit.Limit{Requests: 30, Window: time.Minute}

// useThemes checks what theme_manifest needs, and has it opened when the app
// starts.
func (a *App) useThemes(directive string) (*themesState, error) {
	if a.themes != nil {
		return a.themes, nil
	}
	state := new(themesState)
	var err error
	if state.fileName, err = themes.FileName(a.serviceName()); err != nil {
		return nil, err
	}
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	if state.strangers, err = a.loadStrangers("sessions", staffLimit, &a.release); err != nil {
		return nil, err
	}
	has := a.Store != nil // sites with themes, maybe
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if err := state.serve(a, site); err != nil {
			return nil, inSite(name, err)
		}
		has = has || site.themes != nil
	}
	if !has {
		return nil, errNoThemeHost(directive)
	}
	a.themes = state
	return state, nil
}

// serve prepares a site whose platform has themes.
func (s *themesState) serve(a *App, site *Site) error {
	connected, err := a.connect(site)
	if err != nil {
		return err
	}
	host, ok := connected.(platform.ThemeHost)
	if !ok {
		return nil
	}
	kind, _ := site.Platform.kind()
	repositories := make(map[string]themes.Source)
	for theme, declared := range site.Themes {
		repository, err := declared.Repository.connect()
		if err != nil {
			return inTheme(theme, err)
		}
		repositories[theme] = themes.FromRepository(repository, s.fileName)
	}
	site.themes = &api.Site{
		Name:     site.name,
		Kind:     kind,
		Platform: host,
		Staff:    api.NewStaff(site.name, kind.Title, host, s.strangers),
		Themes: func() (*themes.Service, error) {
			store, err := s.opened()
			if err != nil {
				return nil, err
			}
			return &themes.Service{Site: site.name, Store: store, Repositories: repositories, Now: time.Now}, nil
		},
		ImageSize: func(ctx context.Context) (string, error) { return a.events.imageSize(ctx, site.name) },
	}
	return nil
}

// begin implements [storeUser].
func (s *themesState) begin(ctx context.Context, db *database.DB, _ func(func(context.Context))) error {
	store, err := themes.NewSQL(ctx, db)
	if err == nil {
		s.kept.Store(store)
	}
	return err
}

// opened returns the store. Errors: errStoreAway.
func (s *themesState) opened() (themes.Store, error) {
	if err := s.store.open(); err != nil {
		return nil, err
	}
	if store := s.kept.Load(); store != nil {
		return store, nil
	}
	return nil, errStoreAway
}
