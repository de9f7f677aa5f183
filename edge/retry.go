package edge

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// retrier tries at once what is pending of sites whose platform has got another address or key.
// Without it, that waits until its next attempt is due, five minutes at most.
type retrier struct {
	tryNow func(ctx context.Context, site string) error
	logger *zap.Logger

	mu    sync.Mutex
	names map[string]bool // of sites
	wake  chan struct{}
}

// retryTimeout bounds the write to the store that makes what is pending of a site due.
const retryTimeout = 5 * time.Second

func newRetrier(tryNow func(ctx context.Context, site string) error, logger *zap.Logger) *retrier {
	return &retrier{tryNow: tryNow, logger: logger, names: make(map[string]bool), wake: make(chan struct{}, 1)}
}

// add has a site tried by run.
func (r *retrier) add(site string) {
	r.mu.Lock()
	r.names[site] = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *retrier) take() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.names
	r.names = make(map[string]bool)
	return taken
}

// run tries the sites that are added, until ctx is done.
func (r *retrier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		for site := range r.take() {
			bounded, cancel := context.WithTimeout(ctx, retryTimeout)
			err := r.tryNow(bounded, site)
			cancel()
			if err != nil && ctx.Err() == nil {
				r.logger.Warn("cannot make the pending writes of a site due after its platform was changed; each is tried when it is due",
					zap.String("site", site), zap.Error(err))
			}
		}
	}
}
