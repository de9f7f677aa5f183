package edge

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file has what is kept of removed sites deleted.

// purgeRemoved has what is kept of removed sites deleted, until ctx is done.
func (s *StoredSites) purgeRemoved(ctx context.Context) {
	for {
		if err := s.purge(ctx, purgeDelay); err != nil && ctx.Err() == nil && !database.IsAway(err) {
			s.edge.Logger.Error("cannot purge removed site", zap.Error(err))
		}
		if !waitFor(ctx, purgeInterval) {
			return
		}
	}
}

// PurgeNow deletes what is kept of all removed sites, even of one that another edge may serve
// for some seconds more.
func (s *StoredSites) PurgeNow(ctx context.Context) error { return s.purge(ctx, -time.Hour) }

// purge deletes what is kept of all sites that were removed so long ago.
func (s *StoredSites) purge(ctx context.Context, delay time.Duration) error {
	for {
		switch err := s.purgeOne(ctx, delay); {
		case errors.Is(err, sites.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
	}
}

// purgeOne deletes what is kept of one site, which no other edge does meanwhile. Nobody
// has the name again before it is done. Errors: sites.ErrNotFound, if there is none.
func (s *StoredSites) purgeOne(ctx context.Context, delay time.Duration) error {
	store, now := s.store.Load(), s.edge.store.db.Now()
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	removed, err := store.ClaimPurge(ctx, now.Add(-delay), now.Add(2*purgeTimeout))
	if err != nil {
		return err
	}
	if s.edge.byName[removed.Name] == nil { // which goes on with what is kept
		err = s.forget(ctx, removed.Name)
	}
	if err != nil {
		return err
	}
	return store.MarkPurged(ctx, removed)
}

// forget deletes what is kept of a site, whether or not this edge has a directive for it.
func (s *StoredSites) forget(ctx context.Context, name string) error {
	for _, forget := range s.forgets {
		if err := forget(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
