package caddymodule

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/ratelimit"
	"github.com/lychgate/caddy-lychgate/themes"
)

// themesState is what theme_manifest runs on, of one configuration.
type themesState struct {
	fileName string // of manifests
	store    *openStore
	kept     atomic.Pointer[themes.SQL]     // nil while the store is away
	sites    map[*Site]*handlers.ThemesSite // those with a Ghost
}

// staffLimit is the rate limit of each address for sessions that are not valid.
var staffLimit = ratelimit.Limit{Requests: 30, Window: time.Minute}

var errNoGhost = &mistake{
	text: "needs a site with a Ghost, whose themes it looks at: write platform ghost http://127.0.0.1:2368 into a site",
	json: `theme_manifest needs a site with a Ghost, whose themes it looks at: write into a site "platform": {"kind": "ghost", "url": "http://127.0.0.1:2368", "admin_key": "{env.GHOST_ADMIN_KEY}"}`,
}

// useThemes checks what theme_manifest needs, and has it opened when the app
// starts.
func (a *App) useThemes() (*themesState, error) {
	if a.themes != nil {
		return a.themes, nil
	}
	state := &themesState{sites: make(map[*Site]*handlers.ThemesSite)}
	var err error
	if state.fileName, err = themes.FileName(a.serviceName()); err != nil {
		return nil, err
	}
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	strangers, err := loadStrangers(limiterKey{"sessions", staffLimit}, &a.release)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		connected, err := a.connect(site)
		if err != nil {
			return nil, inSite(name, err)
		}
		room, ok := connected.(platform.Authenticator)
		if !ok {
			continue
		}
		repositories := make(map[string]themes.Source)
		for theme, declared := range site.Themes {
			repository, err := declared.Repository.connect()
			if err != nil {
				return nil, inSite(name, inTheme(theme, err))
			}
			repositories[theme] = themes.FromRepository(repository, state.fileName)
		}
		state.sites[site] = &handlers.ThemesSite{
			Name:  name,
			Staff: handlers.NewStaff(name, room, strangers),
			Themes: func() (*themes.Service, error) {
				store, err := state.opened()
				if err != nil {
					return nil, err
				}
				return &themes.Service{Site: name, Store: store, Repositories: repositories, Now: time.Now}, nil
			},
		}
	}
	if len(state.sites) == 0 {
		return nil, errNoGhost
	}
	a.themes = state
	return state, nil
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
