package edge

import (
	"context"

	"github.com/lychgate/caddy-lychgate/pending"
)

// Pending opens the store if it is not open. Errors: ErrStoreAway, and why it cannot be opened.
func (u *Uses) Pending() (pending.View, error) {
	if u.base.store == nil {
		return pending.View{}, ErrStoreAway
	}
	if err := u.base.store.open(); err != nil {
		return pending.View{}, err
	}
	return u.PendingNow()
}

// TryNow has all that is pending of a site tried at once. Errors: ErrStoreAway, those of the store.
func (u *Uses) TryNow(ctx context.Context, site string) error {
	v, err := u.PendingNow()
	if err != nil {
		return err
	}
	_, _, err = v.TryNow(ctx, site)
	return err
}

// PendingNow is Pending for callers that do not wait until the store is opened.
func (u *Uses) PendingNow() (pending.View, error) {
	if u.base.store == nil || u.base.store.work.Load() == nil {
		return pending.View{}, ErrStoreAway
	}
	v := pending.View{Work: u.base.store.work.Load()}
	if serving := u.members.Serving(); serving != nil {
		v.Outbox = serving.Outbox
	} else if u.members != nil {
		return v, ErrStoreAway
	}
	return v, nil
}
