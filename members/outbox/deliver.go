package outbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file delivers a leased record: for a caller who waits, or as a retry.

// Deliver is described at [members.Outbox].
func (o *Outbox) Deliver(ctx context.Context, w members.Write) (members.Delivered, error) {
	s, served := o.enter(w.After.Site)
	if !served { // any more
		return members.Delivered{Record: w.After, Queued: true}, o.leases().Release(ctx, w.After, w.Owner)
	}
	defer s.leave()
	if w.Owner == "" {
		s.Wake()
		return members.Delivered{Record: w.After, Queued: true}, nil
	}
	// The caller may leave: the write stands, and its outcome must be noted.
	return s.call(context.WithoutCancel(ctx), attempt{Write: w})
}

// Problems of writes that were not tried.
var (
	errUnresponsive = &untriedError{"the platform has not answered lately, so this was not tried"}
	errOverloaded   = &untriedError{"many platforms do not answer, so this was not tried yet"}
)

// call makes the attempt that a caller waits for, unless the platform does not
// respond anyway.
func (s *site) call(ctx context.Context, a attempt) (members.Delivered, error) {
	if a.needsNothing() {
		return s.deliver(ctx, ctx, a, s.Timeout)
	}
	if !s.breaker.IsClosed() {
		return s.queue(ctx, a, errUnresponsive), nil
	}
	deadline := time.Now().Add(s.Timeout)
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	isOneOfMany := s.calling.Add(1) > maxCalling
	defer s.calling.Add(-1)
	slot, err := s.acquire(waiting, s.calls, isOneOfMany)
	if err != nil {
		return s.queue(ctx, a, errOverloaded), nil
	}
	attemptCtx, end := s.begin(ctx, slot, time.Until(deadline))
	defer end()
	if !s.breaker.IsClosed() { // meanwhile
		return s.queue(ctx, a, errUnresponsive), nil
	}
	return s.deliver(ctx, attemptCtx, a, s.Timeout)
}

// queue queues a write that is not tried.
func (s *site) queue(ctx context.Context, a attempt, why *untriedError) members.Delivered {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	s.postpone(ctx, a, "", why)
	if s.breaker.IsProbeDue(s.Now()) {
		s.Wake()
	}
	return members.Delivered{Record: a.After, Queued: true}
}

// errNotServed means that a site is not served any more.
var errNotServed = errors.New("the site is not served any more")

// retryServed is retry with the platform that the site has now. Errors:
// errNotServed.
func (s *site) retryServed(ctx context.Context, guid string, slot *limiter.Slot) error {
	now, served := s.enter(s.name)
	if !served {
		return errNotServed
	}
	defer now.leave()
	return now.retry(ctx, guid, slot)
}

// retry delivers a pending record, unless another process does.
func (s *site) retry(ctx context.Context, guid string, slot *limiter.Slot) error {
	lease := s.leases().New()
	lease.Until = s.Now().Add(retryLease)
	bounded, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	r, err := s.Store.Lease(bounded, guid, lease)
	if errors.Is(err, members.ErrConflict) || errors.Is(err, members.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.IsPending() {
		return s.leases().Release(ctx, r, lease.Owner)
	}
	attemptCtx, end := s.begin(ctx, slot, retryTimeout)
	defer end()
	_, err = s.deliver(ctx, attemptCtx, attempt{Write: members.Write{After: r, Owner: lease.Owner}, isRetry: true}, members.StoreTimeout)
	if errors.Is(err, members.ErrNotFound) {
		return nil
	}
	return err
}

// deliver makes an attempt, within attemptCtx, and notes its outcome even if ctx is
// done by then. Both are bounded in time, and take less than the lease in all.
// Errors are those of Deliver.
func (s *site) deliver(ctx, attemptCtx context.Context, a attempt, noteTimeout time.Duration) (members.Delivered, error) {
	seen := &observed{Platform: s.platform}
	s.platform = seen
	found, err := applier{s}.apply(attemptCtx, a)
	_, isChanged := errors.AsType[*changedError](err)
	isUnknown := a.After.PlatformID == "" && members.IsTaken(err) // of a member that was not known here
	if a.isRetry && a.isFinal(err) && !isUnknown {
		found, err = s.settle(attemptCtx, a, cmp.Or(found.ID, a.After.PlatformID), err)
	}
	isCutOff := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	if !isCutOff {
		defer s.judge(ctx, a, seen) // once the outcome is noted, so that all is made due
	}

	if isUnknown && (a.isRetry || a.keepsQueuedEmail()) {
		unsettled := s.settleTaken(ctx, a)
		if unsettled == nil {
			return members.Delivered{Record: a.After, Queued: true}, nil
		}
		// A final refusal is the caller's response, and the create stays queued. If the email could not
		// be settled yet, the caller's write is queued too.
		if _, isFinal := errors.AsType[*refusedError](unsettled); a.isRetry || !isFinal && !isRefused(unsettled) {
			err = unsettled
		}
	}
	refused, isSettled := errors.AsType[*refusedError](err)
	switch {
	case err == nil:
		return s.noteApplied(ctx, a, found), nil
	case isChanged:
		return s.noteChanged(ctx, attemptCtx, a, found)
	case isSettled:
		return s.noteRefused(ctx, a, found, refused), nil
	case errors.Is(err, platform.ErrNotFound): // deleted by the platform's staff
		s.forget(ctx, a)
		return members.Delivered{}, members.ErrNotFound
	case !a.isRetry && isRefused(err) && !a.After.Deleted: // half of a delete may be done
		undone, undoErr := s.undo(ctx, a)
		if undoErr != nil {
			return members.Delivered{}, undoErr
		}
		if undone {
			return members.Delivered{Record: a.After}, toCaller(err)
		}
	}
	s.postpone(ctx, a, found.ID, err)
	return members.Delivered{Record: a.After, Queued: true}, nil
}

// settleTaken merges a queued create that cannot have its email with the platform's own
// member, or has it use a placeholder if duplicates are allowed. It is applied again. Errors:
// *refusedError, if there is no such member or placeholder.
func (s *site) settleTaken(ctx context.Context, a attempt) error {
	r := a.After
	settle := s.merge
	if r.Placeholder != "" {
		settle = s.usePlaceholder
	}
	if err := settle(ctx, r); a.isFinal(err) {
		return &refusedError{reasonOf(err)}
	} else if err != nil {
		return err
	}
	s.Wake()
	if err := s.leases().Release(ctx, r, a.Owner); err != nil {
		s.logger().Error("cannot release lease", zap.String("guid", r.GUID), zap.Error(err)) // it runs out
	}
	return nil
}

// usePlaceholder gives a leased record that was never on the platform a placeholder as its email. Errors:
// *members.TakenError, if there is none left.
func (s *site) usePlaceholder(ctx context.Context, r members.Record) error {
	for r.NextPlaceholder() {
		r.UpdatedAt = members.MovedOn(r.UpdatedAt, s.Now().UTC().Truncate(time.Millisecond))
		if err := s.Store.Update(ctx, r); !errors.Is(err, members.ErrEmailTaken) {
			return err
		}
	}
	return &members.TakenError{Reason: members.EmailTaken}
}

// merge makes one of a leased record that was never on the platform and the
// platform's own member with its email, which was not known here when the create
// was acknowledged. The fields that the caller named win. Errors: *members.TakenError, if
// the platform has no member with the email itself.
func (s *site) merge(ctx context.Context, r members.Record) error {
	found, err := s.platform.FindByEmail(ctx, r.Email)
	if errors.Is(err, platform.ErrNotFound) {
		return &members.TakenError{Reason: errFolded}
	}
	if err != nil {
		return err
	}
	tier := r.TierID
	r, _ = r.Merge(found)
	if r.PlatformID = found.ID; tier != nil {
		r.TierID = tier
	}
	return s.Store.Update(ctx, r)
}
