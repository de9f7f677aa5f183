package edge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// StoredLabel is the label of the metrics of all sites in the store: metrics do
// not grow with their number. No site can have that name.
const StoredLabel = "(stored)"

// StoredSites are the sites in the store, and none without a store. It is nil before
// the app is provisioned.
type StoredSites struct {
	*follower
	base    *base
	updater *updater
	members *memberstore.SQL // nil while the store is away
	purger  *purger          // likewise

	restoreOnce func() error
	openOnce    func() error
}

func newStoredSites(b *base, served *servedSites, sites *follower, uses *Uses) *StoredSites {
	s := &StoredSites{follower: sites, base: b, updater: &updater{base: b, served: served, uses: uses, warned: make(map[string]bool)}}
	sites.apply = s.updater.serve
	s.restoreOnce, s.openOnce = sync.OnceValue(s.restore), sync.OnceValue(s.openStore)
	return s
}

// restore serves the sites in the store as they were last seen, if there is a
// store. They are whole when the store answers.
func (s *StoredSites) restore() error {
	if s.base.Config.Store == nil && s.base.store == nil {
		return nil
	}
	store, err := s.base.useStore(s) // after those who need it to serve a site
	if err != nil {
		return err
	}
	s.updater.logger = Sampled(s.base.Logger)
	s.updater.metrics = loadSiteMetrics(StoredLabel, &s.base.releases)
	seen, err := snapshots.Load(store.key(), &s.base.releases, func() (*snapshot, error) { return new(snapshot), nil })
	if err != nil {
		return err
	}
	s.updater.snapshot, s.keys = seen, s.base.keyring.String()
	s.follower.restore(seen)
	return nil
}

// openStore is restore, and then opens the store.
func (s *StoredSites) openStore() error {
	if err := s.restoreOnce(); err != nil {
		return s.base.Lines.Explain(err)
	}
	if s.base.store == nil {
		return nil
	}
	return s.base.Lines.Explain(config.In("lychgate", "store", s.base.store.open()))
}

func (s *StoredSites) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	if s.store.Load() == nil { // it is there if this is another attempt
		if err := s.prepare(ctx, db); err != nil {
			return err
		}
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	run(s.completeRestored)
	run(s.watch)
	run(s.purger.run)
	return nil
}

// prepare opens the stores of all that is kept of a site.
func (s *StoredSites) prepare(ctx context.Context, db *database.DB) error {
	store, err := sites.NewSQL(ctx, db, s.base.keyring)
	if err != nil {
		return err
	}
	members, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	for _, schema := range purged { // isKept reads their tables
		if err := schema.Migrate(ctx, db); err != nil {
			return err
		}
	}
	trouble, err := trouble.Open(ctx, db)
	if err != nil {
		return err
	}
	s.updater.uses.trouble.Store(trouble)
	s.purger = &purger{
		sites: store, now: db.Now, logger: s.base.Logger, configured: s.served.byName, db: db, members: members,
	}
	s.members = members
	s.store.Store(store)
	return nil
}

// completeRestored has the members of the sites kept in sync that were served before the store
// answered, until ctx is done. A request for one of them does not wait for the others.
func (s *StoredSites) completeRestored(ctx context.Context) {
	members := s.updater.uses.members
	if members == nil {
		return
	}
	for _, site := range *s.served.inStore.Load() {
		if ctx.Err() != nil {
			return
		}
		members.completeCurrent(site)
	}
}

// PurgeNow deletes what is kept of all removed sites, even of one that another edge may serve
// for some seconds more.
func (s *StoredSites) PurgeNow(ctx context.Context) error { return s.purger.purge(ctx, -time.Hour) }

// Count counts the sites in the store that are served.
func (s *StoredSites) Count() int { return len(*s.served.inStore.Load()) }

// ErrNoStore means that the configuration has no store, so there is none for sites.
var ErrNoStore = errors.New("the configuration has no store: write one into the lychgate block, such as store sqlite /var/lib/lychgate/lychgate.db")

// Editor changes the sites in the store. Errors: ErrNoStore, ErrStoreAway.
func (s *StoredSites) Editor() (*config.Editor, error) {
	store, err := s.opened()
	if err != nil {
		return nil, err
	}
	return &config.Editor{
		Config: s.base.Config, Placeholders: s.base.Placeholders, Lines: s.base.Lines, Store: store, CountPending: s.members.CountPending, IsKept: s.purger.isKept,
	}, nil
}

// Integrations is nil while the store is away.
func (s *StoredSites) Integrations() *memberstore.SQL { return s.members }

// opened does not open the store itself. Errors: ErrNoStore, ErrStoreAway.
func (s *StoredSites) opened() (*sites.SQL, error) {
	if s == nil || s.base.store == nil {
		return nil, ErrNoStore
	}
	if store := s.store.Load(); store != nil {
		return store, nil
	}
	return nil, fmt.Errorf("%w: try again when it answers", ErrStoreAway)
}
