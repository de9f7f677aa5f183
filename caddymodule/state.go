package caddymodule

import (
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers"
	"github.com/lychgate/caddy-lychgate/ratelimit"
)

// This file holds what outlives a configuration: on a reload the new
// configuration takes over the answers and the counted allowances of the old
// one, as far as both want the same.

var (
	caches   = caddy.NewUsagePool() // cacheKey → sharedCache
	limiters = caddy.NewUsagePool() // limiterKey → sharedLimiter
)

// releases collects what has to be done once a module no longer uses what it
// took from a pool.
type releases []func() error

func (r *releases) add(release func() error) { *r = append(*r, release) }

// all releases everything, once.
func (r *releases) all() error {
	var errs []error
	for _, release := range *r {
		errs = append(errs, release())
	}
	*r = nil
	return errors.Join(errs...)
}

// load takes a value from a pool, making it if it is not there.
func load[T caddy.Destructor](pool *caddy.UsagePool, key any, r *releases, construct func() (T, error)) (T, error) {
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) { return construct() })
	if err != nil {
		var none T
		return none, err
	}
	r.add(func() error {
		_, err := pool.Delete(key)
		return err
	})
	return value.(T), nil
}

// cacheKey tells caches apart. Answers of other DNS servers may be others, so
// whoever changes the servers starts with an empty cache.
type cacheKey struct {
	ttl     time.Duration
	size    int64
	servers string
}

type sharedCache struct{ *classifier.Cache }

func (c sharedCache) Destruct() error {
	c.Close()
	return nil
}

func loadCache(key cacheKey, r *releases) (*classifier.Cache, error) {
	cache, err := load(caches, key, r, func() (sharedCache, error) {
		cache, err := classifier.NewCache(classifier.CacheConfig{TTL: key.ttl, Size: key.size})
		return sharedCache{cache}, err
	})
	return cache.Cache, err
}

// limiterKey tells limiters apart: by what is counted, and the limit.
type limiterKey struct {
	of    string
	limit ratelimit.Limit
}

type sharedLimiter struct{ *ratelimit.Memory }

func (sharedLimiter) Destruct() error { return nil }

type sharedStrangers struct {
	*handlers.Strangers
	sharedLimiter
}

// loadStrangers returns the strangers that are held to a rate limit, of a kind.
func loadStrangers(key limiterKey, r *releases) (*handlers.Strangers, error) {
	strangers, err := load(limiters, key, r, func() (sharedStrangers, error) {
		limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: key.limit})
		return sharedStrangers{handlers.NewStrangers(limiter), sharedLimiter{limiter}}, err
	})
	return strangers.Strangers, err
}

func loadLimiter(key limiterKey, r *releases) (ratelimit.Limiter, error) {
	limiter, err := load(limiters, key, r, func() (sharedLimiter, error) {
		limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: key.limit})
		return sharedLimiter{limiter}, err
	})
	return limiter.Memory, err
}
