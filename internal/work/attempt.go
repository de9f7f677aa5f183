package work

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
)

// This file makes attempts.

// waiter is who has a task done.
type waiter struct {
	waits  bool                 // also for a task that is not due, or that somebody else does now
	isTold func(done Task) bool // whether somebody hears of its refusal, which then need not be kept; may be nil
}

// sync is Sync. A task that is leased is done without asking for the lease. Errors:
// ErrNotServed, ErrEarly, ErrHeld, those of the store and of ctx.
func (q *Queue) sync(ctx context.Context, t Task, w waiter) (Attempt, error) {
	k, b, isServed := q.kind(t.Site, t.Kind)
	if !isServed {
		return Attempt{}, ErrNotServed
	}
	ctx, cancel := context.WithTimeout(ctx, 2*k.Timeout) // with what is waited for
	defer cancel()
	if !k.IsSerial {
		return q.perform(ctx, k.Kind, b, t, w, "")
	}
	if err := q.serial.Acquire(ctx, serialKey(t.Site, t.Kind)); err != nil {
		return Attempt{}, err
	}
	defer q.serial.Release(serialKey(t.Site, t.Kind))
	return q.exclusively(ctx, k.Kind, b, t, w)
}

// serialKey is the key of a serial kind at a site in Queue.serial.
func serialKey(site, kind string) string { return site + "\x00" + kind }

// exclusively performs a task of a serial kind, while no other process does one of the site. Without
// w.waits, it does not wait for these. Errors: ErrHeld, those of perform.
func (q *Queue) exclusively(ctx context.Context, k Kind, b *breaker, t Task, w waiter) (Attempt, error) {
	siteHolder := rand.Text()
	for {
		err := q.store.leaseSite(ctx, t.Site, t.Kind, siteHolder)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrLost) {
			return Attempt{}, err
		}
		if !w.waits {
			return Attempt{}, ErrHeld
		}
		select {
		case <-ctx.Done():
			return Attempt{}, ctx.Err()
		case <-time.After(holdInterval):
		}
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		_ = q.store.releaseSite(ending, t.Site, t.Kind, siteHolder) // else it runs out
	}()
	return q.perform(ctx, k, b, t, w, siteHolder)
}

// perform is sync once siteHolder has the lease of the site. siteHolder is "" for a kind that
// is not serial.
func (q *Queue) perform(ctx context.Context, k Kind, b *breaker, t Task, w waiter, siteHolder string) (Attempt, error) {
	for {
		if t.Holder == "" {
			leased, err := k.Table.Lease(ctx, t, w.waits)
			switch {
			case errors.Is(err, ErrGone) && leased.Key != "":
				return Attempt{Result{Outcome: Never, Reason: leased.Reason}, leased}, nil
			case errors.Is(err, ErrGone):
				return Attempt{}, nil
			case errors.Is(err, ErrHeld) && w.waits:
				select {
				case <-ctx.Done():
					return Attempt{}, ctx.Err()
				case <-time.After(holdInterval):
				}
				continue
			case err != nil:
				return Attempt{}, err
			}
			t = leased
		}
		if siteHolder != "" { // which may be old, after a wait for the task
			if err := q.store.leaseSite(ctx, t.Site, t.Kind, siteHolder); err != nil {
				_ = k.Table.Release(ctx, t) // else it runs out
				return Attempt{}, err
			}
		}
		r, isDue, err := q.attempt(ctx, k, b, t, w, siteHolder)
		if err != nil {
			return Attempt{}, err
		}
		if !isDue || ctx.Err() != nil {
			return Attempt{r, t}, ctx.Err()
		}
		t.Holder = "" // it was enqueued meanwhile
	}
}

// attempt does a task that is leased once, and settles it.
func (q *Queue) attempt(ctx context.Context, k Kind, b *breaker, t Task, w waiter, siteHolder string) (r Result, isDue bool, err error) {
	leased, lose := context.WithCancelCause(ctx)
	stop := q.keep(leased, k.Table, func() { lose(ErrLost) }, t, siteHolder)
	bounded, cancel := context.WithTimeout(leased, k.Timeout)
	r = k.Do(bounded, t)
	isLost := errors.Is(context.Cause(leased), ErrLost)
	cancel()
	lose(nil)
	stop()
	if !r.IsUnasked && !isLost {
		q.judge(ctx, b, t, r)
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout) // also when the time is up
	defer cancel()
	settled := r
	if r.Outcome == Never && w.isTold != nil && w.isTold(t) {
		settled.Outcome = Done
	}
	isDue, err = k.Table.Settle(settling, t, settled)
	return r, isDue, err
}

// keep prolongs a lease, and that of the site if there is one, until ctx is done, after which stop is called. Where it cannot, it
// ends the attempt in time.
func (q *Queue) keep(ctx context.Context, table Table, lost func(), t Task, siteHolder string) (stop func()) {
	var mu sync.Mutex // held while it is prolonged
	mu.Lock()
	defer mu.Unlock()
	end := time.AfterFunc(t.Until.Sub(q.store.now())-leaseMargin, lost)
	var again *time.Timer
	again = time.AfterFunc(prolongInterval, func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		until := q.store.now().Add(LeaseTime)
		err := table.Prolong(ctx, t, until)
		if err == nil && siteHolder != "" {
			err = q.store.leaseSite(ctx, t.Site, t.Kind, siteHolder)
		}
		switch {
		case err == nil:
			end.Reset(until.Sub(q.store.now()) - leaseMargin)
		case errors.Is(err, ErrLost):
			lost()
		}
		again.Reset(prolongInterval)
	})
	return func() {
		mu.Lock() // what is under way ends with ctx
		defer mu.Unlock()
		again.Stop()
		end.Stop()
	}
}

// judge tells the breaker whether the platform responded.
func (q *Queue) judge(ctx context.Context, b *breaker, t Task, r Result) {
	if r.IsUnanswered {
		defer q.signal() // Run polls sooner
		isCutOff := ctx.Err() != nil && !errors.Is(context.Cause(ctx), limiter.ErrTooLong)
		if !isCutOff && b.Fail(t.Kind+" "+t.Key, t.Attempts > 0 || t.Since.IsZero(), q.store.now()) {
			opened := "the platform does not respond, so work is queued without being tried until it does"
			if b.service != "" {
				opened = "the " + b.service + " does not respond, so what is for it is queued without being tried until it does"
			}
			if q.warn.Warn(t.Site, opened, zap.String("reason", r.Reason)) {
				b.NoteLogged()
			}
		}
		return
	}
	if closes, isLogged := b.Succeed(); closes {
		if isLogged {
			q.logger.Info("the "+cmp.Or(b.service, "platform")+" responds again", zap.String("site", t.Site))
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		if _, err := q.MakeDue(ctx, t.Site); err != nil {
			q.logger.Debug("cannot make pending work due", zap.Error(err)) // each is due later
		}
	}
}
