package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file says what is known of an attempt, and what the platform has of its record.
// apply.go makes it.

// arrivalTime is how long an attempt that had no response may take to take effect.
// Ghost lets a request wait for its database for a minute.
const arrivalTime = time.Minute

// attempt is one attempt to apply a record on the platform.
type attempt struct {
	members.Write

	// isRetry means that the write was queued. An earlier attempt may have
	// arrived.
	isRetry bool
}

// applier has the platform of a site take a record.
type applier struct{ *site }

// isFirst reports whether nothing of the member was ever sent to the platform.
func (a attempt) isFirst() bool { return a.Before == nil && !a.isRetry }

// needsNothing reports whether there is nothing to be done on the platform: a member is
// removed of which nothing was ever sent there.
func (a attempt) needsNothing() bool {
	return a.After.Deleted && a.After.PlatformID == "" && a.After.Sent == ""
}

// keepsQueuedEmail reports whether the write stands on a queued create, whose email it leaves.
func (a attempt) keepsQueuedEmail() bool {
	return a.Before != nil && a.After.Named[members.EmailField] < a.After.Version
}

// keepsEmail reports whether the platform certainly has the member with this
// email.
func (a attempt) keepsEmail() bool {
	return a.Before != nil && a.After.PlatformID != "" && !a.Before.IsPending() &&
		emailaddr.Key(a.Before.Email) == emailaddr.Key(a.After.Email)
}

// awaited begins the text of an awaitedError.
const awaited = "an earlier attempt had no response, and may still arrive until "

// awaitedError means that a member may still turn up on the platform.
type awaitedError struct{ until time.Time }

func (e *awaitedError) Error() string {
	return awaited + e.until.Format(time.TimeOnly)
}

// errGone means that the platform's member with the record's email was removed
// while it was taken for this one.
var errGone = errors.New("the platform's member with this email was deleted meanwhile")

// update changes a member that the platform has, and returns what it has then.
func (s applier) update(ctx context.Context, r members.Record) (platform.Member, error) {
	change := pendingChange(r)
	if change == (platform.Change{}) {
		return s.platform.Get(ctx, r.PlatformID)
	}
	return s.platform.Update(ctx, r.PlatformID, change)
}

// pendingChange takes the fields of a record that the platform does not have yet.
func pendingChange(r members.Record) platform.Change {
	var c platform.Change
	if r.HasPending(members.EmailField) {
		c.Email = &r.Email
	}
	if r.HasPending(members.NameField) {
		c.Name = &r.Name
	}
	if r.HasPending(members.NoteField) {
		c.Note = &r.Note
	}
	if r.HasPending(members.LabelsField) {
		c.Labels = &r.Labels
	}
	if r.HasPending(members.SubscriptionField) {
		c.Subscription = &platform.Subscription{Subscribed: r.Subscribed, Newsletters: r.ActiveNewsletters()}
	}
	return c
}

// findArrived looks for a member that was sent to the platform without a response,
// and that has another email by now or is deleted, so it is not to be created
// again. It returns the ID on the platform, or none if it is not there and will
// not arrive.
func (s applier) findArrived(ctx context.Context, r members.Record) (id string, err error) {
	if r.Sent == "" || !r.Deleted && emailaddr.Key(r.Sent) == emailaddr.Key(r.Email) {
		return "", nil
	}
	found, err := s.platform.FindByEmail(ctx, r.Sent)
	switch {
	case err == nil:
		isIt, err := s.mayBe(ctx, found, r)
		if isIt || err != nil {
			return found.ID, err
		}
	case !errors.Is(err, platform.ErrNotFound):
		return "", err
	}
	if until := r.SentAt.Add(arrivalTime); s.Now().Before(until) {
		return "", &awaitedError{until}
	}
	return "", nil
}

// mayBe reports whether a member of the platform may be a record's, which was sent
// there without a response. It is not if it is another record's, or older.
func (s applier) mayBe(ctx context.Context, found platform.Member, r members.Record) (bool, error) {
	const skew = time.Minute // between the two clocks
	if found.CreatedAt.Before(r.CreatedAt.Add(-skew)) {
		return false, nil
	}
	_, err := s.Store.Find(ctx, members.Key{Site: s.name, PlatformID: found.ID})
	if errors.Is(err, members.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// untriedError means that nothing was sent to the platform.
type untriedError struct{ reason string }

func (e *untriedError) Error() string { return e.reason }

// Is reports whether target is [platform.ErrNoEffect].
func (e *untriedError) Is(target error) bool { return target == platform.ErrNoEffect }
