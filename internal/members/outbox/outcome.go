package outbox

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file stores what became of an attempt.

// toCaller words a refusal for the caller of a write.
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

// noteApplied notes that the platform has a record, and what it says of it.
func (s *site) noteApplied(ctx context.Context, a attempt, found platform.Member) members.Delivered {
	r, pending, err := s.markApplied(ctx, a.After, found, a.Lease.Owner)
	if err != nil {
		// Both sides have the write; it is only not noted, so it is applied again.
		s.logger().Error("cannot store that a write was applied", zap.String("guid", r.GUID), zap.Error(err))
		return members.Delivered{Record: a.After, Queued: true}
	}
	if pending {
		s.wake()
	}
	return members.Delivered{Record: r}
}

// markApplied stores the record as the platform has it. pending is whether it was written
// meanwhile.
//
// If an earlier attempt had no response, it may still reach the platform after this one.
// Then the fields are applied once more when that can no longer happen.
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
	if r.Deleted && err == nil {
		s.Deleted.Tell(ctx, r.Site, email)
	}
	return r, pending, err
}

// appliedAgain is the problem of a record that is applied once more.
const appliedAgain = "the platform has it, and gets it once more because an earlier attempt had no response"

// forget deletes a record that the platform no longer has.
func (s *site) forget(ctx context.Context, a attempt) {
	r := a.After
	if r.IsPending() {
		s.logger().Warn("member was deleted on the platform before all writes were applied", zap.String("guid", r.GUID))
	}
	s.Deleted.Tell(ctx, r.Site, r.Email)
	if err := s.leases().Forget(ctx, r, a.Lease.Owner); err != nil {
		s.logger().Error("cannot delete a member that was deleted on the platform", zap.String("guid", r.GUID), zap.Error(err))
	}
}

// postpone notes that an attempt failed. The ID is the platform's, if it is known.
func (s *site) postpone(ctx context.Context, a attempt, id string, problem error) {
	r := a.After
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
	if errors.Is(problem, platform.ErrKeyRejected) {
		f.Problem = rejected + f.Problem
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
	if err := s.Store.MarkFailed(ctx, r.GUID, f, a.Lease.Owner); err != nil {
		s.logger().Error("cannot store the outcome of a queued write", zap.String("guid", r.GUID), zap.Error(err))
	}
}

// mayArrive reports whether an attempt that failed may still take effect.
func mayArrive(err error) bool {
	_, refused := errors.AsType[*platform.Refusal](err)
	_, awaited := errors.AsType[*awaitedError](err)
	return !refused && !awaited && !errors.Is(err, platform.ErrNoEffect)
}

// noteRefused notes that writes were refused, and what the platform has of the member. It
// is queued if that is too late, because there was another write.
func (s *site) noteRefused(ctx context.Context, a attempt, found platform.Member, refused *refusedError) members.Delivered {
	r := a.After
	s.warnings.Warn(s.name, "the platform refused a queued write for good", zap.String("guid", r.GUID))
	if found.ID != "" {
		a.After.Refused, a.After.RefusedAt = refused.reason, s.Now()
		a.After.UnansweredAt = time.Time{} // to apply it once more would be to send what was refused
		return s.noteApplied(ctx, a, found)
	}
	err := s.Store.RefuseCreate(ctx, r.GUID, r.Version, refused.reason, s.Now())
	if err != nil {
		if !errors.Is(err, members.ErrConflict) {
			s.logger().Error("cannot store that a write was refused", zap.String("guid", r.GUID), zap.Error(err))
		}
		s.postpone(ctx, a, "", refused)
	}
	return members.Delivered{Record: r, Queued: err != nil}
}
