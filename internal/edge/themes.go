package edge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// Themes is what theme_manifest runs on, of one configuration.
type Themes struct {
	FileName  string // of manifests
	base      *base
	store     *openStore
	kept      atomic.Pointer[themes.SQL] // nil while the store is away
	failures  *api.AuthLimiter
	imageSize func(ctx context.Context, site string) (string, error)
}

// staffLimit is the rate limit of each address for sessions that are not valid.
var staffLimit = ratelimit.Limit{Requests: 30, Window: time.Minute}

// newThemes checks what a directive that is about themes needs, and has it opened when the edge
// starts. ImageSize is asked for a site's Default Featured Image Size.
func newThemes(b *base, served *servedSites, directive string, imageSize func(ctx context.Context, site string) (string, error)) (*Themes, error) {
	s := &Themes{base: b, imageSize: imageSize}
	var err error
	if s.FileName, err = b.Config.ManifestFile(); err != nil {
		return nil, err
	}
	if s.store, err = b.useStore(s); err != nil {
		return nil, err
	}
	if s.failures, err = b.LoadAuthLimiter("sessions", staffLimit, &b.releases); err != nil {
		return nil, err
	}
	has := b.Config.Store != nil // sites with themes, maybe
	for _, name := range b.Config.Names() {
		site := served.byName[name]
		if err := s.serve(site); err != nil {
			return nil, config.In("site "+name, "sites."+name, err)
		}
		has = has || site.themes != nil
	}
	if !has {
		return nil, config.ErrNoThemeHost(directive)
	}
	return s, nil
}

// serve prepares a site whose platform has themes.
func (s *Themes) serve(site *Site) error {
	connected, err := s.base.connect(site)
	if err != nil {
		return err
	}
	host, ok := connected.(platform.ThemeHost)
	if !ok {
		return nil
	}
	kind, _ := site.Config.Platform.Of()
	sources, err := s.sources(site)
	if err != nil {
		return err
	}
	site.themes = sync.OnceValue(func() *api.Site {
		staff := api.NewStaff(site.Name, kind.Title, host, s.failures)
		staff.Audit = s.base.Audit
		return &api.Site{
			Name:     site.Name,
			Hosts:    site.Hosts,
			Kind:     kind,
			Platform: host,
			Staff:    staff,
			Themes: func() (*themes.Service, error) {
				store, err := opened(s.store, &s.kept)
				if err != nil {
					return nil, err
				}
				return &themes.Service{Site: site.Name, Store: store, Repositories: sources, Fallback: s.base.fallback, Now: time.Now}, nil
			},
			ImageSize: func(ctx context.Context) (string, error) { return s.imageSize(ctx, site.Name) },
		}
	})
	return nil
}

// sources has the repository of each theme, by the theme's name.
func (s *Themes) sources(site *Site) (map[string]themes.Source, error) {
	repositories, err := site.Config.Repositories(s.base.Placeholders)
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
