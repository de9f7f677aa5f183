package mails

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file shows staff what they write before others get it.

// trialTimeout bounds a mail that somebody waits for.
const trialTimeout = 8 * time.Second

// Errors of trials.
var (
	ErrNoAddress = errcode.New(errcode.Conflict, "the email of the staff is not known", "Your own email is not known here.")
	ErrManyTries = errcode.NewWait(errcode.RateLimited, time.Hour, "too many mails were sent",
		fmt.Sprintf("You were sent %d mails within a day, or the site has sent as many as it may for now.", maxOfMember))
	errNotWritten = errcode.NewWait(errcode.Busy, time.Minute, "a mail cannot be written yet", "The mail cannot be written yet. Try again in a minute.")
)

// notTaken is why a mail server did not take a mail.
type notTaken struct{ error }

// Describe has what the server said, which has neither a password nor an address. What it did not refuse for good may be sent again.
func (n notTaken) Describe() errcode.Description {
	said := errcode.Description{Code: errcode.Busy, Message: "The mail was not sent: " + n.Error() + ".", Wait: time.Minute}
	if _, isRefused := errors.AsType[*mail.Refusal](n.error); isRefused {
		said.Code, said.Wait = errcode.Conflict, 0
	}
	return said
}

// Preview writes a message as registrants get it. Errors: events.ErrNotFound, ErrNoMails, ErrNotPublic, ErrNoSubject, ErrNoText, those
// of the store, one that is told if it cannot be written yet.
func (s *Service) Preview(ctx context.Context, site, event string, d Draft) (mail.Message, error) {
	d, err := d.checked()
	if err != nil {
		return mail.Message{}, err
	}
	server := s.Server(site)
	if server == nil {
		return mail.Message{}, ErrNoMails
	}
	e, err := events.Find(ctx, s.Events, site, event)
	switch {
	case err != nil:
		return mail.Message{}, err
	case !e.IsPublic():
		return mail.Message{}, ErrNotPublic
	}
	m, err := s.write(ctx, server, FromStaff, &e, told{message: Message{Draft: d}}, registration.Registrant{})
	if errors.Is(err, errUnknown) || errors.Is(err, errNoKey) {
		err = errNotWritten
	}
	m.Unsubscribe, m.OneClick = "", false // which is a registrant's
	return m, err
}

// Try sends a message to one of the staff alone, within the bounds of a registrant. Errors: those of Preview, ErrNoAddress, ErrManyTries,
// and why the server did not take the mail.
func (s *Service) Try(ctx context.Context, site, event string, to platform.StaffMember, d Draft) error {
	if to.Email == "" {
		return ErrNoAddress
	}
	m, err := s.Preview(ctx, site, event, d)
	if err != nil {
		return err
	}
	who, reason := "staff-"+to.ID, trial+" "+rand.Text() // two within a millisecond are two
	switch may, err := s.may(ctx, site, event, who, reason); {
	case err != nil:
		return err
	case may != isAllowed:
		return ErrManyTries
	}
	if _, err := s.DB.Write.ExecContext(ctx, noteMail, site, event, who, reason, s.Now().UnixMilli(), "", ""); err != nil {
		return database.Wrap("noting a mail", err)
	}
	switch n, err := s.count(ctx, site, event, who, reason); {
	case err != nil:
		return database.Wrap("counting mails", err)
	case n.ofMember > maxOfMember: // with those that are tried at this moment
		_, err = s.DB.Write.ExecContext(ctx, forgetMail, site, event, who, reason)
		return errors.Join(ErrManyTries, database.Wrap("taking back the note of a mail", err))
	}
	m.To, m.ToName, m.ID = to.Email, to.Name, idOf(reason, event, "staff")
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	if err := s.Server(site).Send(ctx, m); err != nil {
		s.Sent(site, FromStaff, "failed")
		return notTaken{err}
	}
	s.Sent(site, FromStaff, "sent")
	return nil
}
