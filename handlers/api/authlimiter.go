package api

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// AuthLimiter holds each address to a rate limit of failed authentication. An address
// that sent valid credentials to a site within the last 24 hours goes on to be served
// there, so that others behind the same address cannot lock it out. It may be used by many
// goroutines at once.
type AuthLimiter struct {
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

// NewAuthLimiter makes an AuthLimiter. Nobody else takes from the limiter.
func NewAuthLimiter(limiter ratelimit.Limiter) *AuthLimiter {
	return &AuthLimiter{limiter: limiter, now: time.Now, valid: make(map[sender]time.Time)}
}

// AuthAttempt is one authentication. Succeed or Fail says how it ended.
type AuthAttempt struct {
	limiter *AuthLimiter
	sender  sender
	counted bool
}

// Begin begins an attempt at a site. It counts against the rate limit from the
// start, so that many at once are not more. If wait is not zero, the credentials
// are not to be checked for that long.
func (s *AuthLimiter) Begin(ctx context.Context, site string, address netip.Addr) (a AuthAttempt, wait time.Duration) {
	a = AuthAttempt{s, sender{site, ratelimit.AddrKey(address)}, true}
	s.mu.Lock()
	at, ok := s.valid[a.sender]
	s.mu.Unlock()
	if ok && s.now().Sub(at) < validTTL {
		a.counted = false
		return a, 0
	}
	return a, s.limiter.Take(ctx, a.sender.address)
}

// Fail ends an attempt with credentials that were not valid. If wait is not zero, there
// were too many of them.
func (a AuthAttempt) Fail(ctx context.Context) (wait time.Duration) {
	if a.counted {
		return 0
	}
	return a.limiter.limiter.Take(ctx, a.sender.address)
}

// Succeed ends an attempt with credentials that were valid.
func (a AuthAttempt) Succeed() { a.limiter.trust(a.sender) }

// trust notes that a sender sent valid credentials.
func (s *AuthLimiter) trust(sender sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.valid[sender]; !ok && len(s.valid) >= maxValid {
		s.evict()
	}
	s.valid[sender] = s.now()
}

// evict makes room for more senders. Which ones go hardly matters: only those that sent
// valid credentials are here.
func (s *AuthLimiter) evict() {
	for sender := range s.valid {
		delete(s.valid, sender)
		if len(s.valid) <= maxValid*9/10 {
			return
		}
	}
}
