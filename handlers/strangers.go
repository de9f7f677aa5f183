package handlers

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// Strangers holds each address to a rate limit of credentials that are not valid.
// An address that sent valid ones to a site within the last 24 hours goes on to be
// served there, so that strangers behind the same address cannot lock it out. It
// may be used by many goroutines at once.
type Strangers struct {
	limiter ratelimit.Limiter
	now     func() time.Time

	mu    sync.Mutex
	valid map[sender]time.Time // when an address last sent valid credentials to a site
}

// sender is an address that sends credentials to a site.
type sender struct {
	site    string
	address ratelimit.Key
}

const (
	// validTTL is how long it is remembered that an address sent valid credentials.
	validTTL = 24 * time.Hour

	// maxValid bounds how many are remembered.
	maxValid = 10_000
)

// NewStrangers returns a Strangers with the rate limit of a limiter, from which
// nobody else takes.
func NewStrangers(limiter ratelimit.Limiter) *Strangers {
	return &Strangers{limiter: limiter, now: time.Now, valid: make(map[sender]time.Time)}
}

// attempt is one try to be let in. succeed or fail says how it ended.
type attempt struct {
	strangers *Strangers
	sender    sender
	counted   bool
}

// begin begins an attempt at a site. It counts against the rate limit from the
// start, so that many at once are not more. If wait is not zero, the credentials
// are not to be looked at for that long.
func (s *Strangers) begin(ctx context.Context, site string, address netip.Addr) (a attempt, wait time.Duration) {
	a = attempt{s, sender{site, ratelimit.AddrKey(address)}, true}
	s.mu.Lock()
	at, ok := s.valid[a.sender]
	s.mu.Unlock()
	if ok && s.now().Sub(at) < validTTL {
		a.counted = false
		return a, 0
	}
	return a, s.limiter.Take(ctx, a.sender.address)
}

// fail ends an attempt with credentials that were not valid. If wait is not
// zero, there were too many of them.
func (a attempt) fail(ctx context.Context) (wait time.Duration) {
	if a.counted {
		return 0
	}
	return a.strangers.limiter.Take(ctx, a.sender.address)
}

// succeed ends an attempt with credentials that were valid.
func (a attempt) succeed() { a.strangers.trust(a.sender) }

// trust notes that a sender sent valid credentials.
func (s *Strangers) trust(sender sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.valid[sender]; !ok && len(s.valid) >= maxValid {
		s.forget()
	}
	s.valid[sender] = s.now()
}

// forget makes room for more senders. Which ones it forgets hardly matters: only
// those that sent valid credentials are here.
func (s *Strangers) forget() {
	for sender := range s.valid {
		delete(s.valid, sender)
		if len(s.valid) <= maxValid*9/10 {
			return
		}
	}
}
