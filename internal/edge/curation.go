package edge

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Curation is what Homepage Curation of one configuration runs on.
type Curation struct {
	sites   *follower
	store   *openStore
	logger  *zap.Logger
	curator atomic.Pointer[curation.Curator] // nil while the store is away
}

// newCuration has what Homepage Curation needs opened when the edge starts.
func newCuration(b *base, sites *follower) (*Curation, error) {
	s := &Curation{sites: sites, logger: b.Logger}
	var err error
	if s.store, err = b.useStore(s); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Curation) begin(ctx context.Context, db *database.DB, _ func(func(context.Context))) error {
	store, err := curation.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	s.curator.Store(curation.New(store, s.store.work.Load(), platformsOf[platform.PostHost](s.sites), Sampled(s.logger)))
	return nil
}

// Curator opens the store if it is not open. Errors: ErrStoreAway.
func (s *Curation) Curator() (*curation.Curator, error) {
	return opened(s.store, &s.curator)
}
