// Package contacts keeps how the publishing platform of each site responded last: whether it
// does, and whether it takes the key.
//
// Nothing is asked for that: those who write to platforms, or poll them, tell of their requests. The
// store has it for all edges.
package contacts

import (
	"context"
	"embed"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the table of this package.
var Schema = database.Schema{Name: "contacts", Files: migrations, Sites: []string{"contacts"}}

// Outcome is what became of a request to a platform.
type Outcome string

const (
	// Responds means that the platform took the request and its key.
	Responds Outcome = "responds"

	// Rejected means that it rejected the key.
	Rejected Outcome = "rejected"

	// Away means that it did not respond, or not as it should.
	Away Outcome = "away"
)

// Contact is how the platform of a site responded last.
type Contact struct {
	Site    string
	Outcome Outcome
	Since   time.Time // when it began to be so
	Problem string    // why, "" for Responds

	// RespondedAt is when the platform took a request last, up to an hour early. Zero if
	// that is not known.
	RespondedAt time.Time

	// AskedAt is when the request was made.
	AskedAt time.Time
}

// SQL keeps contacts in a database.
type SQL struct{ db *database.DB }

// NewSQL migrates the table and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	return &SQL{db}, nil
}

const (
	columns = `site, outcome, since, problem, responded_at, asked_at`

	// saveContact keeps since while the outcome stays, also another edge's. Of two edges, the one
	// that has asked later decides.
	saveContact = `INSERT INTO contacts (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (site) DO UPDATE SET outcome = excluded.outcome, problem = excluded.problem, asked_at = excluded.asked_at,
		since = CASE WHEN contacts.outcome = excluded.outcome THEN contacts.since ELSE excluded.since END,
		responded_at = CASE WHEN contacts.responded_at > excluded.responded_at THEN contacts.responded_at ELSE excluded.responded_at END
		WHERE contacts.asked_at <= excluded.asked_at`

	listFailing  = `SELECT ` + columns + ` FROM contacts WHERE outcome <> 'responds' AND ($1 = '' OR outcome = $1) AND %[1]s ORDER BY %[2]s %[3]s`
	listLongest  = `SELECT ` + columns + ` FROM contacts WHERE outcome <> 'responds' AND outcome = $1 ORDER BY since, site LIMIT $2`
	countFailing = `SELECT outcome, COUNT(*) FROM contacts WHERE outcome <> 'responds' GROUP BY outcome`
	forgetOld    = `DELETE FROM contacts WHERE outcome <> 'responds' AND asked_at < $1`
)

func scan(row database.Row) (c Contact, err error) {
	err = row.Scan(&c.Site, &c.Outcome, database.Time(&c.Since), &c.Problem, database.Time(&c.RespondedAt), database.Time(&c.AskedAt))
	return c, err
}

// Failing lists contacts with an outcome, or all that are not Responds for "".
func (s *SQL) Failing(ctx context.Context, of Outcome, page database.SitePage) ([]Contact, error) {
	query, args := page.In(s.db, listFailing, of)
	list, err := database.List(ctx, s.db.Read, scan, query, args...)
	return list, database.Wrap("listing platforms that do not respond", err)
}

// retention is how long it counts that a platform did not respond. While an edge serves its site, it is asked
// within that time: 100,000 that refuse connections within 17 minutes, and 10,000 that hang within two hours.
const retention = 12 * time.Hour

// forgetOld deletes the contacts that are not Responds of sites that nobody serves any more.
func (s *SQL) forgetOld(ctx context.Context) error {
	_, err := s.db.Write.ExecContext(ctx, forgetOld, s.db.Now().Add(-retention).UnixMilli())
	return database.Wrap("deleting how platforms responded long ago", err)
}

// Longest lists contacts with an outcome, those that have had it longest first.
func (s *SQL) Longest(ctx context.Context, of Outcome, most int) ([]Contact, error) {
	list, err := database.List(ctx, s.db.Read, scan, listLongest, of, most)
	return list, database.Wrap("listing platforms that do not respond", err)
}

// CountFailing counts contacts that are not Responds.
func (s *SQL) CountFailing(ctx context.Context) (map[Outcome]int, error) {
	counts, err := database.Map[Outcome, int](ctx, s.db.Read, countFailing)
	return counts, database.Wrap("counting platforms that do not respond", err)
}

// RespondedAt has when the platforms of sites took a request last, of those of which it is known.
func (s *SQL) RespondedAt(ctx context.Context, sites []string) (map[string]time.Time, error) {
	known := make(map[string]time.Time)
	if len(sites) == 0 {
		return known, nil
	}
	var q database.Query
	q.Add(`SELECT site, responded_at FROM contacts WHERE responded_at > 0 AND `)
	q.AddIn("site", sites)
	err := database.Each(ctx, s.db.Read, func(row database.Row) error {
		var site string
		var at time.Time
		err := row.Scan(&site, database.Time(&at))
		known[site] = at
		return err
	}, q.Text, q.Args...)
	return known, database.Wrap("finding when platforms responded", err)
}
