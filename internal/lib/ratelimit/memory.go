package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"
)

const (
	// MaxRequests is the largest Limit.Requests that a Memory takes.
	MaxRequests = math.MaxUint16

	// MinWindow is the shortest Limit.Window that a Memory takes.
	MinWindow = time.Millisecond

	// maxDefaultKeys is the default MaxKeys where maxMemory allows it.
	maxDefaultKeys = 1 << 20

	// maxMemory is about what a Memory with the default MaxKeys takes at most,
	// in bytes.
	maxMemory = 150_000_000

	// keyOverhead is about what a key takes besides its requests, in bytes: a slot of
	// 40, and some 55 in the map, which is a third empty. TestMemoryOfAMillionReaders
	// measures a Limit of 10.
	keyOverhead = 95
)

// MemoryConfig holds what a [Memory] is made from. Limit is required.
type MemoryConfig struct {
	Limit Limit

	// MaxKeys bounds how many keys are remembered; it is rounded up to a
	// multiple of 64. Default: 1,048,576, or what fits into about 150 MB if the
	// limit is of more than 12 requests.
	MaxKeys int

	// Clock counts from some fixed moment, and never goes back. Default: since the limiter
	// was made.
	Clock func() time.Duration
}

// Memory is a [Limiter] inside one process.
//
// The time of each request is kept, so the window is exact to the resolution
// of the limiter's clock: a microsecond, or a billionth of the window where
// that is longer. A key takes 4 bytes for each request of the limit and some
// 95 more. Keys whose last request has left the window are dropped as later requests
// come by, two for each, and earlier when MaxKeys is reached. That needs no
// goroutine, and there is nothing to close.
type Memory struct {
	tick   time.Duration // the clock's resolution
	window ticks
	clock  func() time.Duration
	seed   maphash.Seed
	shards [shardCount]shard
}

// shardCount is the number of parts that keys are spread over, each with a
// lock of its own.
const shardCount = 64

// NewMemory makes a Memory. The error says what in the config cannot be.
func NewMemory(cfg MemoryConfig) (*Memory, error) {
	limit := cfg.Limit
	if err := limit.check(); err != nil {
		return nil, err
	}
	if cfg.MaxKeys < 0 {
		return nil, errors.New("MaxKeys must not be negative")
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = min(maxDefaultKeys, maxMemory/(keyOverhead+4*limit.Requests))
	}
	if cfg.Clock == nil {
		start := time.Now()
		cfg.Clock = func() time.Duration { return time.Since(start) }
	}
	m := &Memory{
		tick:  max(time.Microsecond, limit.Window>>30),
		clock: cfg.Clock,
		seed:  maphash.MakeSeed(),
	}
	m.window = ticks(limit.Window / m.tick)
	for i := range m.shards {
		s := &m.shards[i]
		s.requests = limit.Requests
		s.maxKeys = (cfg.MaxKeys + shardCount - 1) / shardCount
	}
	return m, nil
}

// check says what in a limit cannot be.
func (l Limit) check() error {
	if l.Requests < 1 || l.Requests > MaxRequests {
		return fmt.Errorf("a limit of %d requests: the number must be from 1 to %d", l.Requests, MaxRequests)
	}
	if l.Window < MinWindow {
		return fmt.Errorf("a limit per %s: the window must be %s or longer", l.Window, MinWindow)
	}
	return nil
}

// Take is that of [Limiter]. It never blocks, so it needs no context.
func (m *Memory) Take(_ context.Context, key Key) time.Duration { return m.ask(key, true) }

// Wait is that of [Limiter].
func (m *Memory) Wait(_ context.Context, key Key) time.Duration { return m.ask(key, false) }

func (m *Memory) now() ticks { return ticks(m.clock() / m.tick) }

func (m *Memory) ask(key Key, take bool) time.Duration {
	s := m.locked(key)
	defer s.mu.Unlock()

	now := m.now()
	s.dropIdle(2, now, m.window) // two, so that they go faster than they come
	return time.Duration(s.ask(key, now, m.window, take)) * m.tick
}

// fill sets the requests of a key, from one to as many as the limit has, by how long ago
// they were, the oldest first. None is older than the window.
func (m *Memory) fill(key Key, ages []time.Duration) {
	s := m.locked(key)
	defer s.mu.Unlock()
	now := m.now()
	s.fill(key, len(ages), func(i int) ticks { return now - ticks(ages[i]/m.tick) })
}

// locked locks the shard of a key, for the caller to unlock. The seed is secret and
// random, so nobody can choose keys that are all in one shard.
func (m *Memory) locked(key Key) *shard {
	s := &m.shards[maphash.Bytes(m.seed, key[:])%shardCount]
	s.mu.Lock()
	return s
}

// knows reports whether a key is remembered.
func (m *Memory) knows(key Key) bool {
	s := m.locked(key)
	defer s.mu.Unlock()
	_, known := s.byKey[key]
	return known
}

// remove forgets a key, and returns how long ago its requests were, the oldest first.
func (m *Memory) remove(key Key) (ages []time.Duration) {
	s := m.locked(key)
	defer s.mu.Unlock()
	for _, age := range s.remove(key, m.now(), m.window) {
		ages = append(ages, time.Duration(age)*m.tick)
	}
	return ages
}

// sweep forgets all keys without a request in the window, and returns how many are left.
func (m *Memory) sweep() (left int) {
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		s.dropIdle(len(s.byKey), m.now(), m.window)
		left += len(s.byKey)
		s.mu.Unlock()
	}
	return left
}

// Len counts the keys that are tracked.
func (m *Memory) Len() int {
	var n int
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.byKey)
		s.mu.Unlock()
	}
	return n
}
