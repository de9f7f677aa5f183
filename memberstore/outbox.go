package memberstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/emailaddr"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/outbox"
)

const (
	markSent = `UPDATE members SET sent_email = $2, sent_key = $3, sent_at = $4 WHERE guid = $1`

	isDue = ` m.applied < m.version AND m.next_attempt <= $1 AND m.lease_until <= $1`

	// pendingSites goes from site to site in the index of pending records, not through
	// all of them: there may be many, of sites that nobody serves any more.
	pendingSites = `WITH RECURSIVE pending (site) AS (
			SELECT min(site) FROM members WHERE applied < version
			UNION ALL
			SELECT (SELECT min(site) FROM members WHERE applied < version AND site > pending.site) FROM pending WHERE site IS NOT NULL
		)
		SELECT site FROM pending WHERE site IS NOT NULL`
	dueSites = pendingSites + `
			AND EXISTS (SELECT 1 FROM members m WHERE m.site = pending.site AND` + isDue + `)`
	due     = `SELECT '', ` + columns + ` FROM members m WHERE m.site = $2 AND` + isDue + ` ORDER BY m.next_attempt LIMIT $3`
	makeDue = `UPDATE members SET next_attempt = 0 WHERE site = $1 AND applied < version`

	countAllPending = `SELECT site, count(*) FROM members WHERE applied < version GROUP BY site`

	countPending = `SELECT count(*) FROM members m WHERE m.applied < m.version AND m.site = $1`

	purgeTombstones = `DELETE FROM members WHERE deleted AND applied >= version AND next_attempt < $1`
)

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

func (s queue) DueSites(ctx context.Context, now time.Time) ([]string, error) {
	sites, err := database.List(ctx, s.db.Read, database.Text, dueSites+` ORDER BY site`, database.Millis(now))
	return sites, database.Wrap("listing sites with due members", err)
}

func (s queue) PendingSites(ctx context.Context) ([]string, error) {
	sites, err := database.List(ctx, s.db.Read, database.Text, pendingSites+` ORDER BY site`)
	return sites, database.Wrap("listing sites with pending members", err)
}

func (s queue) Due(ctx context.Context, site string, now time.Time, limit int) ([]members.Record, error) {
	list, err := s.list(ctx, due, database.Millis(now), site, limit)
	return list, database.Wrap("listing due members", err)
}

func (s queue) MakeDue(ctx context.Context, site string) (int, error) {
	n, err := database.Affected(s.db.Write.ExecContext(ctx, makeDue, site))
	return int(n), database.Wrap("making members due", err)
}

func (s queue) CountPending(ctx context.Context, site string) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, countPending, site).Scan(&n)
	return n, database.Wrap("counting pending members", err)
}

func (s queue) CountAllPending(ctx context.Context) (map[string]int, error) {
	return s.countBySite(ctx, countAllPending)
}

func (s queue) PurgeTombstones(ctx context.Context, before time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, purgeTombstones, database.Millis(before))
	return database.Wrap("removing old tombstones", err)
}

var _ outbox.Store = (*SQL)(nil)
