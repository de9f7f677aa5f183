package themes

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/lychgate/caddy-lychgate/database"
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
}

// ErrNotFound means that nothing is kept of a theme.
var ErrNotFound = errors.New("the theme has no manifest")

// Store keeps themes.
//
// It may be used by many goroutines, and by several processes, at once. Each
// change is one step: of several of one theme at the same time, the last wins
// whole. A method that returns nil has made its change durable.
type Store interface {
	// Find returns a theme. Errors: ErrNotFound.
	Find(ctx context.Context, site, name string) (Theme, error)

	// List returns the themes of a site, by name.
	List(ctx context.Context, site string) ([]Theme, error)

	// Save replaces the findings of a theme, and the manifests that are not nil:
	// those that are stay as they were.
	Save(ctx context.Context, t Theme) error

	// Clear forgets a theme. One that is not there is no error.
	Clear(ctx context.Context, site, name string) error
}

//go:embed migrations/*.sql
var migrations embed.FS

// SQL is a [Store] on a database.
type SQL struct{ db *database.DB }

// NewSQL brings the table up to date and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "themes", files); err != nil {
		return nil, err
	}
	return &SQL{db}, nil
}

const (
	columns   = `site, name, manifest, known_good, findings, updated_at`
	findTheme = `SELECT ` + columns + ` FROM themes WHERE site = $1 AND name = $2`
	listTheme = `SELECT ` + columns + ` FROM themes WHERE site = $1 ORDER BY name`
	saveTheme = `INSERT INTO themes (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (site, name) DO UPDATE SET manifest = COALESCE($3, themes.manifest),
			known_good = COALESCE($4, themes.known_good), findings = $5, updated_at = $6`
	clearTheme = `DELETE FROM themes WHERE site = $1 AND name = $2`
)

// Find implements [Store].
func (s *SQL) Find(ctx context.Context, site, name string) (Theme, error) {
	t, err := scan(s.db.Read.QueryRowContext(ctx, findTheme, site, name))
	if errors.Is(err, sql.ErrNoRows) {
		return Theme{}, ErrNotFound
	}
	if err != nil {
		return Theme{}, fmt.Errorf("finding a theme: %w", err)
	}
	return t, nil
}

// List implements [Store].
func (s *SQL) List(ctx context.Context, site string) ([]Theme, error) {
	rows, err := s.db.Read.QueryContext(ctx, listTheme, site)
	if err != nil {
		return nil, fmt.Errorf("listing themes: %w", err)
	}
	defer rows.Close()
	list := []Theme{}
	for rows.Next() {
		t, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("listing themes: %w", err)
		}
		list = append(list, t)
	}
	return list, rows.Err()
}

// Save implements [Store].
func (s *SQL) Save(ctx context.Context, t Theme) error {
	latest, err := encode(t.Manifest)
	if err != nil {
		return err
	}
	good, err := encode(t.KnownGood)
	if err != nil {
		return err
	}
	findings, err := json.Marshal(t.Findings)
	if err != nil {
		return fmt.Errorf("encoding findings: %w", err)
	}
	if _, err := s.db.Write.ExecContext(ctx, saveTheme, t.Site, t.Name, latest, good, string(findings), t.UpdatedAt.UnixMilli()); err != nil {
		return fmt.Errorf("saving a theme: %w", err)
	}
	return nil
}

// Clear implements [Store].
func (s *SQL) Clear(ctx context.Context, site, name string) error {
	if _, err := s.db.Write.ExecContext(ctx, clearTheme, site, name); err != nil {
		return fmt.Errorf("clearing a theme: %w", err)
	}
	return nil
}

func scan(row interface{ Scan(...any) error }) (Theme, error) {
	var t Theme
	var latest, good sql.NullString
	var findings string
	var updated int64
	if err := row.Scan(&t.Site, &t.Name, &latest, &good, &findings, &updated); err != nil {
		return Theme{}, err
	}
	t.UpdatedAt = time.UnixMilli(updated).UTC()
	return t, errors.Join(decode(latest, &t.Manifest), decode(good, &t.KnownGood), json.Unmarshal([]byte(findings), &t.Findings))
}

// encode returns a manifest as JSON, null for none.
func encode(m *manifest.Manifest) (sql.NullString, error) {
	if m == nil {
		return sql.NullString{}, nil
	}
	text, err := json.Marshal(m)
	if err != nil {
		return sql.NullString{}, fmt.Errorf("encoding a manifest: %w", err)
	}
	return sql.NullString{String: string(text), Valid: true}, nil
}

func decode(text sql.NullString, m **manifest.Manifest) error {
	if !text.Valid {
		return nil
	}
	return json.Unmarshal([]byte(text.String), m)
}

var _ Store = (*SQL)(nil)
