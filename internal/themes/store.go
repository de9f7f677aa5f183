package themes

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Theme is what is kept of a theme's manifest.
type Theme struct {
	Site, Name string

	// Manifest is the latest that was stored, without the parts that failed
	// validation: what event types are read from. Nil if there is none.
	Manifest *manifest.Manifest

	// KnownGood is the manifest that last validated with zero findings: what
	// Homepage Curation runs on. Nil while that is inactive.
	KnownGood *manifest.Manifest

	// Findings are those of the last upload or refresh. Never nil.
	Findings []manifest.Finding

	// UpdatedAt is when that was, to the millisecond.
	UpdatedAt time.Time

	// KnownGoodAt is when KnownGood was stored, and CurationAt since when it has Homepage
	// Curation, without a break. Zero if there is none, or it is not known. The store
	// keeps both by itself.
	KnownGoodAt, CurationAt time.Time
}

// Events are what the event editor offers: the latest event types, whatever else is wrong
// with the manifest. Nil if there are none.
func (t Theme) Events() *manifest.Events {
	if t.Manifest == nil {
		return nil
	}
	return t.Manifest.Events
}

// Curation is what Homepage Curation runs on: that of the last known-good copy. Nil while
// it is inactive.
func (t Theme) Curation() *manifest.Curation {
	if t.KnownGood == nil {
		return nil
	}
	return t.KnownGood.Curation
}

// Report is about the manifest as it was read last, not about the last known-good copy.
func (t Theme) Report() Report { return newReport(t.Manifest, t.Findings) }

// AllFindings is more than a theme has.
const AllFindings = math.MaxInt

// ErrNotFound means that nothing is kept of a theme.
var ErrNotFound = errcode.New(errcode.NotFound, "the theme has no manifest", "The theme has no manifest.")

// Sequence is the place of a change of a theme in the order of those that were
// begun, in whichever process.
type Sequence int64

// Store keeps themes.
//
// It may be used by many goroutines, and by several processes, at once. Each
// change is one step. Of several of one theme at the same time, the one that was
// begun last wins, whole: an earlier one that comes to its end after it changes
// nothing. A method that returns nil has made its change durable.
type Store interface {
	// Find reads a theme. Errors: ErrNotFound.
	Find(ctx context.Context, site, name string) (Theme, error)

	// List lists the themes of a site by name, each with its first findings: at most as
	// many as are asked for, which may be AllFindings.
	List(ctx context.Context, site string, most int) ([]Summary, error)

	// Read tells of the themes of a site whether each was ever read, by their names. One that is missing was
	// never begun either.
	Read(ctx context.Context, site string) (map[string]bool, error)

	// Begin begins a change of a theme, before what it is to be is read.
	Begin(ctx context.Context, site, name string) (Sequence, error)

	// Save replaces the findings of a theme, and the manifests that are not nil:
	// those that are stay as they were.
	Save(ctx context.Context, seq Sequence, t Theme) error

	// MarkUnread notes that a theme could not be read, and why, until the next Save or Clear.
	MarkUnread(ctx context.Context, seq Sequence, site, name, problem string) error

	// Clear forgets a theme. One that is not there is no error.
	Clear(ctx context.Context, seq Sequence, site, name string) error
}

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package.
var Schema = database.Schema{Name: "themes", Files: migrations, Sites: []string{"themes"}, Content: []string{"themes"}}

// SQL is a [Store] on a database.
type SQL struct{ db *database.DB }

// NewSQL brings the table up to date and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return &SQL{db}, nil
}

// A theme without findings, not even an empty list of them, is not there: it has
// been begun only, or cleared.
const (
	columns   = `site, name, manifest, known_good, findings, updated_at, known_good_at, curation_at`
	findTheme = `SELECT ` + columns + ` FROM themes WHERE site = $1 AND name = $2 AND findings IS NOT NULL`

	beginTheme = `INSERT INTO themes (site, name, begun) VALUES ($1, $2, 1)
		ON CONFLICT (site, name) DO UPDATE SET begun = themes.begun + 1 RETURNING begun`
	saveTheme = `UPDATE themes SET manifest = COALESCE($4, manifest), known_good = COALESCE($5, known_good),
		findings = $6, finding_count = $9, updated_at = $7, changed = $3, unread_at = 0, unread = '',
		known_good_at = CASE WHEN CAST($5 AS TEXT) IS NULL THEN known_good_at ELSE $7 END,
		curation_at = CASE WHEN CAST($5 AS TEXT) IS NULL OR $8 AND curation_at > 0 THEN curation_at WHEN $8 THEN $7 ELSE 0 END
		WHERE site = $1 AND name = $2 AND changed < $3`
	clearTheme = `UPDATE themes SET manifest = NULL, known_good = NULL, findings = NULL, finding_count = NULL, updated_at = 0, known_good_at = 0, curation_at = 0, unread_at = 0, unread = '', changed = $3
		WHERE site = $1 AND name = $2 AND changed < $3`
	markUnread = `UPDATE themes SET unread_at = CASE WHEN unread_at > 0 AND unread_after = changed THEN unread_at ELSE $4 END,
		unread = $5, unread_after = changed WHERE site = $1 AND name = $2 AND changed < $3`
)

// Find is described at [Store].
func (s *SQL) Find(ctx context.Context, site, name string) (Theme, error) {
	t, err := scan(s.db.Read.QueryRowContext(ctx, findTheme, site, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Theme{}, ErrNotFound
	}
	return t, database.Wrap("finding a theme", err)
}

// Begin is described at [Store].
func (s *SQL) Begin(ctx context.Context, site, name string) (Sequence, error) {
	var seq Sequence
	err := s.db.Write.QueryRowContext(ctx, beginTheme, site, name).Scan(&seq)
	return seq, database.Wrap("beginning to change a theme", err)
}

// Save is described at [Store].
func (s *SQL) Save(ctx context.Context, seq Sequence, t Theme) error {
	latest, latestErr := encode(t.Manifest)
	good, goodErr := encode(t.KnownGood)
	findings, err := json.Marshal(t.Findings)
	if err := errors.Join(latestErr, goodErr, err); err != nil {
		return fmt.Errorf("encoding a theme: %w", err)
	}
	_, err = s.db.Write.ExecContext(ctx, saveTheme, t.Site, t.Name, seq, latest, good, string(findings), t.UpdatedAt.UnixMilli(), t.Curation() != nil, len(t.Findings))
	return database.Wrap("saving a theme", err)
}

// maxUnread bounds why a theme could not be read, in code points.
const maxUnread = 300

// MarkUnread is described at [Store].
func (s *SQL) MarkUnread(ctx context.Context, seq Sequence, site, name, problem string) error {
	_, err := s.db.Write.ExecContext(ctx, markUnread, site, name, seq, s.db.Now().UnixMilli(), clip.Text(problem, maxUnread))
	return database.Wrap("noting that a theme could not be read", err)
}

// Clear is described at [Store].
func (s *SQL) Clear(ctx context.Context, seq Sequence, site, name string) error {
	_, err := s.db.Write.ExecContext(ctx, clearTheme, site, name, seq)
	return database.Wrap("clearing a theme", err)
}

func scan(row database.Row) (Theme, error) {
	var t Theme
	var latest, good sql.NullString
	var findings string
	if err := row.Scan(&t.Site, &t.Name, &latest, &good, &findings,
		database.Time(&t.UpdatedAt), database.Time(&t.KnownGoodAt), database.Time(&t.CurationAt)); err != nil {
		return Theme{}, err
	}
	err := errors.Join(decode(latest, &t.Manifest), json.Unmarshal([]byte(findings), &t.Findings))
	if t.KnownGood = t.Manifest; good != latest { // it has findings
		t.KnownGood = nil
		err = errors.Join(err, decode(good, &t.KnownGood))
	}
	return t, err
}

func encode(m *manifest.Manifest) (sql.NullString, error) {
	if m == nil {
		return sql.NullString{}, nil
	}
	text, err := json.Marshal(m)
	return sql.NullString{String: string(text), Valid: true}, err
}

func decode(text sql.NullString, m **manifest.Manifest) error {
	if !text.Valid {
		return nil
	}
	return json.Unmarshal([]byte(text.String), m)
}

var _ Store = (*SQL)(nil)
