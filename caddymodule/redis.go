package caddymodule

import (
	"fmt"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/internal/redis"
)

// Redis is what several edges share.
type Redis struct {
	// URL is where Redis answers, such as redis://127.0.0.1:6379, or rediss:// for TLS:
	// one server, or what stands for one. With addr, once or more, it has further nodes
	// of a Cluster, or with master_set too further Sentinels, such as
	// redis://a:26379?addr=b:26379&master_set=mymaster. Placeholders such as
	// {env.LYCHGATE_REDIS} are replaced. Required.
	URL string `json:"url,omitempty"`

	// Timeout is how long anybody waits for Redis before this edge goes on by itself.
	// Default: `50ms`.
	Timeout caddy.Duration `json:"timeout,omitempty"`
}

// The bounds of Redis.Timeout. A network round trip takes the shortest, and readers
// notice the longest.
const (
	minRedisTimeout = time.Millisecond
	maxRedisTimeout = 5 * time.Second
)

func (r *Redis) unmarshalCaddyfile(d *caddyfile.Dispenser, address string, in block) error {
	r.URL = address
	if err := checkEach("", []string{address}, checkRedisURL); err != nil {
		return d.WrapErr(inBlock("redis", "", err))
	}
	return parseBlock(d, "redis", in, map[string]option{
		"timeout": {example: "timeout 50ms", args: 1, set: func(args []string) error {
			timeout, err := caddy.ParseDuration(args[0])
			if err != nil || timeout == 0 {
				return wrongRedisTimeout(strconv.Quote(args[0]))
			}
			r.Timeout = caddy.Duration(timeout)
			return r.checkTimeout()
		}},
	})
}

// checkRedisURL checks a URL. It is in no error, since it may have a password in it.
func checkRedisURL(address string) error {
	if err := redis.Check(address); err != nil {
		return &mistake{text: err.Error(), field: "url"}
	}
	return nil
}

func (r *Redis) checkTimeout() error {
	if timeout := time.Duration(r.Timeout); timeout != 0 && (timeout < minRedisTimeout || timeout > maxRedisTimeout) {
		return wrongRedisTimeout(timeout.String())
	}
	return nil
}

func wrongRedisTimeout(value string) error {
	text := fmt.Sprintf("%s: write a duration from %s to %s, such as ", value, minRedisTimeout, maxRedisTimeout)
	return &mistake{name: "timeout", text: text + "50ms", json: text + `"50ms"`}
}

// resolve checks the option and returns what a client is made from.
func (r *Redis) resolve() (redisKey, error) {
	address, err := replace("", r.URL)
	if err == nil {
		err = checkRedisURL(address)
	}
	if err == nil {
		err = r.checkTimeout()
	}
	return redisKey{address, time.Duration(r.Timeout)}, err
}

// clients outlive a configuration: a reload connects none anew.
var clients = caddy.NewUsagePool() // redisKey → sharedRedis

type redisKey struct {
	url     string
	timeout time.Duration // 0 for the default
}

type sharedRedis struct{ *redis.Client }

func (r sharedRedis) Destruct() error {
	r.Close()
	return nil
}

// loadRedis checks the Redis of the app, if it has one. It is asked once the app starts.
func (a *App) loadRedis() error {
	if a.Redis == nil {
		return nil
	}
	key, err := a.Redis.resolve()
	if err != nil {
		return inBlock("redis", "redis", err)
	}
	loaded, err := load(clients, key, &a.release, func() (sharedRedis, error) {
		client, err := redis.New(redis.Config{URL: key.url, Patience: key.timeout, Logger: a.logger})
		return sharedRedis{client}, err
	})
	if err != nil {
		return inBlock("redis", "redis", err)
	}
	a.redisKey, a.redis = key, loaded.Client
	return nil
}

// redisUp is the metric of whether Redis is asked.
type redisUp struct{}

var redisUpDesc = prometheus.NewDesc("lychgate_redis_up", "1 while Redis answers, 0 while this edge goes on by itself.", nil, nil)

// Describe implements prometheus.Collector.
func (redisUp) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- redisUpDesc }

// Collect implements prometheus.Collector. There is no value without a Redis. While two
// configurations run, each with its own, it is that of one of them.
func (redisUp) Collect(metrics chan<- prometheus.Metric) {
	up, used := 0.0, false
	clients.Range(func(_, client any) bool {
		used = true
		if client.(sharedRedis).Up() {
			up = 1
		}
		return false
	})
	if used {
		metrics <- prometheus.MustNewConstMetric(redisUpDesc, prometheus.GaugeValue, up)
	}
}

var _ prometheus.Collector = redisUp{}
