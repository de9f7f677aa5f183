package registration

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file is what staff change of who has registered (docs/registration.md#guest-list).

// GuestList is the registrants of events as staff see and change them.
type GuestList struct {
	lists

	changed Changed
	logger  *zap.Logger
}

// MemberHost is a platform that has the members whom staff add.
type MemberHost interface {
	// FindByEmail fails with platform.ErrNotFound if no member has the email.
	FindByEmail(ctx context.Context, email string) (platform.Member, error)

	// Create makes a member. An email that another member has is a *platform.Refusal.
	Create(ctx context.Context, m platform.Member) (platform.Member, error)
}

// Addition is somebody whom staff register.
type Addition struct {
	Email, Name string // an email, or the name of a walk-in
	By          string // the name of the staff
	OverLimit   bool   // also if all places are taken

	// Key is that of the request: a walk-in with the same key is registered once, under the first name. "" is no key.
	Key string
}

// Errors of changes by staff.
var (
	// ErrNotRegistered means that a member who is to be checked in has cancelled.
	ErrNotRegistered = errcode.New(errcode.Conflict, "the member has cancelled", "This member has cancelled. Add them again first.")

	// ErrEventCancelled means that nobody can be added to an event any more.
	ErrEventCancelled = errcode.New(errcode.Conflict, "the event is cancelled", "The event is cancelled, so nobody can be added.")

	// ErrNoAccess means that nobody can be added to an event yet: it was not published, or says
	// nothing of who can register.
	ErrNoAccess = errcode.New(errcode.Conflict, "the event takes no registrations", "The event takes no registrations. Choose its Access, and publish it.")

	// ErrNoEmail means that an email is not one.
	ErrNoEmail = errcode.New(errcode.Invalid, "the email is not valid", "The email is not a valid address.")

	// ErrLongEmail means that an email is longer than the platform takes.
	ErrLongEmail = errcode.New(errcode.Invalid, "the email is too long", fmt.Sprintf("The email must have %d characters at most.", maxGuestText))

	// ErrNobody means that there is neither an email nor a name.
	ErrNobody = errcode.New(errcode.Invalid, "there is no email and no name", "Write an email, or a name for somebody without one.")

	// ErrNoName means that a name cannot be kept.
	ErrNoName = errcode.New(errcode.Invalid, "the name is not valid", fmt.Sprintf("The name must be one line of %d characters at most.", maxGuestText))
)

// FullError means that all places of an event are taken.
type FullError struct{ Most int }

func (e *FullError) Error() string { return "all places are taken" }

// Describe says how many places there are.
func (e *FullError) Describe() errcode.Description {
	places := fmt.Sprintf("All %d places are taken.", e.Most)
	if e.Most == 1 {
		places = "The one place is taken."
	}
	return errcode.Description{Code: errcode.Conflict, Message: places}
}

// checked trims the texts, and sets By to "Staff" if it is empty. Errors: ErrNobody, ErrNoEmail, ErrLongEmail, ErrNoName.
func (g Addition) checked() (Addition, error) {
	g.Email, g.Name, g.By = strings.TrimSpace(g.Email), strings.TrimSpace(g.Name), clip.Text(cmp.Or(strings.TrimSpace(g.By), "Staff"), maxGuestText)
	if !isLine(g.Name) {
		return g, ErrNoName
	}
	switch {
	case g.Email == "" && g.Name == "":
		return g, ErrNobody
	case utf8.RuneCountInString(g.Email) > maxGuestText:
		return g, ErrLongEmail
	case g.Email != "" && (!isLine(g.Email) || !emailaddr.IsValid(g.Email)):
		return g, ErrNoEmail
	}
	return g, nil
}

// Check says why nobody can be added by such texts. Errors: ErrNobody, ErrNoEmail, ErrLongEmail, ErrNoName.
func (g Addition) Check() error {
	_, err := g.checked()
	return err
}

// MayBeAdded says why staff can add nobody to an event. A deadline, or the end of the event, is no
// reason for them. Errors: ErrEventCancelled, ErrNoAccess.
func MayBeAdded(t events.Terms) error {
	switch {
	case t.IsCancelled:
		return ErrEventCancelled
	case t.Access == "":
		return ErrNoAccess
	}
	return nil
}

// Add registers the member with an email for an event; there is a new one on the platform if there
// was none. Without an email it registers a walk-in. It returns false for somebody who is registered
// already. Errors: events.ErrNotFound, ErrNobody, ErrNoEmail, ErrLongEmail, ErrNoName, ErrEventCancelled, ErrNoAccess, *FullError, ErrWalkIns,
// *platform.Refusal, *PlatformError, events.ErrBusy, those of the store.
func (g *GuestList) Add(ctx context.Context, host MemberHost, site, event string, guest Addition) (added Registrant, isNew bool, err error) {
	if guest, err = guest.checked(); err != nil {
		return Registrant{}, false, err
	}
	who := Reader{Member: walkInOf(site, event, guest.Key), Name: guest.Name}
	if guest.Email != "" {
		member, err := g.memberOf(ctx, host, site, event, guest)
		if err != nil {
			return Registrant{}, false, err
		}
		who = Reader{Member: member.UUID, Email: clip.Text(member.Email, maxGuestText), Name: clip.Text(cmp.Or(member.Name, guest.Name), maxGuestText)}
	}
	return g.seat(ctx, site, event, who.Member, guest.OverLimit, func(b *booking, most int) error {
		if guest.Email == "" {
			if err := b.boundWalkIns(ctx); err != nil {
				return err
			}
		}
		return b.seat(ctx, most, who, guest.By)
	})
}

// memberOf finds the member with the email of a guest, or makes one, if the guest can be added.
func (g *GuestList) memberOf(ctx context.Context, host MemberHost, site, event string, guest Addition) (platform.Member, error) {
	e, err := events.Find(ctx, g.events, site, event)
	if err != nil {
		return platform.Member{}, err
	}
	of, err := offerOf(ctx, g.db.Read, &e)
	if err == nil {
		err = MayBeAdded(of.terms)
	}
	if err != nil {
		return platform.Member{}, err
	}
	isFull := of.terms.Most > 0 && of.taken >= of.terms.Most && !guest.OverLimit
	member, err := host.FindByEmail(ctx, guest.Email)
	switch {
	case errors.Is(err, platform.ErrNotFound) && isFull:
		return platform.Member{}, &FullError{of.terms.Most}
	case errors.Is(err, platform.ErrNotFound):
		member, err = g.makeMember(ctx, host, site, guest)
	}
	if err == nil && member.UUID == "" {
		err = errors.New("the platform returned a member without a UUID")
	}
	return member, ofPlatform(err)
}

// makeMember makes a member who gets no newsletter: nobody has asked for one.
func (g *GuestList) makeMember(ctx context.Context, host MemberHost, site string, guest Addition) (platform.Member, error) {
	made, err := host.Create(ctx, platform.Member{Email: guest.Email, Name: guest.Name})
	if isRefusal(err) { // somebody else has made the member at this moment
		if member, again := host.FindByEmail(ctx, guest.Email); again == nil {
			return member, nil
		}
	}
	if err != nil {
		return platform.Member{}, err
	}
	if err := g.changed(ctx, site, made.ID); err != nil { // a comparison finds the member later
		g.logger.Debug("cannot read new registrant", zap.String("site", site), zap.Error(err))
	}
	return made, nil
}

// Restore takes back that a member's registration was cancelled. The member keeps the time and the
// check-in. Errors: events.ErrNotFound, ErrNoRegistrant, ErrEventCancelled, ErrNoAccess, *FullError,
// events.ErrBusy, those of the store.
func (g *GuestList) Restore(ctx context.Context, site, event, member string, isOverLimit bool) (restored Registrant, isNew bool, err error) {
	return g.seat(ctx, site, event, member, isOverLimit, func(b *booking, most int) error {
		if was, err := registrant(ctx, b.tx, b.key); err != nil {
			return err
		} else if was.IsWalkIn() && was.Name == "" { // nobody knows who that is
			return ErrNoRegistrant
		}
		return b.seatAgain(ctx, most)
	})
}

// seat registers a member by do, unless they are registered, and has them labelled.
func (g *GuestList) seat(ctx context.Context, site, event, member string, isOverLimit bool, do func(b *booking, most int) error) (got Registrant, isNew bool, err error) {
	got, err = g.change(ctx, placeKey{site, event, member}, func(b *booking) (isRelabelled bool, err error) {
		if !b.at.IsZero() {
			isNew = b.did != "" // in the commit that was lost, which was kept
			return false, nil
		}
		isNew = false
		if err := MayBeAdded(b.of.terms); err != nil {
			return false, err
		}
		most := b.of.terms.Most
		if isOverLimit {
			most = 0
		}
		if err := do(b, most); errors.Is(err, errFull) {
			return false, &FullError{b.of.terms.Most}
		} else if err != nil {
			return false, err
		}
		isNew, b.did = true, cmp.Or(b.did, "added")
		return b.of.hasLabels, nil
	})
	return got, isNew && err == nil, err
}

// Remove cancels a member's registration. by is the name of the staff. It is no error if the member
// has cancelled already. Errors: events.ErrNotFound, ErrNoRegistrant, events.ErrBusy, those of the
// store.
func (g *GuestList) Remove(ctx context.Context, site, event, member, by string) (Registrant, error) {
	return g.change(ctx, placeKey{site, event, member}, func(b *booking) (isRelabelled bool, err error) {
		if b.at.IsZero() {
			return false, nil
		}
		b.did = "removed"
		return true, b.unseat(ctx, clip.Text(cmp.Or(by, "Staff"), maxGuestText))
	})
}

// CheckIn checks a registered member in, or takes that back. at is when somebody pressed the
// button, zero for now: a press that arrives after a later one is ignored. Errors:
// events.ErrNotFound, ErrNoRegistrant, ErrNotRegistered, events.ErrBusy, those of the store.
func (g *GuestList) CheckIn(ctx context.Context, site, event, member string, isIn bool, at time.Time) (Registrant, error) {
	return g.change(ctx, placeKey{site, event, member}, func(b *booking) (isRelabelled bool, err error) {
		was, err := registrant(ctx, b.tx, b.key)
		switch {
		case err != nil:
			return false, err
		case b.at.IsZero() && isIn:
			return false, ErrNotRegistered
		}
		pressed := at
		if pressed.IsZero() || pressed.After(b.now) { // the clock of a phone may be fast
			pressed = b.now
		}
		if isIn != was.CheckedInAt.IsZero() { // but an earlier press that is still to arrive must not win
			return false, b.confirmCheckIn(ctx, pressed)
		}
		isChanged, err := b.checkIn(ctx, isIn, pressed)
		switch {
		case isChanged && isIn:
			b.did = "checked in"
		case isChanged:
			b.did = "check-in undone"
		}
		return false, err
	})
}

// change has do change a member's registration, and returns it as it is then.
func (g *GuestList) change(ctx context.Context, key placeKey, do func(*booking) (isRelabelled bool, err error)) (got Registrant, err error) {
	if !events.IsID(key.event) {
		return Registrant{}, events.ErrNotFound
	}
	if !isLine(key.member) || key.member == "" {
		return Registrant{}, ErrNoRegistrant
	}
	hold := func(tx *sql.Tx) (events.Event, error) { return g.events.Hold(ctx, tx, key.site, key.event) }
	b, err := g.seats.change(ctx, hold, key.site, key.member, func(b *booking) error {
		isRelabelled, err := do(b)
		if err != nil {
			return err
		}
		if got, err = registrant(ctx, b.tx, b.key); err != nil {
			return err
		}
		b.at = got.registeredAt()
		if isRelabelled {
			b.relabel(got.Email)
		}
		return nil
	})
	if err != nil {
		return Registrant{}, err
	}
	if b.did != "" {
		audit.Note(ctx, key.site, "guest", key.event+"/"+key.member, b.did)
	}
	return got, nil
}
