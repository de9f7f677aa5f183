// Package memberstore keeps members, what is pending of them, integrations, and
// responses to requests that may be repeated, on SQLite and on PostgreSQL.
//
// [SQL] implements the stores that the packages members, members/outbox and
// members/inbound ask for; their doc comments are its contract.
package memberstore

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package. Members themselves are deleted in parts ([SQL.Forget]).
var Schema = database.Schema{
	Name: "members", Files: migrations,
	Sites:   []string{"integrations", "idempotency", "webhooks", "comparisons", "imports"},
	Content: []string{"members", "integrations"},
}

// SQL keeps all that Lychgate knows of members, in a database.
type SQL struct {
	records // the members: members.Store
	queue   // what of them is pending, and what was refused: outbox.Store
	syncing // how far the inbound sync is: inbound.Comparisons, Imports, Webhooks
	callers // the integrations, and their requests with an Idempotency-Key: members.Integrations, members.Requests
}

type (
	records struct{ tables }
	queue   struct{ tables }
	syncing struct{ tables }
	callers struct{ tables }
)

// tables are those of this package, in a database.
type tables struct{ db *database.DB }

// NewSQL migrates the tables and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	t := tables{db}
	return &SQL{records{t}, queue{t}, syncing{t}, callers{t}}, nil
}

// changeOne fails with ErrConflict for a statement that found nothing to change.
func changeOne(result sql.Result, err error) error {
	if n, err := database.Affected(result, err); err != nil || n == 1 {
		return err
	}
	return members.ErrConflict
}

// The columns of a member: what callers are shown, and the rest.
const (
	shown   = `m.guid, m.email, m.name, m.note, m.subscribed, m.labels, m.tier_id, m.status, m.created_at, m.updated_at`
	columns = shown + `, m.site, m.newsletters, m.version, m.applied, m.platform_id, m.deleted,
	m.sent_email, m.sent_at, m.unanswered_at, m.attempts, m.problem, m.next_attempt,
	m.named_email, m.named_name, m.named_note, m.named_labels, m.named_subscription, m.refused, m.refused_at, m.placeholder,
	m.confirmed, m.condition`
)

// The query selects columns and a MemberID.
func (s tables) list(ctx context.Context, query string, args ...any) ([]members.Record, error) {
	return database.List(ctx, s.db.Read, scanRecord, query, args...)
}

// scanRecord reads a record from a row of a MemberID and all columns.
func scanRecord(row database.Row) (members.Record, error) {
	var m members.Record
	var platformID sql.NullString
	var newsletters, condition string
	err := scanShown(row, &m.Member, &m.Site, &newsletters, &m.Version, &m.Applied, &platformID, &m.Deleted,
		&m.Sent, database.Time(&m.SentAt), database.Time(&m.UnansweredAt), &m.Attempts, &m.Problem, database.Time(&m.NextAttempt),
		&m.Named[members.EmailField], &m.Named[members.NameField], &m.Named[members.NoteField], &m.Named[members.LabelsField], &m.Named[members.SubscriptionField],
		&m.Refused, database.Time(&m.RefusedAt), &m.Placeholder, &m.Confirmed, &condition)
	if err == nil && condition != "" {
		err = json.Unmarshal([]byte(condition), &m.Condition)
	}
	if err != nil {
		return members.Record{}, err
	}
	m.PlatformID = platformID.String
	if newsletters == nullList { // as with nearly all members
		return m, nil
	}
	return m, json.Unmarshal([]byte(newsletters), &m.Newsletters)
}

// scanShown reads what callers are shown of a member from a row of a MemberID,
// the columns shown, and others.
func scanShown(row database.Row, m *members.Member, others ...any) error {
	var labels string
	err := row.Scan(append([]any{
		&m.MemberID, &m.GUID, &m.Email, &m.Name, &m.Note, &m.Subscribed, &labels, &m.TierID, &m.Status,
		database.Time(&m.CreatedAt), database.Time(&m.UpdatedAt),
	}, others...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return members.ErrNotFound
	}
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(labels), &m.Labels)
}

// nullList is a nil list in JSON.
const nullList = "null"

func encode[T any](list []T) string {
	if list == nil {
		return nullList
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // which makes six bytes of one
	if err := encoder.Encode(list); err != nil {
		panic(err) // strings, and structs of strings, always encode
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// encodeCondition is empty for none.
func encodeCondition(c *members.Condition) string {
	if c == nil {
		return ""
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // its times are of this century
	}
	return string(text)
}

func null(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

func (s queue) countBySite(ctx context.Context, query string) (map[string]int, error) {
	all, err := database.Map[string, int](ctx, s.db.Read, query)
	return all, database.Wrap("counting members", err)
}
