package members

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"
)

const (
	// LeaseTime is how long a process may hold a record that it looks at on the platform. That takes no longer.
	LeaseTime = 15 * time.Second

	// StoreTimeout bounds what is asked of the store when no caller waits.
	StoreTimeout = 10 * time.Second
)

// Leases leases records for those who change them on the platform.
type Leases struct {
	Store Store
	Now   func() time.Time

	// Timeout bounds how long Acquire waits for a record that is leased.
	Timeout time.Duration

	// Time is how long a lease lasts. Default: LeaseTime.
	Time time.Duration
}

// New makes a lease from now on, for the store to grant.
func (l Leases) New() Lease {
	return Lease{Owner: rand.Text(), Until: l.Now().Add(cmp.Or(l.Time, LeaseTime))}
}

// Acquire waits for the lease of a record, and reads it anew. The lease is none
// if another process holds it for too long. Errors: ErrNotFound.
func (l Leases) Acquire(ctx context.Context, r *Record) (Lease, error) {
	deadline := l.Now().Add(l.Timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		lease := l.New()
		leased, err := l.Store.Lease(ctx, r.GUID, lease)
		if err == nil {
			if leased.Deleted || leased.CheckIsThere() != nil {
				return Lease{}, errors.Join(ErrNotFound, l.Release(ctx, leased, lease.Owner))
			}
			leased.MemberID = r.MemberID
			*r = leased
			return lease, nil
		}
		if !errors.Is(err, ErrConflict) {
			return Lease{}, err
		}
		if l.Now().After(deadline) {
			return Lease{}, nil
		}
		select {
		case <-ctx.Done():
			return Lease{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Release ends the lease of a record that was not changed, if there is an owner,
// even if ctx is done.
func (l Leases) Release(ctx context.Context, r Record, owner string) error {
	if owner == "" {
		return nil
	}
	ctx, cancel := Detached(ctx)
	defer cancel()
	return l.Store.Release(ctx, r.GUID, owner)
}

// Forget deletes a leased record that the platform no longer has, whatever was
// pending of it, and ends the lease.
func (l Leases) Forget(ctx context.Context, r Record, owner string) error {
	r.Deleted, r.Claim = true, nil
	err := l.Store.Update(ctx, r)
	if err == nil {
		r.Applied = r.Version + 1
		_, err = l.Store.MarkApplied(ctx, r, owner)
	}
	if err != nil {
		return errors.Join(err, l.Release(ctx, r, owner))
	}
	return nil
}

// Detached derives a context for what must be stored even if the caller has left. It ends
// after StoreTimeout.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), StoreTimeout)
}
