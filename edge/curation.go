package edge

import (
	"context"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Curation is what Homepage Curation of one configuration runs on.
type Curation struct {
	edge    *Edge
	store   *openStore
	curator atomic.Pointer[curation.Curator] // nil while the store is away
}

// UseCuration has what Homepage Curation needs opened when the edge starts.
func (e *Edge) UseCuration() (*Curation, error) {
	if e.curation != nil {
		return e.curation, nil
	}
	state := &Curation{edge: e}
	var err error
	if state.store, err = e.useStore(state); err != nil {
		return nil, err
	}
	e.curation = state
	return state, nil
}

func (s *Curation) begin(ctx context.Context, db *database.DB, _ func(func(context.Context))) error {
	store, err := curation.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	s.curator.Store(curation.New(store, s.store.work.Load(), platformsOf[platform.PostHost](s.edge), Sampled(s.edge.Logger)))
	return nil
}

// Curator returns the curator. Errors: ErrStoreAway.
func (s *Curation) Curator() (*curation.Curator, error) {
	return opened(s.store, &s.curator)
}
