// Package outbox brings the writes of the members API to the publishing
// platforms: the pending records of all sites of a process.
//
// A record is leased while it is applied, so that one process at a time changes
// the member on the platform. An attempt that fails is retried, with backoff, by
// whichever process is free. At most a few attempts at a time are made for each
// site, and a platform that does not answer is left alone but for a probe now and
// then, so one that is slow or away delays no other.
package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/internal/warnings"
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

	// pollInterval is how often Run looks for what is due. Once nothing was due
	// for quietTime, and no site is in trouble, it looks half as often.
	pollInterval = time.Second
	quietTime    = 10 * time.Second

	// doneInterval is how often Run looks whether sites that were in trouble have
	// nothing pending any more.
	doneInterval = 2 * time.Second

	// concurrency bounds the retries that are under way for a site, and batchSize
	// how many records of it are read at a time.
	concurrency = 4
	batchSize   = 64

	// These bound the attempts that are under way for all sites: retries and
	// those that callers wait for, each at platforms that answer in a time and at
	// others. One site's callers take maxCalling of the former.
	maxRetries, maxSlowRetries, slowRetry = 112, 64, 2 * time.Second
	maxCalls, maxSlowCalls, slowCall      = 56, 24, time.Second
	maxCalling                            = 12

	// tombstoneRetention is how long the platform's IDs of deleted members are
	// kept: longer than anything that was read before can be in use.
	tombstoneRetention = 10 * time.Minute
)

// Config is what an [Outbox] is made from.
type Config struct {
	Store  Store
	Logger *zap.Logger

	// Platform returns the platform of a site, or nil if the site has none or is
	// not served by this process. It is asked before each attempt, so sites may be
	// added, changed and removed at any time. It returns the same pointer until
	// the platform is another: what is known of the old one is then forgotten.
	Platform func(site string) platform.Platform

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
	warnings *warnings.Log
	wake     chan struct{} // something may be due
	interval time.Duration // of looking for what is due
	retries  *limiter.Lanes
	calls    *limiter.Lanes // that callers wait for
	reported time.Time      // when it was last looked for sites that are done

	mu     sync.Mutex
	states map[string]*state // by site
}

// New makes an Outbox.
func New(cfg Config) *Outbox {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Outbox{
		Config: cfg, warnings: warnings.New(cfg.Logger, cfg.Now),
		wake: make(chan struct{}, 1), interval: pollInterval, states: make(map[string]*state),
		retries: limiter.NewLanes(maxRetries, maxSlowRetries, slowRetry), calls: limiter.NewLanes(maxCalls, maxSlowCalls, slowCall),
	}
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

// CountAll returns how many records are pending, by site, of all sites in the store
// that have any.
func (o *Outbox) CountAll(ctx context.Context) (map[string]int, error) {
	return o.Store.CountAllPending(ctx)
}

// Pending returns pending records of a site, those whose next attempt comes first
// before others, and how many there are in all.
func (o *Outbox) Pending(ctx context.Context, site string, limit int) ([]members.Record, int, error) {
	n, err := o.Store.CountPending(ctx, site)
	if err != nil || n == 0 {
		return nil, n, err
	}
	list, err := o.Store.Due(ctx, site, o.Now().Add(farthestAttempt), limit)
	return list, n, err
}

// Refused returns records of a site whose last write the platform refused for good, the
// last first.
func (o *Outbox) Refused(ctx context.Context, site string, limit int) ([]members.Record, error) {
	return o.Store.Refused(ctx, site, limit)
}

// CountAllRefused returns how many these are, by site, of all sites in the store that have
// any.
func (o *Outbox) CountAllRefused(ctx context.Context) (map[string]int, error) {
	return o.Store.CountAllRefused(ctx)
}

// TryNow makes all pending records of a site due, and returns how many these are.
func (o *Outbox) TryNow(ctx context.Context, site string) (int, error) {
	n, err := o.Store.MakeDue(ctx, site)
	if s, served := o.enter(site); served {
		s.breaker.ProbeNow()
		s.leave()
	}
	o.Wake()
	return n, err
}

// Run retries what is pending until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	var purged, busy time.Time
	for ctx.Err() == nil {
		if o.Now().Sub(purged) > tombstoneRetention/10 {
			if err := o.Store.PurgeTombstones(ctx, o.Now().Add(-tombstoneRetention)); err != nil && ctx.Err() == nil {
				o.Logger.Error("cannot purge old tombstones", zap.Error(err))
			}
			if err := o.Store.PurgeRefused(ctx, o.Now().Add(-members.RefusalRetention)); err != nil && ctx.Err() == nil {
				o.Logger.Error("cannot purge old refusals", zap.Error(err))
			}
			purged = o.Now()
		}
		begin := time.Now()
		n, err := o.startDue(ctx, &working)
		if err != nil && ctx.Err() == nil {
			o.Logger.Error("cannot list pending members", zap.Error(err))
		}
		took := time.Since(begin)
		if n > 0 || err != nil {
			busy = o.Now()
		}
		interval := o.interval
		if o.isQuiet() && o.Now().Sub(busy) >= quietTime {
			interval *= 2
		}
		// With many sites the look takes long. It takes half of the time at most.
		pause(ctx, took, nil)
		pause(ctx, interval-took, o.wake)
	}
}

// pause waits for some time, or until it is woken or ctx is done.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}

// DeliverDue retries what is due now, once, and waits until that is done.
func (o *Outbox) DeliverDue(ctx context.Context) error {
	var working sync.WaitGroup
	defer working.Wait()
	_, err := o.startDue(ctx, &working)
	return err
}

// startDue starts to work on each site that has something due or is to be probed,
// unless that is under way. It returns how many of these this process serves.
func (o *Outbox) startDue(ctx context.Context, working *sync.WaitGroup) (n int, err error) {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	names, err := o.Store.DueSites(bounded, o.Now())
	if err != nil {
		return 0, err
	}
	for _, name := range append(names, o.probesDue()...) {
		if s, served := o.enter(name); served {
			n++
			s.startWork(ctx, working)
		}
	}
	return n, o.reportDone(bounded)
}

// startWork starts to work on what is due at the site, which it leaves in the end.
func (s *site) startWork(ctx context.Context, working *sync.WaitGroup) {
	if !s.working.CompareAndSwap(false, true) {
		s.more.Store(true)
		s.leave()
		return
	}
	may, isProbe := s.breaker.Begin(s.Now())
	if !may {
		s.working.Store(false)
		s.leave()
		return
	}
	working.Go(func() {
		defer s.leave()
		if err := s.work(ctx, isProbe); err != nil && ctx.Err() == nil {
			s.logger().Error("cannot list pending members", zap.Error(err))
		}
		s.working.Store(false)
		if s.more.Swap(false) && s.breaker.IsClosed() {
			s.Wake()
		}
	})
}

// work retries what is due at the site, until nothing is or the breaker opens.
func (s *site) work(ctx context.Context, isProbe bool) error {
	if isProbe {
		if err := s.probe(ctx); err != nil || !s.breaker.IsClosed() {
			return err
		}
	}
	for {
		s.more.Store(false)
		goesOn, err := s.deliverBatch(ctx)
		if err != nil || ctx.Err() != nil || !s.breaker.IsClosed() {
			return err
		}
		if !goesOn {
			s.more.Store(false) // what is due is looked for with the next tick
		}
		if !s.more.Load() {
			return nil
		}
	}
}

// reportDone logs that a site has nothing pending any more, after a failure was
// logged.
func (o *Outbox) reportDone(ctx context.Context) error {
	troubled := o.troubled()
	if len(troubled) == 0 || o.Now().Sub(o.reported) < doneInterval {
		return nil
	}
	o.reported = o.Now()
	pending, err := o.Store.PendingSites(ctx)
	if err != nil {
		return err
	}
	for _, name := range pending {
		delete(troubled, name)
	}
	for name, troubles := range troubled {
		s, served := o.enter(name)
		if !served {
			continue
		}
		if s.troubles.CompareAndSwap(troubles, 0) {
			s.breaker.Succeed()
			s.logger().Info("outbox drained")
		}
		s.leave()
	}
	return nil
}

// due returns records of the site that are due at a time.
func (s *site) due(ctx context.Context, at time.Time, limit int) ([]members.Record, error) {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	return s.Store.Due(bounded, s.name, at, limit)
}

// deliverBatch retries a batch of what is due at the site, while the platform
// answers. It reports false if another batch would be the same: the site is not
// served any more, or the store is in trouble.
func (s *site) deliverBatch(ctx context.Context) (goesOn bool, err error) {
	slot, err := s.acquire(ctx, s.retries, false)
	if err != nil {
		return false, err
	}
	due, err := s.due(ctx, s.Now(), batchSize)
	if len(due) == batchSize {
		s.more.Store(true)
	}
	var retries sync.WaitGroup
	var failed atomic.Bool
	ended := make(chan struct{}, concurrency)
	for underWay := 0; len(due) > 0 && s.breaker.IsClosed() && ctx.Err() == nil; {
		if slot == nil {
			slot = s.nextSlot(ctx, underWay)
		}
		if slot == nil {
			if underWay == 0 {
				break
			}
			<-ended
			underWay--
			continue
		}
		guid, taken := due[0].GUID, slot
		due, slot = due[1:], nil
		underWay++
		retries.Go(func() {
			if !s.retryInSlot(ctx, guid, taken) {
				failed.Store(true)
			}
			ended <- struct{}{}
		})
	}
	if slot != nil {
		slot.End()
	}
	retries.Wait()
	return !failed.Load(), err
}

// retryInSlot retries a record, and ends the slot. It reports false if that could
// not be done.
func (s *site) retryInSlot(ctx context.Context, guid string, slot *limiter.Slot) bool {
	defer slot.End()
	err := s.retryServed(ctx, guid, slot)
	if err != nil && !errors.Is(err, errNotServed) && ctx.Err() == nil {
		s.logger().Error("cannot retry pending member", zap.String("guid", guid), zap.Error(err))
	}
	return err == nil
}

// nextSlot returns a slot for one more retry beside those under way, or nil if one
// of these has to end first. It waits only if there are none.
func (s *site) nextSlot(ctx context.Context, underWay int) *limiter.Slot {
	switch {
	case underWay == 0:
		slot, err := s.acquire(ctx, s.retries, false)
		if err != nil {
			return nil
		}
		return slot
	case s.breaker.IsFresh() && underWay < concurrency:
		return s.retries.TryAcquire(s.isSlow())
	}
	return nil
}

// acquire waits for a slot, in the slow lane if the site's platform is slow by then.
// Errors: that of ctx.
func (s *site) acquire(ctx context.Context, lanes *limiter.Lanes, slow bool) (*limiter.Slot, error) {
	for {
		slow = slow || s.isSlow()
		slot, err := lanes.Acquire(ctx, slow)
		if err != nil || slow || !s.isSlow() {
			return slot, err
		}
		slot.End()
	}
}

var _ members.Outbox = (*Outbox)(nil)
