package outbox

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file delivers a leased record: for a caller who waits, or as a retry.

// Deliver is described at [members.Outbox].
func (o *Outbox) Deliver(ctx context.Context, w members.Write) (delivered members.Delivered, err error) {
	p := o.Platform(w.After.Site)
	if p == nil { // not served any more
		return members.Delivered{Record: w.After, Queued: true}, o.leases().Release(ctx, w.After, w.Lease.Owner)
	}
	s, a := &site{o, w.After.Site, p}, attempt{Write: w}
	if w.Lease.Owner == "" {
		s.wake()
		return members.Delivered{Record: w.After, Queued: true}, nil
	}
	ctx = context.WithoutCancel(ctx) // the caller may leave: the write stands, and its outcome must be noted
	if a.needsNothing() {
		delivered, _, err = s.deliver(ctx, a)
		return delivered, err
	}
	t := work.Task{Site: s.name, Kind: Kind, Key: w.After.GUID, Since: o.Now(), Holder: w.Lease.Owner, Until: w.Lease.Until}
	untried := o.Work.Call(ctx, t, o.Timeout, func(ctx context.Context) (r work.Result) {
		delivered, r, err = s.deliver(ctx, a)
		return r
	})
	switch {
	case untried == nil:
		return delivered, err
	case errors.Is(untried, work.ErrNotServed): // by now
		return members.Delivered{Record: w.After, Queued: true}, o.leases().Release(ctx, w.After, w.Lease.Owner)
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	s.postpone(ctx, a, "", &untriedError{untried.Error()})
	return members.Delivered{Record: w.After, Queued: true}, nil
}

// retry delivers a pending record that was leased.
func (o *Outbox) retry(ctx context.Context, t work.Task) work.Result {
	p := o.Platform(t.Site)
	r, err := o.Store.Find(ctx, members.Key{Site: t.Site, GUID: t.Key})
	switch {
	case errors.Is(err, members.ErrNotFound):
		return work.Result{IsUnasked: true}
	case err == nil && p != nil && r.IsPending():
		_, result, _ := (&site{o, t.Site, p}).deliver(ctx, attempt{Write: members.Write{After: r, Lease: members.Lease{Owner: t.Holder, Until: t.Until}}, isRetry: true})
		return result
	case err == nil:
		err = o.leases().Release(ctx, r, t.Holder)
	}
	if err != nil && ctx.Err() == nil {
		o.Logger.Error("cannot retry pending member", zap.String("site", t.Site), zap.String("guid", t.Key), zap.Error(err))
	}
	return work.Result{Outcome: work.Again, IsUnasked: true}
}

// deliver makes an attempt, and notes its outcome even if ctx is done by then. Errors are those of Deliver.
func (s *site) deliver(ctx context.Context, a attempt) (members.Delivered, work.Result, error) {
	seen := &observed{Platform: s.platform}
	s.platform = seen
	delivered, err := s.attempt(ctx, a)
	outcome := work.Done
	if delivered.Queued {
		outcome = work.Again
	}
	return delivered, s.result(seen, outcome), err
}

func (s *site) attempt(attemptCtx context.Context, a attempt) (members.Delivered, error) {
	found, err := applier{s}.apply(attemptCtx, a)
	_, isChanged := errors.AsType[*changedError](err)
	isUnknown := a.After.PlatformID == "" && members.IsTaken(err) // of a member that was not known here
	if a.isRetry && a.isFinal(err) && !isUnknown {
		found, err = s.settle(attemptCtx, a, cmp.Or(found.ID, a.After.PlatformID), err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(attemptCtx), noteTimeout)
	defer cancel()

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
	if err := s.leases().Release(ctx, r, a.Lease.Owner); err != nil {
		s.logger().Error("cannot release lease", zap.String("guid", r.GUID), zap.Error(err)) // it runs out
	}
	s.wake()
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
