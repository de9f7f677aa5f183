package outbox

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/members"
)

// This file retries what is due, for all sites of a process.

// Run retries what is pending until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	var purged, lastDue time.Time
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
			lastDue = o.Now()
		}
		interval := o.interval
		if o.isQuiet() && o.Now().Sub(lastDue) >= quietTime {
			interval *= 2
		}
		// With many sites the poll takes long. It takes half of the time at most.
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

func (s *site) due(ctx context.Context, at time.Time, limit int) ([]members.Record, error) {
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	return s.Store.Due(bounded, s.name, at, limit)
}

// deliverBatch retries a batch of what is due at the site, while the platform
// responds. It reports false if another batch would be the same: the site is not
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

// nextSlot takes a slot for one more retry beside those under way. It is nil if one of
// these has to end first. It waits only if there are none.
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

// probe tries one pending record, due or not.
func (s *site) probe(ctx context.Context) error {
	defer func() { s.breaker.EndProbe(s.Now()) }()
	slot, err := s.retries.Acquire(ctx, true)
	if err != nil {
		return err
	}
	defer slot.End()
	for _, until := range []time.Time{s.Now(), s.Now().Add(farthestAttempt)} {
		list, err := s.due(ctx, until, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		if err := s.retryServed(ctx, list[0].GUID, slot); !errors.Is(err, errNotServed) {
			return err
		}
		return nil
	}
	return nil
}
