package registration

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// This file is guests without an email (docs/registration.md#walk-ins). The platform has no member for them, so they get no
// labels there, and it is not asked whether they still exist. Staff erase their name, or it goes with the event.

// walkInVersion is the version of a walk-in's UUID (RFC 9562, section 5.8). That of a platform's member is random, version 4.
const walkInVersion = 8

// walkIns is the namespace of their UUIDs.
var walkIns = uuid.MustParse("0c0f6d0e-6d7c-4f0e-9b57-5b7f1c1a7d0a")

// walkInOf is a UUID for a walk-in, the same one for the same key: the name may be corrected after a response was
// lost. Without a key it is a new one.
func walkInOf(site, event, key string) string {
	return uuid.NewHash(sha256.New(), walkIns, []byte(site+"\x00"+event+"\x00"+cmp.Or(key, rand.Text())), walkInVersion).String()
}

// isWalkIn reports whether a registrant is no member of the platform.
func isWalkIn(member string) bool {
	id, err := uuid.Parse(member)
	return err == nil && id.Version() == walkInVersion
}

// IsWalkIn reports whether a registrant has no email and never had one.
func (r *Registrant) IsWalkIn() bool { return isWalkIn(r.Member) }

// maxWalkIns bounds the walk-ins of an event, with those who were removed. Members are bounded by the platform, which each is on.
const maxWalkIns = 10_000

// ErrWalkIns means that an event has as many walk-ins as it can have.
var ErrWalkIns = errcode.New(errcode.Conflict, "the event has the most walk-ins it can have", "This event has 10,000 guests without an email, and cannot have more. Add others with their email.")

const countWalkIns = `SELECT COUNT(*) FROM registrations WHERE site = $1 AND event = $2 AND length(member) = 36 AND substr(member, 15, 1) = '8'`

// boundWalkIns returns ErrWalkIns if no other walk-in can be added.
func (b *booking) boundWalkIns(ctx context.Context) error {
	var n int
	err := b.tx.QueryRowContext(ctx, countWalkIns, b.key.site, b.key.event).Scan(&n)
	if err == nil && n >= maxWalkIns {
		return ErrWalkIns
	}
	return database.Wrap("counting walk-ins", err)
}

// ErrNotErased means that a name stays.
var ErrNotErased = errcode.New(errcode.Conflict, "the registrant is no walk-in who was removed", "Only the name of a guest without an email who was removed can be erased.")

// EraseName removes for good the name of a walk-in whose registration was cancelled. That somebody was on the list stays. It is no
// error if the name was erased already. Errors: events.ErrNotFound, ErrNoRegistrant, ErrNotErased, events.ErrBusy, those of the store.
func (g *GuestList) EraseName(ctx context.Context, site, event, member string) (Registrant, error) {
	return g.change(ctx, placeKey{site, event, member}, func(b *booking) (isRelabelled bool, err error) {
		was, err := registrant(ctx, b.tx, b.key)
		switch {
		case err != nil:
			return false, err
		case !was.IsWalkIn() || !b.at.IsZero():
			return false, ErrNotErased
		case was.Name == "":
			return false, nil
		}
		b.did = "name erased"
		return false, forget(ctx, b.tx, site, member)
	})
}
