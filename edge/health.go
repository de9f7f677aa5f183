package edge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// healthTimeout is how long the store may take to answer: health checks are asked every few
// seconds.
const healthTimeout = time.Second

// AskStore reads from the store, if one is used. Errors: ErrStoreAway, if it has
// not answered since the edge started, or that of reading, after a second at most.
func (u *Uses) AskStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	const noSite = "" // finds nothing, so that asking costs nothing
	var err error
	switch {
	case u.members != nil:
		serving := u.members.Serving()
		if serving == nil {
			return ErrStoreAway
		}
		_, err = serving.Outbox.Count(ctx, noSite)
	case u.themes != nil:
		store := u.themes.kept.Load()
		if store == nil {
			return ErrStoreAway
		}
		_, err = store.List(ctx, noSite, 0)
	case u.base.store != nil: // for its sites alone
		store := u.sites.store.Load()
		if store == nil {
			return ErrStoreAway
		}
		_, err = store.List(ctx, noSite, 0)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the store does not answer within %v: %w", healthTimeout, err)
	}
	if err != nil {
		return fmt.Errorf("the store cannot be read: %w", err)
	}
	return nil
}
