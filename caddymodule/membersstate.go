package caddymodule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/members/outbox"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// membersState is what the members API of one configuration runs on.
type membersState struct {
	path     string // of the API
	store    *openStore
	logger   *zap.Logger
	sites    map[string]*Site         // of the configuration, by name
	inbound  map[string]inbound.Site  // by site name, of those that have a platform
	declared map[string]*integrations // by site name
	stored   *storedSites

	serving atomic.Pointer[serving] // nil while the store is away

	previous *membersState // the configuration's that ran before
}

// serving is what runs on the open store.
type serving struct {
	store   *memberstore.SQL
	now     func() time.Time // by the store's clock
	outbox  *outbox.Outbox
	inbound *inbound.Sync
	uses    *members.Uses
	sites   []string // of the configuration, by name

	isStored func(name string) bool // in the store, and served
}

// running is the state of the configuration that runs, for the admin API and
// the metrics, which belong to the process.
var running atomic.Pointer[membersState]

// integrations are those that the configuration declares for a site.
type integrations struct {
	byKey  map[members.KeyHash]members.Integration
	byName map[string]members.Integration // those without a key of their own
	names  map[string]bool                // all
}

// useMembers checks what the members API at a path needs, and has it opened when
// the app starts. The path is the same wherever it is used.
func (a *App) useMembers(path string) (*membersState, error) {
	if a.members != nil {
		if a.members.path != path {
			return nil, &mistake{name: "path", text: fmt.Sprintf("%q here and %q in another members_api: write the same, so that %s knows where to send its webhook events",
				path, a.members.path, titlesWith(platform.Kind.SendsEvents, " or "))}
		}
		return a.members, nil
	}
	state := &membersState{
		path:     path,
		logger:   a.logger,
		sites:    a.Sites,
		inbound:  make(map[string]inbound.Site),
		declared: make(map[string]*integrations),
		stored:   a.stored,
	}
	var err error
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if err := state.connect(a, site); err != nil {
			return nil, inSite(name, err)
		}
		declared := &integrations{make(map[members.KeyHash]members.Integration), make(map[string]members.Integration), make(map[string]bool)}
		state.declared[name] = declared
		for _, integration := range slices.Sorted(maps.Keys(site.Integrations)) {
			hash, plain, err := site.Integrations[integration].Resolve(integration)
			if err != nil {
				return nil, inSite(name, err)
			}
			declared.names[integration] = true
			if hash == nil {
				declared.byName[integration] = plain
				continue
			}
			if other, taken := declared.byKey[*hash]; taken {
				return nil, inSite(name, inBlock("integration "+integration, "integrations."+integration, sameKey(other.Name)))
			}
			declared.byKey[*hash] = plain
		}
	}
	a.members = state
	return state, nil
}

// connect connects a site of the configuration to its platform, if it has one.
func (s *membersState) connect(a *App, site *Site) error {
	synced, err := s.synced(a, site)
	if err == nil && synced.Platform != nil {
		s.inbound[site.name] = synced
	}
	return err
}

// synced returns how the members of a site are kept in sync, the zero value for a site
// without a platform.
func (s *membersState) synced(a *App, site *Site) (inbound.Site, error) {
	connected, err := a.connect(site)
	if err != nil || connected == nil {
		return inbound.Site{}, err
	}
	webhookURL, err := site.webhookURL(a, s.path)
	if err != nil {
		return inbound.Site{}, err
	}
	reconcile, err := site.Platform.reconcile()
	if err != nil {
		return inbound.Site{}, site.Platform.inBlock(err)
	}
	return inbound.Site{Platform: connected, WebhookURL: webhookURL, Reconcile: reconcile}, nil
}

// platformOf returns the platform of a site by its name, nil for none and for one of
// which it cannot be known where it is now.
func (s *membersState) platformOf(name string) platform.Platform {
	site, ok := s.sites[name]
	if !ok {
		site = s.stored.fresh(name)
	}
	if site == nil {
		return nil
	}
	return site.platform
}

// begin implements [storeUser].
func (s *membersState) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	serving := &serving{
		store:   store,
		now:     db.Now,
		outbox:  outbox.New(outbox.Config{Store: store, Platform: s.platformOf, Logger: s.logger, Now: db.Now}),
		inbound: inbound.New(inbound.Config{Store: store, Sites: s.inbound, Logger: s.logger, Now: db.Now}),
		uses:    members.NewUses(store, db.Now, unkeptUse(sampled(s.logger))),
		sites:   slices.Sorted(maps.Keys(s.sites)),

		isStored: func(name string) bool { return s.stored.site(name) != nil },
	}
	for _, site := range s.sites {
		site.members.Store(serving.open(site, s.declared[site.name]))
	}
	run(serving.outbox.Run)
	run(serving.inbound.Run)
	run(serving.uses.Run)
	run(func(ctx context.Context) { purgeRequests(ctx, store, db.Now, s.logger) })
	s.serving.Store(serving)
	return nil
}

// unkeptUse returns what logs that the use of an integration's key could not be kept.
func unkeptUse(logger *zap.Logger) func(members.Integration, error) {
	return func(i members.Integration, err error) {
		logger.Warn("when a key was used last could not be kept; it is tried again", zap.String("site", i.Site), zap.String("integration", i.Name), zap.Error(err))
	}
}

// now returns what runs, nil while the store is away.
func (s *membersState) now() *serving {
	if s == nil {
		return nil
	}
	return s.serving.Load()
}

// open returns a site as the members API sees it.
func (s *serving) open(site *Site, declared *integrations) *membersapi.Site {
	config := members.Config{
		Site: site.name, Store: s.store, Requests: s.store, Now: s.now,
		Declared:     slices.Concat(slices.Collect(maps.Values(declared.byKey)), slices.Collect(maps.Values(declared.byName))),
		Integrations: s.store,
	}
	if site.platform != nil {
		config.Outbox, config.Inbound = s.outbox, s.inbound
	}
	return &membersapi.Site{
		Members:     members.New(config),
		Inbound:     s.inbound,
		Integration: declared.find(s.store, s.uses, site.name),
	}
}

// find returns a function that finds the integration of a key, declared or in the
// store. The store is asked each time, so a revoked key is refused at once. Uses of keys
// in the store are noted.
func (i *integrations) find(store members.Integrations, uses *members.Uses, site string) func(context.Context, members.KeyHash) (members.Integration, error) {
	return func(ctx context.Context, key members.KeyHash) (members.Integration, error) {
		if declared, ok := i.byKey[key]; ok {
			return declared, nil
		}
		stored, err := store.FindIntegration(ctx, site, key)
		if err != nil {
			return members.Integration{}, err
		}
		if declared, ok := i.byName[stored.Name]; ok {
			uses.Note(stored)
			return declared, nil // the configuration has the last word
		}
		if i.names[stored.Name] { // with another key
			return members.Integration{}, members.ErrNotFound
		}
		uses.Note(stored)
		return stored, nil
	}
}

// purgeRequests forgets old answers from time to time, until ctx is done.
func purgeRequests(ctx context.Context, requests members.Requests, now func() time.Time, logger *zap.Logger) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		if err := requests.PurgeRequests(ctx, now()); err != nil && ctx.Err() == nil {
			logger.Error("old answers could not be removed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// site returns a site as the members API sees it. Errors: errStoreAway, and why a
// site's keys cannot be opened.
func (s *membersState) site(site *Site) (*membersapi.Site, error) {
	if site.locked != nil {
		return nil, fmt.Errorf("the keys of site %s cannot be opened: %w", site.name, site.locked)
	}
	if open := site.members.Load(); open != nil {
		return open, nil
	}
	if err := s.store.open(); err != nil {
		return nil, err
	}
	if now := s.stored.site(site.name); site.isStored && now != nil {
		site = now // as it is in the store that is open
	}
	if open := site.members.Load(); open != nil {
		return open, nil
	}
	return nil, errStoreAway
}

// nowServing returns what runs in the process. It is empty while nothing does.
func nowServing() *serving {
	if state := running.Load(); state != nil {
		if serving := state.serving.Load(); serving != nil {
			return serving
		}
	}
	return new(serving)
}
