package mails

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// This file finds whom of an event to tell what, and when to look again.

const (
	// dayBefore and hourBefore are how long before an event its registrants are reminded.
	dayBefore, hourBefore = 24 * time.Hour, time.Hour

	// freshTime is how long who has registered, or was told when the event is, needs no reminder.
	freshTime = 2 * time.Hour

	// moveTime is how long after a move who got no mail before is told of it: longer than an edge is away.
	moveTime = 7 * 24 * time.Hour

	// planPage is how many registrants are looked at in a transaction.
	planPage = 500
)

// plan enqueues the mails that are due for an event, and returns when the next are.
func (s *Service) plan(ctx context.Context, t work.Task) work.Result {
	e, err := events.Find(ctx, s.Events, t.Site, t.Key)
	if errors.Is(err, events.ErrNotFound) || err == nil && !e.IsPublic() {
		return work.Result{Outcome: work.Done}
	}
	var messages []Message
	if err == nil {
		messages, err = database.List(ctx, s.DB.Read, scanMessage, listUnplanned, t.Site, t.Key)
	}
	if err == nil && len(messages) == 0 && e.Terms().IsOver(s.Now()) {
		return work.Result{Outcome: work.Done}
	}
	after := ""
	for err == nil {
		var page []told
		if page, err = s.registrants(ctx, t.Site, t.Key, after); err != nil || len(page) == 0 {
			break
		}
		after = page[len(page)-1].member
		err = s.DB.InTx(ctx, func(tx *sql.Tx) error { return s.enqueueDue(ctx, tx, &e, page, messages) })
	}
	for _, m := range messages {
		if err == nil {
			_, err = s.DB.Write.ExecContext(ctx, planMessage, t.Site, t.Key, m.ID, s.Now().UnixMilli())
		}
	}
	if err != nil {
		s.warn.Warn(t.Site, "cannot find out whom to send mails yet; retrying", zap.Error(err))
		return work.Result{Outcome: work.Again, Reason: "the store does not respond", IsUnasked: true}
	}
	s.Queue.Wake(t.Site)
	for _, before := range []time.Duration{dayBefore, hourBefore} { // also one that nobody wants yet
		if at := e.When().Start.Add(-before); e.Status == events.Published && at.After(s.Now()) {
			return work.Result{Outcome: work.Later, At: at}
		}
	}
	return work.Result{Outcome: work.Done}
}

// enqueueDue enqueues what some registrants are to be told.
func (s *Service) enqueueDue(ctx context.Context, tx *sql.Tx, e *events.Event, page []told, messages []Message) error {
	for _, r := range page {
		var whats []string
		for _, what := range []string{change, remind} {
			if kindOf(what, e, r, s.Now()) != "" {
				whats = append(whats, what)
			}
		}
		for _, r.message = range messages {
			if kindOf(fromStaff, e, r, s.Now()) != "" {
				whats = append(whats, messagePrefix+r.message.ID)
			}
		}
		for _, what := range whats {
			if err := s.enqueue(ctx, tx, e.Site, taskOf(what, e.ID, r.member), r.email); err != nil {
				return err
			}
		}
	}
	return nil
}

// told is a registrant with what they were told.
type told struct {
	member, email string
	registeredAt  time.Time
	isQuiet       bool
	last          string    // of [mails.told], "" if no mail said anything
	lastAt        time.Time // when that mail was sent
	offeredUntil  time.Time // of one who waits
	message       Message   // of staff, to all
	settings      events.MailSettings
}

const (
	ofLastTold = ` FROM mails m WHERE m.site = $1 AND m.event = $2 AND m.member = r.member AND told <> '' ORDER BY sent_at DESC LIMIT 1)`

	selectTold = `SELECT member, email, registered_at, quiet_at IS NOT NULL, COALESCE((SELECT told` + ofLastTold + `, ''),
		COALESCE((SELECT sent_at` + ofLastTold + `, 0) FROM registrations r
		WHERE site = $1 AND event = $2 AND cancelled_at IS NULL AND email <> ''`
	listTold = selectTold + ` AND member > $3 ORDER BY member LIMIT $4`
	findTold = selectTold + ` AND member = $3`
)

func scanTold(row database.Row) (t told, err error) {
	err = row.Scan(&t.member, &t.email, database.Time(&t.registeredAt), &t.isQuiet, &t.last, database.Time(&t.lastAt))
	return t, err
}

func (s *Service) registrants(ctx context.Context, site, event, after string) ([]told, error) {
	page, err := database.List(ctx, s.DB.Read, scanTold, listTold, site, event, after, planPage)
	if err == nil && len(page) > 0 {
		var settings events.Settings
		_, settings, err = s.Events.Version(ctx, site)
		for i := range page {
			page[i].settings = settings.Mails
		}
	}
	return page, database.Wrap("listing whom to send mails", err)
}
