package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
)

const (
	// Column requested was a number before it was a time, which served and the owner go with: the release before this one takes
	// a comparison for given up that nobody owns.
	findComparison    = `SELECT last_id, started_at, finished_at, surplus, requested FROM comparisons WHERE site = $1`
	requestComparison = `INSERT INTO comparisons (site, last_id, started_at, finished_at, surplus, requested, served, owner, owner_until)
		VALUES ($1, '', 0, 0, 0, $2, $2, '', 0) ON CONFLICT (site) DO UPDATE SET requested = excluded.requested, served = excluded.served
		WHERE comparisons.requested < excluded.requested`
	saveComparison = `INSERT INTO comparisons (site, last_id, started_at, finished_at, surplus, requested, served, owner, owner_until)
		VALUES ($1, $2, $3, $4, $5, 0, 0, 'work', $6) ON CONFLICT (site) DO UPDATE SET last_id = excluded.last_id,
		started_at = excluded.started_at, finished_at = excluded.finished_at, surplus = excluded.surplus,
		owner = excluded.owner, owner_until = excluded.owner_until`

	// ownedTime is how long the release before this one leaves a comparison alone.
	ownedTime = 4 * time.Minute

	onPlatform = `SELECT '', ` + columns + ` FROM members m
		WHERE m.site = $1 AND m.platform_id > $2 ORDER BY m.platform_id LIMIT $3`
	countOnPlatform = `SELECT count(*) FROM members m WHERE m.site = $1 AND m.platform_id IS NOT NULL AND NOT m.deleted`

	// settled is that nobody writes a member.
	settled         = ` AND applied >= version AND lease_owner = ''`
	reconcileMember = updateMember + settled
	endMember       = `UPDATE members SET deleted = TRUE, version = version + 1, applied = version + 1
		WHERE guid = $1 AND version = $2` + settled
)

func (s syncing) FindComparison(ctx context.Context, site string) (inbound.Comparison, error) {
	c := inbound.Comparison{Site: site}
	row := s.db.Read.QueryRowContext(ctx, findComparison, site)
	err := row.Scan(&c.LastID, database.Time(&c.StartedAt), database.Time(&c.FinishedAt), &c.Surplus, database.Time(&c.AskedAt))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return c, database.Wrap("finding a comparison", err)
}

func (s syncing) RequestComparison(ctx context.Context, site string, at time.Time) error {
	_, err := s.db.Write.ExecContext(ctx, requestComparison, site, at.UnixMilli())
	return database.Wrap("asking for a comparison", err)
}

func (s syncing) SaveComparison(ctx context.Context, c inbound.Comparison) error {
	var owned time.Time
	if c.FinishedAt.Before(c.StartedAt) {
		owned = s.db.Now().Add(ownedTime)
	}
	_, err := s.db.Write.ExecContext(ctx, saveComparison, c.Site, c.LastID, database.Millis(c.StartedAt), database.Millis(c.FinishedAt), c.Surplus, database.Millis(owned))
	return database.Wrap("saving a comparison", err)
}

func (s syncing) OnPlatform(ctx context.Context, site, after string, limit int) ([]members.Record, error) {
	list, err := s.list(ctx, onPlatform, site, after, limit)
	return list, database.Wrap("listing who is on the platform", err)
}

func (s syncing) CountOnPlatform(ctx context.Context, site string) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, countOnPlatform, site).Scan(&n)
	return n, database.Wrap("counting who is on the platform", err)
}

func (s syncing) Reconcile(ctx context.Context, d inbound.Differences) (left inbound.Differences, err error) {
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		left = inbound.Differences{}
		for _, m := range d.Gone {
			switch err := changeOne(tx.ExecContext(ctx, endMember, m.GUID, m.Version)); {
			case errors.Is(err, members.ErrConflict):
				left.Gone = append(left.Gone, m)
				continue
			case err != nil:
				return err
			}
			if _, err := tx.ExecContext(ctx, deleteMemberID, m.GUID); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, markGone, m.GUID, s.db.Now().UnixMilli()); err != nil {
				return err
			}
		}
		for _, m := range d.Changed {
			switch err := replace(ctx, tx, reconcileMember, m, m.Version); {
			case errors.Is(err, members.ErrConflict), errors.Is(err, members.ErrNotText):
				left.Changed = append(left.Changed, m)
			case err != nil:
				return err
			}
		}
		for _, m := range d.Added {
			if checkMember(m) != nil {
				left.Added = append(left.Added, m)
				continue
			}
			switch err := changeOne(tx.ExecContext(ctx, insertMember+` ON CONFLICT DO NOTHING`, insertArgs(m, members.Lease{})...)); {
			case errors.Is(err, members.ErrConflict):
				left.Added = append(left.Added, m)
			case err != nil:
				return err
			}
		}
		return nil
	})
	if err != nil {
		return inbound.Differences{}, fmt.Errorf("reconciling members: %w", err)
	}
	return left, nil
}

var _ inbound.Comparisons = (*SQL)(nil)
