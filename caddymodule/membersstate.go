package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/memberstore"
	"github.com/lychgate/caddy-lychgate/platform"
)

// membersState is what the members API of one configuration runs on: the
// store, and a service for each site. It is opened when Caddy starts the
// configuration, not when it only checks it.
type membersState struct {
	kind      database.Kind
	source    string
	logger    *zap.Logger
	platforms map[string]platform.Platform // by site name
	declared  map[string]*integrations     // by site name

	once    sync.Once
	err     error                            // of opening
	sites   map[string]*handlers.MembersSite // by site name, once opened
	cancel  context.CancelFunc
	running sync.WaitGroup
	release releases

	previous *membersState // the configuration's that ran before
}

// running is the state of the configuration that runs, for the admin API and
// the metrics, which belong to the process.
var running atomic.Pointer[membersState]

// integrations are those that the configuration declares for a site.
type integrations struct {
	byKey  map[handlers.KeyHash]members.Integration
	byName map[string]members.Integration // those without a key of their own
}

// databases outlive a configuration: a reload opens none twice.
var databases = caddy.NewUsagePool() // databaseKey → sharedDatabase

type databaseKey struct {
	kind   database.Kind
	source string
}

type sharedDatabase struct{ *database.DB }

func (d sharedDatabase) Destruct() error { return d.Close() }

// useMembers checks what the members API needs, and has it opened when the app
// starts.
func (a *App) useMembers() (*membersState, error) {
	if a.members != nil {
		return a.members, nil
	}
	state := &membersState{
		logger:    a.logger,
		platforms: make(map[string]platform.Platform),
		declared:  make(map[string]*integrations),
	}
	var err error
	if state.kind, state.source, err = a.Store.resolve(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if state.platforms[name], err = site.Platform.connect(); err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		declared := &integrations{make(map[handlers.KeyHash]members.Integration), make(map[string]members.Integration)}
		state.declared[name] = declared
		for _, integration := range slices.Sorted(maps.Keys(site.Integrations)) {
			hash, plain, err := site.Integrations[integration].resolve(integration)
			if err != nil {
				return nil, fmt.Errorf("site %s: %w", name, err)
			}
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

// open opens the store and starts the services, once.
func (s *membersState) open() error {
	s.once.Do(func() { s.err = s.openOnce() })
	return s.err
}

func (s *membersState) openOnce() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	db, err := load(databases, databaseKey{s.kind, s.source}, &s.release, func() (sharedDatabase, error) {
		db, err := database.Open(ctx, s.kind, s.source)
		return sharedDatabase{db}, err
	})
	if err != nil {
		return err
	}
	store, err := memberstore.NewSQL(ctx, db.DB)
	if err != nil {
		return err
	}
	s.sites = make(map[string]*handlers.MembersSite)
	for name, platform := range s.platforms {
		// Each service is an owner of its own, so that what it does excludes
		// those of other edges, and of this one's last configuration.
		service := members.New(members.Config{
			Site: name, Store: store, Platform: platform, Logger: s.logger.With(zap.String("site", name)), Owner: uuid.NewString(),
		})
		declared := s.declared[name]
		s.sites[name] = &handlers.MembersSite{
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
				return stored, err
			},
		}
		s.running.Go(func() { service.Run(ctx) })
	}
	return nil
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

// site returns the site of a name, once the store is open.
func (s *membersState) site(name string) (*handlers.MembersSite, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	return s.sites[name], nil
}

// stop ends the services' background work. What is behind stays so until
// the next configuration, or the next edge, brings it to the platform.
func (s *membersState) stop() {
	if s.cancel != nil {
		s.cancel()
		s.running.Wait()
	}
}

// close lets go of the store and the platforms.
func (s *membersState) close() error {
	s.stop()
	for _, platform := range s.platforms {
		if closer, ok := platform.(io.Closer); ok {
			if err := closer.Close(); err != nil {
				return err
			}
		}
	}
	return s.release.all()
}
