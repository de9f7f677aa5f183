package handlers

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/ratelimit"
)

// Strangers holds each address to a rate limit of credentials that are not valid.
// An address that sent valid ones within the last 24 hours goes on to be served,
// so that strangers behind the same address cannot lock it out. It may be used by
// many goroutines at once.
type Strangers struct {
	limiter ratelimit.Limiter

	mu    sync.Mutex
	valid map[ratelimit.Key]time.Time // when an address last sent valid credentials
}

const (
	// validTTL is how long an address is remembered that sent valid credentials.
	validTTL = 24 * time.Hour

	// maxValid bounds how many are remembered.
	maxValid = 10_000
)

// NewStrangers returns a Strangers with the rate limit of a limiter, from which
// nobody else takes.
func NewStrangers(limiter ratelimit.Limiter) *Strangers {
	return &Strangers{limiter: limiter, valid: make(map[ratelimit.Key]time.Time)}
}

// Wait returns how long credentials from an address are not looked at, zero if
// they are.
func (s *Strangers) Wait(ctx context.Context, address netip.Addr) time.Duration {
	key := ratelimit.AddrKey(address)
	wait := s.limiter.Wait(ctx, key)
	if wait == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.valid[key]; ok && time.Since(at) < validTTL {
		return 0
	}
	return wait
}

// Invalid counts credentials that were not valid. It returns how long the address
// has to wait if there were too many of them, and zero otherwise.
func (s *Strangers) Invalid(ctx context.Context, address netip.Addr) time.Duration {
	return s.limiter.Take(ctx, ratelimit.AddrKey(address))
}

// Valid notes that an address sent valid credentials.
func (s *Strangers) Valid(address netip.Addr) {
	key, now := ratelimit.AddrKey(address), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.valid[key]; !ok && len(s.valid) >= maxValid {
		s.forget()
	}
	s.valid[key] = now
}

// forget makes room for more addresses. Which ones it forgets hardly matters: only
// those that sent valid credentials are here.
func (s *Strangers) forget() {
	for key := range s.valid {
		delete(s.valid, key)
		if len(s.valid) <= maxValid*9/10 {
			return
		}
	}
}
