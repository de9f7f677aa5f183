package events

import (
	"sync"
	"time"
)

// recent caches what was read a moment ago. Its zero value caches nothing.
type recent[K comparable, V any] struct {
	most int
	ttl  time.Duration

	mu      *sync.Mutex
	entries map[K]recentEntry[V]
}

type recentEntry[V any] struct {
	value V
	until time.Time
}

// newRecent returns a cache of so many entries at most, each for ttl.
func newRecent[K comparable, V any](most int, ttl time.Duration) recent[K, V] {
	return recent[K, V]{most: most, ttl: ttl, mu: new(sync.Mutex), entries: make(map[K]recentEntry[V])}
}

func (c *recent[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[key]
	if !ok || !time.Now().Before(entry.until) {
		return *new(V), false
	}
	return entry.value, true
}

// put caches a value. A cache that is full forgets all others, which cost one read each.
func (c *recent[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; !ok && len(c.entries) >= c.most {
		clear(c.entries)
	}
	c.entries[key] = recentEntry[V]{value, time.Now().Add(c.ttl)}
}
