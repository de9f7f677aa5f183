package api

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
)

// AuthLimiter holds each address to a rate limit of failed authentication. An address
// that sent valid credentials to a site within the last 24 hours goes on to be served
// there, so that others behind the same address cannot lock it out. It may be used by many
// goroutines at once.
type AuthLimiter struct {
	limiter ratelimit.Limiter
	now     func() time.Time

	mu         sync.Mutex
	valid      map[string]map[ratelimit.Key]time.Time // when an address last sent valid credentials, by site
	remembered int                                    // of all sites
	queues     map[sender]*queue
}

// queue has the attempts of a sender that is not known wait for each other, so that a rush
// with valid credentials, as when a program starts, counts as one attempt.
type queue struct {
	slot     chan struct{} // has something while an attempt is under way
	attempts int
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

	// maxQueue bounds how many attempts of a sender wait, and queueWait how long. Others go
	// on without waiting, each counted.
	maxQueue  = 100
	queueWait = 2 * time.Second
)

// NewAuthLimiter makes an AuthLimiter. Nobody else takes from the limiter.
func NewAuthLimiter(limiter ratelimit.Limiter) *AuthLimiter {
	return &AuthLimiter{limiter: limiter, now: time.Now, valid: make(map[string]map[ratelimit.Key]time.Time), queues: make(map[sender]*queue)}
}

// AuthAttempt is one authentication. Succeed or Fail says how it ended, if that is known.
type AuthAttempt struct {
	limiter *AuthLimiter
	sender  sender
	counted bool
	queue   *queue // what it holds the slot of, or nil
}

// Begin begins an attempt at a site, which the caller ends. It counts against the rate limit
// from the start, so that many at once are not more. If wait is not zero, the credentials
// are not to be checked for that long, and the attempt has ended.
func (s *AuthLimiter) Begin(ctx context.Context, site string, address netip.Addr) (a AuthAttempt, wait time.Duration) {
	a = AuthAttempt{limiter: s, sender: sender{site, ratelimit.AddrKey(address)}}
	if s.trusts(a.sender) {
		return a, 0
	}
	a.queue = s.enqueue(ctx, a.sender)
	if s.trusts(a.sender) { // by the attempt before it
		a.End()
		return a, 0
	}
	a.counted = true
	if wait = s.limiter.Take(ctx, a.sender.address); wait > 0 {
		a.End()
	}
	return a, wait
}

func (s *AuthLimiter) trusts(sender sender) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.valid[sender.site][sender.address]
	return ok && s.now().Sub(at) < validTTL
}

// enqueue waits for the slot of a sender's queue. It returns nil if it does not get it.
func (s *AuthLimiter) enqueue(ctx context.Context, sender sender) *queue {
	s.mu.Lock()
	q := s.queues[sender]
	if q == nil {
		q = &queue{slot: make(chan struct{}, 1)}
		s.queues[sender] = q
	}
	if q.attempts >= maxQueue {
		s.mu.Unlock()
		return nil
	}
	q.attempts++
	s.mu.Unlock()
	select {
	case q.slot <- struct{}{}:
		return q
	default:
	}
	timer := time.NewTimer(queueWait)
	defer timer.Stop()
	select {
	case q.slot <- struct{}{}:
		return q
	case <-timer.C:
	case <-ctx.Done():
	}
	s.leave(sender, q)
	return nil
}

func (s *AuthLimiter) leave(sender sender, q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.attempts--; q.attempts == 0 {
		delete(s.queues, sender)
	}
}

// Fail ends an attempt with credentials that were not valid. If wait is not zero, there
// were too many of them.
func (a *AuthAttempt) Fail(ctx context.Context) (wait time.Duration) {
	defer a.End()
	if a.counted {
		return 0
	}
	return a.limiter.limiter.Take(ctx, a.sender.address)
}

// Succeed ends an attempt with credentials that were valid.
func (a *AuthAttempt) Succeed() {
	a.limiter.trust(a.sender)
	a.End()
}

// End ends an attempt of which is not known whether the credentials are valid. It does nothing
// to one that has ended.
func (a *AuthAttempt) End() {
	if a.queue != nil {
		<-a.queue.slot
		a.limiter.leave(a.sender, a.queue)
		a.queue = nil
	}
}

// trust notes that a sender sent valid credentials.
func (s *AuthLimiter) trust(sender sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.valid[sender.site][sender.address]; !ok {
		if s.remembered >= maxValid {
			s.evict()
		}
		if s.valid[sender.site] == nil {
			s.valid[sender.site] = make(map[ratelimit.Key]time.Time)
		}
		s.remembered++
	}
	s.valid[sender.site][sender.address] = s.now()
}

// evict makes room for more senders. The sites that have most lose theirs, so that one session which is sent from
// very many addresses pushes out nobody of another site.
func (s *AuthLimiter) evict() {
	for share := maxValid / 2; ; share /= 2 {
		for site, addresses := range s.valid {
			for address := range addresses {
				if s.remembered <= maxValid*9/10 {
					return
				}
				if len(addresses) <= share {
					break
				}
				delete(addresses, address)
				s.remembered--
			}
			if len(addresses) == 0 {
				delete(s.valid, site)
			}
		}
	}
}
