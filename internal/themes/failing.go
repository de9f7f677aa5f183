package themes

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// This file finds sites whose themes are in trouble, without a query for each site.

// Failing is how many themes of a site are in trouble, and the first of them by name.
type Failing struct {
	Site   string
	Themes int
	Name   string

	// Findings are those of all these themes.
	Findings int

	// Since is when the first of them got into trouble: when a manifest with findings was
	// read, or when the theme could not be.
	Since time.Time

	// Problem is why a theme could not be read.
	Problem string
}

const (
	withFindings = `SELECT site, COUNT(*), MIN(name), SUM(finding_count), MIN(updated_at), '' FROM themes
		WHERE finding_count > 0 AND %[1]s GROUP BY site ORDER BY %[2]s %[3]s`
	// A version before 00004_failing.sql may have saved or cleared a theme since.
	unreadThemes = `SELECT site, COUNT(*), MIN(name), 0, MIN(unread_at), MIN(unread) FROM themes
		WHERE unread_after = changed AND unread_at > 0 AND unread_at > $1 AND %[1]s GROUP BY site ORDER BY %[2]s %[3]s`
)

// WithFindings lists sites that have a theme whose manifest has findings.
func (s *SQL) WithFindings(ctx context.Context, page database.SitePage) ([]Failing, error) {
	query, args := page.In(s.db, withFindings)
	list, err := database.List(ctx, s.db.Read, scanFailing, query, args...)
	return list, database.Wrap("listing themes with findings", err)
}

// unreadRetention is how long it counts that a theme could not be read: it may have another repository
// by now, or none.
const unreadRetention = 30 * 24 * time.Hour

// Unread lists sites that have a theme whose repository could not be read the last time, within 30 days.
func (s *SQL) Unread(ctx context.Context, page database.SitePage) ([]Failing, error) {
	query, args := page.In(s.db, unreadThemes, s.db.Now().Add(-unreadRetention).UnixMilli())
	list, err := database.List(ctx, s.db.Read, scanFailing, query, args...)
	return list, database.Wrap("listing themes that cannot be read", err)
}

func scanFailing(row database.Row) (f Failing, err error) {
	err = row.Scan(&f.Site, &f.Themes, &f.Name, &f.Findings, database.Time(&f.Since), &f.Problem)
	return f, err
}
