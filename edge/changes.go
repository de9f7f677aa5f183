package edge

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/pool"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file follows the changes of the sites in the store.

// snapshot is what was last seen of the sites in a store. It outlives a configuration,
// so that a reload while the store is away loses no site.
type snapshot struct {
	mu   sync.Mutex
	list map[string]sites.Site
}

var snapshots pool.Pool[databaseKey, *snapshot]

func (s *snapshot) sites() []sites.Site {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.list))
}

func (s *snapshot) keep(changes []sites.Site) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, site := range changes {
		if site.RemovedAt.IsZero() {
			s.list[site.Name] = site
		} else {
			delete(s.list, site.Name)
		}
	}
}

// watch applies changes as they come, until ctx is done.
func (s *StoredSites) watch(ctx context.Context) {
	away := false
	for {
		bounded, cancel := context.WithTimeout(ctx, openTimeout)
		err := s.Refresh(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			s.edge.Logger.Error("cannot read changed sites in the store; serving them as last read", zap.Error(err))
		case err == nil && away:
			s.edge.Logger.Info("read changed sites in the store again")
		}
		away = err != nil
		if !waitFor(ctx, changesInterval) {
			return
		}
	}
}

// Refresh applies the changes since the last time.
func (s *StoredSites) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refreshLocked(ctx)
}

func (s *StoredSites) refreshLocked(ctx context.Context) error {
	store, before := s.store.Load(), s.revision
	changes, last, err := store.Changes(ctx, before)
	if err == nil && last < before { // the store was put back to an earlier state
		before = 0
		changes, last, err = store.Changes(ctx, 0)
	}
	if err != nil {
		s.failed.Store(int64(s.uptime()))
		return err
	}
	if before == 0 {
		changes = append(changes, s.absentFrom(changes)...)
	}
	s.snapshot.keep(changes)
	s.serve(changes) //nolint:contextcheck // a theme's store is opened when it is asked
	s.revision = last
	s.checked.Store(int64(s.uptime()))
	return nil
}

// absentFrom returns the sites that are served and not in a list, as removed ones.
func (s *StoredSites) absentFrom(list []sites.Site) (removed []sites.Site) {
	there := make(map[string]bool)
	for _, kept := range list {
		there[kept.Name] = true
	}
	for name := range *s.byName.Load() {
		if !there[name] {
			removed = append(removed, sites.Site{Name: name, RemovedAt: time.Now()})
		}
	}
	return removed
}

const (
	// currentTTL is how long a site is taken to be as it is in the store where a write is
	// brought to its platform, so that none goes to where the site was before.
	currentTTL = 100 * time.Millisecond

	// currentTimeout is how long the store may take to say so.
	currentTimeout = 2 * time.Second
)

func (s *StoredSites) uptime() time.Duration { return time.Since(s.started) }

// current returns the site of a name as it is in the store now, nil for none, and while
// the store is away.
func (s *StoredSites) current(name string) *Site {
	if !s.isWithin(&s.checked) {
		s.mu.Lock()
		if !s.isWithin(&s.checked) && !s.isWithin(&s.failed) && s.store.Load() != nil {
			ctx, cancel := context.WithTimeout(context.Background(), currentTimeout)
			_ = s.refreshLocked(ctx) // watch says so
			cancel()
		}
		s.mu.Unlock()
	}
	if !s.isWithin(&s.checked) {
		return nil
	}
	return s.site(name)
}

// isWithin reports whether something was less than currentTTL ago.
func (s *StoredSites) isWithin(at *atomic.Int64) bool {
	then := at.Load()
	return then != 0 && s.uptime()-time.Duration(then) < currentTTL
}
