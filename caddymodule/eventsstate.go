package caddymodule

import (
	"context"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/platform"
)

// eventsState is what events run on, of one configuration.
type eventsState struct {
	app     *App
	store   *openStore
	serving atomic.Pointer[servingEvents] // nil while the store is away
}

type servingEvents struct {
	service *events.Service
	feed    *events.Feed
}

// useEvents has what events need opened when the app starts.
func (a *App) useEvents() (*eventsState, error) {
	if a.events != nil {
		return a.events, nil
	}
	state := &eventsState{app: a}
	var err error
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	a.events = state
	return state, nil
}

// begin implements [storeUser].
func (s *eventsState) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := events.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	service := events.New(store, s.store.work.Load(), s.host, sampled(s.app.logger))
	run(service.Run)
	s.serving.Store(&servingEvents{service, events.NewFeed(store)})
	return nil
}

// host returns the platform of a site as it is in the configuration or in the store now,
// nil for a site that is not served, or has no events.
func (s *eventsState) host(name string) platform.EventHost {
	site := s.app.served(name)
	if site == nil {
		return nil
	}
	host, _ := site.platform.(platform.EventHost)
	return host
}

func (s *eventsState) opened() (*servingEvents, error) {
	if err := s.store.open(); err != nil {
		return nil, err
	}
	if serving := s.serving.Load(); serving != nil {
		return serving, nil
	}
	return nil, errStoreAway
}

// service returns what keeps the events. Errors: errStoreAway.
func (s *eventsState) service() (*events.Service, error) {
	serving, err := s.opened()
	if err != nil {
		return nil, err
	}
	return serving.service, nil
}

// imageSize returns a site's Default Featured Image Size, "" for none; also where nothing
// keeps events. Errors: errStoreAway, those of the store.
func (s *eventsState) imageSize(ctx context.Context, site string) (string, error) {
	if s == nil {
		return "", nil
	}
	service, err := s.service() //nolint:contextcheck // the store is opened for all who ask
	if err != nil {
		return "", err
	}
	settings, err := service.Settings(ctx, site)
	return settings.ImageSize, err
}

// feed returns what answers readers. Errors: errStoreAway, until it was there once: later
// it answers what it has kept.
func (s *eventsState) feed() (*events.Feed, error) {
	serving := s.serving.Load()
	if serving != nil {
		return serving.feed, nil
	}
	if err := s.store.open(); err != nil {
		return nil, err
	}
	return nil, errStoreAway
}
