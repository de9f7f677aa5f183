package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// membersState is what the members API of one configuration runs on: a service
// for each site.
type membersState struct {
	path      string // of the API
	store     *openStore
	logger    *zap.Logger
	platforms map[string]platform.Platform // by site name
	notices   map[string]string            // where the platforms send theirs, by site name
	reconcile map[string]time.Duration     // by site name
	declared  map[string]*integrations     // by site name

	serving atomic.Pointer[map[string]*handlers.MembersSite] // by site name; nil while the store is away

	previous *membersState // the configuration's that ran before
}

// running is the state of the configuration that runs, for the admin API and
// the metrics, which belong to the process.
var running atomic.Pointer[membersState]

// integrations are those that the configuration declares for a site.
type integrations struct {
	byKey  map[handlers.KeyHash]members.Integration
	byName map[string]members.Integration // those without a key of their own
	names  map[string]bool                // all
}

// useMembers checks what the members API at a path needs, and has it opened when
// the app starts. The path is the same wherever it is used.
func (a *App) useMembers(path string) (*membersState, error) {
	if a.members != nil {
		if a.members.path != path {
			return nil, fmt.Errorf("members_api has the path %s here and %s elsewhere: write the same, so that Ghost knows where to send its notices", path, a.members.path)
		}
		return a.members, nil
	}
	state := &membersState{
		path:      path,
		logger:    a.logger,
		platforms: make(map[string]platform.Platform),
		notices:   make(map[string]string),
		reconcile: make(map[string]time.Duration),
		declared:  make(map[string]*integrations),
	}
	var err error
	if state.store, err = a.useStore(state); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if state.platforms[name], err = a.connect(site); err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		if state.notices[name], err = site.noticeURL(a, path); err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		if state.reconcile[name], err = site.Platform.reconcile(); err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		declared := &integrations{make(map[handlers.KeyHash]members.Integration), make(map[string]members.Integration), make(map[string]bool)}
		state.declared[name] = declared
		for _, integration := range slices.Sorted(maps.Keys(site.Integrations)) {
			hash, plain, err := site.Integrations[integration].resolve(integration)
			if err != nil {
				return nil, fmt.Errorf("site %s: %w", name, err)
			}
			declared.names[integration] = true
			if hash == nil {
				declared.byName[integration] = plain
				continue
			}
			if other, taken := declared.byKey[*hash]; taken {
				return nil, fmt.Errorf("site %s: the integrations %s and %s have the same key", name, other.Name, integration)
			}
			declared.byKey[*hash] = plain
		}
	}
	a.members = state
	return state, nil
}

// begin implements [storeUser].
func (s *membersState) begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error {
	store, err := memberstore.NewSQL(ctx, db)
	if err != nil {
		return err
	}
	sites := make(map[string]*handlers.MembersSite)
	for name, platform := range s.platforms {
		service := members.New(members.Config{
			Site: name, Store: store, Platform: platform, Logger: s.logger.With(zap.String("site", name)),
			Webhooks: store, NoticeURL: s.notices[name],
			Comparisons: store, Reconcile: s.reconcile[name],
		})
		declared := s.declared[name]
		sites[name] = &handlers.MembersSite{
			Members:  service,
			Requests: store,
			Integration: func(ctx context.Context, hash handlers.KeyHash) (members.Integration, error) {
				if integration, ok := declared.byKey[hash]; ok {
					return integration, nil
				}
				stored, err := storedIntegration(ctx, store, name, hash)
				if integration, ok := declared.byName[stored.Name]; ok && err == nil {
					return integration, nil // the configuration has the last word
				}
				if declared.names[stored.Name] && err == nil {
					err = members.ErrNotFound // and another key
				}
				return stored, err
			},
		}
		run(service.Run)
	}
	run(func(ctx context.Context) { purgeRequests(ctx, store, s.logger) })
	s.serving.Store(&sites)
	return nil
}

// purgeRequests forgets old answers from time to time, until ctx is done.
func purgeRequests(ctx context.Context, requests memberstore.Requests, logger *zap.Logger) {
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

// storedIntegration finds the integration of a key that was made by a command.
// It asks the store each time, so a key that is revoked is refused at once.
func storedIntegration(ctx context.Context, store memberstore.Integrations, site string, hash handlers.KeyHash) (members.Integration, error) {
	i, err := store.FindIntegration(ctx, site, hash.String())
	if errors.Is(err, memberstore.ErrNotFound) {
		err = members.ErrNotFound
	}
	return members.Integration{
		Name: i.Name, Mode: members.Mode(i.Mode), DuplicateEmails: i.DuplicateEmails,
		PlaceholderDomain: i.PlaceholderDomain, SubscribeByDefault: i.SubscribeByDefault,
	}, err
}

// site returns the site of a name. Errors: errStoreAway.
func (s *membersState) site(name string) (*handlers.MembersSite, error) {
	if err := s.store.open(); err != nil {
		return nil, err
	}
	sites := s.serving.Load()
	if sites == nil {
		return nil, errStoreAway
	}
	return (*sites)[name], nil
}

// sites returns all sites, none while the store is away.
func (s *membersState) sites() map[string]*handlers.MembersSite {
	if sites := s.serving.Load(); sites != nil {
		return *sites
	}
	return nil
}
