package edge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// openStore is the store of one configuration. It is opened when Caddy starts
// the configuration, not when it only checks it.
type openStore struct {
	kind   database.Kind
	source string
	logger *zap.Logger
	audit  audit.Log
	users  []storeUser // that have not begun

	mu       sync.Mutex
	begun    bool
	stopped  bool
	err      error // of opening, for good
	db       *database.DB
	work     atomic.Pointer[work.Queue]   // nil while the store is away
	contacts atomic.Pointer[contacts.Log] // as long as work
	ctx      context.Context              // of what runs in the background
	cancel   context.CancelFunc
	running  sync.WaitGroup
	releases pool.Releases

	trying   sync.Mutex
	tries    []string // sites of which all is to be tried once the store is open
	isTrying bool     // it is, and all who use it have begun
}

// storeUser is what runs on the store.
type storeUser interface {
	// begin starts it on the store, once that is open. The ctx bounds begin
	// alone; run is for what goes on in the background. An error means that the
	// store is not to be had yet.
	begin(ctx context.Context, db *database.DB, run func(func(context.Context))) error
}

// databases outlive a configuration: a reload opens none twice.
var databases pool.Pool[databaseKey, *database.DB]

type databaseKey struct {
	kind   database.Kind
	source string
}

func (s *openStore) key() databaseKey { return databaseKey{s.kind, s.source} }

const (
	// openTimeout is how long opening the store may take before Caddy starts
	// without it.
	openTimeout = 5 * time.Second

	// migrateTimeout bounds what Caddy does not wait for, and a migration of a file, which
	// may be large.
	migrateTimeout = 10 * time.Minute

	// reopenInterval is how long after that it is tried again.
	reopenInterval = time.Second

	// clockInterval is how often the store's clock is read.
	clockInterval = time.Minute
)

// ErrStoreAway means that the store does not answer, and is waited for.
var ErrStoreAway = errors.New("the store is away")

// open opens the store and begins its users, once, unless it was stopped. A file that cannot be
// opened is an error. A server that is away is not: it is waited for, and
// everything else that Caddy does goes on.
func (s *openStore) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.stopped {
		return s.err
	}
	s.begun = true
	s.ctx, s.cancel = context.WithCancel(context.Background())
	bound := openTimeout
	if s.kind == database.SQLite {
		bound = migrateTimeout
	}
	err := s.tryOpen(bound)
	if err == nil {
		return nil
	}
	if s.kind == database.SQLite {
		s.err = err
		return err
	}
	s.logger.Error("cannot open the store; retrying until it responds", zap.Error(err))
	s.running.Go(func() {
		for err != nil {
			if !waitFor(s.ctx, reopenInterval) {
				return
			}
			err = s.tryOpen(migrateTimeout)
		}
		s.logger.Info("the store answers")
	})
	return nil
}

// opened opens the store, if it is not open, and returns what one of its users runs on it.
// Errors: ErrStoreAway, and that of opening.
func opened[T any](s *openStore, running *atomic.Pointer[T]) (*T, error) {
	if on := running.Load(); on != nil {
		return on, nil
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if on := running.Load(); on != nil {
		return on, nil
	}
	return nil, ErrStoreAway
}

// tryOpen opens the store, if it is not, and begins the users that have not
// begun yet.
func (s *openStore) tryOpen(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	if s.db == nil {
		db, err := databases.Load(s.key(), &s.releases, func() (*database.DB, error) {
			opening, cancel := context.WithTimeout(ctx, openTimeout)
			defer cancel()
			return database.Open(opening, s.kind, s.source)
		})
		if err != nil {
			return err
		}
		s.db = db
		s.run(s.readClock)
	}
	if s.work.Load() == nil {
		if err := audit.Schema.Migrate(ctx, s.db); err != nil {
			return err
		}
		kept, err := contacts.NewSQL(ctx, s.db)
		if err != nil {
			return err
		}
		queue, err := work.New(ctx, s.db, Sampled(s.logger), nil)
		if err != nil {
			return err
		}
		noted := contacts.NewLog(kept, Sampled(s.logger))
		s.contacts.Store(noted)
		s.work.Store(queue)
		s.run(queue.Run)
		s.run(noted.Run)
		s.run(s.logCommands)
	}
	for len(s.users) > 0 {
		if err := s.users[0].begin(ctx, s.db, s.run); err != nil {
			return err
		}
		s.users = s.users[1:]
	}
	s.trying.Lock()
	defer s.trying.Unlock()
	s.isTrying = true
	for _, site := range s.tries {
		s.work.Load().TrySoon(site)
	}
	s.tries = nil
	return nil
}

// trySoon has all that is pending of a site tried, once the store is open, since its platform is reached in another way.
func (s *openStore) trySoon(site string) {
	s.trying.Lock()
	defer s.trying.Unlock()
	if s.isTrying {
		s.work.Load().TrySoon(site)
		return
	}
	s.tries = append(s.tries, site)
}

// logCommands logs what commands change, until ctx is done.
func (s *openStore) logCommands(ctx context.Context) {
	audit.Run(ctx, s.db, s.audit, func(err error) {
		s.logger.Error("cannot log changes of commands; retrying", zap.Error(err))
	})
}

// readClock reads the store's clock from time to time, until ctx is done.
func (s *openStore) readClock(ctx context.Context) {
	for waitFor(ctx, clockInterval) {
		bounded, cancel := context.WithTimeout(ctx, openTimeout)
		_ = s.db.ReadClock(bounded) // a store that is away says so elsewhere
		cancel()
	}
}

// waitFor waits for an interval. It reports false as soon as ctx is done.
func waitFor(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	}
}

// run runs a function in the background, until its ctx ends.
func (s *openStore) run(background func(ctx context.Context)) {
	s.running.Go(func() { background(s.ctx) })
}

// stop ends what runs in the background. A store that is not open stays so.
func (s *openStore) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.cancel != nil {
		s.cancel()
		s.running.Wait()
	}
}

// close lets go of the store.
func (s *openStore) close() error {
	s.stop()
	return s.releases.Close()
}
