package caddymodule

import (
	"context"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/platform"
)

// curationState is what Homepage Curation runs on, of one configuration.
type curationState struct {
	app     *App
	store   *openStore
	curator atomic.Pointer[curation.Curator] // nil while the store is away
}

// useCuration has what Homepage Curation needs opened when the app starts.
func (a *App) useCuration() (*curationState, error) {
	if a.curation != nil {
		return a.curation, nil
	}
	state := &curationState{app: a}
	var err error
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	a.curation = state
	return state, nil
}

// begin implements [storeUser].
func (s *curationState) begin(ctx context.Context, db *database.DB, _ func(func(context.Context))) error {
	store, err := curation.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	s.curator.Store(curation.New(store, s.store.work.Load(), s.posts, sampled(s.app.logger)))
	return nil
}

// posts returns the posts of a site as it is in the configuration or in the store now, nil
// for a site that is not served.
func (s *curationState) posts(name string) platform.PostHost {
	site := s.app.served(name)
	if site == nil {
		return nil
	}
	posts, _ := site.platform.(platform.PostHost)
	return posts
}

// served returns a site as it is in the configuration or in the store now, nil for one that
// is not served.
func (a *App) served(name string) *Site {
	if site := a.Sites[name]; site != nil {
		return site
	}
	if site := a.stored.fresh(name); site != nil && site.locked == nil {
		return site
	}
	return nil
}

// opened returns the curator. Errors: errStoreAway.
func (s *curationState) opened() (*curation.Curator, error) {
	if err := s.store.open(); err != nil {
		return nil, err
	}
	if curator := s.curator.Load(); curator != nil {
		return curator, nil
	}
	return nil, errStoreAway
}
