package edge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// changesInterval is how often the store is asked for changes. A change is live
// on each edge that much later at most, and the time to read it.
const changesInterval = time.Second

// follower follows the changes of the sites in the store as they come.
type follower struct {
	served   *servedSites
	apply    func(changes []sites.Site) // while mu is held
	keys     string                     // of the keyring that opens the secrets
	logger   *zap.Logger
	started  time.Time // a moment before anything is noted
	snapshot *snapshot
	store    atomic.Pointer[sites.SQL] // nil while the store is away

	mu       sync.Mutex // changes are applied one after the other
	revision int64
	isRead   atomic.Bool  // all sites, once, by this edge or the one before
	checked  atomic.Int64 // when the store was last asked for changes, as uptime
	failed   atomic.Int64 // when it last did not answer, likewise
}

func newFollower(served *servedSites, logger *zap.Logger) *follower {
	return &follower{served: served, logger: logger, started: time.Now().Add(-time.Second)}
}

// watch applies changes as they come, until ctx is done.
func (f *follower) watch(ctx context.Context) {
	away := false
	for {
		err := f.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			f.logger.Error("cannot read changed sites in the store; serving them as last read", zap.Error(err))
		case err == nil && away:
			f.logger.Info("read changed sites in the store again")
		}
		away = err != nil
		if !waitFor(ctx, changesInterval) {
			return
		}
	}
}

// Refresh applies the changes since the last time, within openTimeout, since others wait for its lock.
func (f *follower) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return f.refresh(ctx)
}

func (f *follower) refresh(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refreshLocked(ctx)
}

func (f *follower) refreshLocked(ctx context.Context) error {
	store, before := f.store.Load(), f.revision
	list, last, err := store.Changes(ctx, before)
	if err == nil && last < before { // the store was put back to an earlier state
		before = 0
		list, last, err = store.Changes(ctx, 0)
	}
	if err != nil {
		f.failed.Store(int64(f.uptime()))
		return err
	}
	f.snapshot.keep(changes{list: list, isAll: before == 0, before: before, last: last, keys: f.keys})
	if before == 0 {
		list = append(list, f.absentFrom(list)...)
	}
	f.apply(list)
	f.revision = last
	f.isRead.Store(true)
	f.checked.Store(int64(f.uptime()))
	return nil
}

// restore applies what was last seen of the sites, by this edge or the one before.
func (f *follower) restore(from *snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.snapshot = from
	list, revision, isRead := f.snapshot.get(f.keys)
	f.apply(list)
	f.revision = revision
	f.isRead.Store(isRead)
}

// absentFrom marks sites as removed that are served and not in the list.
func (f *follower) absentFrom(list []sites.Site) (removed []sites.Site) {
	there := make(map[string]bool)
	for _, kept := range list {
		there[kept.Name] = true
	}
	for name := range *f.served.inStore.Load() {
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

func (f *follower) uptime() time.Duration { return time.Since(f.started) }

// isWithin reports whether something was less than currentTTL ago.
func (f *follower) isWithin(at *atomic.Int64) bool {
	then := at.Load()
	return then != 0 && f.uptime()-time.Duration(then) < currentTTL
}

// currentStored reads changes of the store first, unless that was done less than currentTTL ago. It
// is nil for an unknown site, and while the store is away.
func (f *follower) currentStored(name string) *Site {
	if !f.isWithin(&f.checked) {
		f.mu.Lock()
		if !f.isWithin(&f.checked) && !f.isWithin(&f.failed) && f.store.Load() != nil {
			ctx, cancel := context.WithTimeout(context.Background(), currentTimeout)
			_ = f.refreshLocked(ctx) // watch says so
			cancel()
		}
		f.mu.Unlock()
	}
	if !f.isWithin(&f.checked) {
		return nil
	}
	return f.served.storedSite(name)
}

// current prefers the configuration to the store. It is nil for an unknown site.
func (f *follower) current(name string) *Site {
	if site := f.served.byName[name]; site != nil {
		return site
	}
	return f.currentStored(name)
}

// platformsOf looks a site up at each call, so a platform is the one that the site has now. It is
// nil for a site that is not served, and for a platform that is no T.
func platformsOf[T any](f *follower) func(name string) T {
	return func(name string) (of T) {
		if site := f.current(name); site != nil && site.Locked == nil {
			of, _ = site.Platform.(T)
		}
		return of
	}
}
