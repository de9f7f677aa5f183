package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/curation"
	"github.com/lychgate/caddy-lychgate/events"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/registration"
	"github.com/lychgate/caddy-lychgate/sites"
	"github.com/lychgate/caddy-lychgate/themes"
)

// This file serves the sites in the store, as they are added, changed and removed.

const (
	// changesInterval is how often the store is asked for changes. A change is live
	// on each edge that much later at most, and the time to read it.
	changesInterval = time.Second

	// StoredLabel is the label of the metrics of all sites in the store: metrics do
	// not grow with their number. No site can have that name.
	StoredLabel = "(stored)"
)

// StoredSites are the sites in the store, and none without a store. It is nil before
// the app is provisioned.
type StoredSites struct {
	edge     *Edge
	logger   *zap.Logger               // of what may be wrong with each of many sites
	started  time.Time                 // a moment before anything is noted
	store    atomic.Pointer[sites.SQL] // nil while the store is away
	members  *memberstore.SQL          // nil as well
	snapshot *snapshot
	metrics  *SiteMetrics
	purger   *purger // likewise

	mu       sync.Mutex // changes are applied one after the other
	revision int64
	checked  atomic.Int64                     // when the store was last asked for changes, as uptime
	failed   atomic.Int64                     // when it last did not answer, likewise
	byName   atomic.Pointer[map[string]*Site] // never changed, but replaced
	warned   map[string]bool                  // of names and hosts that a site of the configuration has
}

func newStoredSites(e *Edge) *StoredSites {
	s := &StoredSites{edge: e, started: time.Now().Add(-time.Second), warned: make(map[string]bool)}
	s.byName.Store(&map[string]*Site{})
	return s
}

// restore serves the sites in the store as they were last seen, if there is a
// store. They are whole when the store answers.
func (s *StoredSites) restore() error {
	e := s.edge
	if e.Config.Store == nil && e.store == nil {
		return nil
	}
	store, err := e.useStore(s) // after those who need it to serve a site
	if err != nil {
		return err
	}
	s.logger = Sampled(e.Logger)
	s.metrics = loadSiteMetrics(StoredLabel, &e.releases)
	s.snapshot, err = snapshots.Load(databaseKey{store.kind, store.source}, &e.releases, func() (*snapshot, error) {
		return &snapshot{list: make(map[string]sites.Site)}, nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve(s.snapshot.sites())
	return nil
}

// openStore is restore, and then opens the store.
func (s *StoredSites) openStore() error {
	e := s.edge
	if err := e.restoreOnce(); err != nil {
		return e.Lines.Explain(err)
	}
	if e.store == nil {
		return nil
	}
	return e.Lines.Explain(config.In("lychgate", "store", e.store.open()))
}

func (s *StoredSites) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := sites.NewSQL(ctx, db, s.edge.keyring)
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
	s.purger = &purger{
		sites: store, now: db.Now, logger: s.edge.Logger, configured: s.edge.byName,
		forgets: []func(context.Context, string) error{
			members.Forget, themes.Forget, curation.Forget, events.Forget, s.edge.store.work.Load().Forget,
			func(ctx context.Context, site string) error { return registration.Forget(ctx, db, site) },
		},
	}
	s.members = members
	s.store.Store(store)
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	run(s.watch)
	run(s.purger.run)
	return nil
}

// PurgeNow deletes what is kept of all removed sites, even of one that another edge may serve
// for some seconds more.
func (s *StoredSites) PurgeNow(ctx context.Context) error { return s.purger.purge(ctx, -time.Hour) }

// Count returns how many sites there are.
func (s *StoredSites) Count() int { return len(*s.byName.Load()) }

func (s *StoredSites) site(name string) *Site { return (*s.byName.Load())[name] }

// close lets go of the platforms.
func (s *StoredSites) close() error {
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

// Editor returns what changes the sites. Errors: ErrNoStore, ErrStoreAway.
func (s *StoredSites) Editor() (*config.Editor, error) {
	store, err := s.opened()
	if err != nil {
		return nil, err
	}
	return &config.Editor{
		Config: s.edge.Config, Placeholders: s.edge.Placeholders, Lines: s.edge.Lines, Store: store, CountPending: s.members.CountPending,
	}, nil
}

// Integrations returns the store of the sites' integrations, nil while it is away.
func (s *StoredSites) Integrations() *memberstore.SQL { return s.members }

// opened returns the store of sites. Errors: ErrNoStore, ErrStoreAway.
func (s *StoredSites) opened() (*sites.SQL, error) {
	if s == nil || s.edge.store == nil {
		return nil, ErrNoStore
	}
	if store := s.store.Load(); store != nil {
		return store, nil
	}
	return nil, fmt.Errorf("%w: try again when it answers", ErrStoreAway)
}
