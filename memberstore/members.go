package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
)

const (
	byEmail    = `FROM members m WHERE m.site = $1 AND m.email_key = $2 AND NOT m.deleted`
	byMemberID = `FROM member_ids i JOIN members m ON m.guid = i.guid
		WHERE i.site = $1 AND i.integration = $2 AND i.member_id = $3 AND NOT m.deleted`

	standing = `, m.version, m.applied, m.confirmed, m.platform_id, m.refused `

	readByEmail    = `SELECT '', ` + shown + standing + byEmail
	readByMemberID = `SELECT i.member_id, ` + shown + standing + byMemberID

	findByEmail      = `SELECT '', ` + columns + ` ` + byEmail
	findByMemberID   = `SELECT i.member_id, ` + columns + ` ` + byMemberID
	findByPlatformID = `SELECT '', ` + columns + ` FROM members m
		WHERE m.site = $1 AND m.platform_id = $2`
	findByGUID     = `SELECT '', ` + columns + ` FROM members m WHERE m.guid = $1`
	findBySiteGUID = findByGUID + ` AND m.site = $2`

	insertMember = `INSERT INTO members (guid, site, email, email_key, name, note, subscribed, labels, newsletters, tier_id,
			status, created_at, updated_at, version, applied, platform_id, deleted, attempts, next_attempt, problem,
			lease_owner, lease_until, sent_email, sent_key, sent_at, unanswered_at,
			named_email, named_name, named_note, named_labels, named_subscription, placeholder)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $15, FALSE, 0, 0, '', $16, $17, $18, $19, $20, 0,
			$21, $22, $23, $24, $25, $26)`
	insertMemberID = `INSERT INTO member_ids (site, integration, member_id, guid) VALUES ($1, $2, $3, $4)`
	hasMemberID    = `SELECT EXISTS (SELECT 1 FROM member_ids WHERE guid = $1 AND integration = $2)`
	disownMember   = `DELETE FROM member_ids WHERE guid = $1 AND integration = $2`
	deleteMemberID = `DELETE FROM member_ids WHERE guid = $1`

	updateMember = `UPDATE members SET email = $3, email_key = $4, name = $5, note = $6, subscribed = $7, labels = $8,
			newsletters = $9, tier_id = $10, status = $11, updated_at = $12, version = version + 1,
			applied = CASE WHEN applied > $13 THEN applied ELSE $13 END, platform_id = COALESCE($14, platform_id),
			deleted = $15, attempts = 0, next_attempt = 0, problem = '',
			named_email = $16, named_name = $17, named_note = $18, named_labels = $19, named_subscription = $20,
			refused = $21, refused_at = $22, confirmed = $23, condition = $24
		WHERE guid = $1 AND version = $2`
	revertMember = `UPDATE members SET email = $3, email_key = $4, name = $5, note = $6, subscribed = $7, labels = $8,
			newsletters = $9, tier_id = $10, status = $11, updated_at = $12, version = version + 1, applied = $13,
			platform_id = $14, deleted = $15, attempts = 0, next_attempt = 0, problem = '', lease_owner = '', lease_until = 0,
			named_email = $16, named_name = $17, named_note = $18, named_labels = $19, named_subscription = $20,
			refused = $21, refused_at = $22, confirmed = $23, condition = $24
		WHERE guid = $1 AND version = $2`
	removeMember = `DELETE FROM members WHERE guid = $1 AND version = $2`

	lease = `UPDATE members SET unanswered_at = CASE WHEN lease_owner <> '' THEN lease_until ELSE unanswered_at END,
			lease_owner = $2, lease_until = $3
		WHERE guid = $1 AND lease_until <= $4`
	endLease = `lease_owner = CASE WHEN lease_owner = $%d THEN '' ELSE lease_owner END,
		lease_until = CASE WHEN lease_owner = $%[1]d THEN 0 ELSE lease_until END`

	release = `UPDATE members SET lease_owner = '', lease_until = 0 WHERE guid = $1 AND lease_owner = $2`

	emailLingers = `SELECT EXISTS (SELECT 1 FROM members WHERE site = $1 AND email_key = $2 AND deleted AND guid <> $3)
		OR EXISTS (SELECT 1 FROM members WHERE site = $1 AND sent_key = $2 AND sent_key <> '' AND email_key <> sent_key AND guid <> $3)`
)

var (
	// Each field that no later write has named becomes what the platform says.
	markApplied = `UPDATE members SET applied = CASE WHEN applied > $2 THEN applied ELSE $2 END, platform_id = $3,
			sent_email = '', sent_key = '', sent_at = 0,
			unanswered_at = CASE WHEN CAST($4 AS BIGINT) = 0 THEN 0 ELSE unanswered_at END, attempts = 0, next_attempt = $4, problem = $5,
			email = CASE WHEN applied > $2 OR named_email > $2 THEN email ELSE $7 END,
			email_key = CASE WHEN applied > $2 OR named_email > $2 THEN email_key ELSE $8 END,
			name = CASE WHEN applied > $2 OR named_name > $2 THEN name ELSE $9 END,
			note = CASE WHEN applied > $2 OR named_note > $2 THEN note ELSE $10 END,
			labels = CASE WHEN applied > $2 OR named_labels > $2 THEN labels ELSE $11 END,
			subscribed = CASE WHEN applied > $2 OR named_subscription > $2 THEN subscribed ELSE $12 END,
			newsletters = CASE WHEN applied > $2 OR named_subscription > $2 THEN newsletters ELSE $13 END,
			named_subscription = CASE WHEN named_subscription <= $14 THEN 0 ELSE named_subscription END,
			confirmed = CASE WHEN CAST($4 AS BIGINT) = 0 THEN confirmed ELSE $15 END,
			condition = CASE WHEN version > $2 THEN condition ELSE '' END,
			refused = CASE WHEN version = $15 THEN $16 ELSE refused END,
			refused_at = CASE WHEN version = $15 THEN $17 ELSE refused_at END, ` + fmt.Sprintf(endLease, 6) + `
		WHERE guid = $1 RETURNING version, applied, deleted`
	markGone = `UPDATE members SET email = '', email_key = '', name = '', note = '', labels = '[]', newsletters = 'null',
			tier_id = NULL, placeholder = '', condition = '', next_attempt = $2
		WHERE guid = $1`
)

func (s records) Find(ctx context.Context, key members.Key) (members.Record, error) {
	var row *sql.Row
	switch {
	case checkText(key.GUID, key.PlatformID, key.Integration, key.MemberID, key.Email) != nil:
		return members.Record{}, fmt.Errorf("finding a member: %w", members.ErrNotFound)
	case key.GUID != "":
		row = s.db.Read.QueryRowContext(ctx, findBySiteGUID, key.GUID, key.Site)
	case key.PlatformID != "":
		row = s.db.Read.QueryRowContext(ctx, findByPlatformID, key.Site, key.PlatformID)
	case key.Integration != "":
		row = s.db.Read.QueryRowContext(ctx, findByMemberID, key.Site, key.Integration, key.MemberID)
	default:
		row = s.db.Read.QueryRowContext(ctx, findByEmail, key.Site, emailaddr.Key(key.Email))
	}
	m, err := scanRecord(row)
	return m, database.Wrap("finding a member", err)
}

func (s records) Read(ctx context.Context, key members.Key) (members.Result, error) {
	var row *sql.Row
	switch {
	case checkText(key.Integration, key.MemberID, key.Email) != nil:
		return members.Result{}, fmt.Errorf("reading a member: %w", members.ErrNotFound)
	case key.Integration != "":
		row = s.db.Read.QueryRowContext(ctx, readByMemberID, key.Site, key.Integration, key.MemberID)
	default:
		row = s.db.Read.QueryRowContext(ctx, readByEmail, key.Site, emailaddr.Key(key.Email))
	}
	var m members.Record
	var platformID sql.NullString
	if err := scanShown(row, &m.Member, &m.Version, &m.Applied, &m.Confirmed, &platformID, &m.Refused); err != nil {
		return members.Result{}, fmt.Errorf("reading a member: %w", err)
	}
	m.PlatformID = platformID.String
	if err := m.CheckIsThere(); err != nil {
		return members.Result{}, fmt.Errorf("reading a member: %w", err)
	}
	return m.Result(), nil
}

func (s records) Insert(ctx context.Context, m members.Record, integration string, l members.Lease) error {
	if err := checkMember(m); err != nil {
		return fmt.Errorf("inserting a member: %w", err)
	}
	err := s.withoutRefused(ctx, m, integration, func() error {
		return s.db.InTx(ctx, func(tx *sql.Tx) error {
			if err := noteDone(ctx, tx, m); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, insertMember, insertArgs(m, l)...)
			if database.ViolatedUnique(err) {
				return members.ErrEmailTaken
			}
			if err != nil || m.MemberID == "" {
				return err
			}
			_, err = tx.ExecContext(ctx, insertMemberID, m.Site, integration, m.MemberID, m.GUID)
			if database.ViolatedUnique(err) {
				return members.ErrMemberIDTaken
			}
			return err
		})
	})
	return database.Wrap("inserting a member", err)
}

func insertArgs(m members.Record, l members.Lease) []any {
	return []any{
		m.GUID, m.Site, m.Email, emailaddr.Key(m.Email), m.Name, m.Note, m.Subscribed, encode(m.Labels), encode(m.Newsletters),
		m.TierID, m.Status, m.CreatedAt.UnixMilli(), m.UpdatedAt.UnixMilli(), m.Applied, null(m.PlatformID),
		l.Owner, database.Millis(l.Until), m.Sent, emailaddr.Key(m.Sent), database.Millis(m.SentAt),
		m.Named[members.EmailField], m.Named[members.NameField], m.Named[members.NoteField], m.Named[members.LabelsField], m.Named[members.SubscriptionField], m.Placeholder,
	}
}

func (s records) Update(ctx context.Context, m members.Record) error {
	err := s.withoutRefused(ctx, m, m.AdoptedBy, func() error {
		return s.db.InTx(ctx, func(tx *sql.Tx) error {
			if err := noteDone(ctx, tx, m); err != nil {
				return err
			}
			if err := replace(ctx, tx, updateMember, m, m.Version); err != nil {
				return err
			}
			if m.AdoptedBy != "" {
				_, err := tx.ExecContext(ctx, insertMemberID, m.Site, m.AdoptedBy, m.MemberID, m.GUID)
				if database.ViolatedUnique(err) {
					return members.ErrMemberIDTaken
				}
				return err
			}
			if m.Deleted && !m.HasCondition() {
				_, err := tx.ExecContext(ctx, deleteMemberID, m.GUID)
				return err
			}
			return nil
		})
	})
	return database.Wrap("updating a member", err)
}

func (s records) Remove(ctx context.Context, m members.Record) error {
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		if err := noteDone(ctx, tx, m); err != nil {
			return err
		}
		return changeOne(tx.ExecContext(ctx, removeMember, m.GUID, m.Version))
	})
	return database.Wrap("removing a member", err)
}

// replace replaces a member at a version.
func replace(ctx context.Context, tx *sql.Tx, query string, m members.Record, version int64) error {
	if err := checkMember(m); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, query, m.GUID, version, m.Email, emailaddr.Key(m.Email), m.Name, m.Note, m.Subscribed,
		encode(m.Labels), encode(m.Newsletters), m.TierID, m.Status, m.UpdatedAt.UnixMilli(), m.Applied,
		null(m.PlatformID), m.Deleted,
		m.Named[members.EmailField], m.Named[members.NameField], m.Named[members.NoteField], m.Named[members.LabelsField], m.Named[members.SubscriptionField],
		asText(m.Refused), database.Millis(m.RefusedAt), m.Confirmed, encodeCondition(m.Condition))
	if database.ViolatedUnique(err) {
		return members.ErrEmailTaken
	}
	return changeOne(result, err)
}

func (s records) Lease(ctx context.Context, guid string, l members.Lease) (m members.Record, err error) {
	err = s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		leased := changeOne(tx.ExecContext(ctx, lease, guid, l.Owner, database.Millis(l.Until), s.db.Now().UnixMilli()))
		if leased != nil && !errors.Is(leased, members.ErrConflict) {
			return leased
		}
		if m, err = scanRecord(tx.QueryRowContext(ctx, findByGUID, guid)); err != nil {
			return err
		}
		return leased
	})
	if err != nil {
		return members.Record{}, fmt.Errorf("leasing a member: %w", err)
	}
	return m, nil
}

func (s records) Release(ctx context.Context, guid, owner string) error {
	_, err := s.db.Write.ExecContext(ctx, release, guid, owner)
	return database.Wrap("ending a lease", err)
}

func (s records) HasMemberID(ctx context.Context, guid, integration string) (found bool, err error) {
	err = s.db.Read.QueryRowContext(ctx, hasMemberID, guid, integration).Scan(&found)
	return found, database.Wrap("looking for a member ID", err)
}

func (s records) EmailLingers(ctx context.Context, site, email, exceptGUID string) (found bool, err error) {
	err = s.db.Read.QueryRowContext(ctx, emailLingers, site, emailaddr.Key(email), exceptGUID).Scan(&found)
	return found, database.Wrap("looking for an email that lingers", err)
}

func (s records) MarkApplied(ctx context.Context, m members.Record, owner string) (pending bool, err error) {
	err = s.withoutRefused(ctx, m, "", func() error {
		pending, err = s.markApplied(ctx, m, outbox.Failure{}, owner)
		return err
	})
	return pending, database.Wrap("noting that a member is applied", err)
}

// markApplied is MarkApplied, or MarkApplyAgain if f says when.
func (s tables) markApplied(ctx context.Context, m members.Record, f outbox.Failure, owner string) (pending bool, err error) {
	if err := checkMember(m); err != nil {
		return false, err
	}
	err = s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		var version, applied int64
		var deleted bool
		err := tx.QueryRowContext(ctx, markApplied, m.GUID, m.Applied, null(m.PlatformID), database.Millis(f.Next), asText(f.Problem), owner,
			m.Email, emailaddr.Key(m.Email), m.Name, m.Note, encode(m.Labels), m.Subscribed, encode(m.Newsletters), f.UnnameUpTo,
			m.Version, asText(m.Refused), database.Millis(m.RefusedAt)).
			Scan(&version, &applied, &deleted)
		switch pending = applied < version; {
		case errors.Is(err, sql.ErrNoRows):
			return members.ErrNotFound
		case database.ViolatedUnique(err):
			return members.ErrEmailTaken
		case err != nil || pending || !deleted:
			return err
		case m.PlatformID == "":
			_, err = tx.ExecContext(ctx, removeMember, m.GUID, version)
		default:
			_, err = tx.ExecContext(ctx, markGone, m.GUID, s.db.Now().UnixMilli())
			if err == nil && m.Condition != nil {
				_, err = tx.ExecContext(ctx, deleteMemberID, m.GUID)
			}
		}
		return err
	})
	return pending, err
}

var _ members.Store = (*SQL)(nil)
