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
	"github.com/lychgate/caddy-lychgate/work"
)

// This file delivers a leased record: it makes an attempt, and notes its outcome.

const (
	// firstBackoff is how long after the first failed attempt the next one is due.
	firstBackoff = time.Second

	// farthestAttempt is behind the time of any next attempt: a backoff is 6 minutes at most.
	farthestAttempt = 10 * time.Minute
)

// Deliver implements [members.Outbox].
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
	errSilent = &untriedError{"the platform has not answered lately, so this was not tried"}
	errBusy   = &untriedError{"many platforms do not answer, so this was not tried yet"}
)

// untriedError means that nothing was sent to the platform.
type untriedError struct{ reason string }

func (e *untriedError) Error() string { return e.reason }

// Is reports whether target is [platform.ErrNoEffect].
func (e *untriedError) Is(target error) bool { return target == platform.ErrNoEffect }

// call makes the attempt that a caller waits for, unless the platform does not
// answer anyway.
func (s *site) call(ctx context.Context, a attempt) (members.Delivered, error) {
	if a.needsNothing() {
		return s.deliver(ctx, ctx, a, s.Timeout)
	}
	if !s.breaker.IsClosed() {
		return s.queue(ctx, a, errSilent), nil
	}
	deadline := time.Now().Add(s.Timeout)
	waiting, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	isOneOfMany := s.calling.Add(1) > maxCalling
	defer s.calling.Add(-1)
	slot, err := s.acquire(waiting, s.calls, isOneOfMany)
	if err != nil {
		return s.queue(ctx, a, errBusy), nil
	}
	attemptCtx, end := s.begin(ctx, slot, time.Until(deadline))
	defer end()
	if !s.breaker.IsClosed() { // meanwhile
		return s.queue(ctx, a, errSilent), nil
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

func (o *Outbox) leases() members.Leases {
	return members.Leases{Store: o.Store, Now: o.Now, Timeout: o.Timeout}
}

// deliver makes an attempt, within attemptCtx, and notes its outcome even if ctx is
// done by then. Both are bounded in time, and take less than the lease in all.
// Errors are those of Deliver.
func (s *site) deliver(ctx, attemptCtx context.Context, a attempt, noteTimeout time.Duration) (members.Delivered, error) {
	seen := &observed{Platform: s.platform}
	s.platform = seen
	found, err := applier{s}.apply(attemptCtx, a)
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

	if a.isRetry && isUnknown {
		if err = s.mergeWithExisting(ctx, a); err == nil {
			return members.Delivered{Record: a.After, Queued: true}, nil
		}
	}
	refused, isSettled := errors.AsType[*refusedError](err)
	switch {
	case err == nil:
		return s.noteApplied(ctx, a, found), nil
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

// toCaller returns what the caller of a write is told of a refusal.
func toCaller(err error) error {
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return &members.InvalidError{Message: refusal.Reason, Code: members.CodeRefused}
	}
	return err
}

// undo puts a record back to what it was before a write that was refused. It
// reports false if that is too late: a later write stands on this one, or has
// taken the email.
func (s *site) undo(ctx context.Context, a attempt) (undone bool, err error) {
	err = s.Store.Revert(ctx, a.Write)
	if errors.Is(err, members.ErrConflict) || errors.Is(err, members.ErrEmailTaken) {
		return false, nil
	}
	return err == nil, err
}

// mergeWithExisting merges a queued create that cannot have its email with the
// platform's own member, and is applied again. Errors: *refusedError, if there is no such
// member.
func (s *site) mergeWithExisting(ctx context.Context, a attempt) error {
	r := a.After
	if err := s.merge(ctx, r); a.isFinal(err) {
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

// noteApplied notes that the platform has a record, and what it says of it.
func (s *site) noteApplied(ctx context.Context, a attempt, found platform.Member) members.Delivered {
	r, pending, err := s.markApplied(ctx, a.After, found, a.Owner)
	if err != nil {
		// Both sides have the write; it is only not noted, so it is applied again.
		s.logger().Error("cannot store that a write was applied", zap.String("guid", r.GUID), zap.Error(err))
		return members.Delivered{Record: a.After, Queued: true}
	}
	if pending {
		s.Wake()
	}
	return members.Delivered{Record: r}
}

// markApplied returns the record as the platform has it, and whether it is
// pending, because it was written meanwhile.
//
// If an earlier attempt had no answer, it may still reach the platform after this
// one. Then the fields are applied once more when that can no longer happen.
func (s *site) markApplied(ctx context.Context, r members.Record, found platform.Member, owner string) (after members.Record, pending bool, err error) {
	before, email := r.Applied, r.Email
	r.PlatformID, r.Applied, r.Sent, r.SentAt = found.ID, r.Version, "", time.Time{}
	if !r.Deleted {
		r, _ = r.MergeFields(found)
	}
	mark := func() error {
		pending, err = s.Store.MarkApplied(ctx, r, owner)
		return err
	}
	if again := r.UnansweredAt.Add(arrivalTime); !r.Deleted && !r.UnansweredAt.IsZero() && s.Now().Before(again) {
		mark = func() error {
			uncertain, f := r, Failure{Problem: appliedAgain, Next: again}
			if uncertain.Applied = before; r.Subscribed {
				f.UnnameUpTo = r.Version // a reader who unsubscribes until then is not subscribed again
			}
			return s.Store.MarkApplyAgain(ctx, uncertain, f, owner)
		}
	}
	if err = mark(); errors.Is(err, members.ErrEmailTaken) {
		s.warnings.Warn(s.name, "member has the email of another on the platform", zap.String("guid", r.GUID))
		r.Email = email // until the other lets go of it
		err = mark()
	}
	return r, pending, err
}

// appliedAgain is the problem of a record that is applied once more.
const appliedAgain = "the platform has it, and gets it once more because an earlier attempt had no answer"

// forget deletes a record that the platform no longer has.
func (s *site) forget(ctx context.Context, a attempt) {
	r := a.After
	if r.IsPending() {
		s.logger().Warn("member was deleted on the platform before all writes were applied", zap.String("guid", r.GUID))
	}
	if err := s.leases().Forget(ctx, r, a.Owner); err != nil {
		s.logger().Error("cannot delete a member that was deleted on the platform", zap.String("guid", r.GUID), zap.Error(err))
	}
}

// postpone notes that an attempt failed. The ID is the platform's, if it is known.
func (s *site) postpone(ctx context.Context, a attempt, id string, problem error) {
	r := a.After
	s.troubles.Add(1)
	message := "the platform does not take a write now, so it is queued"
	if a.isRetry {
		message = "the platform still does not take a write"
	}
	s.warnings.Warn(s.name, message, zap.String("guid", r.GUID), zap.String("problem", members.ForLog(problem)))

	f := Failure{
		Problem:    problem.Error(),
		Next:       s.Now().Add(work.Backoff(firstBackoff, int(r.Attempts))),
		NotSent:    (a.isFirst() || r.Sent == "") && !mayArrive(problem),
		PlatformID: id,
	}
	if id != "" && mayArrive(problem) { // a create is looked for by its email
		f.UnansweredAt = s.Now()
	}
	if _, f.Untried = errors.AsType[*untriedError](problem); f.Untried {
		f.Next = s.Now() // the breaker says when
	}
	if awaited, ok := errors.AsType[*awaitedError](problem); ok {
		f.Next = awaited.until
	}
	if a.Before != nil && r.RepeatsSubscription(*a.Before) {
		f.UnnameUpTo = r.Version
	}
	if err := s.Store.MarkFailed(ctx, r.GUID, f, a.Owner); err != nil {
		s.logger().Error("cannot store the outcome of a queued write", zap.String("guid", r.GUID), zap.Error(err))
	}
}

// mayArrive reports whether an attempt that failed may still take effect.
func mayArrive(err error) bool {
	_, refused := errors.AsType[*platform.Refusal](err)
	_, awaited := errors.AsType[*awaitedError](err)
	return !refused && !awaited && !errors.Is(err, platform.ErrNoEffect)
}
