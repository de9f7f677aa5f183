package edge

import (
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/pool"
	"github.com/lychgate/caddy-lychgate/platform"
)

// syncs outlive a configuration, unless the next one has no members API.
var syncs pool.Pool[databaseKey, *syncedSites]

// syncedSites says since when sites in a store are kept in sync with their platforms, so that a reload
// does not poll all of them again. A platform outlives a configuration (snapshot).
type syncedSites struct {
	mu         sync.Mutex
	byPlatform map[platform.Platform]time.Time
}

func newSyncedSites() *syncedSites {
	return &syncedSites{byPlatform: make(map[platform.Platform]time.Time)}
}

// since is now for a platform that it does not know.
func (s *syncedSites) since(of platform.Platform, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byPlatform[of]; !ok {
		s.byPlatform[of] = now
	}
	return s.byPlatform[of]
}

func (s *syncedSites) forget(of platform.Platform) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byPlatform, of)
}
