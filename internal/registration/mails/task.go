package mails

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file decides what a registrant is to be told, and sends it.

// What a task is about.
const (
	confirm = "confirm" // a registration
	change  = "change"  // of the event, since they were last told
	remind  = "remind"  // of an event that is soon
	moveUp  = "moveup"  // from the waiting list
	invite  = "invite"  // from the waiting list

	fromStaff = FromStaff // with the ID of the message behind a hyphen
	trial     = "trial"   // of a message, by staff
)

// Kinds of mails, which are also the beginning of their reasons, and labels of metrics.
const (
	Confirmation = "confirmation"
	Moved        = "moved"
	Cancelled    = "cancelled"
	Reminder     = "reminder"
	Place        = "place"      // from the waiting list
	Invitation   = "invitation" // to take such a place
	FromStaff    = "message"    // that staff have written
)

// toldCancelled is what a mail said of an event that was cancelled.
const toldCancelled = "cancelled"

// taskOf is the key of a task.
func taskOf(what, event, member string) string { return what + "." + event + "." + member }

// kindOf is what a registrant is to be sent now, "" for nothing.
func kindOf(what string, e *events.Event, r told, now time.Time) string {
	terms := e.Terms()
	switch isCancelled := e.Status == events.Cancelled; {
	case what == fromStaff && e.IsPublic() && !r.isQuiet && !r.registeredAt.After(r.message.At): // also after the event
		return FromStaff
	case !e.IsPublic() || terms.IsOver(now) || what == fromStaff:
	case what == confirm && !isCancelled:
		return Confirmation
	case what == moveUp && !isCancelled:
		return Place
	case what == invite && !isCancelled && now.Before(r.offeredUntil):
		return Invitation
	case what == change && isCancelled && r.last != toldCancelled:
		return Cancelled
	case isCancelled:
	case what == change && r.last == toldCancelled: // it takes place after all
		return Confirmation
	case what == change && before(e, r, now) != e.Schedule():
		return Moved
	case what == remind && !r.isQuiet && reminderOf(e, r, now) != 0:
		return Reminder
	}
	return ""
}

// reminderOf is how long before the event the reminder is for that a registrant is to get now, 0 for none. In its last hour the
// one for the hour is also for who has missed that for the day.
func reminderOf(e *events.Event, r told, now time.Time) time.Duration {
	start := e.When().Start
	day, hour := r.settings.Reminders(e.Terms())
	switch left := start.Sub(now); {
	case start.IsZero() || left <= 0 || left > dayBefore || now.Sub(r.registeredAt) < freshTime:
	case left <= hourBefore && hour:
		if now.Sub(r.lastAt) >= freshTime {
			return hourBefore
		}
	case day:
		return dayBefore
	}
	return 0
}

// before is when and where the event is as far as a registrant knows. Who got no mail about it is told of the last moves only: they may
// have registered long before the site sent mails.
func before(e *events.Event, r told, now time.Time) events.Schedule {
	if was, ok := events.ScheduleOf(r.last); ok {
		return was
	}
	known := r.registeredAt
	if late := now.Add(-moveTime); known.Before(late) {
		known = late
	}
	if was := e.Terms().MovedFrom(known); was != nil {
		return *was
	}
	return e.Schedule()
}

// reasonOf tells apart the mails of a kind.
func reasonOf(kind string, e *events.Event, r told, now time.Time) string {
	switch {
	case kind == Confirmation && r.last != toldCancelled:
		return kind + " " + strconv.FormatInt(r.registeredAt.UnixMilli(), 10)
	case kind == Place:
		return kind + " " + strconv.FormatInt(r.registeredAt.UnixMilli(), 10)
	case kind == Invitation:
		return kind + " " + strconv.FormatInt(r.offeredUntil.UnixMilli(), 10)
	case kind == FromStaff:
		return kind + " " + r.message.ID
	case kind == Reminder && reminderOf(e, r, now) == hourBefore:
		return kind + " hour " + strconv.FormatInt(e.When().Start.UnixMilli(), 10)
	case kind == Reminder:
		return kind + " " + strconv.FormatInt(e.When().Start.UnixMilli(), 10)
	}
	return kind + " " + strconv.FormatInt(e.Revision, 10)
}

// do sends a registrant what they are to be told.
func (s *Service) do(ctx context.Context, t work.Task) work.Result {
	again := func(reason string, err error) work.Result {
		if err != nil {
			s.warn.Warn(t.Site, "cannot send a mail yet; retrying", zap.Error(err))
		}
		return work.Result{Outcome: work.Again, Reason: reason, IsUnasked: true}
	}
	what, rest, _ := strings.Cut(t.Key, ".")
	event, member, _ := strings.Cut(rest, ".")
	what, message, _ := strings.Cut(what, "-")
	server := s.Server(t.Site)
	if server == nil {
		return again("the site sends no mails any more", nil)
	}
	e, err := events.Find(ctx, s.Events, t.Site, event)
	if err != nil && !errors.Is(err, events.ErrNotFound) {
		return again(storeAway, err)
	}
	find := s.registrant
	if what == invite {
		find = s.waiter
	}
	r, guest, isThere, err := find(ctx, t.Site, event, member)
	if err != nil {
		return again(storeAway, err)
	}
	if message != "" && isThere {
		if r.message, isThere, err = s.message(ctx, t.Site, event, message); err != nil {
			return again(storeAway, err)
		}
	}
	kind, now := "", s.Now()
	if isThere {
		kind = kindOf(what, &e, r, now)
	}
	if kind == "" {
		return work.Result{Outcome: work.Done}
	}
	reason := reasonOf(kind, &e, r, now)
	switch may, err := s.may(ctx, t.Site, event, member, reason); {
	case err != nil:
		return again(storeAway, err)
	case may == isDone:
		return work.Result{Outcome: work.Done}
	case may == isTooMuch:
		reason = "bound " + s.Now().UTC().Format(time.DateOnly) // once a day, however often they register and cancel
		return work.Result{Outcome: work.Done, Settle: s.note(t.Site, event, reason, guest, "", tooManyToOne)}
	case may == isTooFast:
		r := again("the site has sent as many mails as it may for now", nil)
		r.Pauses = true
		return r
	}
	m, err := s.write(ctx, server, kind, &e, r, guest)
	if err != nil {
		return again(err.Error(), nil)
	}
	m.ID = idOf(reason, event, member)
	err = server.Send(ctx, m)
	refusal, isRefused := errors.AsType[*mail.Refusal](err)
	switch {
	case err != nil && !isRefused:
		s.Sent(t.Site, kind, "failed")
		s.warn.Warn(t.Site, "cannot send a mail yet; retrying", zap.Error(err))
		_, isDeferred := errors.AsType[*mail.Deferral](err)
		return work.Result{Outcome: work.Again, Reason: clip.Text(err.Error(), maxReason), IsUnanswered: !isDeferred}
	case isRefused:
		s.Sent(t.Site, kind, "refused")
		return work.Result{Settle: s.note(t.Site, event, reason, guest, "", strconv.Itoa(refusal.Code)+" "+refusal.Text)}
	}
	s.Sent(t.Site, kind, "sent")
	said := e.Schedule().AsText()
	switch kind {
	case Cancelled:
		said = toldCancelled
	case Invitation, FromStaff: // which have no calendar file
		said = ""
	}
	return work.Result{Settle: s.note(t.Site, event, reason, guest, said, "")}
}

const (
	storeAway = "the store does not respond"

	// tooManyToOne is noted of a mail that a registrant does not get.
	tooManyToOne = "They were sent as many mails today as one registrant may get."

	maxReason = 300 // code points
)

// registrant finds a registrant who is to be told something. isThere is false for one who has cancelled.
func (s *Service) registrant(ctx context.Context, site, event, member string) (r told, guest registration.Registrant, isThere bool, err error) {
	r, err = scanTold(s.DB.Read.QueryRowContext(ctx, findTold, site, event, member))
	if errors.Is(err, sql.ErrNoRows) {
		return r, guest, false, nil
	}
	var settings events.Settings
	if err == nil {
		_, settings, err = s.Events.Version(ctx, site)
		r.settings = settings.Mails
	}
	if err == nil {
		guest, err = s.Guests.Registrant(ctx, site, event, member)
	}
	return r, guest, err == nil, database.Wrap("finding whom to send a mail", err)
}

// waiter is registrant for somebody who waits for a place.
func (s *Service) waiter(ctx context.Context, site, event, member string) (r told, guest registration.Registrant, isThere bool, err error) {
	w, err := s.Guests.Waiter(ctx, site, event, member)
	if errors.Is(err, registration.ErrNotWaiting) {
		return r, guest, false, nil
	}
	var settings events.Settings
	if err == nil {
		_, settings, err = s.Events.Version(ctx, site)
	}
	guest = registration.Registrant{Member: member, Email: w.Email, Name: w.Name, Language: w.Language}
	return told{member: member, email: w.Email, offeredUntil: w.OfferedUntil, settings: settings.Mails}, guest, err == nil, err
}

// permission is whether a mail may be sent.
type permission int

const (
	isAllowed permission = iota
	isDone               // the registrant got it
	isTooFast            // for the site
	isTooMuch            // for the registrant
)

const (
	findMail = `SELECT (SELECT COUNT(*) FROM mails WHERE site = $1 AND event = $2 AND member = $3 AND reason = $4),
		(SELECT COUNT(*) FROM mails WHERE site = $1 AND member = $3 AND sent_at > $6),
		(SELECT COUNT(*) FROM mails WHERE site = $1 AND sent_at > $5), (SELECT COUNT(*) FROM mails WHERE site = $1 AND sent_at > $6)`

	noteMail = `INSERT INTO mails (site, event, member, reason, sent_at, told, refusal) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (site, event, member, reason) DO NOTHING`
	forgetMail = `DELETE FROM mails WHERE site = $1 AND event = $2 AND member = $3 AND reason = $4`
)

// may counts the mails of all edges, and near a bound those that are being sent too, before those that were: so the edges together never
// pass it.
func (s *Service) may(ctx context.Context, site, event, member, reason string) (permission, error) {
	n, err := s.count(ctx, site, event, member, reason)
	sending := 1 // this one
	if err == nil && (n.minute >= maxMinute/2 || n.day >= maxDay-maxMinute/2) {
		if sending, err = s.Queue.UnderWay(ctx, site, Kind); err == nil {
			n, err = s.count(ctx, site, event, member, reason)
		}
	}
	others := max(sending-1, 0)
	switch {
	case err != nil:
		return isTooFast, database.Wrap("counting mails", err)
	case n.same > 0:
		return isDone, nil
	case n.ofMember >= maxOfMember:
		return isTooMuch, nil
	case n.minute+others >= maxMinute || n.day+others >= maxDay:
		return isTooFast, nil
	}
	return isAllowed, nil
}

// counts are of mails that are noted.
type counts struct{ same, ofMember, minute, day int }

func (s *Service) count(ctx context.Context, site, event, member, reason string) (n counts, err error) {
	now := s.Now()
	err = s.DB.Read.QueryRowContext(ctx, findMail, site, event, member, reason, now.Add(-time.Minute).UnixMilli(), now.Add(-24*time.Hour).UnixMilli()).
		Scan(&n.same, &n.ofMember, &n.minute, &n.day)
	return n, err
}

// note notes what became of a mail, in the transaction that ends its work.
func (s *Service) note(site, event, reason string, to registration.Registrant, said, refusal string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		if refusal != "" || to.Refused != nil {
			if err := s.Guests.NoteMail(ctx, tx, site, event, to.Member); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, noteMail, site, event, to.Member, reason, s.Now().UnixMilli(), said, refusal)
		return err
	}
}

// idOf is the same for each attempt at a mail.
func idOf(reason, event, member string) string {
	return strings.ToLower(strings.ReplaceAll(reason, " ", ".")) + "." + event + "." + member
}

// These are reasons for which a mail cannot be written yet.
var (
	errUnknown = errors.New("the platform has not said yet what the publication is called")
	errNoKey   = errors.New("the platform's key is not known")
)

// write writes a mail. Errors: errUnknown, errNoKey, or why there is no calendar file.
func (s *Service) write(ctx context.Context, server *mail.Server, kind string, e *events.Event, r told, guest registration.Registrant) (mail.Message, error) {
	of, isKnown := s.Publication(ctx, e.Site)
	key := s.LinkKey(e.Site)
	switch {
	case !isKnown:
		return mail.Message{}, errUnknown
	case key == nil:
		return mail.Message{}, errNoKey
	}
	language := guest.Language
	if _, ok := messaging.Language(language); !ok {
		language, ok = messaging.Language(of.Language)
		if !ok {
			language = messaging.DefaultLanguage
		}
	}
	l := letter{
		Kind: kind, Language: language, Publication: of.Publication, Event: e.Mailed(language),
		Message: r.message.Draft, Text: r.settings.Texts[kind],
	}
	if kind == Moved {
		l.Before = e.ScheduleText(language, before(e, r, s.Now()))
	}
	token := "token=" + registration.MailToken(key, e.ID, r.member)
	isOff := e.Status == events.Cancelled || e.Terms().IsOver(s.Now())
	switch {
	case isOff:
	case kind == Invitation:
		l.Until = e.MomentText(language, r.offeredUntil)
	default:
		l.Cancel = of.Address(e.ID, CancelPage, token)
	}
	stop := of.Address(e.ID, StopPage, token)
	if kind == FromStaff {
		l.Stop = stop
	}
	m := l.message()
	if kind == Reminder || kind == FromStaff {
		m.Unsubscribe, m.OneClick = stop, true
	}
	m.To, m.ToName = guest.Email, guest.Name
	var err error
	if kind != Reminder && kind != Invitation && kind != FromStaff {
		m.Calendar, m.Method, err = e.MailedCalendar(server.From())
	}
	return m, err
}

// These are pages for registrants, behind an event's address.
const (
	CancelPage = "cancel"
	StopPage   = "mails"
)
