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
	"time"

	"github.com/caddyserver/caddy/v2"
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
	path      string // of the API
	kind      database.Kind
	source    string
	logger    *zap.Logger
	platforms map[string]platform.Platform // by site name
	notices   map[string]string            // where the platforms send theirs, by site name
	declared  map[string]*integrations     // by site name

	once    sync.Once
	err     error                                            // of opening, for good
	opened  atomic.Pointer[map[string]*handlers.MembersSite] // by site name; nil while the store is away
	ctx     context.Context                                  // of what runs in the background
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
	names  map[string]bool                // all
}

// databases outlive a configuration: a reload opens none twice.
var databases = caddy.NewUsagePool() // databaseKey → sharedDatabase

type databaseKey struct {
	kind   database.Kind
	source string
}

type sharedDatabase struct{ *database.DB }

func (d sharedDatabase) Destruct() error { return d.Close() }

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
		if state.notices[name], err = site.noticeURL(a, path); err != nil {
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

const (
	// openTime is how long opening the store may take before Caddy starts
	// without it.
	openTime = 5 * time.Second

	// reopenPause is how long after that it is tried again.
	reopenPause = time.Second
)

var errStoreAway = errors.New("the store is away")

// open opens the store and starts the services, once. A file that cannot be
// opened is an error. A server that is away is not: it is waited for, and
// everything else that Caddy does goes on.
func (s *membersState) open() error {
	s.once.Do(func() {
		s.ctx, s.cancel = context.WithCancel(context.Background())
		err := s.tryOpen()
		if err == nil {
			return
		}
		if s.kind == database.SQLite {
			s.err = err
			return
		}
		s.logger.Error("the store does not answer, so the members API does not work until it does", zap.Error(err))
		s.running.Go(func() {
			for s.opened.Load() == nil {
				select {
				case <-s.ctx.Done():
					return
				case <-time.After(reopenPause):
				}
				if err := s.tryOpen(); err == nil {
					s.logger.Info("the store answers")
				}
			}
		})
	})
	return s.err
}

func (s *membersState) tryOpen() error {
	ctx, cancel := context.WithTimeout(s.ctx, openTime)
	defer cancel()
	var release releases
	db, err := load(databases, databaseKey{s.kind, s.source}, &release, func() (sharedDatabase, error) {
		db, err := database.Open(ctx, s.kind, s.source)
		return sharedDatabase{db}, err
	})
	if err != nil {
		return err
	}
	store, err := memberstore.NewSQL(ctx, db.DB)
	if err != nil {
		return errors.Join(err, release.all())
	}
	s.release = release
	sites := make(map[string]*handlers.MembersSite)
	for name, platform := range s.platforms {
		service := members.New(members.Config{
			Site: name, Store: store, Platform: platform, Logger: s.logger.With(zap.String("site", name)),
			Webhooks: store, NoticeURL: s.notices[name],
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
		s.running.Go(func() { service.Run(s.ctx) })
	}
	s.running.Go(func() { purgeRequests(s.ctx, store, s.logger) })
	s.opened.Store(&sites)
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
	if err := s.open(); err != nil {
		return nil, err
	}
	sites := s.opened.Load()
	if sites == nil {
		return nil, errStoreAway
	}
	return (*sites)[name], nil
}

// sites returns all sites, none while the store is away.
func (s *membersState) sites() map[string]*handlers.MembersSite {
	if sites := s.opened.Load(); sites != nil {
		return *sites
	}
	return nil
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
