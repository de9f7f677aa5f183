package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
)

// This file measures what a reader takes whose requests are counted.

// allowance is the default one, with a window that no measurement outlasts.
var allowance = ratelimit.Limit{Requests: 10, Window: time.Hour}

func (u *unitsBench) readers() error {
	bytes, err := readersInMemory(*readerCount)
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %8d bytes of memory, with all %d requests of the allowance used\n", "reader, tracked by an edge", bytes, allowance.Requests)
	const readers = 50_000
	one, all, err := u.readersInRedis(readers)
	if err != nil {
		return err
	}
	fmt.Printf("%-34s %8d bytes of Redis with one request, %d with all %d\n", "reader, tracked in Redis", one, all, allowance.Requests)
	return nil
}

// readersInMemory measures the bytes per tracked reader in a process, as
// TestMemoryOfAMillionReaders in ratelimit does.
func readersInMemory(readers int) (uint64, error) {
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: allowance})
	if err != nil {
		return 0, err
	}
	before := heapInUse()
	for range allowance.Requests {
		for n := range readers {
			limiter.Take(context.Background(), readerKey(n))
		}
	}
	used := heapInUse() - before
	if n := limiter.Len(); n != readers {
		return 0, fmt.Errorf("%d of %d readers are tracked", n, readers)
	}
	return used / uint64(readers), nil
}

func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}

func readerKey(n int) (key ratelimit.Key) {
	binary.BigEndian.PutUint64(key[8:], uint64(n)*0x9e3779b97f4a7c15) // spread as addresses are
	return key
}

// readersInRedis measures the bytes per reader in Redis, after one request and with the
// whole allowance used.
func (u *unitsBench) readersInRedis(readers int) (one, all int64, err error) {
	client, err := redis.New(redis.Config{URL: "redis://" + u.redis.Address, Timeout: time.Second})
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	client.Start()
	err = until(context.Background(), 30*time.Second, 20*time.Millisecond, func() (bool, error) { return client.Up(), nil })
	if err != nil {
		return 0, 0, fmt.Errorf("asking Redis: %w", err)
	}
	if _, err := u.redis.Ask("FLUSHALL"); err != nil { // of the readers of loads, whose keys expire
		return 0, 0, err
	}
	local, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: allowance})
	if err != nil {
		return 0, 0, err
	}
	limiter := ratelimit.NewShared(ratelimit.SharedConfig{Limit: allowance, Redis: client, Local: local, Name: "readers"})
	empty, err := u.redisInfo("memory", "used_memory")
	if err != nil {
		return 0, 0, err
	}
	var used [2]int64
	for i, requests := range []int{1, allowance.Requests - 1} {
		takeAll(limiter, readers, requests)
		if used[i], err = u.redisInfo("memory", "used_memory"); err != nil {
			return 0, 0, err
		}
	}
	text, err := u.redis.Ask("DBSIZE")
	if err != nil {
		return 0, 0, err
	}
	keys, err := strconv.Atoi(text)
	if err == nil && (keys < readers || keys > readers+1) { // one of a probe
		err = fmt.Errorf("%d keys are in Redis, of %d readers", keys, readers)
	}
	return (used[0] - empty) / int64(readers), (used[1] - empty) / int64(readers), err
}

// takeAll counts so many requests of each reader.
func takeAll(limiter ratelimit.Limiter, readers, requests int) {
	var group errgroup.Group
	group.SetLimit(64)
	for range requests {
		for n := range readers {
			group.Go(func() error {
				limiter.Take(context.Background(), readerKey(n))
				return nil
			})
		}
		_ = group.Wait() // nothing fails
	}
}
