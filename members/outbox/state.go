package outbox

import (
	"sync/atomic"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
)

// state is what is remembered of a site from one attempt to the next.
type state struct {
	// The Outbox's mutex guards these.
	uses    int               // by sites
	of      platform.Platform // that the breaker is for
	breaker *work.Breaker
	heard   time.Time // when Heard has had all tried

	working  atomic.Bool  // on what is due
	more     atomic.Bool  // became due meanwhile
	troubles atomic.Int64 // failed attempts since all was applied
	calling  atomic.Int64 // attempts that callers wait for
	slow     atomic.Int64 // attempts that take long
}

// isIdle reports whether the state is no other than a new one.
func (s *state) isIdle() bool {
	return s.uses == 0 && s.troubles.Load() == 0 && s.breaker.IsFresh()
}
