package memberstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/outbox"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// tombstoneRetention is how long the platform's IDs of deleted members are kept: longer than anything that was read before
// can be in use.
const tombstoneRetention = 10 * time.Minute

const (
	isPending = ` applied < version`
	isDue     = isPending + ` AND next_attempt <= $1 AND lease_until <= $1`

	// Of a record that was never tried, or is to be tried at once, next_attempt is 0.
	taskColumns = `site, guid, email, deleted, version, updated_at, CASE WHEN next_attempt = 0 THEN updated_at ELSE next_attempt END,
		attempts, problem, lease_owner, lease_until`

	// dueSites goes from site to site in the index of pending records, not through all of them: there may be many, of sites
	// that nobody serves any more.
	dueSites = `WITH RECURSIVE pending (site) AS (
			SELECT min(site) FROM members WHERE applied < version AND site > $2
			UNION ALL
			SELECT (SELECT min(site) FROM members WHERE applied < version AND site > pending.site) FROM pending WHERE site IS NOT NULL
		)
		SELECT site FROM pending WHERE site IS NOT NULL
			AND EXISTS (SELECT 1 FROM members m WHERE m.site = pending.site AND` + isDue + `) LIMIT $3`

	due         = `SELECT ` + taskColumns + ` FROM members WHERE site = $2 AND` + isPending + ` AND next_attempt <= $3 AND lease_until <= $1 ORDER BY members.next_attempt LIMIT $4`
	listPending = `SELECT ` + taskColumns + ` FROM members WHERE site = $1 AND` + isPending + ` ORDER BY members.next_attempt LIMIT $2`
	findTask    = `SELECT ` + taskColumns + ` FROM members WHERE guid = $1 AND` + isPending

	leaseTask = `UPDATE members SET unanswered_at = CASE WHEN lease_owner <> '' THEN lease_until ELSE unanswered_at END,
			lease_owner = $2, lease_until = $3
		WHERE guid = $1 AND lease_until <= $4 AND next_attempt <= $5 AND` + isPending + ` RETURNING ` + taskColumns
	prolongTask = `UPDATE members SET lease_until = $3 WHERE guid = $1 AND lease_owner = $2`

	makeDue         = `UPDATE members SET next_attempt = 0 WHERE site = $1 AND next_attempt > 0 AND` + isPending
	countPending    = `SELECT count(*) FROM members WHERE site = $1 AND` + isPending
	countAllPending = `SELECT site, count(*) FROM members WHERE` + isPending + ` GROUP BY site`
	listRefused     = `SELECT site, guid, email, deleted, version, refused_at, 0, attempts, refused, '', 0
		FROM members WHERE refused <> '' AND site = $1 ORDER BY refused_at DESC LIMIT $2`

	countRefused = `SELECT site, count(*) FROM members WHERE refused <> '' GROUP BY site`

	listRecords = `SELECT '', ` + columns + ` FROM members m WHERE m.site = $1 AND m.applied < m.version ORDER BY m.next_attempt LIMIT $2`

	purgeTombstones = `DELETE FROM members WHERE deleted AND applied >= version AND next_attempt < $1`
	purgeRefused    = `DELETE FROM members WHERE ` + refusedCreate + ` AND refused_at < $1`
)

// Tasks are the pending members, as tasks of [work.Queue]. Their key is the GUID.
type Tasks struct {
	queue
	now func() time.Time
}

// Tasks takes the clock of the queue.
func (s *SQL) Tasks(now func() time.Time) *Tasks { return &Tasks{s.queue, now} }

func scanTask(row database.Row) (work.Task, error) {
	t := work.Task{Kind: outbox.Kind}
	err := row.Scan(&t.Site, &t.Key, &t.Title, &t.IsRemoval, &t.Revision, database.Time(&t.Since), database.Time(&t.DueAt), &t.Attempts, &t.Reason, &t.Holder, database.Time(&t.Until))
	t.Title = cmp.Or(t.Title, t.Key)
	return t, err
}

// DueKinds does not ask the store: DueSites does.
func (*Tasks) DueKinds(context.Context) ([]string, error) { return []string{outbox.Kind}, nil }

// DueSites lists sites by name.
func (s *Tasks) DueSites(ctx context.Context, _ string, behind work.DueSite) ([]work.DueSite, error) {
	sites, err := database.List(ctx, s.db.Read, func(row database.Row) (of work.DueSite, err error) {
		err = row.Scan(&of.Site)
		return of, err
	}, dueSites, database.Millis(s.now()), behind.Site, work.MaxDueSites)
	return sites, database.Wrap("listing sites with due members", err)
}

// Due is described at [work.Table].
func (s *Tasks) Due(ctx context.Context, site, _ string, by time.Time, most int) ([]work.Task, error) {
	list, err := database.List(ctx, s.db.Read, scanTask, due, database.Millis(s.now()), site, database.Millis(by), most)
	return list, database.Wrap("listing due members", err)
}

// Lease is described at [work.Table]. What the holder of a lease that ran out was doing counts as unanswered.
func (s *Tasks) Lease(ctx context.Context, t work.Task, early bool) (work.Task, error) {
	now := s.now()
	by := now
	if early {
		by = now.AddDate(1, 0, 0)
	}
	var leased work.Task
	err := s.db.InTxSoon(ctx, func(tx *sql.Tx) (err error) {
		leased, err = scanTask(tx.QueryRowContext(ctx, leaseTask, t.Key, rand.Text(), database.Millis(now.Add(work.LeaseTime)), database.Millis(now), database.Millis(by)))
		return err
	})
	if !errors.Is(err, sql.ErrNoRows) {
		return leased, database.Wrap("leasing a member", err)
	}
	found, err := scanTask(s.db.Read.QueryRowContext(ctx, findTask, t.Key))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return work.Task{}, work.ErrGone
	case err != nil:
		return work.Task{}, database.Wrap("finding a pending member", err)
	case found.Until.After(now):
		return found, work.ErrHeld
	}
	return found, work.ErrEarly
}

// Prolong is described at [work.Table].
func (s *Tasks) Prolong(ctx context.Context, t work.Task, until time.Time) error {
	return s.held(ctx, prolongTask, t.Key, t.Holder, database.Millis(until))
}

// Release is described at [work.Table].
func (s *Tasks) Release(ctx context.Context, t work.Task) error {
	return s.held(ctx, release, t.Key, t.Holder)
}

// held changes a lease, by its holder.
func (s *Tasks) held(ctx context.Context, statement string, args ...any) error {
	err := s.db.InTxSoon(ctx, func(tx *sql.Tx) error { return changeOne(tx.ExecContext(ctx, statement, args...)) })
	if errors.Is(err, members.ErrConflict) {
		return work.ErrLost
	}
	return database.Wrap("changing the lease of a member", err)
}

// Settle does nothing: who made the attempt has noted what became of it.
func (*Tasks) Settle(context.Context, work.Task, work.Result) (bool, error) { return false, nil }

// MakeDue is described at [work.Table].
func (s *Tasks) MakeDue(ctx context.Context, site string) (map[string]int, error) {
	counts, err := s.Count(ctx, site)
	if err == nil && len(counts) > 0 {
		_, err = s.db.Write.ExecContext(ctx, makeDue, site)
	}
	return counts, database.Wrap("making members due", err)
}

// Pending is described at [work.Table].
func (s *Tasks) Pending(ctx context.Context, site string, most int) ([]work.Task, error) {
	list, err := database.List(ctx, s.db.Read, scanTask, listPending, site, most)
	return list, database.Wrap("listing pending members", err)
}

// Refused is described at [work.Table].
func (s *Tasks) Refused(ctx context.Context, site string, most int) ([]work.Task, error) {
	list, err := database.List(ctx, s.db.Read, scanTask, listRefused, site, most)
	return list, database.Wrap("listing refused members", err)
}

// Count is described at [work.Table].
func (s *Tasks) Count(ctx context.Context, site string) (map[string]int, error) {
	n, err := s.CountPending(ctx, site)
	if n == 0 {
		return nil, err
	}
	return map[string]int{outbox.Kind: n}, nil
}

// CountAll is described at [work.Table].
func (s *Tasks) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	counts, err := s.countBySite(ctx, countAllPending)
	all := make(map[string]map[string]int, len(counts))
	for site, n := range counts {
		all[site] = map[string]int{outbox.Kind: n}
	}
	return all, err
}

// Purge is described at [work.Table].
func (s *Tasks) Purge(ctx context.Context) error {
	now := s.now()
	for statement, retention := range map[string]time.Duration{
		purgeTombstones: tombstoneRetention, purgeRefused: members.RefusalRetention, purgeRequests: requestRetention,
	} {
		if _, err := s.db.Write.ExecContext(ctx, statement, database.Millis(now.Add(-retention))); err != nil {
			return database.Wrap("removing old tombstones, refusals and responses", err)
		}
	}
	return nil
}

// CountPending counts the pending records of a site.
func (s queue) CountPending(ctx context.Context, site string) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, countPending, site).Scan(&n)
	return n, database.Wrap("counting pending members", err)
}

// Pending lists pending records of a site, those whose next attempt comes first before others.
func (s queue) Pending(ctx context.Context, site string, most int) ([]members.Record, error) {
	list, err := s.list(ctx, listRecords, site, most)
	return list, database.Wrap("listing pending members", err)
}

// CountAllRefused counts records with a refused write by site, of all sites in the store that have any.
func (s queue) CountAllRefused(ctx context.Context) (map[string]int, error) {
	return s.countBySite(ctx, countRefused)
}

var _ work.Table = (*Tasks)(nil)
