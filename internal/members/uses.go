package members

import (
	"context"
	"sync"
	"time"
)

const (
	// UseInterval is by how much LastUsedAt of an integration may be too early.
	UseInterval = 10 * time.Minute

	// useRetry is how long a key's use is not noted again after it could not be.
	useRetry = time.Minute

	// useTimeout bounds one write.
	useTimeout = 5 * time.Second

	// maxUses bounds the uses that are to be written, and maxFailed those that could not
	// be.
	maxUses, maxFailed = 1000, 10_000
)

// Uses keeps when the keys of integrations were used last. It writes in the background,
// for each key at most once in 10 minutes, and keeps nobody waiting: what is too much at
// once is noted at the key's next use. It may be used by many goroutines at once.
type Uses struct {
	store  Integrations
	now    func() time.Time
	failed func(Integration, error)
	queue  chan use

	mu      sync.Mutex
	pending map[KeyHash]time.Time // when those that are queued, or have failed, may be queued again
}

type use struct {
	of Integration
	at time.Time
}

// NewUses makes Uses that need Run. The clock is the store's. A use that could not be
// written is reported to failed; it is tried again a minute later.
func NewUses(store Integrations, now func() time.Time, failed func(Integration, error)) *Uses {
	return &Uses{store: store, now: now, failed: failed, queue: make(chan use, maxUses), pending: make(map[KeyHash]time.Time)}
}

// Note notes that the key of an integration, as the store has it now, is being used.
func (u *Uses) Note(i Integration) {
	now := u.now()
	if now.Before(i.LastUsedAt.Add(UseInterval)) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.pending[i.KeyHash]) || len(u.pending) >= maxFailed && !u.forget(now) {
		return
	}
	select {
	case u.queue <- use{i, now}:
		u.pending[i.KeyHash] = now.Add(useRetry)
	default:
	}
}

// forget forgets which uses failed a while ago, and reports whether there were some.
func (u *Uses) forget(now time.Time) bool {
	before := len(u.pending)
	for key, again := range u.pending {
		if !now.Before(again) {
			delete(u.pending, key)
		}
	}
	return len(u.pending) < before
}

// Run writes what is noted, until ctx is done.
func (u *Uses) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-u.queue:
			u.write(ctx, next)
		}
	}
}

func (u *Uses) write(ctx context.Context, next use) {
	bounded, cancel := context.WithTimeout(ctx, useTimeout)
	defer cancel()
	if err := u.store.UseIntegration(bounded, next.of, next.at); err != nil {
		if ctx.Err() == nil {
			u.failed(next.of, err)
		}
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pending, next.of.KeyHash)
}
