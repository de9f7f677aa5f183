package registration

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file removes registrations: what they say of a member, and those of an event or a site.

// forgetMember removes what registrations say of a member who was deleted. That they registered
// stays, without saying who they are.
func (s *seats) forgetMember(ctx context.Context, site, member string) error {
	_, err := s.db.Write.ExecContext(ctx, forgetMemberLabels, site, member)
	return database.Wrap("forgetting a registrant", errors.Join(err, s.forgetWaiting(ctx, site, member), s.db.InTx(ctx, func(tx *sql.Tx) error {
		return forget(ctx, tx, site, member)
	})))
}

func forget(ctx context.Context, tx *sql.Tx, site, member string) error {
	for _, text := range []string{countForgotten, forgetPerson} {
		if _, err := tx.ExecContext(ctx, text, site, member); err != nil {
			return err
		}
	}
	return nil
}

const (
	// countForgotten comes first: its rows are what other changes of the lists wait for.
	countForgotten = `UPDATE registrations_taken SET version = version + 1
		WHERE site = $1 AND event IN (SELECT event FROM registrations WHERE site = $1 AND member = $2)`
	forgetPerson = `UPDATE registrations SET email = '', name = '', search = '', changed =
			(SELECT version FROM registrations_taken t WHERE t.site = registrations.site AND t.event = registrations.event)
		WHERE site = $1 AND member = $2`
	forgetMemberLabels = `DELETE FROM registration_labels WHERE site = $1 AND member = $2`

	removeRegistrations = `DELETE FROM registrations WHERE site = $1 AND event = $2`
	removeMessages      = `DELETE FROM mail_messages WHERE site = $1 AND event = $2`
	removeTaken         = `DELETE FROM registrations_taken WHERE site = $1 AND event = $2`
)
