package edge

import "github.com/lychgate/caddy-lychgate/internal/work"

// Pending is the queue of all that is written here and not on the platforms yet. It opens the store if it is not open. Errors:
// ErrStoreAway, and why it cannot be opened.
func (u *Uses) Pending() (*work.Queue, error) {
	if u.base.store == nil {
		return nil, ErrStoreAway
	}
	if err := u.base.store.open(); err != nil {
		return nil, err
	}
	return u.PendingNow()
}

// PendingNow is Pending for callers that do not wait until the store is opened.
func (u *Uses) PendingNow() (*work.Queue, error) {
	if u.base.store == nil || u.base.store.work.Load() == nil || u.members != nil && u.members.Serving() == nil {
		return nil, ErrStoreAway
	}
	return u.base.store.work.Load(), nil
}
