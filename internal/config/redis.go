package config

import (
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
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
	Timeout Duration `json:"timeout,omitempty"`
}

// The bounds of Redis.Timeout. A network round trip takes the shortest, and readers
// notice the longest.
const (
	minRedisTimeout = time.Millisecond
	maxRedisTimeout = 5 * time.Second
)

// RedisKey is all that tells one connection to a Redis from another; it is zero for none.
type RedisKey struct {
	URL     string
	Timeout time.Duration // 0 for the default
}

// Resolve checks the option and returns what a client is made from.
func (r *Redis) Resolve(p Placeholders) (key RedisKey, err error) {
	if r == nil {
		return RedisKey{}, nil
	}
	key.Timeout = time.Duration(r.Timeout)
	err = p.Use("", r.URL, func(address string) error {
		key.URL = address
		if err := redis.Check(address); err != nil { // the URL is not in it: it may have a password
			return &Mistake{Text: literal(err.Error())}
		}
		return nil
	})
	err = inField("url", err)
	if err == nil && key.Timeout != 0 && (key.Timeout < minRedisTimeout || key.Timeout > maxRedisTimeout) {
		err = errRedisTimeout(key.Timeout.String())
	}
	return key, In("redis", "redis", err)
}

// SetTimeout takes the argument that the option has in a Caddyfile.
func (r *Redis) SetTimeout(text string) error {
	timeout, err := ParseDuration(text)
	if err != nil || timeout == 0 {
		return errRedisTimeout(quote(text))
	}
	r.Timeout = Duration(timeout)
	return nil
}

func errRedisTimeout(value string) error {
	return &Mistake{Option: "timeout", Text: value + ": write a duration from " + minRedisTimeout.String() + " to " + maxRedisTimeout.String() + ", such as ‹50ms›"}
}
