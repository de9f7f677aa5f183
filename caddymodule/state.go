package caddymodule

import (
	"errors"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
)

// This file holds what outlives a configuration: on a reload the new
// configuration takes over the answers and the counted allowances of the old
// one, as far as both want the same.

var (
	caches   = caddy.NewUsagePool() // cacheKey → sharedCache
	limiters = caddy.NewUsagePool() // limiterKey → sharedLimiter, keysKey → sharedMemories

	// strangers are apart from the limiters that they use: a pool that is read may not be
	// waited for by what is put into it.
	strangers = caddy.NewUsagePool() // strangersKey → sharedStrangers
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
	redis   redisKey
}

type sharedCache struct{ *classifier.Cache }

func (c sharedCache) Destruct() error {
	c.Close()
	return nil
}

func (a *App) loadCache(key cacheKey, r *releases) (*classifier.Cache, error) {
	key.redis = a.redisKey
	cache, err := load(caches, key, r, func() (sharedCache, error) {
		config := classifier.CacheConfig{TTL: key.ttl, Size: key.size}
		if a.redis != nil {
			config.Redis, config.Scope = a.redis, strings.Join(a.Resolvers, " ")
		}
		cache, err := classifier.NewCache(config)
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

// keysKey tells the counts of keys apart: by the limit that most have.
type keysKey struct{ limit ratelimit.Limit }

type sharedMemories struct{ *ratelimit.Memories }

func (sharedMemories) Destruct() error { return nil }

// loadKeys returns what limits integration keys, of which some may have another limit.
func (a *App) loadKeys(limit ratelimit.Limit, r *releases) (*ratelimit.PerKey, error) {
	local, err := load(limiters, keysKey{limit}, r, func() (sharedMemories, error) {
		return sharedMemories{new(ratelimit.Memories)}, nil
	})
	if err != nil {
		return nil, err
	}
	keys := &ratelimit.PerKey{Limit: limit, Memories: local.Memories, Name: "keys"}
	if a.redis != nil {
		keys.Redis = a.redis
	}
	return keys, nil
}

type strangersKey struct {
	limiterKey
	redis redisKey
}

type sharedStrangers struct {
	*api.AuthLimiter
	release *releases
}

func (s sharedStrangers) Destruct() error { return s.release.all() }

// loadStrangers returns the strangers that are held to a rate limit, of a kind.
func (a *App) loadStrangers(of string, limit ratelimit.Limit, r *releases) (*api.AuthLimiter, error) {
	loaded, err := load(strangers, strangersKey{limiterKey{of, limit}, a.redisKey}, r, func() (sharedStrangers, error) {
		release := new(releases)
		limiter, err := a.loadLimiter(of, limit, release)
		return sharedStrangers{api.NewAuthLimiter(limiter), release}, err
	})
	return loaded.AuthLimiter, err
}

// loadLimiter returns a limiter of a kind, which all edges share if there is a Redis.
func (a *App) loadLimiter(of string, limit ratelimit.Limit, r *releases) (ratelimit.Limiter, error) {
	local, err := load(limiters, limiterKey{of, limit}, r, func() (sharedLimiter, error) {
		limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: limit})
		return sharedLimiter{limiter}, err
	})
	if err != nil || a.redis == nil {
		return local.Memory, err
	}
	return ratelimit.NewShared(ratelimit.SharedConfig{Limit: limit, Redis: a.redis, Local: local.Memory, Name: of}), nil
}
