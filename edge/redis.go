package edge

import (
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/internal/pool"
	"github.com/lychgate/caddy-lychgate/internal/redis"
)

// clients outlive a configuration: a reload connects none anew.
var clients pool.Pool[config.RedisKey, *redis.Client]

// prepareRedis checks the Redis of the configuration, if it has one. It is asked once the
// edge starts.
func (e *Edge) prepareRedis() (err error) {
	if e.redisKey, err = e.Config.Redis.Resolve(e.Placeholders); err != nil || e.Config.Redis == nil {
		return err
	}
	e.redis, err = clients.Load(e.redisKey, &e.releases, func() (*redis.Client, error) {
		return redis.New(redis.Config{URL: e.redisKey.URL, Patience: e.redisKey.Timeout, Logger: e.Logger})
	})
	return config.In("redis", "redis", err)
}
