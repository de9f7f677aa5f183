package edge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrSitesUnread means that the edge does not know the sites in the store, so that it cannot say
// which site a host is.
var ErrSitesUnread = errors.New("the sites in the store are not read yet")

// FromMemory lists what is served while the store is away, as it was last read: sites, those in
// the store, and events, the lists, pages and calendars of them that readers have asked for.
func (u *Uses) FromMemory() (parts []string) {
	if !u.storedAreRead() {
		return nil
	}
	if len(*u.sites.served.inStore.Load()) > 0 {
		parts = append(parts, "sites")
	}
	if u.events != nil && u.events.serving.Load() != nil {
		parts = append(parts, "events")
	}
	return parts
}

// healthTimeout is how long the store may take to answer. Load balancers wait for a second or more.
const healthTimeout = 700 * time.Millisecond

// AskStore reads from the store, if one is used. Errors: ErrSitesUnread, until the sites in it
// were read once; ErrStoreAway, if it has not answered since the edge started, or that of
// reading, after healthTimeout at most.
func (u *Uses) AskStore(ctx context.Context) error {
	err := u.askStore(ctx)
	switch {
	case u.storedAreRead():
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", ErrSitesUnread, err)
	}
	return ErrSitesUnread
}

func (u *Uses) askStore(ctx context.Context) error {
	if u.base.store == nil {
		return nil
	}
	store := u.sites.store.Load()
	if store == nil {
		return ErrStoreAway
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	const noSite = "" // finds nothing, so that asking costs nothing
	_, err := store.List(ctx, noSite, 0)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the store does not answer within %v: %w", healthTimeout, err)
	}
	if err != nil {
		return fmt.Errorf("the store cannot be read: %w", err)
	}
	return nil
}
