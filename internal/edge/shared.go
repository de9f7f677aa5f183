package edge

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
)

// This file holds what outlives a configuration: on a reload the new
// configuration takes over the responses and the counted allowances of the old
// one, as far as both want the same.

var (
	clients      pool.Pool[config.RedisKey, *redis.Client] // a reload connects none anew
	caches       pool.Pool[cacheKey, *classifier.Cache]
	limiters     pool.Pool[limiterKey, *ratelimit.Memory]
	keys         pool.Pool[ratelimit.Limit, *ratelimit.Memories] // by the limit that most keys have
	authLimiters pool.Pool[authLimiterKey, *sharedAuthLimiter]
)

// Shared is what outlives a configuration.
type Shared struct {
	Servers []netip.AddrPort // that are asked for MX records

	scope    string // of responses in the Redis: the resolvers of the configuration
	redisKey config.RedisKey
	redis    *redis.Client // nil for none
}

// newShared checks the resolvers and the Redis of a configuration, if it has one. That is asked
// once the edge starts.
func newShared(o Options, r *pool.Releases) (s Shared, err error) {
	s.scope = strings.Join(o.Config.Resolvers, " ")
	if s.Servers, err = o.Config.Servers(o.Placeholders); err != nil {
		return s, err
	}
	if len(s.Servers) == 0 {
		s.Servers = classifier.SystemServers()
	}
	if s.redisKey, err = o.Config.Redis.Resolve(o.Placeholders); err != nil || o.Config.Redis == nil {
		return s, err
	}
	s.redis, err = clients.Load(s.redisKey, r, func() (*redis.Client, error) {
		return redis.New(redis.Config{URL: s.redisKey.URL, Timeout: s.redisKey.Timeout, Logger: o.Logger})
	})
	return s, config.In("redis", "redis", err)
}

// cacheKey tells caches apart. Responses of other DNS servers may be others, so
// a change of the servers starts with an empty cache.
type cacheKey struct {
	ttl     time.Duration
	size    int64
	servers string
	redis   config.RedisKey
}

// LoadCache shares the cache of lookups with the configuration before, if both have the same
// settings.
func (s *Shared) LoadCache(ttl time.Duration, size int64, r *pool.Releases) (*classifier.Cache, error) {
	key := cacheKey{ttl, size, fmt.Sprint(s.Servers), s.redisKey}
	return caches.Load(key, r, func() (*classifier.Cache, error) {
		of := classifier.CacheConfig{TTL: ttl, Size: size}
		if s.redis != nil {
			of.Redis, of.Scope = s.redis, s.scope
		}
		return classifier.NewCache(of)
	})
}

// limiterKey tells limiters apart: by what is counted, and the limit.
type limiterKey struct {
	of    string
	limit ratelimit.Limit
}

// LoadKeys limits integration keys. limit is the default: a key may have a limit of its own.
func (s *Shared) LoadKeys(limit ratelimit.Limit, r *pool.Releases) (*ratelimit.PerKey, error) {
	local, err := keys.Load(limit, r, func() (*ratelimit.Memories, error) { return new(ratelimit.Memories), nil })
	if err != nil {
		return nil, err
	}
	perKey := &ratelimit.PerKey{Limit: limit, Memories: local, Name: "keys"}
	if s.redis != nil {
		perKey.Redis = s.redis
	}
	return perKey, nil
}

type authLimiterKey struct {
	limiterKey
	redis config.RedisKey
}

type sharedAuthLimiter struct {
	*api.AuthLimiter
	releases pool.Releases
}

var _ io.Closer = (*sharedAuthLimiter)(nil)

func (s *sharedAuthLimiter) Close() error { return s.releases.Close() }

// LoadAuthLimiter limits failed sign-ins. of names what is counted.
func (s *Shared) LoadAuthLimiter(of string, limit ratelimit.Limit, r *pool.Releases) (*api.AuthLimiter, error) {
	loaded, err := authLimiters.Load(authLimiterKey{limiterKey{of, limit}, s.redisKey}, r, func() (*sharedAuthLimiter, error) {
		shared := new(sharedAuthLimiter)
		limiter, err := s.LoadLimiter(of, limit, &shared.releases)
		shared.AuthLimiter = api.NewAuthLimiter(limiter)
		return shared, err
	})
	if err != nil {
		return nil, err
	}
	return loaded.AuthLimiter, nil
}

// LoadLimiter counts for all edges together if there is a Redis. of names what is counted.
func (s *Shared) LoadLimiter(of string, limit ratelimit.Limit, r *pool.Releases) (ratelimit.Limiter, error) {
	local, err := limiters.Load(limiterKey{of, limit}, r, func() (*ratelimit.Memory, error) {
		return ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: limit})
	})
	if err != nil || s.redis == nil {
		return local, err
	}
	return ratelimit.NewShared(ratelimit.SharedConfig{Limit: limit, Redis: s.redis, Local: local, Name: of}), nil
}
