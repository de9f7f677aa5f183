package memberstore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/database"
	"github.com/lychgate/caddy-lychgate/emailaddr"
)

//go:embed migrations/*.sql
var migrations embed.FS

// SQL is a [Store] on a database.
type SQL struct{ db *database.DB }

// NewSQL brings the tables up to date and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "members", files); err != nil {
		return nil, err
	}
	return &SQL{db}, nil
}

// The columns of a member: what callers are shown, and the rest.
const (
	shown   = `m.guid, m.email, m.name, m.note, m.subscribed, m.labels, m.tier_id, m.status, m.created_at, m.updated_at`
	columns = shown + `, m.site, m.newsletters, m.version, m.applied, m.platform_id, m.deleted,
	m.sent_email, m.sent_at, m.unanswered_at, m.attempts, m.problem, m.next_attempt,
	m.named_email, m.named_name, m.named_note, m.named_labels, m.named_subscription`
)

const (
	byEmail    = `FROM members m WHERE m.site = $1 AND m.email_key = $2 AND NOT m.deleted`
	byMemberID = `FROM member_ids i JOIN members m ON m.guid = i.guid
		WHERE i.site = $1 AND i.integration = $2 AND i.member_id = $3 AND NOT m.deleted`

	readByEmail    = `SELECT '', ` + shown + ` ` + byEmail
	readByMemberID = `SELECT i.member_id, ` + shown + ` ` + byMemberID

	findByEmail      = `SELECT '', ` + columns + ` ` + byEmail
	findByMemberID   = `SELECT i.member_id, ` + columns + ` ` + byMemberID
	findByPlatformID = `SELECT '', ` + columns + ` FROM members m
		WHERE m.site = $1 AND m.platform_id = $2`
	findByGUID     = `SELECT '', ` + columns + ` FROM members m WHERE m.guid = $1`
	findBySiteGUID = findByGUID + ` AND m.site = $2`

	insertMember = `INSERT INTO members (guid, site, email, email_key, name, note, subscribed, labels, newsletters, tier_id,
			status, created_at, updated_at, version, applied, platform_id, deleted, attempts, next_attempt, problem,
			lease_owner, lease_until, sent_email, sent_key, sent_at, unanswered_at,
			named_email, named_name, named_note, named_labels, named_subscription)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $15, FALSE, 0, 0, '', $16, $17, $18, $19, $20, 0,
			$21, $22, $23, $24, $25)`
	insertMemberID = `INSERT INTO member_ids (site, integration, member_id, guid) VALUES ($1, $2, $3, $4)`
	deleteMemberID = `DELETE FROM member_ids WHERE guid = $1`

	updateMember = `UPDATE members SET email = $3, email_key = $4, name = $5, note = $6, subscribed = $7, labels = $8,
			newsletters = $9, tier_id = $10, status = $11, updated_at = $12, version = version + 1,
			applied = CASE WHEN applied > $13 THEN applied ELSE $13 END, platform_id = COALESCE($14, platform_id),
			deleted = $15, attempts = 0, next_attempt = 0, problem = '',
			named_email = $16, named_name = $17, named_note = $18, named_labels = $19, named_subscription = $20
		WHERE guid = $1 AND version = $2`
	revertMember = `UPDATE members SET email = $3, email_key = $4, name = $5, note = $6, subscribed = $7, labels = $8,
			newsletters = $9, tier_id = $10, status = $11, updated_at = $12, version = version + 1, applied = $13,
			platform_id = $14, deleted = $15, attempts = 0, next_attempt = 0, problem = '', lease_owner = '', lease_until = 0,
			named_email = $16, named_name = $17, named_note = $18, named_labels = $19, named_subscription = $20
		WHERE guid = $1 AND version = $2`
	removeMember = `DELETE FROM members WHERE guid = $1 AND version = $2`

	lease = `UPDATE members SET unanswered_at = CASE WHEN lease_owner <> '' THEN lease_until ELSE unanswered_at END,
			lease_owner = $2, lease_until = $3
		WHERE guid = $1 AND lease_until <= $4`
	endLease = `lease_owner = CASE WHEN lease_owner = $%d THEN '' ELSE lease_owner END,
		lease_until = CASE WHEN lease_owner = $%[1]d THEN 0 ELSE lease_until END`

	release = `UPDATE members SET lease_owner = '', lease_until = 0 WHERE guid = $1 AND lease_owner = $2`

	leaving = `SELECT EXISTS (SELECT 1 FROM members WHERE site = $1 AND email_key = $2 AND deleted AND guid <> $3)
		OR EXISTS (SELECT 1 FROM members WHERE site = $1 AND sent_key = $2 AND sent_key <> '' AND email_key <> sent_key AND guid <> $3)`
	sending = `UPDATE members SET sent_email = $2, sent_key = $3, sent_at = $4 WHERE guid = $1`

	behind = `SELECT '', ` + columns + ` FROM members m
		WHERE m.site = $1 AND m.applied < m.version AND m.next_attempt <= $2 AND m.lease_until <= $2
		ORDER BY m.next_attempt LIMIT $3`
	dueNow      = `UPDATE members SET next_attempt = 0 WHERE site = $1 AND applied < version`
	countBehind = `SELECT count(*) FROM members m WHERE m.applied < m.version AND m.site = $1`
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
			named_subscription = CASE WHEN named_subscription <= $14 THEN 0 ELSE named_subscription END, ` + fmt.Sprintf(endLease, 6) + `
		WHERE guid = $1 RETURNING version, applied, deleted`
	markFailed = `UPDATE members SET attempts = attempts + 1, problem = $2, next_attempt = $3,
			unanswered_at = CASE WHEN unanswered_at > $5 THEN unanswered_at ELSE $5 END,
			platform_id = COALESCE($6, platform_id),
			named_subscription = CASE WHEN named_subscription <= $7 THEN 0 ELSE named_subscription END, ` + fmt.Sprintf(endLease, 4) + `
		WHERE guid = $1`
	markGone = `UPDATE members SET email = '', email_key = '', name = '', note = '', labels = '[]', newsletters = 'null',
			tier_id = NULL, next_attempt = $2
		WHERE guid = $1`
	purge       = `DELETE FROM members WHERE site = $1 AND deleted AND applied >= version AND next_attempt < $2`
	markNotSent = `UPDATE members SET sent_email = '', sent_key = '', sent_at = 0 WHERE guid = $1`
)

// Find implements [Store].
func (s *SQL) Find(ctx context.Context, key Key) (Member, error) {
	var row *sql.Row
	switch {
	case checkText(key.GUID, key.PlatformID, key.Integration, key.MemberID, key.Email) != nil:
		return Member{}, fmt.Errorf("finding a member: %w", ErrNotFound)
	case key.GUID != "":
		row = s.db.Read.QueryRowContext(ctx, findBySiteGUID, key.GUID, key.Site)
	case key.PlatformID != "":
		row = s.db.Read.QueryRowContext(ctx, findByPlatformID, key.Site, key.PlatformID)
	case key.Integration != "":
		row = s.db.Read.QueryRowContext(ctx, findByMemberID, key.Site, key.Integration, key.MemberID)
	default:
		row = s.db.Read.QueryRowContext(ctx, findByEmail, key.Site, emailaddr.Key(key.Email))
	}
	m, err := scanMember(row)
	if err != nil {
		return Member{}, fmt.Errorf("finding a member: %w", err)
	}
	return m, nil
}

// Read implements [Store].
func (s *SQL) Read(ctx context.Context, key Key) (Member, error) {
	var row *sql.Row
	switch {
	case checkText(key.Integration, key.MemberID, key.Email) != nil:
		return Member{}, fmt.Errorf("reading a member: %w", ErrNotFound)
	case key.Integration != "":
		row = s.db.Read.QueryRowContext(ctx, readByMemberID, key.Site, key.Integration, key.MemberID)
	default:
		row = s.db.Read.QueryRowContext(ctx, readByEmail, key.Site, emailaddr.Key(key.Email))
	}
	m := Member{Site: key.Site}
	if err := scanShown(row, &m); err != nil {
		return Member{}, fmt.Errorf("reading a member: %w", err)
	}
	return m, nil
}

// Insert implements [Store].
func (s *SQL) Insert(ctx context.Context, m Member, integration string, l Lease) error {
	if err := checkMember(m); err != nil {
		return fmt.Errorf("inserting a member: %w", err)
	}
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insertMember, insertArgs(m, l)...)
		if database.ViolatedUnique(err) {
			return ErrEmailTaken
		}
		if err != nil || m.MemberID == "" {
			return err
		}
		_, err = tx.ExecContext(ctx, insertMemberID, m.Site, integration, m.MemberID, m.GUID)
		if database.ViolatedUnique(err) {
			return ErrMemberIDTaken
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("inserting a member: %w", err)
	}
	return nil
}

// insertArgs returns the arguments of insertMember.
func insertArgs(m Member, l Lease) []any {
	return []any{
		m.GUID, m.Site, m.Email, emailaddr.Key(m.Email), m.Name, m.Note, m.Subscribed, encode(m.Labels), encode(m.Newsletters),
		m.TierID, m.Status, m.CreatedAt.UnixMilli(), m.UpdatedAt.UnixMilli(), m.Applied, null(m.PlatformID),
		l.Owner, millis(l.Until), m.Sent, emailaddr.Key(m.Sent), millis(m.SentAt),
		m.Named[Email], m.Named[Name], m.Named[Note], m.Named[Labels], m.Named[Subscription],
	}
}

// Update implements [Store].
func (s *SQL) Update(ctx context.Context, m Member) error {
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		if err := replace(ctx, tx, updateMember, m, m.Version); err != nil {
			return err
		}
		if m.Deleted {
			_, err := tx.ExecContext(ctx, deleteMemberID, m.GUID)
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("updating a member: %w", err)
	}
	return nil
}

// Revert implements [Store].
func (s *SQL) Revert(ctx context.Context, guid string, refused int64, before *Member, owner string) error {
	var err error
	if before == nil {
		err = changeOne(s.db.Write.ExecContext(ctx, removeMember, guid, refused))
	} else {
		m := *before
		m.GUID = guid
		if m.Applied >= m.Version {
			m.Applied = refused + 1 // what was put back is what the platform has
		}
		err = replace(ctx, s.db.Write, revertMember, m, refused)
	}
	if err != nil {
		return fmt.Errorf("putting a member back: %w", err)
	}
	return nil
}

// executor is a transaction, or a database for one statement alone.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Remove implements [Store].
func (s *SQL) Remove(ctx context.Context, guid string, version int64) error {
	if err := changeOne(s.db.Write.ExecContext(ctx, removeMember, guid, version)); err != nil {
		return fmt.Errorf("removing a member: %w", err)
	}
	return nil
}

// replace replaces a member at a version.
func replace(ctx context.Context, e executor, query string, m Member, version int64) error {
	if err := checkMember(m); err != nil {
		return err
	}
	result, err := e.ExecContext(ctx, query, m.GUID, version, m.Email, emailaddr.Key(m.Email), m.Name, m.Note, m.Subscribed,
		encode(m.Labels), encode(m.Newsletters), m.TierID, m.Status, m.UpdatedAt.UnixMilli(), m.Applied,
		null(m.PlatformID), m.Deleted,
		m.Named[Email], m.Named[Name], m.Named[Note], m.Named[Labels], m.Named[Subscription])
	if database.ViolatedUnique(err) {
		return ErrEmailTaken
	}
	return changeOne(result, err)
}

// changeOne returns ErrConflict for a statement that found nothing to change.
func changeOne(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return ErrConflict
}

// Lease implements [Store].
func (s *SQL) Lease(ctx context.Context, guid string, l Lease) (m Member, err error) {
	err = s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		leased := changeOne(tx.ExecContext(ctx, lease, guid, l.Owner, millis(l.Until), time.Now().UnixMilli()))
		if leased != nil && !errors.Is(leased, ErrConflict) {
			return leased
		}
		if m, err = scanMember(tx.QueryRowContext(ctx, findByGUID, guid)); err != nil {
			return err
		}
		return leased
	})
	if err != nil {
		return Member{}, fmt.Errorf("leasing a member: %w", err)
	}
	return m, nil
}

// Release implements [Store].
func (s *SQL) Release(ctx context.Context, guid, owner string) error {
	if _, err := s.db.Write.ExecContext(ctx, release, guid, owner); err != nil {
		return fmt.Errorf("ending a lease: %w", err)
	}
	return nil
}

// Leaving implements [Store].
func (s *SQL) Leaving(ctx context.Context, site, email, but string) (found bool, err error) {
	if err := s.db.Read.QueryRowContext(ctx, leaving, site, emailaddr.Key(email), but).Scan(&found); err != nil {
		return false, fmt.Errorf("looking for a member who leaves: %w", err)
	}
	return found, nil
}

// Sending implements [Store].
func (s *SQL) Sending(ctx context.Context, guid, email string, now time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, sending, guid, email, emailaddr.Key(email), millis(now)); err != nil {
		return fmt.Errorf("noting that a member is sent: %w", err)
	}
	return nil
}

// Applied implements [Store].
func (s *SQL) Applied(ctx context.Context, m Member, owner string) (behind bool, err error) {
	behind, err = s.applied(ctx, m, Failure{}, owner)
	if err != nil {
		return false, fmt.Errorf("noting that a member is applied: %w", err)
	}
	return behind, nil
}

// Unsure implements [Store].
func (s *SQL) Unsure(ctx context.Context, m Member, f Failure, owner string) error {
	if _, err := s.applied(ctx, m, f, owner); err != nil {
		return fmt.Errorf("noting that a member is to be applied once more: %w", err)
	}
	return nil
}

func (s *SQL) applied(ctx context.Context, m Member, f Failure, owner string) (behind bool, err error) {
	if err := checkMember(m); err != nil {
		return false, err
	}
	err = s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		var version, applied int64
		var deleted bool
		err := tx.QueryRowContext(ctx, markApplied, m.GUID, m.Applied, null(m.PlatformID), millis(f.Next), asText(f.Problem), owner,
			m.Email, emailaddr.Key(m.Email), m.Name, m.Note, encode(m.Labels), m.Subscribed, encode(m.Newsletters), f.Unname).
			Scan(&version, &applied, &deleted)
		switch behind = applied < version; {
		case errors.Is(err, sql.ErrNoRows):
			return ErrNotFound
		case database.ViolatedUnique(err):
			return ErrEmailTaken
		case err != nil || behind || !deleted:
			return err
		case m.PlatformID == "":
			_, err = tx.ExecContext(ctx, removeMember, m.GUID, version)
		default:
			_, err = tx.ExecContext(ctx, markGone, m.GUID, time.Now().UnixMilli())
		}
		return err
	})
	return behind, err
}

// Purge implements [Store].
func (s *SQL) Purge(ctx context.Context, site string, before time.Time) error {
	if _, err := s.db.Write.ExecContext(ctx, purge, site, millis(before)); err != nil {
		return fmt.Errorf("removing old tombstones: %w", err)
	}
	return nil
}

// Failed implements [Store].
func (s *SQL) Failed(ctx context.Context, guid string, f Failure, owner string) error {
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, markFailed, guid, asText(f.Problem), millis(f.Next), owner, millis(f.UnansweredAt), null(f.PlatformID), f.Unname)
		if err == nil && f.NotSent {
			_, err = tx.ExecContext(ctx, markNotSent, guid)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("noting that a member is not applied: %w", err)
	}
	return nil
}

// Behind implements [Store].
func (s *SQL) Behind(ctx context.Context, site string, now time.Time, limit int) ([]Member, error) {
	list, err := s.list(ctx, behind, site, millis(now), limit)
	if err != nil {
		return nil, fmt.Errorf("listing what is behind: %w", err)
	}
	return list, nil
}

// list returns the members that a query of columns and a MemberID finds.
func (s *SQL) list(ctx context.Context, query string, args ...any) (list []Member, err error) {
	rows, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		m, err := scanMember(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// DueNow implements [Store].
func (s *SQL) DueNow(ctx context.Context, site string) (int, error) {
	result, err := s.db.Write.ExecContext(ctx, dueNow, site)
	if err != nil {
		return 0, fmt.Errorf("making attempts due: %w", err)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// CountBehind implements [Store].
func (s *SQL) CountBehind(ctx context.Context, site string) (n int, err error) {
	if err = s.db.Read.QueryRowContext(ctx, countBehind, site).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting what is behind: %w", err)
	}
	return n, nil
}

type scanner interface{ Scan(...any) error }

// scanMember reads a member from a row of a MemberID and all columns.
func scanMember(row scanner) (Member, error) {
	var m Member
	var sent, unanswered, next int64
	var platformID sql.NullString
	var newsletters string
	err := scanShown(row, &m, &m.Site, &newsletters, &m.Version, &m.Applied, &platformID, &m.Deleted,
		&m.Sent, &sent, &unanswered, &m.Attempts, &m.Problem, &next,
		&m.Named[Email], &m.Named[Name], &m.Named[Note], &m.Named[Labels], &m.Named[Subscription])
	if err != nil {
		return Member{}, err
	}
	m.PlatformID = platformID.String
	m.SentAt, m.UnansweredAt, m.NextAttempt = unmillis(sent), unmillis(unanswered), unmillis(next)
	return m, json.Unmarshal([]byte(newsletters), &m.Newsletters)
}

// scanShown reads what callers are shown of a member from a row of a MemberID,
// the columns shown, and others.
func scanShown(row scanner, m *Member, others ...any) error {
	var labels string
	var created, updated int64
	err := row.Scan(append([]any{
		&m.MemberID, &m.GUID, &m.Email, &m.Name, &m.Note, &m.Subscribed, &labels, &m.TierID, &m.Status, &created, &updated,
	}, others...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	m.CreatedAt, m.UpdatedAt = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return json.Unmarshal([]byte(labels), &m.Labels)
}

// encode returns a list as JSON.
func encode[T any](list []T) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // which makes six bytes of one
	if err := encoder.Encode(list); err != nil {
		panic(err) // strings, and structs of strings, always encode
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func null(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// millis returns a time as Unix milliseconds; the zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// unmillis undoes millis.
func unmillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

var _ Store = (*SQL)(nil)
