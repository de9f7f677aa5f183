package edge

import (
	"github.com/prometheus/client_golang/prometheus"

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

// redisUp is the metric of whether Redis is asked.
type redisUp struct{}

var redisUpDesc = prometheus.NewDesc("lychgate_redis_up", "1 while Redis answers, 0 while this edge goes on by itself.", nil, nil)

func (redisUp) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- redisUpDesc }

// Collect implements prometheus.Collector. There is no value without a Redis. While two
// configurations run, each with its own, it is that of one of them.
func (redisUp) Collect(metrics chan<- prometheus.Metric) {
	all := clients.All()
	if len(all) == 0 {
		return
	}
	up := 0.0
	if all[0].Up() {
		up = 1
	}
	metrics <- prometheus.MustNewConstMetric(redisUpDesc, prometheus.GaugeValue, up)
}

var _ prometheus.Collector = redisUp{}
