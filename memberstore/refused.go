package memberstore

import (
	"context"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// This file keeps which writes the platform refused for good. A member whose create it
// refused is not a member. Its row has the reason, its email and its identifiers, and is
// deleted when another member needs one of these.

const (
	// refusedCreate is that a row is one of these.
	refusedCreate = `refused <> '' AND platform_id IS NULL AND applied >= version AND NOT deleted`

	refuseCreate = `UPDATE members SET version = version + 1, applied = version + 1, refused = $3, refused_at = $4,
			name = '', note = '', labels = '[]', newsletters = 'null', tier_id = NULL,
			named_email = 0, named_name = 0, named_note = 0, named_labels = 0, named_subscription = 0,
			sent_email = '', sent_key = '', sent_at = 0, unanswered_at = 0, attempts = 0, next_attempt = 0, problem = '',
			lease_owner = '', lease_until = 0
		WHERE guid = $1 AND version = $2`

	deleteRefused = `DELETE FROM members WHERE ` + refusedCreate + ` AND site = $1
		AND (email_key = $2 OR guid IN (SELECT guid FROM member_ids WHERE site = $1 AND integration = $3 AND member_id = $4))`
)

func (s queue) RefuseCreate(ctx context.Context, guid string, version int64, reason string, now time.Time) error {
	err := changeOne(s.db.Write.ExecContext(ctx, refuseCreate, guid, version, asText(reason), database.Millis(now)))
	return database.Wrap("noting that a member is refused", err)
}

// withoutRefused calls a function that stores a record, once more if a refused create was in
// its way. The integration is that of the record's MemberID.
func (s tables) withoutRefused(ctx context.Context, m members.Record, integration string, store func() error) error {
	err := store()
	if !errors.Is(err, members.ErrEmailTaken) && !errors.Is(err, members.ErrMemberIDTaken) {
		return err
	}
	n, deleteErr := database.Affected(s.db.Write.ExecContext(ctx, deleteRefused, m.Site, emailaddr.Key(m.Email), integration, m.MemberID))
	switch {
	case deleteErr != nil:
		return deleteErr
	case n == 0:
		return err
	}
	return store()
}

// Refusal is a reason for which a site's platform refused the last write of members for
// good, and of how many.
type Refusal struct {
	Site, Reason string
	Members      int
}

const countReasons = `SELECT site, refused, count(*) FROM members WHERE refused <> ''
	GROUP BY site, refused ORDER BY site, count(*) DESC, refused`

// CountRefused counts members by site and reason, the most frequent reason of a site
// first.
func (s queue) CountRefused(ctx context.Context) ([]Refusal, error) {
	list, err := database.List(ctx, s.db.Read, func(row database.Row) (r Refusal, err error) {
		err = row.Scan(&r.Site, &r.Reason, &r.Members)
		return r, err
	}, countReasons)
	return list, database.Wrap("counting refused writes", err)
}
