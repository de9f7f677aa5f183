package mails

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
)

// This file is what staff write to all who are registered for an event (docs/mail.md#messages).

// Draft is a message before it is sent. Text is plain: an empty line separates paragraphs.
type Draft struct{ Subject, Text string }

// Message is one that was sent.
type Message struct {
	Draft

	ID         string
	By         string // the name of the staff
	At         time.Time
	Recipients int // when it was sent

	// What became of the mails. The other recipients have cancelled meanwhile, or want no such mails any more.
	Sent, Refused, Pending int

	isPlanned bool // there was work for each recipient
}

const (
	// MaxSubject bounds the subject of a message, in code points.
	MaxSubject = 150

	// MaxText bounds the text of a message, in code points.
	MaxText = 10_000

	// maxMessages is how many messages an event may have in a day: half of the mails that a registrant gets.
	maxMessages = maxOfMember / 2

	// maxListed is how many messages of an event are listed.
	maxListed = 50

	messageIDLength = 26
	messagePrefix   = fromStaff + "-" // of tasks, before the ID
)

// Errors of messages.
var (
	ErrNoMails      = errcode.New(errcode.NotFound, "the site sends no mails", "This site sends no mails to guests.")
	ErrNotPublic    = errcode.New(errcode.Conflict, "the event is not published", "The event is not published, so nobody gets mails about it.")
	ErrNoRecipients = errcode.New(errcode.Conflict, "nobody gets the message", "Nobody who is registered has an email and wants such mails.")
	ErrNoSubject    = errcode.New(errcode.Invalid, "the subject is not valid", fmt.Sprintf("The subject must be one line of 1 to %d characters.", MaxSubject))
	ErrNoText       = errcode.New(errcode.Invalid, "the text is not valid", fmt.Sprintf("The text must have 1 to %d characters.", MaxText))
	ErrOtherMessage = errcode.New(errcode.Conflict, "another message was sent with this key", "Another message was sent with this key.")
	ErrManyMessages = errcode.NewWait(errcode.RateLimited, time.Hour, "the event had the most messages of a day",
		fmt.Sprintf("Guests of this event were sent %d messages within a day, which is the most.", maxMessages))
)

// checked is a draft as it is kept. Errors: ErrNoSubject, ErrNoText.
func (d Draft) checked() (Draft, error) {
	d.Subject = strings.TrimSpace(d.Subject)
	d.Text = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(d.Text))
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch {
	case d.Subject == "" || !events.IsLine(d.Subject, MaxSubject) || strings.ContainsFunc(d.Subject, unicode.IsControl):
		return d, ErrNoSubject
	case d.Text == "" || !utf8.ValidString(d.Text) || utf8.RuneCountInString(d.Text) > MaxText || strings.ContainsFunc(d.Text, isControl):
		return d, ErrNoText
	}
	return d, nil
}

// messageIDOf is the same for the same key of a request, and a new one without a key.
func messageIDOf(site, event, key string) string {
	sum := sha256.Sum256([]byte(site + "\x00" + event + "\x00" + cmp.Or(key, rand.Text())))
	return hex.EncodeToString(sum[:])[:messageIDLength]
}

const (
	selectMessages = `SELECT id, subject, text, sent_by, sent_at, recipients, planned_at IS NOT NULL FROM mail_messages WHERE site = $1 AND event = $2`
	findMessage    = selectMessages + ` AND id = $3`
	listMessages   = selectMessages + ` ORDER BY sent_at DESC, id LIMIT $3`
	listUnplanned  = selectMessages + ` AND planned_at IS NULL ORDER BY sent_at, id`
	countMessages  = `SELECT COUNT(*) FROM mail_messages WHERE site = $1 AND event = $2 AND sent_at > $3`
	insertMessage  = `INSERT INTO mail_messages (site, event, id, subject, text, sent_by, sent_at, recipients) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	planMessage    = `UPDATE mail_messages SET planned_at = $4 WHERE site = $1 AND event = $2 AND id = $3`

	countSent = `SELECT reason, COUNT(*), COUNT(CASE WHEN refusal <> '' THEN 1 END) FROM mails
		WHERE site = $1 AND event = $2 AND reason LIKE '` + FromStaff + ` %' GROUP BY reason`
	countPending = `SELECT COUNT(*) FROM work WHERE site = $1 AND kind = '` + Kind + `' AND key LIKE $2 AND since > 0`
)

func scanMessage(row database.Row) (m Message, err error) {
	err = row.Scan(&m.ID, &m.Subject, &m.Text, &m.By, database.Time(&m.At), &m.Recipients, &m.isPlanned)
	return m, err
}

// message finds a message. isThere is false for one of an event that was deleted.
func (s *Service) message(ctx context.Context, site, event, id string) (m Message, isThere bool, err error) {
	m, err = scanMessage(s.DB.Read.QueryRowContext(ctx, findMessage, site, event, id))
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	return m, err == nil, database.Wrap("finding a message", err)
}

// Reach counts who gets a message about an event, and who of the others wants no such mails. Errors: those of the store.
func (s *Service) Reach(ctx context.Context, site, event string) (recipients, quiet int, err error) {
	all, quiet, err := s.Guests.Mailed(ctx, site, event)
	return all - quiet, quiet, err
}

// Send has a message sent to all who are registered for an event now. A message with the same key is sent once: isNew is false for one
// that was sent before. An empty key is none. Errors: events.ErrNotFound, ErrNoMails, ErrNotPublic, ErrNoRecipients, ErrNoSubject,
// ErrNoText, ErrOtherMessage, ErrManyMessages, those of the store.
func (s *Service) Send(ctx context.Context, site, event, key, by string, d Draft) (m Message, isNew bool, err error) {
	if d, err = d.checked(); err != nil {
		return Message{}, false, err
	}
	if s.Server(site) == nil {
		return Message{}, false, ErrNoMails
	}
	recipients, _, err := s.Reach(ctx, site, event)
	if err != nil {
		return Message{}, false, err
	}
	m = Message{Draft: d, ID: messageIDOf(site, event, key), By: clip.Text(cmp.Or(strings.TrimSpace(by), "Staff"), maxStaffName), Recipients: recipients}
	err = s.DB.InIdempotentTx(ctx, func(tx *sql.Tx, mayBeDone bool) error {
		e, err := s.Events.Hold(ctx, tx, site, event) // so that one message is sent at a time
		if err != nil {
			return err
		}
		before, err := scanMessage(tx.QueryRowContext(ctx, findMessage, site, event, m.ID))
		switch {
		case err == nil && before.Draft != d:
			return ErrOtherMessage
		case err == nil:
			m, isNew = before, mayBeDone && isNew
			return nil
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		isNew = true
		return s.insert(ctx, tx, &e, &m)
	})
	if err == nil && !isNew {
		err = s.addCounts(ctx, site, event, &m)
	} else {
		m.Pending = m.Recipients
	}
	if isNew && err == nil {
		audit.Note(ctx, site, "message", event+"/"+m.ID, "sent")
	}
	return m, isNew && err == nil, database.Wrap("sending a message", err)
}

const maxStaffName = 191 // code points

func (s *Service) insert(ctx context.Context, tx *sql.Tx, e *events.Event, m *Message) error {
	m.At = s.Now().UTC().Truncate(time.Millisecond)
	n := 0
	if err := tx.QueryRowContext(ctx, countMessages, e.Site, e.ID, m.At.Add(-24*time.Hour).UnixMilli()).Scan(&n); err != nil {
		return err
	}
	switch {
	case !e.IsPublic():
		return ErrNotPublic
	case m.Recipients == 0:
		return ErrNoRecipients
	case n >= maxMessages:
		return ErrManyMessages
	}
	if _, err := tx.ExecContext(ctx, insertMessage, e.Site, e.ID, m.ID, m.Subject, m.Text, m.By, m.At.UnixMilli(), m.Recipients); err != nil {
		return err
	}
	return s.Queue.PlanIn(ctx, tx, e.Site, planKind, e.ID, time.Time{})
}

// Messages lists those of an event, the last one first, and what became of their mails. Errors: those of the store.
func (s *Service) Messages(ctx context.Context, site, event string) ([]Message, error) {
	var of []*Message
	list, err := database.List(ctx, s.DB.Read, scanMessage, listMessages, site, event, maxListed)
	if err != nil || len(list) == 0 {
		return nil, database.Wrap("listing messages", err)
	}
	for i := range list {
		of = append(of, &list[i])
	}
	err = s.addCounts(ctx, site, event, of...)
	return list, database.Wrap("counting mails", err)
}

// addCounts adds what became of the mails of an event's messages.
func (s *Service) addCounts(ctx context.Context, site, event string, messages ...*Message) error {
	did := make(map[string][2]int)
	err := database.Each(ctx, s.DB.Read, func(row database.Row) error {
		reason, all, refused := "", 0, 0
		err := row.Scan(&reason, &all, &refused)
		did[reason] = [2]int{all - refused, refused}
		return err
	}, countSent, site, event)
	for _, m := range messages {
		m.Sent, m.Refused = did[FromStaff+" "+m.ID][0], did[FromStaff+" "+m.ID][1]
		if err == nil {
			err = s.DB.Read.QueryRowContext(ctx, countPending, site, taskOf(messagePrefix+m.ID, event, "%")).Scan(&m.Pending)
		}
		if !m.isPlanned {
			m.Pending = max(m.Pending, m.Recipients-m.Sent-m.Refused)
		}
	}
	return err
}
