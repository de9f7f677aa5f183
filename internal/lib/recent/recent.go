// Package recent caches what was read a moment ago, in bounded memory.
package recent

import (
	"sync"
	"time"
)

// Cache is such a cache. It may be used by many goroutines at once.
type Cache[K comparable, V any] struct {
	most int
	ttl  time.Duration

	mu      sync.Mutex
	entries map[K]entry[V]
}

type entry[V any] struct {
	value V
	since time.Time // when it was read
}

// New makes a Cache of most entries at most, each for ttl.
func New[K comparable, V any](most int, ttl time.Duration) *Cache[K, V] {
	return &Cache[K, V]{most: most, ttl: ttl, entries: make(map[K]entry[V])}
}

// Get ignores entries that are older than the TTL.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok || time.Since(e.since) >= c.ttl {
		return *new(V), false
	}
	return e.value, true
}

// Forget drops what is cached under a key.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// Put caches a value that a read returned which began at a time, unless what is cached is newer:
// so a slow read does not undo what was written meanwhile. A cache that is full forgets all
// others, which cost a read each.
func (c *Cache[K, V]) Put(key K, value V, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if ok && e.since.After(since) {
		return
	}
	if !ok && len(c.entries) >= c.most {
		clear(c.entries)
	}
	c.entries[key] = entry[V]{value, since}
}
