package outbox

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file holds writes with If-Match to their condition: what was changed on the platform since
// their callers have read it is not undone.

// changedThere is why a queued write is refused whose condition does not hold.
const changedThere = "The member was changed on the publishing platform since it was read. Read it again."

// changedError means that the platform's member is not as the caller of a write has read it.
// Nothing was sent.
type changedError struct{}

func (*changedError) Error() string { return members.ErrPrecondition.Error() }

// Is reports whether target is [platform.ErrNoEffect].
func (*changedError) Is(target error) bool { return target == platform.ErrNoEffect }

// checkCondition asks the platform for a record's member. It returns what apply does. Errors: *changedError.
func (s applier) checkCondition(ctx context.Context, r members.Record) (platform.Member, error) {
	found, err := s.platform.Get(ctx, r.PlatformID)
	switch {
	case r.Deleted && errors.Is(err, platform.ErrNotFound):
		return found, nil
	case err != nil:
		return platform.Member{ID: r.PlatformID}, platform.NoEffect(err)
	case r.BreaksCondition(found):
		return found, &changedError{}
	}
	return found, nil
}

// noteChanged notes that the condition of an attempt does not hold. For a caller who still waits the
// write is undone. A queued one is refused, but for what writes without a condition name.
func (s *site) noteChanged(ctx, attemptCtx context.Context, a attempt, found platform.Member) (members.Delivered, error) {
	switch r := a.After; {
	case r.Confirmed >= r.Version: // it only was to be applied once more
		return s.noteApplied(ctx, a, found), nil
	case !a.isRetry && r.IsConditional():
		undone, err := s.undo(ctx, a)
		if err != nil {
			return members.Delivered{}, err
		}
		if undone {
			s.takeOver(ctx, *a.Before, found)
			return members.Delivered{}, members.ErrPrecondition
		}
	case r.Deleted:
		return s.restore(ctx, a, found), nil
	default:
		rest := a
		rest.After.DropConditional()
		if pendingChange(rest.After) == (platform.Change{}) {
			return s.noteRefused(ctx, rest, found, &refusedError{changedThere}), nil
		}
		rest.After.Condition = nil
		now, err := applier{s}.apply(attemptCtx, rest)
		switch {
		case err == nil:
			return s.noteRefused(ctx, rest, now, &refusedError{changedThere}), nil
		case a.isFinal(err):
			return s.noteRefused(ctx, rest, found, &refusedError{reasonOf(err)}), nil
		}
		s.postpone(ctx, a, found.ID, err)
		return members.Delivered{Record: r, Queued: true}, nil
	}
	s.postpone(ctx, a, found.ID, &changedError{}) // there was another write, so the next attempt decides
	return members.Delivered{Record: a.After, Queued: true}, nil
}

// takeOver has the store take over what the platform has of a member whose write was just undone, so that
// its caller reads it. If that fails, the next comparison does it.
func (s *site) takeOver(ctx context.Context, before members.Record, found platform.Member) {
	r, err := s.Store.Find(ctx, members.Key{Site: s.name, GUID: before.GUID})
	if err != nil {
		s.logger().Error("cannot read a member that was changed on the platform", zap.String("guid", before.GUID), zap.Error(err))
		return
	}
	after, _ := r.Merge(found)
	if after.UpdatedAt = members.Latest(found.UpdatedAt, r.UpdatedAt); !r.IsPending() {
		after.Applied = r.Version + 1
	}
	if err := s.Store.Update(ctx, after); err != nil && !errors.Is(err, members.ErrConflict) {
		s.logger().Error("cannot store what was changed on the platform", zap.String("guid", before.GUID), zap.Error(err))
	}
}

// restore brings back a member whose queued delete was refused. What writes without a condition name stays pending. If another
// has the email here by now, the record is forgotten, and that one becomes the platform's member.
func (s *site) restore(ctx context.Context, a attempt, found platform.Member) members.Delivered {
	r := a.After
	r.Deleted = false
	if r.DropConditional(); pendingChange(r) == (platform.Change{}) {
		r.Applied = r.Version
	}
	r, _ = r.Merge(found)
	r.UpdatedAt = members.Latest(found.UpdatedAt, r.UpdatedAt)
	r.Condition, r.Refused, r.RefusedAt = nil, changedThere, s.Now()
	s.warnings.Warn(s.name, "a queued delete was refused, because the member was changed on the platform", zap.String("guid", r.GUID))
	err := s.Store.Revert(ctx, members.Write{After: a.After, Before: &r})
	switch {
	case errors.Is(err, members.ErrEmailTaken):
		_, err = s.Store.MarkApplied(ctx, withApplied(a.After), a.Lease.Owner)
	case errors.Is(err, members.ErrConflict): // it is gone
		err = nil
	}
	if err != nil {
		s.postpone(ctx, a, found.ID, err)
		return members.Delivered{Record: a.After, Queued: true}
	}
	return members.Delivered{Record: r}
}

func withApplied(r members.Record) members.Record {
	r.Applied = r.Version
	return r
}
