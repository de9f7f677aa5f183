package edge

import (
	"github.com/lychgate/caddy-lychgate/pending"
)

// Pending returns what is pending in the store, which is opened if it is not. Errors:
// ErrStoreAway, and that of opening.
func (e *Edge) Pending() (pending.View, error) {
	if e.store == nil {
		return pending.View{}, ErrStoreAway
	}
	if err := e.store.open(); err != nil {
		return pending.View{}, err
	}
	return e.PendingNow()
}

// PendingNow is Pending for callers that do not wait until the store is opened.
func (e *Edge) PendingNow() (pending.View, error) {
	if e.store == nil || e.store.work.Load() == nil {
		return pending.View{}, ErrStoreAway
	}
	v := pending.View{Work: e.store.work.Load()}
	if serving := e.members.Serving(); serving != nil {
		v.Outbox = serving.Outbox
	} else if e.members != nil {
		return v, ErrStoreAway
	}
	return v, nil
}
