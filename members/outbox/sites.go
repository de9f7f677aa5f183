package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
)

// This file finds the state of a site. Of a site that is idle there is none.

// site is a site with its platform, for as long as something is done for it.
type site struct {
	*Outbox
	*state
	name     string
	platform platform.Platform
	breaker  *work.Breaker
}

// isSlow reports whether the platform had no response lately, or an attempt takes
// long now.
func (s *site) isSlow() bool { return s.slow.Load() > 0 || !s.breaker.IsFresh() }

// begin begins an attempt in a slot. It returns the attempt's context, and a
// function that ends it.
func (s *site) begin(ctx context.Context, slot *limiter.Slot, timeout time.Duration) (_ context.Context, end func()) {
	var slowed atomic.Int64
	ctx, cancel := context.WithTimeout(ctx, timeout)
	ctx = slot.Begin(ctx, func() {
		slowed.Add(1)
		s.slow.Add(1)
	})
	return ctx, func() {
		cancel()
		slot.End()
		s.slow.Add(-slowed.Load())
	}
}

// enter keeps a site, with the platform that it has now, until leave is called. It reports
// false if the site is not served.
func (o *Outbox) enter(name string) (*site, bool) {
	p := o.Platform(name)
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.states[name]
	if p == nil {
		if st != nil && st.uses == 0 {
			delete(o.states, name)
		}
		return nil, false
	}
	if st == nil {
		st = new(state)
		o.states[name] = st
	}
	if st.of != p {
		st.of, st.breaker = p, new(work.Breaker)
	}
	st.uses++
	return &site{Outbox: o, state: st, name: name, platform: p, breaker: st.breaker}, true
}

// leave ends what enter has begun.
func (s *site) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses--; s.isIdle() && s.states[s.name] == s.state {
		delete(s.states, s.name)
	}
}

// troubled lists the failures of the sites that had some and are not worked on.
func (o *Outbox) troubled() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	troubled := make(map[string]int64)
	for name, st := range o.states {
		if n := st.troubles.Load(); n > 0 && !st.working.Load() {
			troubled[name] = n
		}
	}
	return troubled
}

func (o *Outbox) probesDue() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.Now()
	for name, st := range o.states {
		if st.breaker.IsProbeDue(now) {
			names = append(names, name)
		}
	}
	return names
}

// isQuiet reports whether nothing is remembered of any site.
func (o *Outbox) isQuiet() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.states) == 0
}

func (s *site) logger() *zap.Logger { return s.Logger.With(zap.String("site", s.name)) }

// acquire waits for a slot, in the slow part if the site's platform is slow by then.
// Errors: that of ctx.
func (s *site) acquire(ctx context.Context, bulkhead *limiter.Bulkhead, slow bool) (*limiter.Slot, error) {
	for {
		slow = slow || s.isSlow()
		slot, err := bulkhead.Acquire(ctx, slow)
		if err != nil || slow || !s.isSlow() {
			return slot, err
		}
		slot.End()
	}
}

func (o *Outbox) leases() members.Leases {
	return members.Leases{Store: o.Store, Now: o.Now, Timeout: o.Timeout}
}
