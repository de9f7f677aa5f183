package events

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/internal/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/errcode"
	"github.com/lychgate/caddy-lychgate/platform"
)

// This file is what staff change of who has registered (docs/registration.md#guest-list).

// MemberHost is a platform that has the members whom staff add.
type MemberHost interface {
	// FindByEmail returns the member with an email. Errors: platform.ErrNotFound.
	FindByEmail(ctx context.Context, email string) (platform.Member, error)

	// Create makes a member. An email that another member has is a *platform.Refusal.
	Create(ctx context.Context, m platform.Member) (platform.Member, error)
}

// Addition is somebody whom staff register.
type Addition struct {
	Email, Name string
	By          string // the name of the staff
	OverLimit   bool   // also if all places are taken
}

// maxGuestText bounds an email, a name, and the name of staff, in code points. It is Ghost's bound
// of the first two.
const maxGuestText = 191

// Errors of changes by staff.
var (
	// ErrNoRegistrant means that a member has not registered for an event.
	ErrNoRegistrant = errcode.New(errcode.NotFound, "the member has not registered", "This member has not registered for the event.")

	// ErrNotRegistered means that a member who is to be checked in has cancelled.
	ErrNotRegistered = errcode.New(errcode.Conflict, "the member has cancelled", "This member has cancelled. Add them again first.")

	// ErrEventCancelled means that nobody can be added to an event any more.
	ErrEventCancelled = errcode.New(errcode.Conflict, "the event is cancelled", "The event is cancelled, so nobody can be added.")

	// ErrNoAccess means that nobody can be added to an event yet: it was not published, or says
	// nothing of who can register.
	ErrNoAccess = errcode.New(errcode.Conflict, "the event takes no registrations", "The event takes no registrations. Choose its Access, and publish it.")

	// ErrNoEmail means that an email is not one.
	ErrNoEmail = errcode.New(errcode.Invalid, "the email is not valid", fmt.Sprintf("The email is not a valid address of %d characters at most.", maxGuestText))

	// ErrNoName means that a name cannot be kept.
	ErrNoName = errcode.New(errcode.Invalid, "the name is not valid", fmt.Sprintf("The name must be a text of %d characters at most.", maxGuestText))
)

// FullError means that all places of an event are taken.
type FullError struct{ Most int }

func (e *FullError) Error() string { return "all places are taken" }

// Describe implements [errcode.Described].
func (e *FullError) Describe() errcode.Description {
	places := fmt.Sprintf("All %d places are taken.", e.Most)
	if e.Most == 1 {
		places = "The one place is taken."
	}
	return errcode.Description{Code: errcode.Conflict, Message: places}
}

// checked returns an addition as it is kept. Errors: ErrNoEmail, ErrNoName.
func (g Addition) checked() (Addition, error) {
	g.Email, g.Name, g.By = strings.TrimSpace(g.Email), strings.TrimSpace(g.Name), clip.Text(cmp.Or(strings.TrimSpace(g.By), "Staff"), maxGuestText)
	if !isLine(g.Name) {
		return g, ErrNoName
	}
	if !isLine(g.Email) || !emailaddr.IsValid(g.Email) {
		return g, ErrNoEmail
	}
	return g, nil
}

// isLine reports whether a text can be kept, and is a line that is not too long.
func isLine(text string) bool {
	return isText(text) && !strings.ContainsAny(text, "\t\r\n") && tooLong(text, maxGuestText) == ""
}

// mayBeAdded says why nobody can be added to an event. A deadline, or the end of the event, is no
// reason for staff.
func (of *offer) mayBeAdded() error {
	switch {
	case of.terms.IsCancelled:
		return ErrEventCancelled
	case of.terms.Access == "":
		return ErrNoAccess
	}
	return nil
}

// MayBeAdded says why staff can add nobody to an event. Errors: ErrEventCancelled, ErrNoAccess.
func (e *Event) MayBeAdded() error { return (&offer{terms: e.terms()}).mayBeAdded() }

// Add registers the member with an email for an event; there is a new one on the platform if there
// was none. It returns false for a member who is registered already. Errors: ErrNotFound,
// ErrNoEmail, ErrNoName, ErrEventCancelled, ErrNoAccess, *FullError, *platform.Refusal,
// *PlatformError, ErrBusy, those of the store.
func (r *Registrar) Add(ctx context.Context, host MemberHost, site, event string, guest Addition) (added Registrant, isNew bool, err error) {
	if guest, err = guest.checked(); err != nil {
		return Registrant{}, false, err
	}
	if !isID(event) {
		return Registrant{}, false, ErrNotFound
	}
	of, err := readOffer(ctx, r.db.Read, findEvent, site, event) // before a member is made
	if err == nil {
		err = of.mayBeAdded()
	}
	if err != nil {
		return Registrant{}, false, err
	}
	isFull := of.terms.Most > 0 && of.taken >= of.terms.Most && !guest.OverLimit
	member, err := host.FindByEmail(ctx, guest.Email)
	switch {
	case errors.Is(err, platform.ErrNotFound) && isFull:
		return Registrant{}, false, &FullError{of.terms.Most}
	case errors.Is(err, platform.ErrNotFound):
		member, err = r.makeMember(ctx, host, site, guest)
	}
	if err != nil {
		return Registrant{}, false, ofPlatform(err)
	}
	if member.UUID == "" {
		return Registrant{}, false, ofPlatform(errors.New("the platform returned a member without a UUID"))
	}
	who := Reader{Member: member.UUID, Email: clip.Text(member.Email, maxGuestText), Name: clip.Text(cmp.Or(member.Name, guest.Name), maxGuestText)}
	return r.seatAgain(ctx, site, event, who.Member, guest.OverLimit, func(tx *sql.Tx, of *offer, most int) error {
		return seat(ctx, tx, site, of, most, who, r.db.Now(), guest.By)
	})
}

// makeMember makes a member who gets no newsletter: nobody has asked for one.
func (r *Registrar) makeMember(ctx context.Context, host MemberHost, site string, guest Addition) (platform.Member, error) {
	made, err := host.Create(ctx, platform.Member{Email: guest.Email, Name: guest.Name})
	if isRefusal(err) { // somebody else has made the member at this moment
		if member, again := host.FindByEmail(ctx, guest.Email); again == nil {
			return member, nil
		}
	}
	if err != nil {
		return platform.Member{}, err
	}
	if err := r.changed(ctx, site, made.ID); err != nil { // a comparison finds the member later
		r.logger.Debug("cannot read new registrant", zap.String("site", site), zap.Error(err))
	}
	return made, nil
}

// Restore takes back that a member's registration was cancelled. The member keeps the time and the
// check-in. Errors: ErrNotFound, ErrNoRegistrant, ErrEventCancelled, ErrNoAccess, *FullError,
// ErrBusy, those of the store.
func (r *Registrar) Restore(ctx context.Context, site, event, member string, isOverLimit bool) (restored Registrant, isNew bool, err error) {
	return r.seatAgain(ctx, site, event, member, isOverLimit, func(tx *sql.Tx, of *offer, most int) error {
		if _, err := registrant(ctx, tx, placeKey{site, event, member}); err != nil {
			return err
		}
		if err := takePlaceOf(ctx, tx, site, of, most); err != nil {
			return err
		}
		return only(exec(ctx, tx, restore, site, event, member))
	})
}

// seatAgain registers a member by do, unless they are registered, and has them labelled.
func (r *Registrar) seatAgain(ctx context.Context, site, event, member string, isOverLimit bool, do func(tx *sql.Tx, of *offer, most int) error) (got Registrant, isNew bool, err error) {
	got, err = r.changeByStaff(ctx, placeKey{site, event, member}, func(tx *sql.Tx, of *offer, isRegistered bool) (isEnqueued bool, err error) {
		isNew = false // a transaction may be run again
		if isRegistered {
			return false, nil
		}
		if err := of.mayBeAdded(); err != nil {
			return false, err
		}
		most := of.terms.Most
		if isOverLimit {
			most = 0
		}
		if err := do(tx, of, most); errors.Is(err, errFull) {
			return false, &FullError{of.terms.Most}
		} else if err != nil {
			return false, err
		}
		isNew = true
		return of.hasLabels, nil
	})
	return got, isNew && err == nil, err
}

// Remove cancels a member's registration. by is the name of the staff. It is no error if the member
// has cancelled already. Errors: ErrNotFound, ErrNoRegistrant, ErrBusy, those of the store.
func (r *Registrar) Remove(ctx context.Context, site, event, member, by string) (Registrant, error) {
	return r.changeByStaff(ctx, placeKey{site, event, member}, func(tx *sql.Tx, of *offer, isRegistered bool) (isEnqueued bool, err error) {
		if !isRegistered {
			return false, nil
		}
		return true, unseat(ctx, tx, site, of, member, r.db.Now(), clip.Text(cmp.Or(by, "Staff"), maxGuestText))
	})
}

// CheckIn checks a registered member in, or takes that back. at is when somebody pressed the
// button, zero for now: a press that arrives after a later one is ignored. Errors: ErrNotFound,
// ErrNoRegistrant, ErrNotRegistered, ErrBusy, those of the store.
func (r *Registrar) CheckIn(ctx context.Context, site, event, member string, isIn bool, at time.Time) (Registrant, error) {
	return r.changeByStaff(ctx, placeKey{site, event, member}, func(tx *sql.Tx, _ *offer, isRegistered bool) (isEnqueued bool, err error) {
		was, err := registrant(ctx, tx, placeKey{site, event, member})
		switch {
		case err != nil:
			return false, err
		case !isRegistered && isIn:
			return false, ErrNotRegistered
		case isIn != was.CheckedInAt.IsZero():
			return false, nil
		}
		now := r.db.Now()
		if at.IsZero() || at.After(now) { // the clock of a phone may be fast
			at = now
		}
		var checkedIn any
		if isIn {
			checkedIn = at.UnixMilli()
		}
		if err := only(exec(ctx, tx, countChange, site, event)); err != nil {
			return false, err
		}
		_, err = exec(ctx, tx, checkIn, site, event, member, checkedIn, at.UnixMilli())
		return false, err
	})
}

// changeByStaff changes a member's registration, and returns it as it is then.
func (r *Registrar) changeByStaff(ctx context.Context, key placeKey, change func(tx *sql.Tx, of *offer, isRegistered bool) (isEnqueued bool, err error)) (got Registrant, err error) {
	if !isID(key.event) {
		return Registrant{}, ErrNotFound
	}
	if !isLine(key.member) || key.member == "" {
		return Registrant{}, ErrNoRegistrant
	}
	var isEnqueued bool
	err = r.inEvent(ctx, findEvent, key.site, key.event, func(tx *sql.Tx, of offer) error {
		at, err := readPlace(ctx, tx, key)
		if err != nil {
			return err
		}
		if isEnqueued, err = change(tx, &of, !at.IsZero()); err != nil {
			return err
		}
		if got, err = registrant(ctx, tx, key); err == nil && isEnqueued {
			err = enqueueLabels(ctx, tx, r.work, key.site, key.member, got.Email)
		}
		return err
	})
	if err != nil {
		return Registrant{}, wrap("changing a registration", err)
	}
	if isEnqueued {
		r.work.Wake()
	}
	at := got.RegisteredAt
	if !got.CancelledAt.IsZero() {
		at = time.Time{}
	}
	r.places.Put(key, at, time.Now())
	return got, nil
}

const (
	countChange = `UPDATE registrations_taken SET version = version + 1 WHERE site = $1 AND event = $2`

	restore = `UPDATE registrations SET cancelled_at = NULL, cancelled_by = '', changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND cancelled_at IS NOT NULL`
	checkIn = `UPDATE registrations SET checked_in_at = $4, check_changed_at = $5, changed = ` + listVersion + `
		WHERE site = $1 AND event = $2 AND member = $3 AND check_changed_at <= $5`
)
