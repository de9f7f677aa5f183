package themes

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// maxListed is how much of a theme's findings is read for a list that shows some of them,
// in code points: more than 30 usual ones have.
const maxListed = 64 << 10

// Of a row that an earlier version wrote, how many findings it has and since when it has
// Homepage Curation is not known: both are read from the JSON.
const listThemes = `SELECT name, CASE WHEN $2 AND finding_count IS NOT NULL THEN substr(findings, 1, $3) ELSE findings END, finding_count,
	updated_at, known_good_at, curation_at, known_good IS NOT NULL, CASE WHEN known_good_at = 0 THEN known_good END
	FROM themes WHERE site = $1 AND findings IS NOT NULL ORDER BY name`

// List is described at [Store].
func (s *SQL) List(ctx context.Context, site string, most int) ([]Summary, error) {
	list, err := database.List(ctx, s.db.Read, func(row database.Row) (Summary, error) {
		return scanSummary(row, most)
	}, listThemes, site, most < AllFindings, maxListed)
	return list, database.Wrap("listing themes", err)
}

// Read is described at [Store].
func (s *SQL) Read(ctx context.Context, site string) (map[string]bool, error) {
	read := make(map[string]bool)
	_, err := database.List(ctx, s.db.Read, func(row database.Row) (name string, err error) {
		var isRead bool
		err = row.Scan(&name, &isRead)
		read[name] = isRead
		return name, err
	}, `SELECT name, changed > 0 FROM themes WHERE site = $1`, site)
	return read, database.Wrap("listing themes that were read", err)
}

func scanSummary(row database.Row, most int) (Summary, error) {
	var t Summary
	var findings string
	var total sql.NullInt64
	var hasGood bool
	var good sql.NullString
	if err := row.Scan(&t.Name, &findings, &total,
		database.Time(&t.UpdatedAt), database.Time(&t.KnownGoodAt), database.Time(&t.CurationAt), &hasGood, &good); err != nil {
		return Summary{}, err
	}
	t.IsCurated = !t.CurationAt.IsZero()
	if good.Valid {
		var m manifest.Manifest
		if err := json.Unmarshal([]byte(good.String), &m); err != nil {
			return Summary{}, err
		}
		t.IsCurated = m.Curation != nil
	}
	var seen int
	t.Findings, seen = firstFindings(findings, most, !total.Valid)
	if t.Total = int(total.Int64); !total.Valid {
		t.Total = seen
	}
	t.RunsOlder = hasGood && t.Total > 0
	return t, nil
}

// firstFindings reads the first findings of a JSON array, whose end may be cut off. seen
// is how many it has, if they are to be counted.
func firstFindings(text string, most int, count bool) (first []manifest.Finding, seen int) {
	first = []manifest.Finding{}
	decoder := json.NewDecoder(strings.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return first, 0
	}
	for (count || len(first) < most) && decoder.More() {
		var finding manifest.Finding
		if decoder.Decode(&finding) != nil {
			break
		}
		if seen++; len(first) < most {
			first = append(first, finding)
		}
	}
	return first, seen
}
