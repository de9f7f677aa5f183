package pool_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
)

type closer struct{ closed *atomic.Int64 }

func (c closer) Close() error {
	c.closed.Add(1)
	return nil
}

// A reload that opened a store twice, or closed it under the configuration that runs, would
// lose what both share.
func TestSharedUntilTheLastRelease(t *testing.T) {
	var p pool.Pool[string, closer]
	var made, closed atomic.Int64
	construct := func() (closer, error) {
		made.Add(1)
		return closer{&closed}, nil
	}
	users := make([]pool.Releases, 50)
	var running sync.WaitGroup
	for i := range users {
		running.Go(func() {
			if _, err := p.Load("store", &users[i], construct); err != nil {
				t.Errorf("Load: %v", err)
			}
		})
	}
	running.Wait()
	if made.Load() != 1 || len(p.All()) != 1 {
		t.Errorf("made %d values for 50 users and lists %d, want 1 and 1", made.Load(), len(p.All()))
	}
	for i := range users {
		if closed.Load() != 0 {
			t.Fatalf("closed while %d users were left", len(users)-i)
		}
		for range 2 { // the second has nothing to release
			if err := users[i].Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}
	if closed.Load() != 1 || len(p.All()) != 0 {
		t.Errorf("closed %d times and lists %d after the last release, want 1 and 0", closed.Load(), len(p.All()))
	}
	var again pool.Releases
	if _, err := p.Load("store", &again, construct); err != nil || made.Load() != 2 {
		t.Errorf("Load after the last release: %v, made %d values, want 2", err, made.Load())
	}
	if err := again.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A database that is away is tried again, and not remembered as away.
func TestFailedValueIsNotKept(t *testing.T) {
	var p pool.Pool[string, int]
	away := errors.New("away")
	var releases pool.Releases
	if _, err := p.Load("store", &releases, func() (int, error) { return 0, away }); !errors.Is(err, away) {
		t.Errorf("Load: %v, want %v", err, away)
	}
	if got, err := p.Load("store", &releases, func() (int, error) { return 7, nil }); got != 7 || err != nil {
		t.Errorf("the second Load = %d, %v, want 7", got, err)
	}
	if err := releases.Close(); err != nil || len(p.All()) != 0 {
		t.Errorf("Close: %v, lists %d, want none", err, len(p.All()))
	}
}
