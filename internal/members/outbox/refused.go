package outbox

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file settles queued writes that the platform refuses. They are not tried again, and
// the record becomes what the platform has. Its caller was told that the write is queued,
// so the record keeps the reason until the next write.

// refusedError means that the platform refused at least the last of a record's queued
// writes for good.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return "refused by the platform for good" }

func isRefused(err error) bool {
	_, refused := errors.AsType[*platform.Refusal](err)
	return refused || members.IsTaken(err)
}

// reasonOf is in the platform's words.
func reasonOf(err error) string {
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return refusal.Reason
	}
	if taken, ok := errors.AsType[*members.TakenError](err); ok {
		return taken.Reason
	}
	return err.Error()
}

// isFinal reports whether an error of a retry is the platform's final response. That an email is
// taken is, once it was so at the attempt before too: its owner may have let go of it
// between two of the questions that an attempt asks.
func (a attempt) isFinal(err error) bool {
	return isRefused(err) && !a.After.Deleted && (!members.IsTaken(err) || err.Error() == a.After.Problem)
}

// settle makes an attempt for each queued write of a record whose writes were refused as
// one, so that none is lost because of another. It returns what the platform has then,
// nothing if it refused the create, and a *refusedError; or the error of an attempt that
// had another one. id is the platform's of the member, as far as it is known by now.
func (s *site) settle(ctx context.Context, a attempt, id string, refusal error) (found platform.Member, err error) {
	refused := &refusedError{reasonOf(refusal)}
	a.After.Condition = nil // it held, and each part changes what it is about
	parts := a.parts()
	if len(parts) == 1 { // it was made
		parts = nil
	}
	for _, part := range parts {
		part.After.PlatformID = id
		applied, err := applier{s}.apply(ctx, part)
		id = cmp.Or(applied.ID, id)
		switch {
		case err == nil:
			found = applied
		case !a.isFinal(err):
			return platform.Member{ID: id}, err
		case id == "":
			return platform.Member{}, &refusedError{reasonOf(err)}
		default:
			refused.reason = reasonOf(err)
		}
	}
	if id == "" {
		return platform.Member{}, refused
	}
	if found.ID == "" {
		if found, err = s.platform.Get(ctx, id); err != nil {
			return platform.Member{ID: id}, err
		}
	}
	if strings.HasSuffix(found.Email, "@"+asideDomain) { // its own is on the way
		return platform.Member{ID: id}, refusal
	}
	return found, refused
}

// parts splits an attempt into one for each write of which something is pending, in their
// order. The first one of a member whom the platform does not have is the create. It has
// the fields that later writes did not name, and the email in any case; the subscription
// that a later write named is not known any more, and is none.
func (a attempt) parts() []attempt {
	versions := make(map[int64]bool)
	for _, f := range members.PlatformFields() {
		if a.After.HasPending(f) {
			versions[a.After.Named[f]] = true
		}
	}
	var parts []attempt
	isCreate := a.After.PlatformID == ""
	for i, version := range slices.Sorted(maps.Keys(versions)) {
		part := a
		for _, f := range members.PlatformFields() {
			isLater := part.After.Named[f] > version
			if part.After.Named[f] != version {
				part.After.Named[f] = 0
			}
			if isCreate && i == 0 && isLater {
				part.After.Clear(f)
			}
		}
		if isCreate && i == 0 {
			part.After.Named[members.EmailField] = version
		}
		parts = append(parts, part)
	}
	return parts
}
