package work

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the table of this package. Tables of packages whose migrations write into it come
// after it.
var Schema = database.Schema{Name: "work", Files: migrations, Sites: []string{"work"}}

const (
	// LeaseTime is how long a process has a task whose lease it does not prolong: how long a
	// killed process delays its work, at most. One that is started in its place looks each second at first.
	LeaseTime = 4 * time.Second

	// MaxDueSites is how many sites are read at once that have something due.
	MaxDueSites = 1000

	// maxTitle bounds a title and a name, in code points: they are for lists.
	maxTitle = 200
)

// FirstBackoff is how long after the first failed attempt the next one is due. A test whose platform fails for a moment
// makes it shorter before it starts an edge.
var FirstBackoff = 2 * time.Second

const (
	columns = `site, kind, key, title, revision, since, COALESCE(due_at, 0), attempts, reason, holder, leased_until, asked_by`

	// An expired lease that has its holder still is an attempt that ended in the middle.
	attemptsAfter = `work.attempts + CASE WHEN work.holder <> '' AND work.leased_until <= %[1]s AND work.since > 0 THEN 1 ELSE 0 END`

	isDue = ` due_at <= $1 AND leased_until <= $1`

	listDueKinds = `SELECT DISTINCT kind FROM work WHERE` + isDue
	listDueSites = `SELECT site, MIN(due_at) FROM work WHERE` + isDue + ` AND kind = $2 GROUP BY site
		HAVING MIN(due_at) > $3 OR MIN(due_at) = $3 AND site > $4 ORDER BY MIN(due_at), site LIMIT $5`
	listDue = `SELECT ` + columns + ` FROM work WHERE` + isDue + ` AND site = $2 AND kind = $3 ORDER BY due_at, key LIMIT $4`

	findTask    = `SELECT ` + columns + ` FROM work WHERE site = $1 AND kind = $2 AND key = $3`
	prolongTask = `UPDATE work SET leased_until = $5 WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4`
	holdsTask   = `SELECT 1 FROM work WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4`
	unleaseTask = `UPDATE work SET holder = '', leased_until = 0 WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4`

	doneTask  = `DELETE FROM work WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4 AND revision = $5`
	laterTask = `UPDATE work SET holder = '', leased_until = 0, since = 0, attempts = 0, reason = '', due_at = $6
		WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4 AND revision = $5`
	neverTask = `UPDATE work SET holder = '', leased_until = 0, attempts = attempts + 1, reason = $6, due_at = NULL
		WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4 AND revision = $5`
	againTask = `UPDATE work SET holder = '', leased_until = 0, attempts = attempts + 1,
		reason = CASE WHEN revision = $5 THEN $6 ELSE reason END, due_at = CASE WHEN revision = $5 THEN $7 ELSE due_at END
		WHERE site = $1 AND kind = $2 AND key = $3 AND holder = $4`

	isPending = ` since > 0 AND due_at IS NOT NULL`

	listPending = `SELECT ` + columns + ` FROM work WHERE site = $1 AND` + isPending + ` ORDER BY due_at, kind, key LIMIT $2`
	listRefused = `SELECT ` + columns + ` FROM work WHERE site = $1 AND due_at IS NULL ORDER BY since DESC, kind, key LIMIT $2`
	countSite   = `SELECT site, kind, COUNT(*) FROM work WHERE site = $1 AND` + isPending + ` GROUP BY site, kind`
	countAll    = `SELECT site, kind, COUNT(*) FROM work WHERE` + isPending + ` GROUP BY site, kind`

	// makeDue is also for checks that have failed.
	makeDue = `UPDATE work SET due_at = $2 WHERE site = $1 AND due_at > $2 AND (since > 0 OR attempts > 0)`

	checkTask = `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until, asked_by)
		SELECT $1, $2, $3, '', CAST($4 AS BIGINT), 0, CAST($5 AS BIGINT), 0, '', '', 0, '' WHERE (SELECT COUNT(*) FROM work WHERE site = $1 AND kind = $2) < $6
		ON CONFLICT (site, kind, key) DO UPDATE SET revision = excluded.revision, attempts = 0,
		due_at = CASE WHEN work.due_at < excluded.due_at AND work.leased_until <= $7 THEN work.due_at ELSE excluded.due_at END`

	planTask = `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until, asked_by)
		VALUES ($1, $2, $3, '', $4, 0, $5, 0, '', '', 0, '') ON CONFLICT (site, kind, key) DO UPDATE SET
		revision = CASE WHEN work.leased_until > $6 THEN excluded.revision ELSE work.revision END,
		due_at = CASE WHEN work.leased_until > $6 THEN work.due_at ELSE excluded.due_at END
		WHERE work.leased_until > $6 OR work.due_at > excluded.due_at`

	countLeased = `SELECT COUNT(*) FROM work WHERE site = $1 AND kind = $2 AND leased_until > $3`

	giveUpTask = `DELETE FROM work WHERE site = $1 AND kind = $2 AND key = $3 AND due_at IS NULL`
	purgeTasks = `DELETE FROM work WHERE due_at IS NULL AND since < $1`

	leaseSite = `INSERT INTO work_turns (site, kind, holder, leased_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (site, kind) DO UPDATE SET holder = excluded.holder, leased_until = excluded.leased_until
		WHERE work_turns.leased_until <= $5 OR work_turns.holder = excluded.holder`
	releaseSite = `DELETE FROM work_turns WHERE site = $1 AND kind = $2 AND holder = $3`
)

var (
	enqueueTask = `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until, asked_by)
		VALUES ($1, $2, $3, $4, $5, $6, $6, 0, '', $7, $8, $9) ON CONFLICT (site, kind, key) DO UPDATE SET
		title = excluded.title, revision = excluded.revision, since = excluded.since, due_at = excluded.due_at, reason = '',
		asked_by = CASE WHEN excluded.asked_by = '' AND work.since > 0 AND work.due_at IS NOT NULL THEN work.asked_by ELSE excluded.asked_by END,
		attempts = ` + fmt.Sprintf(attemptsAfter, "excluded.since") + `,
		holder = CASE WHEN work.leased_until <= excluded.since THEN excluded.holder ELSE work.holder END,
		leased_until = CASE WHEN work.leased_until <= excluded.since THEN excluded.leased_until ELSE work.leased_until END
		RETURNING attempts, holder, asked_by`
	leaseTask = `UPDATE work SET holder = $4, leased_until = $5, attempts = ` + fmt.Sprintf(attemptsAfter, "$6") + `
		WHERE site = $1 AND kind = $2 AND key = $3 AND leased_until <= $6 AND due_at <= $7 RETURNING ` + columns
)

// store is the table.
type store struct {
	db  *database.DB
	now func() time.Time // by the store's clock
}

func scan(row database.Row) (t Task, err error) {
	err = row.Scan(&t.Site, &t.Kind, &t.Key, &t.Title, &t.Revision, database.Time(&t.Since), database.Time(&t.DueAt), &t.Attempts, &t.Reason, &t.Holder, database.Time(&t.Until), &t.AskedBy)
	return t, err
}

// enqueue notes that the latest of a key is not on the platform, and is due at once. Who asked for what
// is still pending stays, unless somebody else asks: what nobody asks for comes from a poll. With lease, the caller has the lease afterwards, unless somebody else has it.
func (s *store) enqueue(ctx context.Context, tx *sql.Tx, t Task, lease bool) (Task, error) {
	now := s.now().UTC().Truncate(time.Millisecond)
	t.Title, t.AskedBy = clip.Text(t.Title, maxTitle), clip.Text(AskerOf(ctx).Name, maxTitle)
	t.Since, t.DueAt, t.Revision = now, now, mathrand.Int64()
	var holder string
	if lease {
		holder, t.Until = rand.Text(), now.Add(LeaseTime)
	}
	err := tx.QueryRowContext(ctx, enqueueTask, t.Site, t.Kind, t.Key, t.Title, t.Revision, now.UnixMilli(), holder, database.Millis(t.Until), t.AskedBy).Scan(&t.Attempts, &t.Holder, &t.AskedBy)
	if t.Holder != holder { // of another's lease
		t.Holder = ""
	}
	return t, database.Wrap("enqueueing work", err)
}

func (s *store) Lease(ctx context.Context, t Task, early bool) (Task, error) {
	now := s.now()
	dueUntil := now
	if early {
		dueUntil = now.AddDate(1, 0, 0)
	}
	leased, err := scan(s.db.Write.QueryRowContext(ctx, leaseTask, t.Site, t.Kind, t.Key, rand.Text(), now.Add(LeaseTime).UnixMilli(), now.UnixMilli(), dueUntil.UnixMilli()))
	if !errors.Is(err, sql.ErrNoRows) {
		return leased, database.Wrap("leasing work", err)
	}
	found, err := scan(s.db.Read.QueryRowContext(ctx, findTask, t.Site, t.Kind, t.Key))
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && found.DueAt.IsZero():
		return found, ErrGone
	case err != nil:
		return found, database.Wrap("finding work", err)
	case found.Until.After(now):
		return found, ErrHeld
	}
	return found, ErrEarly
}

func (s *store) Prolong(ctx context.Context, t Task, until time.Time) error {
	return one(s.db.Write.ExecContext(ctx, prolongTask, t.Site, t.Kind, t.Key, t.Holder, until.UnixMilli()))
}

func (s *store) Release(ctx context.Context, t Task) error {
	return one(s.db.Write.ExecContext(ctx, unleaseTask, t.Site, t.Kind, t.Key, t.Holder))
}

// leaseSite gives a holder the lease of a site for a serial kind, or prolongs it. Errors:
// ErrLost, if another process has it.
func (s *store) leaseSite(ctx context.Context, site, kind, holder string) error {
	now := s.now()
	return one(s.db.Write.ExecContext(ctx, leaseSite, site, kind, holder, now.Add(LeaseTime).UnixMilli(), now.UnixMilli()))
}

func (s *store) releaseSite(ctx context.Context, site, kind, holder string) error {
	return one(s.db.Write.ExecContext(ctx, releaseSite, site, kind, holder))
}

// one fails with ErrLost unless a statement has changed a row.
func one(result sql.Result, err error) error {
	n, err := database.Affected(result, err)
	if err == nil && n != 1 {
		return ErrLost
	}
	return database.Wrap("changing work", err)
}

func (s *store) Settle(ctx context.Context, t Task, r Result) (isDue bool, err error) {
	err = s.db.InTx(ctx, func(tx *sql.Tx) error {
		if r.Settle != nil {
			if err := r.Settle(ctx, tx); err != nil {
				return err
			}
		}
		key := []any{t.Site, t.Kind, t.Key, t.Holder}
		if r.Outcome == Again { // also of one that was enqueued anew: something may have been done
			next := s.now().Add(Backoff(FirstBackoff, t.Attempts)).UnixMilli()
			return one(tx.ExecContext(ctx, againTask, append(key, t.Revision, r.Reason, next)...))
		}
		statement, args := doneTask, append(key, t.Revision)
		switch r.Outcome {
		case Later:
			statement, args = laterTask, append(args, r.At.UnixMilli())
		case Never:
			statement, args = neverTask, append(args, r.Reason)
		case Done, Again:
		}
		err := one(tx.ExecContext(ctx, statement, args...))
		if isDue = errors.Is(err, ErrLost); isDue {
			err = one(tx.ExecContext(ctx, unleaseTask, key...))
		}
		return err
	})
	return isDue && err == nil, database.Wrap("settling work", err)
}

func (s *store) DueKinds(ctx context.Context) ([]string, error) {
	kinds, err := database.List(ctx, s.db.Read, database.Text, listDueKinds, s.now().UnixMilli())
	return kinds, database.Wrap("finding due work", err)
}

// DueSites lists those first that have had it longest.
func (s *store) DueSites(ctx context.Context, kind string, behind DueSite) ([]DueSite, error) {
	sites, err := database.List(ctx, s.db.Read, func(row database.Row) (d DueSite, err error) {
		err = row.Scan(&d.Site, &d.Since)
		return d, err
	}, listDueSites, s.now().UnixMilli(), kind, behind.Since, behind.Site, MaxDueSites)
	return sites, database.Wrap("finding sites with due work", err)
}

func (s *store) Due(ctx context.Context, site, kind string, by time.Time, most int) ([]Task, error) {
	return s.list(ctx, listDue, by.UnixMilli(), site, kind, most)
}

func (s *store) MakeDue(ctx context.Context, site string) (map[string]int, error) {
	now := s.now().UnixMilli()
	counts, err := s.count(ctx, countSite, site)
	if err == nil {
		_, err = s.db.Write.ExecContext(ctx, makeDue, site, now)
	}
	return counts[site], database.Wrap("making work due", err)
}

func (s *store) Pending(ctx context.Context, site string, most int) ([]Task, error) {
	return s.list(ctx, listPending, site, most)
}

func (s *store) Refused(ctx context.Context, site string, most int) ([]Task, error) {
	return s.list(ctx, listRefused, site, most)
}

func (s *store) Count(ctx context.Context, site string) (map[string]int, error) {
	counts, err := s.count(ctx, countSite, site)
	return counts[site], err
}

func (s *store) CountAll(ctx context.Context) (map[string]map[string]int, error) {
	return s.count(ctx, countAll)
}

func (s *store) Purge(ctx context.Context) error {
	_, err := s.db.Write.ExecContext(ctx, purgeTasks, s.now().Add(-refusalRetention).UnixMilli())
	return database.Wrap("purging refusals", err)
}

func (s *store) list(ctx context.Context, query string, args ...any) ([]Task, error) {
	list, err := database.List(ctx, s.db.Read, scan, query, args...)
	return list, database.Wrap("listing work", err)
}

// count groups by site and kind.
func (s *store) count(ctx context.Context, query string, args ...any) (map[string]map[string]int, error) {
	counts := make(map[string]map[string]int)
	err := database.Each(ctx, s.db.Read, func(row database.Row) error {
		var site, kind string
		var n int
		if err := row.Scan(&site, &kind, &n); err != nil {
			return err
		}
		if counts[site] == nil {
			counts[site] = make(map[string]int)
		}
		counts[site][kind] = n
		return nil
	}, query, args...)
	return counts, database.Wrap("counting work", err)
}
