package members

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

const (
	// LeaseTime is how long a process may hold a record while a caller waits. No
	// attempt takes longer then. A record of a process that died is pending for
	// as long.
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
}

// New makes a lease of LeaseTime from now, for the store to grant.
func (l Leases) New() Lease { return Lease{Owner: rand.Text(), Until: l.Now().Add(LeaseTime)} }

// Acquire waits for the lease of a record, and reads it anew. The owner is empty
// if another process holds the lease for too long. Errors: ErrNotFound.
func (l Leases) Acquire(ctx context.Context, r *Record) (owner string, err error) {
	deadline := l.Now().Add(l.Timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		lease := l.New()
		leased, err := l.Store.Lease(ctx, r.GUID, lease)
		if err == nil {
			if leased.Deleted || leased.CheckIsThere() != nil {
				return "", errors.Join(ErrNotFound, l.Release(ctx, leased, lease.Owner))
			}
			leased.MemberID = r.MemberID
			*r = leased
			return lease.Owner, nil
		}
		if !errors.Is(err, ErrConflict) {
			return "", err
		}
		if l.Now().After(deadline) {
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
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
