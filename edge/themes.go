package edge

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
)

// Themes is what theme_manifest runs on, of one configuration.
type Themes struct {
	FileName string // of manifests
	store    *openStore
	kept     atomic.Pointer[themes.SQL] // nil while the store is away
	failures *api.AuthLimiter
}

// staffLimit is the rate limit of each address for sessions that are not valid.
var staffLimit = ratelimit.Limit{Requests: 30, Window: time.Minute}

// UseThemes checks what a directive that is about themes needs, and has it opened when the edge
// starts.
func (e *Edge) UseThemes(directive string) (*Themes, error) {
	if e.themes != nil {
		return e.themes, nil
	}
	state := new(Themes)
	var err error
	if state.FileName, err = e.Config.ManifestFile(); err != nil {
		return nil, err
	}
	if state.store, err = e.useStore(state); err != nil {
		return nil, err
	}
	if state.failures, err = e.LoadAuthLimiter("sessions", staffLimit, &e.releases); err != nil {
		return nil, err
	}
	has := e.Config.Store != nil // sites with themes, maybe
	for _, name := range e.Config.Names() {
		site := e.byName[name]
		if err := state.serve(e, site); err != nil {
			return nil, config.In("site "+name, "sites."+name, err)
		}
		has = has || site.Themes != nil
	}
	if !has {
		return nil, config.ErrNoThemeHost(directive)
	}
	e.themes = state
	return state, nil
}

// serve prepares a site whose platform has themes.
func (s *Themes) serve(e *Edge, site *Site) error {
	connected, err := e.connect(site)
	if err != nil {
		return err
	}
	host, ok := connected.(platform.ThemeHost)
	if !ok {
		return nil
	}
	kind, _ := site.Config.Platform.Of()
	sources, err := s.Sources(e, site)
	if err != nil {
		return err
	}
	site.Themes = &api.Site{
		Name:     site.Name,
		Kind:     kind,
		Platform: host,
		Staff:    api.NewStaff(site.Name, kind.Title, host, s.failures),
		Themes: func() (*themes.Service, error) {
			store, err := opened(s.store, &s.kept)
			if err != nil {
				return nil, err
			}
			return &themes.Service{Site: site.Name, Store: store, Repositories: sources, Now: time.Now}, nil
		},
		ImageSize: func(ctx context.Context) (string, error) { return e.events.imageSize(ctx, site.Name) },
	}
	return nil
}

// Sources returns where the manifests of a site's themes are read from, by the names of the
// themes.
func (s *Themes) Sources(e *Edge, site *Site) (map[string]themes.Source, error) {
	repositories, err := site.Config.Repositories(e.Placeholders)
	sources := make(map[string]themes.Source)
	for name, repository := range repositories {
		sources[name] = themes.FromRepository(repository, s.FileName)
	}
	return sources, err
}

func (s *Themes) begin(ctx context.Context, db *database.DB, _ func(func(context.Context))) error {
	store, err := themes.NewSQL(ctx, db)
	if err == nil {
		s.kept.Store(store)
	}
	return err
}
