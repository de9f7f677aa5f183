package ratelimit

import (
	"context"
	"sync"
	"time"
)

// sweepAt is how many different limits a Memories counts for before it forgets those
// that nobody has used lately.
const sweepAt = 64

// Memories counts the requests of keys in one process, where each key may have a limit
// of its own. A key whose limit changes keeps the requests that it has made. It may be
// used by many goroutines at once. The zero value is empty.
type Memories struct {
	// Clock is that of [MemoryConfig].
	Clock func() time.Duration

	mu     sync.RWMutex
	limits map[Limit]*Memory // a key is in one of them
}

// Len counts the keys that are tracked, of all limits.
func (m *Memories) Len() (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, counted := range m.limits {
		n += counted.Len()
	}
	return n
}

// with calls a function with the limiter of a key that has a limit. The key stays in it
// meanwhile. Errors: those of [NewMemory].
func (m *Memories) with(key Key, limit Limit, use func(*Memory)) error {
	if m.tryWith(key, limit, use) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.load(limit)
	if err != nil {
		return err
	}
	for other, before := range m.limits {
		if other == limit {
			continue
		}
		if ages := newest(before.remove(key), limit); len(ages) > 0 {
			found.fill(key, ages)
		}
	}
	use(found)
	return nil
}

// tryWith is with for a key that is where it belongs. It reports false for another.
func (m *Memories) tryWith(key Key, limit Limit, use func(*Memory)) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	found := m.limits[limit]
	if found == nil || len(m.limits) > 1 && !found.knows(key) {
		return false
	}
	use(found)
	return true
}

func (m *Memories) load(limit Limit) (*Memory, error) {
	if found := m.limits[limit]; found != nil {
		return found, nil
	}
	made, err := NewMemory(MemoryConfig{Limit: limit, Clock: m.Clock})
	if err != nil {
		return nil, err
	}
	if len(m.limits) >= sweepAt {
		for other, idle := range m.limits {
			if idle.sweep() == 0 {
				delete(m.limits, other)
			}
		}
	}
	if m.limits == nil {
		m.limits = make(map[Limit]*Memory)
	}
	m.limits[limit] = made
	return made, nil
}

// newest picks the requests that count for a limit, the oldest first.
func newest(ages []time.Duration, limit Limit) []time.Duration {
	ages = ages[max(0, len(ages)-limit.Requests):]
	for len(ages) > 0 && ages[0] >= limit.Window {
		ages = ages[1:]
	}
	return ages
}

// PerKey keeps an allowance for each key, as a [Limiter] does, where each key may have a
// limit of its own. It may be used by many goroutines at once.
type PerKey struct {
	// Limit is that of a key that has none of its own. It is one that [NewMemory] takes.
	Limit Limit

	Memories *Memories

	// Redis shares the counts with other processes. It is nil for none. Name is that of
	// [SharedConfig].
	Redis Scripts
	Name  string
}

// Take is [Limiter].Take for a key that has a limit. The zero limit, and one that
// [NewMemory] does not take, stand for p.Limit.
func (p *PerKey) Take(ctx context.Context, key Key, limit Limit) (wait time.Duration) {
	if limit.check() != nil {
		limit = p.Limit
	}
	var local *Memory
	err := p.Memories.with(key, limit, func(m *Memory) {
		if local = m; p.Redis == nil {
			wait = m.Take(ctx, key)
		}
	})
	if err != nil || p.Redis == nil {
		return wait
	}
	shared := NewShared(SharedConfig{Limit: limit, Redis: p.Redis, Local: local, Name: p.Name, Among: p.Limit, Clock: p.Memories.Clock})
	return shared.Take(ctx, key)
}
