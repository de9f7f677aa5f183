package events

import (
	"context"
	"crypto/rand"
	"time"
)

// lease keeps others from bringing an event for a while, and returns it. Unless mayBeEarly is
// set, it has to be time for the next try. Errors: errHeld, errDone, errEarly, ErrNotFound,
// those of the store.
func (s *Service) lease(ctx context.Context, key Key, mayBeEarly bool) (Event, error) {
	return s.store.Change(ctx, key.Site, key.ID, func(e *Event) error {
		switch {
		case !e.isDue():
			return errDone
		case !mayBeEarly && e.dueAt.After(s.store.Now()):
			return errEarly
		}
		if !e.lease(s.store.Now()) {
			return errHeld
		}
		return nil
	})
}

// lease gives an event a new holder, unless it has one. It reports whether it does.
func (e *Event) lease(now time.Time) bool {
	if e.leasedUntil.After(now) {
		return false
	}
	if e.holder != "" && e.Pending != nil { // it ended in the middle, and may have made a post
		e.Pending.Tries++
	}
	e.holder, e.leasedUntil = rand.Text(), now.Add(leaseTime)
	return true
}

// release ends a lease of which nothing was made. Where it fails, the lease expires.
func (s *Service) release(ctx context.Context, e Event) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	_, _ = s.store.Change(ctx, e.Site, e.ID, func(now *Event) error {
		if now.holder != e.holder {
			return errLost
		}
		now.holder, now.leasedUntil = "", time.Time{}
		return nil
	})
}
