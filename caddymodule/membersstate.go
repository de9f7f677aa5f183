package caddymodule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/members/outbox"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// membersState is what the members API of one configuration runs on.
type membersState struct {
	path      string // of the API
	store     *openStore
	logger    *zap.Logger
	platforms map[string]platform.Platform // by site name, of sites that have one
	inbound   map[string]inbound.Site      // by site name, of the same sites
	declared  map[string]*integrations     // by site name, of all sites

	serving atomic.Pointer[serving] // nil while the store is away

	previous *membersState // the configuration's that ran before
}

// serving is what runs on the open store.
type serving struct {
	outbox *outbox.Outbox
	sites  map[string]*handlers.MembersSite // by name
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
			return nil, &mistake{name: "path", text: fmt.Sprintf("%q here and %q in another members_api: write the same, so that Ghost knows where to send its webhook events", path, a.members.path)}
		}
		return a.members, nil
	}
	state := &membersState{
		path:      path,
		logger:    a.logger,
		platforms: make(map[string]platform.Platform),
		inbound:   make(map[string]inbound.Site),
		declared:  make(map[string]*integrations),
	}
	var err error
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if err := state.usePlatform(a, site); err != nil {
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

// usePlatform connects a site to its platform, if it has one.
func (s *membersState) usePlatform(a *App, site *Site) error {
	connected, err := a.connect(site)
	if err != nil || connected == nil {
		return err
	}
	webhookURL, err := site.webhookURL(a, s.path)
	if err != nil {
		return err
	}
	reconcile, err := site.Platform.reconcile()
	if err != nil {
		return inBlock("platform ghost", "platform", err)
	}
	s.platforms[site.name] = connected
	s.inbound[site.name] = inbound.Site{Platform: connected, WebhookURL: webhookURL, Reconcile: reconcile}
	return nil
}

// begin implements [storeUser].
func (s *membersState) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	toPlatform := outbox.New(outbox.Config{Store: store, Platforms: s.platforms, Logger: s.logger})
	fromPlatform := inbound.New(inbound.Config{Store: store, Sites: s.inbound, Logger: s.logger})
	sites := make(map[string]*handlers.MembersSite)
	for name, declared := range s.declared {
		config := members.Config{Site: name, Store: store, Requests: store}
		if s.platforms[name] != nil {
			config.Outbox, config.Inbound = toPlatform, fromPlatform
		}
		sites[name] = &handlers.MembersSite{
			Members:     members.New(config),
			Inbound:     fromPlatform,
			Integration: declared.find(store, name),
		}
	}
	if len(s.platforms) > 0 {
		run(toPlatform.Run)
		run(fromPlatform.Run)
	}
	run(func(ctx context.Context) { purgeRequests(ctx, store, s.logger) })
	s.serving.Store(&serving{toPlatform, sites})
	return nil
}

// find returns a function that finds the integration of a key, declared or in the
// store. The store is asked each time, so a revoked key is refused at once.
func (i *integrations) find(store members.Integrations, site string) func(context.Context, members.KeyHash) (members.Integration, error) {
	return func(ctx context.Context, key members.KeyHash) (members.Integration, error) {
		if declared, ok := i.byKey[key]; ok {
			return declared, nil
		}
		stored, err := store.FindIntegration(ctx, site, key)
		if err != nil {
			return members.Integration{}, err
		}
		if declared, ok := i.byName[stored.Name]; ok {
			return declared, nil // the configuration has the last word
		}
		if i.names[stored.Name] { // with another key
			return members.Integration{}, members.ErrNotFound
		}
		return stored, nil
	}
}

// purgeRequests forgets old answers from time to time, until ctx is done.
func purgeRequests(ctx context.Context, requests members.Requests, logger *zap.Logger) {
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	for {
		if err := requests.PurgeRequests(ctx, time.Now()); err != nil && ctx.Err() == nil {
			logger.Error("old answers could not be removed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// site returns the site of a name. Errors: errStoreAway.
func (s *membersState) site(name string) (*handlers.MembersSite, error) {
	if err := s.store.open(); err != nil {
		return nil, err
	}
	serving := s.serving.Load()
	if serving == nil {
		return nil, errStoreAway
	}
	return serving.sites[name], nil
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
