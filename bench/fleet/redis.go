package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
)

// withRedis has an edge use Redis.
func (b *bench) withRedis() string { return "redis redis://" + b.redis.Address + "\n" }

// withPatientRedis has an edge wait for Redis, so that what Redis costs is not less
// because the machine is busy.
func (b *bench) withPatientRedis() string {
	return "redis redis://" + b.redis.Address + " {\ntimeout 5s\n}\n"
}

// waitForRedis waits until the edge asks Redis.
func (e *edge) waitForRedis(ctx context.Context) error {
	return until(ctx, 30*time.Second, 50*time.Millisecond, func() (bool, error) {
		text, err := benchtest.Get(ctx, e.admin, "/metrics")
		return strings.Contains(string(text), "lychgate_redis_up 1\n"), err
	})
}

// roundTrips counts the scripts that edges have had Redis run.
func (b *bench) roundTrips() (int64, error) {
	return b.redisInfo("commandstats", "cmdstat_evalsha:calls")
}

// redisInfo reads one number of a section of INFO.
func (b *bench) redisInfo(section, name string) (int64, error) {
	text, err := b.redis.Ask("INFO " + section)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), nameEnd(name)); found && name == "" {
			value, _, _ = strings.Cut(value, ",")
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, nil // of a command that was not sent yet
}

// nameEnd is the text before a value: name:, or name:part= .
func nameEnd(name string) string {
	if strings.Contains(name, ":") {
		return name + "="
	}
	return name + ":"
}
