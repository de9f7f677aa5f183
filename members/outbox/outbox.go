// Package outbox brings the writes of the members API to the publishing
// platforms: the pending records of all sites of a process.
//
// A record is leased while it is applied, so that one process at a time changes
// the member on the platform. An attempt that fails is retried, with backoff, by
// whichever process is free. At most a few attempts at a time are made for each
// site, so a platform that is slow or away delays no other.
package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// retryTimeout bounds an attempt that no caller waits for. It is longer than
	// any caller waits: otherwise a platform that is slow for a while would never
	// finish in time, and be asked again and again. retryLease is how long a
	// process may hold the record for it.
	retryTimeout = 30 * time.Second
	retryLease   = retryTimeout + members.LeaseTime

	// pollInterval is how often Run looks for what is due.
	pollInterval = time.Second

	// concurrency bounds the retries that are under way for a site, and batchSize
	// how many records of it are read at a time.
	concurrency = 4
	batchSize   = 64

	// tombstoneRetention is how long the platform's IDs of deleted members are
	// kept: longer than anything that was read before can be in use.
	tombstoneRetention = 10 * time.Minute
)

// Config is what an [Outbox] is made from.
type Config struct {
	Store     Store
	Platforms map[string]platform.Platform // by site
	Logger    *zap.Logger

	// Timeout bounds how long a caller waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Outbox brings the writes of several sites to their platforms. It may be used by
// many goroutines at once. Run has to run for queued writes to be retried.
type Outbox struct {
	Config
	sites    map[string]*site
	wake     chan struct{} // something may be due
	interval time.Duration // of looking for what is due
}

// site is a site that the outbox serves.
type site struct {
	*Outbox
	name     string
	platform platform.Platform
	logger   *zap.Logger
	warnings *zap.Logger // at most a line of each kind a minute
	working  atomic.Bool // on what is due
	more     atomic.Bool // became due meanwhile
	troubled atomic.Bool // an attempt has failed since all was applied
}

// New makes an Outbox.
func New(cfg Config) *Outbox {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	o := &Outbox{Config: cfg, sites: make(map[string]*site), wake: make(chan struct{}, 1), interval: pollInterval}
	for name, platform := range cfg.Platforms {
		logger := cfg.Logger.With(zap.String("site", name))
		o.sites[name] = &site{
			Outbox: o, name: name, platform: platform, logger: logger,
			warnings: logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
				return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
			})),
		}
	}
	return o
}

// Wake has Run look for what is due, at once.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Count returns how many records of a site are pending.
func (o *Outbox) Count(ctx context.Context, site string) (int, error) {
	return o.Store.CountPending(ctx, site)
}

// Pending returns pending records of a site, those whose next attempt comes first
// before others, and how many there are in all.
func (o *Outbox) Pending(ctx context.Context, site string, limit int) ([]members.Record, int, error) {
	n, err := o.Store.CountPending(ctx, site)
	if err != nil || n == 0 {
		return nil, n, err
	}
	list, err := o.Store.Due(ctx, site, o.Now().Add(2*maxBackoff), limit)
	return list, n, err
}

// TryNow makes all pending records of a site due, and returns how many these are.
func (o *Outbox) TryNow(ctx context.Context, site string) (int, error) {
	n, err := o.Store.MakeDue(ctx, site)
	o.Wake()
	return n, err
}

// Run retries what is pending until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	var purged time.Time
	for {
		if o.Now().Sub(purged) > tombstoneRetention/10 {
			if err := o.Store.PurgeTombstones(ctx, o.Now().Add(-tombstoneRetention)); err != nil && ctx.Err() == nil {
				o.Logger.Error("old tombstones could not be removed", zap.Error(err))
			}
			purged = o.Now()
		}
		if err := o.startDue(ctx, &working); err != nil && ctx.Err() == nil {
			o.Logger.Error("pending members could not be listed", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-o.wake:
		}
	}
}

// DeliverDue retries what is due now, once, and waits until that is done.
func (o *Outbox) DeliverDue(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	return o.startDue(ctx, &working)
}

// startDue starts to work on each site that has something due, unless that is
// under way.
func (o *Outbox) startDue(ctx context.Context, working *sync.WaitGroup) error {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	names, err := o.Store.DueSites(bounded, o.Now())
	if err != nil {
		return err
	}
	for _, name := range names {
		s, isOurs := o.sites[name]
		if !isOurs {
			continue
		}
		if !s.working.CompareAndSwap(false, true) {
			s.more.Store(true)
			continue
		}
		working.Go(func() {
			if err := s.deliverDue(ctx); err != nil && ctx.Err() == nil {
				s.logger.Error("pending members could not be listed", zap.Error(err))
			}
			s.working.Store(false)
			if s.more.Swap(false) {
				o.Wake()
			}
		})
	}
	return o.reportDone(bounded)
}

// reportDone logs that a site has nothing pending any more, after a failure was
// logged.
func (o *Outbox) reportDone(ctx context.Context) error {
	for name, s := range o.sites {
		if !s.troubled.Load() || s.working.Load() {
			continue
		}
		n, err := o.Store.CountPending(ctx, name)
		if err == nil && n == 0 && s.troubled.CompareAndSwap(true, false) {
			s.logger.Info("the platform has all writes")
		}
	}
	return nil
}

// deliverDue retries a batch of what is due at the site.
func (s *site) deliverDue(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	due, err := s.Store.Due(bounded, s.name, s.Now(), batchSize)
	if err != nil {
		return err
	}
	var retries sync.WaitGroup
	defer retries.Wait()
	slots := make(chan struct{}, concurrency)
	for _, r := range due {
		slots <- struct{}{}
		retries.Go(func() {
			defer func() { <-slots }()
			if err := s.retry(ctx, r.GUID); err != nil && ctx.Err() == nil {
				s.logger.Error("a pending member could not be retried", zap.String("guid", r.GUID), zap.Error(err))
			}
		})
	}
	if len(due) == batchSize {
		s.more.Store(true)
	}
	return nil
}

var _ members.Outbox = (*Outbox)(nil)
