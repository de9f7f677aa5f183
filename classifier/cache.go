package classifier

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

const (
	// DefaultTTL is how long an answer is kept, null answers included.
	DefaultTTL = 24 * time.Hour

	// DefaultSize is how many answers a cache holds.
	DefaultSize = 1_000_000

	// MaxSize is how many a cache can be made for. It takes about 5 bytes for each
	// from the start.
	MaxSize = 10_000_000

	// failureTTL is how long a lookup that could not be done is remembered. It
	// is no finding, so it must go soon; it is kept at all so that resolvers
	// in trouble are not asked again by every reader.
	failureTTL = 30 * time.Second
)

// CacheConfig holds what a [Cache] is made from. The zero value is fine.
type CacheConfig struct {
	// TTL is how long an answer is kept at most. It is kept for up to an eighth
	// less, at random, so that the moment at which it goes tells when it was first
	// asked for to within that eighth only. Default: DefaultTTL.
	TTL time.Duration

	// Size is how many answers are kept at most, up to MaxSize. Default:
	// DefaultSize.
	Size int64

	// Redis shares answers and lookups with other processes of the same Scope, which names
	// the DNS servers. Default: with none.
	Redis Scripts
	Scope string

	// Clock counts from some fixed moment. Default: since the cache was made.
	Clock func() time.Duration

	// Random picks a duration from zero up to, not including, limit. Default: rand.N.
	Random func(limit time.Duration) time.Duration
}

// Cache remembers the answers for domains, and lets the callers of a domain
// that it does not hold share one lookup. It may be used by many goroutines at
// once. Close it when it is no longer needed.
type Cache struct {
	ttl     time.Duration
	clock   func() time.Duration
	random  func(time.Duration) time.Duration
	entries *ristretto.Cache[string, entry]
	shared  shared
	flights singleflight.Group

	// ctx ends with Close. Lookups run under it rather than under a caller's
	// context, so that a caller who leaves takes nobody else's answer away.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.RWMutex // guards closed, additions to lookups, and entries against its end
	closed  bool
	lookups sync.WaitGroup
}

// NewCache makes a Cache.
func NewCache(cfg CacheConfig) (*Cache, error) {
	cfg.TTL, cfg.Size = cmp.Or(cfg.TTL, DefaultTTL), cmp.Or(cfg.Size, DefaultSize)
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	if cfg.Random == nil {
		cfg.Random = rand.N[time.Duration]
	}
	entries, err := ristretto.NewCache(&ristretto.Config[string, entry]{
		MaxCost: cfg.Size,
		// Ten counters for each entry is ristretto's advice for the best hit
		// rate under pressure. At the default size that takes 50 MB from the
		// start; one for each takes 5 MB, and it only tells in a full cache.
		NumCounters:        max(64, cfg.Size), // a few less, and ristretto panics
		BufferItems:        64,
		IgnoreInternalCost: true, // an entry costs 1, whatever its bytes
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Cache{ttl: cfg.TTL, clock: cfg.Clock, random: cfg.Random, entries: entries, shared: newShared(cfg.Redis, cfg.Scope), ctx: ctx, cancel: cancel}, nil
}

// Len counts answers that have expired too, until they are evicted.
func (c *Cache) Len() int {
	return int(c.entries.MaxCost() - c.entries.RemainingCost())
}

// Close cancels the lookups under way, waits for them, and frees the entries.
// A caller who still waits, or comes later, gets an answer that says Failed.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()

	c.cancel()
	c.lookups.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Close()
}

func (c *Cache) get(domain string) (Answer, bool) {
	e, ok := c.entry(domain)
	if !ok {
		return Answer{}, false
	}
	if e.expires <= c.clock() {
		return Answer{}, false
	}
	return Answer{Provider: e.provider, Source: FromCache, Failed: e.failed}, true
}

func (c *Cache) entry(domain string) (entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return entry{}, false
	}
	return c.entries.Get(domain)
}

// find finds the provider of a domain, for a reader of a network. ErrBusy means
// that it was not tried.
type find func(ctx context.Context, domain string, from netip.Prefix) (Provider, error)

// found is how a lookup ended that was made for a reader of a network.
type found struct {
	Answer
	from       netip.Prefix
	isRejected bool // by the limiter, so it was not made
}

// fill finds the answer for a domain, once for all who ask meanwhile, and keeps
// it. The error is ctx's.
func (c *Cache) fill(ctx context.Context, domain string, from netip.Prefix, find find) (Answer, error) {
	result, err := c.join(ctx, domain, from, find)
	if err == nil && result.isRejected && result.from != from {
		// The lookup did not get its turn among those of another network.
		result, err = c.join(ctx, domain, from, find)
	}
	return result.Answer, err
}

// join joins the lookup of a domain that is under way, or begins one for a reader
// of a network.
func (c *Cache) join(ctx context.Context, domain string, from netip.Prefix, find find) (found, error) {
	flight := c.flights.DoChan(domain, func() (any, error) { return c.lookUp(domain, from, find), nil })
	select {
	case result := <-flight:
		return result.Val.(found), nil
	case <-ctx.Done():
		return found{}, ctx.Err()
	}
}

// lookUp finds the answer for a domain, and keeps it.
func (c *Cache) lookUp(domain string, from netip.Prefix, find find) found {
	failed := Answer{Source: FromDNS, Failed: true}
	if err := c.begin(); err != nil {
		return found{Answer: failed}
	}
	defer c.lookups.Done()

	// Another lookup may have ended between the caller's look into the cache and
	// the start of this one.
	if answer, ok := c.get(domain); ok {
		return found{Answer: answer}
	}
	e, ttl, claim, ok := c.shared.find(c.ctx, domain)
	if ok {
		c.keep(domain, e, min(ttl, c.ttl))
		return found{Answer: Answer{Provider: e.provider, Source: FromCache, Failed: e.failed}}
	}
	provider, err := find(c.ctx, domain, from)
	if errors.Is(err, ErrBusy) {
		c.shared.drop(domain, claim)
		return found{Answer: failed, from: from, isRejected: true}
	}
	e, ttl = entry{provider: provider}, c.ttl-c.random(c.ttl/8)
	if err != nil {
		e, ttl = entry{failed: true}, min(failureTTL, c.ttl)
	}
	c.keep(domain, e, ttl)
	if c.ctx.Err() != nil { // it may have failed because the cache is closed
		c.shared.drop(domain, claim)
	} else {
		c.shared.keep(domain, e, ttl, claim)
	}
	return found{Answer: Answer{Provider: e.provider, Source: FromDNS, Failed: e.failed}}
}

// begin counts a lookup as under way, unless the cache is closed.
func (c *Cache) begin() error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return errors.New("cache is closed")
	}
	c.lookups.Add(1)
	return nil
}

// keep puts an entry into the cache and waits until get can see it: the next
// caller of this domain must not cause a second lookup.
func (c *Cache) keep(domain string, e entry, ttl time.Duration) {
	e.expires = c.clock() + ttl
	c.entries.SetWithTTL(domain, e, 1, ttl)
	c.entries.Wait()
}
