package edge

import (
	"context"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Events is what events of one configuration run on.
type Events struct {
	edge    *Edge
	store   *openStore
	serving atomic.Pointer[servingEvents] // nil while the store is away
}

type servingEvents struct {
	service *events.Service
	feed    *events.Feed
}

// UseEvents has what events need opened when the edge starts.
func (e *Edge) UseEvents() (*Events, error) {
	if e.events != nil {
		return e.events, nil
	}
	state := &Events{edge: e}
	var err error
	if state.store, err = e.useStore(state); err != nil {
		return nil, err
	}
	e.events = state
	return state, nil
}

func (s *Events) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := events.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	service := events.New(store, s.store.work.Load(), platformsOf[platform.EventHost](s.edge), Sampled(s.edge.Logger))
	run(service.Run)
	s.serving.Store(&servingEvents{service, events.NewFeed(store)})
	return nil
}

// Service returns what keeps the events. Errors: ErrStoreAway.
func (s *Events) Service() (*events.Service, error) {
	serving, err := opened(s.store, &s.serving)
	if err != nil {
		return nil, err
	}
	return serving.service, nil
}

// imageSize returns a site's Default Featured Image Size, "" for none; also where nothing
// keeps events. Errors: ErrStoreAway, those of the store.
func (s *Events) imageSize(ctx context.Context, site string) (string, error) {
	if s == nil {
		return "", nil
	}
	service, err := s.Service() //nolint:contextcheck // the store is opened for all who ask
	if err != nil {
		return "", err
	}
	settings, err := service.Settings(ctx, site)
	return settings.ImageSize, err
}

// Feed returns what answers readers. Errors: ErrStoreAway, until it was there once: later
// it answers what it has kept.
func (s *Events) Feed() (*events.Feed, error) {
	serving := s.serving.Load()
	if serving != nil {
		return serving.feed, nil
	}
	if err := s.store.open(); err != nil {
		return nil, err
	}
	return nil, ErrStoreAway
}
