// Package pool shares values among those who use them at the same time, such as two
// configurations during a reload. A value is made for its first user and closed after its
// last.
package pool

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// Pool holds values by key. The zero Pool is empty. It may be used by many goroutines at
// once.
type Pool[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*entry[V]
}

type entry[V any] struct {
	users int
	made  sync.Once
	ready atomic.Bool // the value is there
	value V
	err   error
}

// Load shares the value of a key with one more user, until the release is called. It is
// made if nobody uses it yet; making one delays no other key. An error of construct is
// returned to all who wait for the value, and nothing is kept. A value with a method Close
// is closed by the last release.
func (p *Pool[K, V]) Load(key K, releases *Releases, construct func() (V, error)) (V, error) {
	p.mu.Lock()
	e := p.entries[key]
	if e == nil {
		if p.entries == nil {
			p.entries = make(map[K]*entry[V])
		}
		e = new(entry[V])
		p.entries[key] = e
	}
	e.users++
	p.mu.Unlock()
	e.made.Do(func() {
		e.value, e.err = construct()
		e.ready.Store(e.err == nil)
	})
	if e.err != nil {
		p.leave(key, e)
		return e.value, e.err
	}
	releases.add(func() error {
		if !p.leave(key, e) {
			return nil
		}
		switch closer := any(e.value).(type) {
		case io.Closer:
			return closer.Close()
		case interface{ Close() }:
			closer.Close()
		}
		return nil
	})
	return e.value, nil
}

// leave reports whether nobody uses the value any more.
func (p *Pool[K, V]) leave(key K, e *entry[V]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	if e.users == 0 {
		delete(p.entries, key)
	}
	return e.users == 0
}

// All are the values in use, without those that are being made.
func (p *Pool[K, V]) All() (all []V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.ready.Load() {
			all = append(all, e.value)
		}
	}
	return all
}

// Releases collects what a user takes from pools. The zero value is empty. It is not for
// several goroutines at once.
type Releases []func() error

func (r *Releases) add(release func() error) { *r = append(*r, release) }

// Close releases everything, once.
func (r *Releases) Close() error {
	var errs []error
	for _, release := range *r {
		errs = append(errs, release())
	}
	*r = nil
	return errors.Join(errs...)
}
