package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/sites"
	"github.com/lychgate/caddy-lychgate/themes"
)

// This file serves the sites in the store, as they are added, changed and removed.

const (
	// changesInterval is how often the store is asked for changes. A change is live
	// on each edge that much later at most, and the time to read it.
	changesInterval = time.Second

	// purgeInterval is how often it is looked for removed sites of which something is
	// left, and purgeDelay how long after its removal a site is looked at. By then no
	// edge serves it, and requests that were under way have ended.
	purgeInterval = 30 * time.Second
	purgeDelay    = 90 * time.Second

	// purgeTimeout is how long an edge may delete what is kept of a site before another
	// goes on with it.
	purgeTimeout = 5 * time.Minute

	// storedLabel is the label of the metrics of all sites in the store: metrics do
	// not grow with their number. No site can have that name.
	storedLabel = "(stored)"
)

// storedSites are the sites in the store, and none without a store. It is nil before
// the app is provisioned.
type storedSites struct {
	app      *App
	logger   *zap.Logger               // of what may be wrong with each of many sites
	started  time.Time                 // a moment before anything is noted
	store    atomic.Pointer[sites.SQL] // nil while the store is away
	members  *memberstore.SQL          // nil as well
	snapshot *snapshot
	metrics  *siteMetrics
	forgets  []func(ctx context.Context, site string) error // delete what is kept of a site

	mu       sync.Mutex // changes are applied one after the other
	revision int64
	checked  atomic.Int64                     // when the store was last asked for changes, as uptime
	failed   atomic.Int64                     // when it last did not answer, likewise
	byName   atomic.Pointer[map[string]*Site] // never changed, but replaced
	warned   map[string]bool                  // of names and hosts that a site of the configuration has
}

// mayHaveSites reports whether the configuration has a site, or a store for sites.
func (a *App) mayHaveSites() bool { return len(a.Sites) > 0 || a.Store != nil }

// checkHasSites returns an error unless there are sites, or may be.
func (a *App) checkHasSites() error {
	if a.mayHaveSites() {
		return nil
	}
	return explain(nil, ErrNoSite)
}

// provisionStored checks what sites in the store need.
func (a *App) provisionStored() (err error) {
	if a.keys, err = a.Keyring(); err != nil {
		return err
	}
	if a.Store != nil {
		if _, _, err := a.Store.Resolve(); err != nil {
			return inBlock("lychgate", "store", err)
		}
	}
	a.stored = &storedSites{app: a, started: time.Now().Add(-time.Second), warned: make(map[string]bool)}
	a.stored.byName.Store(&map[string]*Site{})
	a.restoreOnce, a.openOnce = sync.OnceValue(a.restoreStored), sync.OnceValue(a.openStored)
	return nil
}

// restoreStored serves the sites in the store as they were last seen, if there is a
// store. They are whole when the store answers.
func (a *App) restoreStored() error {
	if a.Store == nil && a.store == nil {
		return nil
	}
	store, err := a.useStore(a.stored) // after those who need it to serve a site
	if err != nil {
		return err
	}
	a.stored.logger = sampled(a.logger)
	a.stored.metrics = loadSiteMetrics(storedLabel, &a.release)
	a.stored.snapshot, err = load(snapshots, databaseKey{store.kind, store.source}, &a.release, func() (*snapshot, error) {
		return &snapshot{list: make(map[string]sites.Site)}, nil
	})
	if err != nil {
		return err
	}
	a.stored.mu.Lock()
	defer a.stored.mu.Unlock()
	a.stored.serve(a.stored.snapshot.sites())
	return nil
}

// openStored is restoreStored, and then opens the store.
func (a *App) openStored() error {
	if err := a.restoreOnce(); err != nil {
		return explain(a.Lines, err)
	}
	if a.store == nil {
		return nil
	}
	return explain(a.Lines, inBlock("lychgate", "store", a.store.open()))
}

// begin implements [storeUser].
func (s *storedSites) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := sites.NewSQL(ctx, db, s.app.keys)
	if err != nil {
		return err
	}
	members, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	themes, err := themes.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	curation, err := curation.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	events, err := events.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	s.forgets = []func(context.Context, string) error{members.Forget, themes.Forget, curation.Forget, events.Forget, s.app.store.work.Load().Forget}
	s.members = members
	s.store.Store(store)
	if err := s.refresh(ctx); err != nil {
		return err
	}
	run(s.watch)
	run(s.purgeRemoved)
	return nil
}

// count returns how many sites there are.
func (s *storedSites) count() int { return len(*s.byName.Load()) }

// site returns the site of a name that is served, nil for none.
func (s *storedSites) site(name string) *Site { return (*s.byName.Load())[name] }

// close lets go of the platforms.
func (s *storedSites) close() error {
	if s == nil { // the configuration could not be provisioned
		return nil
	}
	var errs []error
	for _, site := range *s.byName.Load() {
		errs = append(errs, site.close())
	}
	return errors.Join(errs...)
}

// ErrNoStore means that the configuration has no store, so there is none for sites.
var ErrNoStore = errors.New("the configuration has no store: write one into the lychgate block, such as store sqlite /var/lib/lychgate/lychgate.db")

// opened returns the store of sites. Errors: ErrNoStore, errStoreAway.
func (s *storedSites) opened() (*sites.SQL, error) {
	if s == nil || s.app.store == nil {
		return nil, ErrNoStore
	}
	if store := s.store.Load(); store != nil {
		return store, nil
	}
	return nil, fmt.Errorf("%w: try again when it answers", errStoreAway)
}
