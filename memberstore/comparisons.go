package memberstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

const (
	findComparison = `SELECT last_id, started_at, finished_at, surplus, requested, served FROM comparisons WHERE site = $1`
	addComparison  = `INSERT INTO comparisons (site, last_id, started_at, finished_at, surplus, requested, served, owner, owner_until)
		VALUES ($1, '', 0, 0, 0, $2, 0, '', 0)`
	requestComparison = addComparison + ` ON CONFLICT (site) DO UPDATE SET requested = comparisons.requested + 1`
	knowComparison    = addComparison + ` ON CONFLICT (site) DO NOTHING`
	claimComparison   = `UPDATE comparisons SET owner = $2, owner_until = $3
		WHERE site = $1 AND (owner_until <= $4 OR owner = $2)`
	saveComparison = `UPDATE comparisons SET last_id = $3, started_at = $4, finished_at = $5, surplus = $6, served = $7, owner_until = $8
		WHERE site = $1 AND owner = $2`

	waitingComparisons = `SELECT site FROM comparisons WHERE (requested > served OR finished_at < started_at) AND owner_until <= $1 ORDER BY site`

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
	c, err := scanComparison(s.db.Read.QueryRowContext(ctx, findComparison, site), site)
	return c, database.Wrap("finding a comparison", err)
}

func scanComparison(row *sql.Row, site string) (inbound.Comparison, error) {
	c := inbound.Comparison{Site: site}
	err := row.Scan(&c.LastID, database.Time(&c.StartedAt), database.Time(&c.FinishedAt), &c.Surplus, &c.Requested, &c.Served)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	return c, err
}

func (s syncing) RequestComparison(ctx context.Context, site string) error {
	_, err := s.db.Write.ExecContext(ctx, requestComparison, site, 1)
	return database.Wrap("asking for a comparison", err)
}

func (s syncing) ClaimComparison(ctx context.Context, site string, lease members.Lease) (c inbound.Comparison, err error) {
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, knowComparison, site, 0); err != nil {
			return err
		}
		err := changeOne(tx.ExecContext(ctx, claimComparison, site, lease.Owner, database.Millis(lease.Until), s.db.Now().UnixMilli()))
		if err != nil {
			return err
		}
		c, err = scanComparison(tx.QueryRowContext(ctx, findComparison, site), site)
		return err
	})
	return c, database.Wrap("claiming a comparison", err)
}

func (s syncing) SaveComparison(ctx context.Context, c inbound.Comparison, lease members.Lease) error {
	err := changeOne(s.db.Write.ExecContext(ctx, saveComparison, c.Site, lease.Owner, c.LastID, database.Millis(c.StartedAt), database.Millis(c.FinishedAt),
		c.Surplus, c.Served, database.Millis(lease.Until)))
	return database.Wrap("saving a comparison", err)
}

func (s syncing) WaitingComparisons(ctx context.Context) ([]string, error) {
	sites, err := database.List(ctx, s.db.Read, database.Text, waitingComparisons, s.db.Now().UnixMilli())
	return sites, database.Wrap("listing comparisons that wait", err)
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
