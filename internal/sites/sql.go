package sites

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package.
var Schema = database.Schema{Name: "sites", Files: migrations}

// SQL keeps sites in a database. It may be used by many goroutines, and by several processes,
// at once. Each change is one step: all of it is done, or nothing.
type SQL struct {
	db   *database.DB
	keys *seal.Keyring
}

// NewSQL brings the tables of the database up to date. The keys open and seal the secrets
// of sites.
func NewSQL(ctx context.Context, db *database.DB, keys *seal.Keyring) (*SQL, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return &SQL{db, keys}, nil
}

const (
	nextRevision = `UPDATE site_revisions SET revision = revision + $1 RETURNING revision`

	addSite = `INSERT INTO sites (name, hosts, settings, secrets, revision, created_at, updated_at, removed_at, is_purged, purge_until, labels)
		VALUES ($1, $2, $3, $4, $5, $6, $6, 0, FALSE, 0, $7)
		ON CONFLICT (name) DO UPDATE SET hosts = $2, settings = $3, secrets = $4, revision = $5, created_at = $6, updated_at = $6, labels = $7,
			removed_at = 0, is_purged = FALSE, purge_until = 0 WHERE sites.is_purged`
	replaceSite = `UPDATE sites SET hosts = $2, settings = $3, secrets = $4, revision = $5, updated_at = $6, labels = $8
		WHERE name = $1 AND revision = $7 AND removed_at = 0`
	removeSite = `UPDATE sites SET hosts = '[]', settings = '{}', secrets = '', labels = '', revision = $2, updated_at = $3, removed_at = $3, is_purged = $4
		WHERE name = $1 AND removed_at = 0`
	removedAt = `SELECT removed_at FROM sites WHERE name = $1`

	columns      = `name, hosts, settings, secrets, revision, created_at, updated_at, removed_at, labels`
	findSite     = `SELECT ` + columns + ` FROM sites WHERE name = $1 AND removed_at = 0`
	listSites    = `SELECT ` + columns + ` FROM sites WHERE name > $1 AND removed_at = 0%s ORDER BY name LIMIT $2`
	listNames    = `SELECT name FROM sites WHERE removed_at = 0`
	changedSites = `SELECT ` + columns + ` FROM sites WHERE revision > $1 ORDER BY revision`
	lastRevision = `SELECT revision FROM site_revisions`

	claimPurge = `UPDATE sites SET purge_until = $3 WHERE purge_until < $2 AND name = (
			SELECT name FROM sites WHERE removed_at > 0 AND removed_at < $1 AND NOT is_purged AND purge_until < $2 ORDER BY removed_at LIMIT 1
		) RETURNING name, revision`
	// Labels go too: an edge of an earlier release leaves those of a row that it adds again.
	markPurged = `UPDATE sites SET is_purged = TRUE, labels = '' WHERE name = $1 AND revision = $2 AND removed_at > 0`

	sealedSecrets = `SELECT secrets FROM sites WHERE name = $1 AND removed_at = 0`
	resealSecrets = `UPDATE sites SET secrets = $2, revision = $3 WHERE name = $1`
)

// Add adds sites. Errors: *ExistsError, *HostTakenError, *TooManyHostsError, ErrLeaving, ErrNoSecret.
func (s *SQL) Add(ctx context.Context, list ...Site) error {
	err := s.change(ctx, "adding", list, func(tx *sql.Tx, site Site, row values) error {
		n, err := database.Affected(tx.ExecContext(ctx, addSite, site.Name, row.hosts, row.settings, row.secrets, row.revision, row.now, row.labels))
		if err != nil || n == 1 {
			return err
		}
		var removed int64
		if err := tx.QueryRowContext(ctx, removedAt, site.Name).Scan(&removed); err != nil {
			return err
		}
		if removed > 0 {
			return ErrLeaving
		}
		return &ExistsError{site.Name}
	})
	return noted(ctx, err, "added", list...)
}

// Replace replaces sites that are still at the revisions that were read, so that
// hosts can also move from one to another. Errors: ErrConflict, *HostTakenError, *TooManyHostsError, ErrNoSecret.
func (s *SQL) Replace(ctx context.Context, list ...Site) error {
	err := s.change(ctx, "changing", list, func(tx *sql.Tx, site Site, row values) error {
		n, err := database.Affected(tx.ExecContext(ctx, replaceSite, site.Name, row.hosts, row.settings, row.secrets, row.revision, row.now, site.Revision, row.labels))
		if err == nil && n == 0 {
			err = ErrConflict
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, removeHosts, site.Name)
		}
		return err
	})
	return noted(ctx, err, "changed", list...)
}

// noted notes a change of sites in the audit log, unless it failed.
func noted(ctx context.Context, err error, action string, list ...Site) error {
	if err != nil {
		return err
	}
	for _, site := range list {
		audit.Note(ctx, site.Name, "site", site.Name, action)
	}
	return nil
}

// values are those of a site's row.
type values struct {
	hosts, settings, secrets, labels string
	revision, now                    int64
}

// change writes the rows of sites, and then their hosts, in one step.
func (s *SQL) change(ctx context.Context, doing string, list []Site, write func(*sql.Tx, Site, values) error) error {
	if err := checkHosts(list); err != nil {
		return fmt.Errorf("%s sites: %w", doing, err)
	}
	rows := make([]values, len(list))
	for i, site := range list {
		var err error
		if rows[i], err = s.valuesOf(site); err != nil {
			return fmt.Errorf("%s site %s: %w", doing, site.Name, err)
		}
	}
	return s.inTurn(ctx, len(list), func(tx *sql.Tx, revision int64) error {
		for i, site := range list {
			row := rows[i]
			row.revision = revision + int64(i)
			if err := write(tx, site, row); err != nil {
				return fmt.Errorf("%s site %s: %w", doing, site.Name, err)
			}
		}
		if site, err := keepHosts(ctx, tx, list); err != nil {
			return fmt.Errorf("%s site %s: %w", doing, site, err)
		}
		return nil
	})
}

func (s *SQL) valuesOf(site Site) (values, error) {
	hosts, err := json.Marshal(site.Hosts)
	if err != nil {
		return values{}, err
	}
	row := values{hosts: string(hosts), settings: string(site.Settings), labels: keptLabels(site.Labels), now: s.db.Now().UnixMilli()}
	if len(site.Secrets) == 0 {
		return row, nil
	}
	if !s.keys.CanSeal() {
		return values{}, ErrNoSecret
	}
	secrets, err := json.Marshal(site.Secrets)
	if err != nil {
		return values{}, err
	}
	row.secrets = s.keys.Seal(string(secrets), site.Name)
	return row, nil
}

// inTurn runs a change in a transaction, one at a time in all processes, with the first
// of so many revisions of its own.
func (s *SQL) inTurn(ctx context.Context, revisions int, change func(tx *sql.Tx, first int64) error) error {
	return s.db.InTx(ctx, func(tx *sql.Tx) error {
		var last int64
		if err := tx.QueryRowContext(ctx, nextRevision, revisions).Scan(&last); err != nil {
			return fmt.Errorf("changing sites: %w", err)
		}
		return change(tx, last-int64(revisions)+1)
	})
}

// Remove removes a site. Its name can be used again when what was kept of it is
// purged; at once, if that is to be kept for another of its name. Errors:
// ErrNotFound.
func (s *SQL) Remove(ctx context.Context, name string, keep bool) error {
	err := s.inTurn(ctx, 1, func(tx *sql.Tx, revision int64) error {
		n, err := database.Affected(tx.ExecContext(ctx, removeSite, name, revision, s.db.Now().UnixMilli(), keep))
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, removeHosts, name)
		}
		if err != nil {
			return fmt.Errorf("removing site %s: %w", name, err)
		}
		return nil
	})
	return noted(ctx, err, "removed", Site{Name: name})
}

// Find does not find sites that are removed. Errors: ErrNotFound.
func (s *SQL) Find(ctx context.Context, name string) (Site, error) {
	list, err := s.list(ctx, findSite, name)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Site{}, fmt.Errorf("finding site %s: %w", name, err)
	}
	return list[0], nil
}

// List orders by name, and begins after a name. Sites that are removed are left out, and those that
// carry no label of one of some lists; lists without labels do not count.
func (s *SQL) List(ctx context.Context, after string, limit int, labels ...[]string) ([]Site, error) {
	condition, args := carrying(labels, after, limit)
	list, err := s.list(ctx, fmt.Sprintf(listSites, condition), args...)
	if err != nil {
		return nil, fmt.Errorf("listing sites: %w", err)
	}
	return list, nil
}

// Names lists the names of the sites of List, in the order of Go. It is not nil.
func (s *SQL) Names(ctx context.Context, labels ...[]string) ([]string, error) {
	condition, args := carrying(labels)
	names := []string{}
	err := database.Each(ctx, s.db.Read, func(row database.Row) error {
		name, err := database.Text(row)
		names = append(names, name)
		return err
	}, listNames+condition, args...)
	slices.Sort(names)
	return names, database.Wrap("listing names of sites", err)
}

// carrying is the condition that a site carries a label of each list, behind other arguments.
func carrying(labels [][]string, args ...any) (string, []any) {
	var conditions []string
	for _, list := range labels {
		var carries []string
		for _, label := range list {
			args = append(args, "% "+label+" %") // no label has a wildcard
			carries = append(carries, fmt.Sprintf("labels LIKE $%d", len(args)))
		}
		if len(carries) > 0 {
			conditions = append(conditions, " AND ("+strings.Join(carries, " OR ")+")")
		}
	}
	return strings.Join(conditions, ""), args
}

// All yields the sites that are not removed, by name. It reads a page at a time, so that a
// caller may change the sites meanwhile. Labels are those of List.
func (s *SQL) All(ctx context.Context, labels ...[]string) iter.Seq2[Site, error] {
	const page = 500
	return func(yield func(Site, error) bool) {
		for after := ""; ; {
			list, err := s.List(ctx, after, page, labels...)
			if err != nil {
				yield(Site{}, err)
				return
			}
			for _, site := range list {
				if !yield(site, nil) {
					return
				}
				after = site.Name
			}
			if len(list) < page {
				return
			}
		}
	}
}

// Changes lists the sites that were changed after a revision, removed ones too, in the
// order of their revisions, and the last revision that there is. Less than that after
// which was asked means that the store was put back to an earlier state.
func (s *SQL) Changes(ctx context.Context, after int64) ([]Site, int64, error) {
	var last int64
	if err := s.db.Read.QueryRowContext(ctx, lastRevision).Scan(&last); err != nil {
		return nil, after, fmt.Errorf("finding changed sites: %w", err)
	}
	if last <= after {
		return nil, last, nil
	}
	list, err := s.list(ctx, changedSites, after)
	if err != nil {
		return nil, after, fmt.Errorf("reading changes of sites: %w", err)
	}
	if len(list) > 0 { // one may have come since
		last = max(last, list[len(list)-1].Revision)
	}
	return list, last, nil
}

func (s *SQL) list(ctx context.Context, query string, args ...any) ([]Site, error) {
	return database.List(ctx, s.db.Read, s.scan, query, args...)
}

func (s *SQL) scan(row database.Row) (site Site, err error) {
	var hosts, settings, secrets, labels string
	if err := row.Scan(&site.Name, &hosts, &settings, &secrets, &site.Revision,
		database.Time(&site.CreatedAt), database.Time(&site.UpdatedAt), database.Time(&site.RemovedAt), &labels); err != nil {
		return Site{}, err
	}
	if err := json.Unmarshal([]byte(hosts), &site.Hosts); err != nil {
		site.Hosts, site.Damaged = nil, fmt.Errorf("its hosts cannot be read: %w", err)
	}
	site.Settings = json.RawMessage(settings)
	if labels != "" {
		site.Labels = strings.Fields(labels)
	}
	if secrets != "" {
		site.Secrets, site.Locked = s.open(secrets, site.Name)
	}
	return site, nil
}

// keptLabels are labels as a row has them, so that each is found between two spaces.
func keptLabels(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return " " + strings.Join(labels, " ") + " "
}

func (s *SQL) open(sealed, name string) (secrets map[string]string, err error) {
	text, err := s.keys.Open(sealed, name)
	if err == nil {
		err = json.Unmarshal([]byte(text), &secrets)
	}
	return secrets, err
}

// ClaimPurge leases a site that was removed before some time and is not purged, for its
// caller alone until another time. Errors: ErrNotFound, if there is none.
func (s *SQL) ClaimPurge(ctx context.Context, before, until time.Time) (site Site, err error) {
	err = s.db.Write.QueryRowContext(ctx, claimPurge, before.UnixMilli(), s.db.Now().UnixMilli(), until.UnixMilli()).Scan(&site.Name, &site.Revision)
	if errors.Is(err, sql.ErrNoRows) {
		return Site{}, ErrNotFound
	}
	if err != nil {
		return Site{}, fmt.Errorf("finding removed sites: %w", err)
	}
	return site, nil
}

// MarkPurged notes that nothing is kept any more of a site that was claimed.
func (s *SQL) MarkPurged(ctx context.Context, site Site) error {
	if _, err := s.db.Write.ExecContext(ctx, markPurged, site.Name, site.Revision); err != nil {
		return fmt.Errorf("marking site %s as deleted: %w", site.Name, err)
	}
	return nil
}

// Reseal seals the secrets of a site anew if they were sealed with another secret
// than the first. It reports whether it did. Errors: ErrNotFound, or why they
// cannot be opened.
func (s *SQL) Reseal(ctx context.Context, name string) (resealed bool, err error) {
	var sealed string
	err = s.db.Read.QueryRowContext(ctx, sealedSecrets, name).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil && (sealed == "" || s.keys.IsCurrent(sealed)) {
		return false, nil
	}
	if err == nil {
		err = s.reseal(ctx, name)
	}
	if err != nil {
		return false, fmt.Errorf("resealing the keys of site %s: %w", name, err)
	}
	return true, noted(ctx, nil, "resealed", Site{Name: name})
}

// reseal takes a revision, so that edges that could not open the secrets try again.
func (s *SQL) reseal(ctx context.Context, name string) error {
	return s.inTurn(ctx, 1, func(tx *sql.Tx, revision int64) error {
		var sealed string
		err := tx.QueryRowContext(ctx, sealedSecrets, name).Scan(&sealed)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		text, err := s.keys.Open(sealed, name)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, resealSecrets, name, s.keys.Seal(text, name), revision)
		return err
	})
}
