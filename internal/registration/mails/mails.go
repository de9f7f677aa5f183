// Package mails tells registrants by mail that they are registered, that an event is soon, and what has changed of it
// (docs/mail.md).
//
// What a registrant is to be told follows from the event, the registration and the mails that they got. So nothing is queued
// but whom to look at: [Kind] is work for one registrant, and plans for all of an event. A mail that was taken by the mail server, or
// refused for good, is noted with its reason in the transaction that ends its work, so that it is sent once.
package mails

import (
	"context"
	"database/sql"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Kind is the kind of work that sends a mail to a registrant. Its keys are those of [taskOf].
const Kind = "mails"

// planKind is the kind of check that finds whom of an event to tell. Its keys are events' IDs.
const planKind = "mail_plans"

// server is what its work is brought to, for the queue.
const server = "mail server"

const (
	// sendTimeout bounds an attempt to send a mail, from the connection to the server's answer.
	sendTimeout = time.Minute

	// A site may send maxMinute mails in a minute, so that 5,000 registrants are told within 20, and maxDay in a day; a
	// registrant gets maxOfMember from a site in a day.
	maxMinute, maxDay, maxOfMember = 300, 20_000, 20
)

// ChangeDelay is how long after a change of an event its registrants are told: what changes twice within it is one mail. A test that
// waits for it makes it shorter before it starts an edge.
var ChangeDelay = 5 * time.Minute

// Config is what a Service is made from. All is required.
type Config struct {
	DB     *database.DB
	Events *events.SQL
	Queue  *work.Queue
	Guests *registration.GuestList
	Logger *zap.Logger
	Now    func() time.Time // the store's clock

	// Server sends the mails of a site, nil for a site that sends none, or that this process does not serve. It is the same value
	// until the configuration is another one.
	Server func(site string) *mail.Server

	// Publication is what mails of a site say of it. isKnown is false while the platform does not say.
	Publication func(ctx context.Context, site string) (of events.ForMails, isKnown bool)

	// LinkKey is the secret of a site's links, nil while nobody knows it.
	LinkKey func(site string) []byte

	// Sent counts mails, by kind and what became of them: sent, refused or failed.
	Sent func(site, kind, outcome string)
}

// Service sends the mails of all sites of a process.
type Service struct {
	Config

	warn *warnings.Log
}

// New registers the kinds of work with the queue.
func New(c Config) *Service {
	s := &Service{c, warnings.New(c.Logger, c.Now)}
	of := func(site string) any {
		if server := c.Server(site); server != nil {
			return server
		}
		return nil
	}
	c.Queue.Handle(work.Kind{Name: Kind, Service: server, Platform: of, Do: s.do, Timeout: sendTimeout, IsPersonal: true})
	c.Queue.Handle(work.Kind{Name: planKind, Service: server, Platform: of, Do: s.plan, Timeout: sendTimeout, Most: 4, IsCheck: true})
	return s
}

// Registered has a member told that they are registered, in the transaction that registers them.
func (s *Service) Registered(ctx context.Context, tx *sql.Tx, site, event, member, email string) error {
	if s.Server(site) == nil {
		return nil
	}
	if err := s.Queue.PlanIn(ctx, tx, site, planKind, event, s.Now().Add(ChangeDelay)); err != nil { // for reminders
		return err
	}
	return s.enqueue(ctx, tx, site, taskOf(confirm, event, member), email)
}

// Changed has the registrants of a public event told what has changed of it, in the transaction that changes it.
func (s *Service) Changed(ctx context.Context, tx *sql.Tx, e *events.Event) error {
	if s.Server(e.Site) == nil {
		return nil
	}
	return s.Queue.PlanIn(ctx, tx, e.Site, planKind, e.ID, s.Now().Add(ChangeDelay))
}

// MovedUp has a member who has waited told that they have a place, in the transaction that gives it to them.
func (s *Service) MovedUp(ctx context.Context, tx *sql.Tx, site, event, member, email string) error {
	if s.Server(site) == nil {
		return nil
	}
	return s.enqueue(ctx, tx, site, taskOf(moveUp, event, member), email)
}

// Invited has a member who waits told that a place is kept for them, in the transaction that keeps it.
func (s *Service) Invited(ctx context.Context, tx *sql.Tx, site, event, member, email string) error {
	if s.Server(site) == nil {
		return nil
	}
	return s.enqueue(ctx, tx, site, taskOf(invite, event, member), email)
}

func (s *Service) enqueue(ctx context.Context, tx *sql.Tx, site, key, email string) error {
	_, err := s.Queue.Enqueue(ctx, tx, work.Task{Site: site, Kind: Kind, Key: key, Title: email})
	return err
}

var _ registration.Notifier = (*Service)(nil)
