package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
)

// This file keeps what has to be remembered of a site from one attempt to the
// next. Of a site that is idle nothing is remembered.

// site is a site with its platform, for as long as something is done for it.
type site struct {
	*Outbox
	*state
	name     string
	platform platform.Platform
	breaker  *work.Breaker
}

// state is what is remembered of a site.
type state struct {
	// The Outbox's mutex guards these.
	uses    int               // by sites
	of      platform.Platform // that the breaker is for
	breaker *work.Breaker

	working  atomic.Bool  // on what is due
	more     atomic.Bool  // became due meanwhile
	troubles atomic.Int64 // failed attempts since all was applied
	calling  atomic.Int64 // attempts that callers wait for
	slow     atomic.Int64 // attempts that take long
}

// isSlow reports whether the platform had no answer lately, or an attempt takes
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

// isIdle reports whether the state is no other than a new one.
func (s *state) isIdle() bool {
	return s.uses == 0 && s.troubles.Load() == 0 && s.breaker.IsFresh()
}

// enter returns a site with the platform that it has now, until leave is called.
// It reports false if the site is not served.
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

// troubled returns the failures of the sites that had some and are not worked on.
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

// probesDue returns the sites at which a probe may begin.
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
