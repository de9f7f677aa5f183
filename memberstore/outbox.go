package memberstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
)

const markSent = `UPDATE members SET sent_email = $2, sent_key = $3, sent_at = $4 WHERE guid = $1`

var (
	markFailed = `UPDATE members SET attempts = attempts + $8, problem = $2, next_attempt = $3,
			unanswered_at = CASE WHEN unanswered_at > $5 THEN unanswered_at ELSE $5 END,
			platform_id = COALESCE($6, platform_id),
			named_subscription = CASE WHEN named_subscription <= $7 THEN 0 ELSE named_subscription END, ` + fmt.Sprintf(endLease, 4) + `
		WHERE guid = $1`
	markNotSent = `UPDATE members SET sent_email = '', sent_key = '', sent_at = 0 WHERE guid = $1`
)

func (s queue) MarkSent(ctx context.Context, guid, email string, now time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, markSent, guid, email, emailaddr.Key(email), database.Millis(now))
	return database.Wrap("noting that a member is sent", err)
}

func (s queue) MarkApplyAgain(ctx context.Context, m members.Record, f outbox.Failure, owner string) error {
	err := s.withoutRefused(ctx, m, "", func() error {
		_, err := s.markApplied(ctx, m, f, owner)
		return err
	})
	return database.Wrap("noting that a member is to be applied once more", err)
}

func (s queue) MarkFailed(ctx context.Context, guid string, f outbox.Failure, owner string) error {
	attempts := 1
	if f.Untried {
		attempts = 0
	}
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, markFailed, guid, asText(f.Problem), database.Millis(f.Next), owner, database.Millis(f.UnansweredAt), null(f.PlatformID), f.UnnameUpTo, attempts)
		if err == nil && f.NotSent {
			_, err = tx.ExecContext(ctx, markNotSent, guid)
		}
		return err
	})
	return database.Wrap("noting that a member is not applied", err)
}

func (s queue) Revert(ctx context.Context, w members.Write) error {
	refused := w.After.Version
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		if err := noteUndone(ctx, tx, w.After); err != nil {
			return err
		}
		if w.Before == nil {
			return changeOne(tx.ExecContext(ctx, removeMember, w.After.GUID, refused))
		}
		if w.After.AdoptedBy != "" {
			if _, err := tx.ExecContext(ctx, disownMember, w.After.GUID, w.After.AdoptedBy); err != nil {
				return err
			}
		}
		m := *w.Before
		if m.Applied >= m.Version {
			m.Applied = refused + 1 // what was put back is what the platform has
		}
		return replace(ctx, tx, revertMember, m, refused)
	})
	return database.Wrap("putting a member back", err)
}

var _ outbox.Store = (*SQL)(nil)
