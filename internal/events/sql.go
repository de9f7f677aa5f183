package events

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the tables of this package.
var Schema = database.Schema{
	Name: "events", Files: migrations,
	Sites:   []string{"events", "events_sites", "events_editors", "registrations", "registrations_taken", "registrations_waiting", "registration_labels", "mails", "mail_messages"},
	Content: []string{"events", "registrations"},
}

// SQL is a [Store] on a database, by whose clock it goes.
type SQL struct {
	db      *database.DB
	history *history.Log
	changed func(ctx context.Context, tx *sql.Tx, e *Event) error // nil for nothing
}

// OnChange has something done whenever an event is published or cancelled, or a public one moves or has other terms, in the same transaction. It is
// called before the store is used.
func (s *SQL) OnChange(do func(ctx context.Context, tx *sql.Tx, e *Event) error) { s.changed = do }

// NewSQL brings the tables up to date and returns the store.
func NewSQL(ctx context.Context, db *database.DB) (*SQL, error) {
	if err := work.Schema.Migrate(ctx, db); err != nil { // which has what is pending
		return nil, err
	}
	if err := Schema.Migrate(ctx, db); err != nil {
		return nil, err
	}
	if err := fillDays(ctx, db); err != nil {
		return nil, err
	}
	log, err := history.New(ctx, db)
	return &SQL{db: db, history: log}, err
}

const (
	columns = `site, id, theme, type, content, status, revision, created_at, updated_at, shape, post, late_at, public, wanted`

	insertEvent = `INSERT INTO events (` + columns + `, post_id, name, starts_at, over_at, slug, day_from, day_until)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
	updateEvent = `UPDATE events SET theme = $3, type = $4, content = $5, status = $6, revision = $7, created_at = $8, updated_at = $9,
		shape = $10, post = $11, late_at = $12, public = $13, wanted = $14, post_id = $15, name = $16, starts_at = $17, over_at = $18, slug = $19, day_from = $20, day_until = $21
		WHERE site = $1 AND id = $2`

	// selectEvents has the work beside each event, whose columns have names of their own.
	selectEvents = `SELECT ` + columns + `, COALESCE(work_since, 0), COALESCE(work_attempts, 0), COALESCE(work_reason, '') FROM events
		LEFT JOIN (SELECT site AS work_site, key AS work_key, since AS work_since, attempts AS work_attempts, reason AS work_reason
			FROM work WHERE kind = '` + Kind + `') AS pending ON work_site = site AND work_key = id`
	findEvent   = selectEvents + ` WHERE site = $1 AND id = $2`
	removeEvent = `DELETE FROM events WHERE site = $1 AND id = $2`
	listPosted  = selectEvents + ` WHERE site = $1 AND post_id <> '' AND id > $2 ORDER BY id LIMIT $3`
	listSites   = `SELECT site FROM events_sites s WHERE looked_at <= $1
		AND EXISTS (SELECT 1 FROM events e WHERE e.site = s.site AND e.post_id > '') ORDER BY looked_at, site`

	claimPoll = `UPDATE events_sites SET looked_at = $2 WHERE site = $1 AND looked_at = $3`

	findSite = `SELECT version, looked_at, image_size, calendar_name, messages, mails FROM events_sites WHERE site = $1`
	makeSite = `INSERT INTO events_sites (site, version, looked_at, image_size, calendar_name, messages) VALUES ($1, 0, 0, '', '', '{}')
		ON CONFLICT (site) DO NOTHING`
	bumpSite     = `UPDATE events_sites SET version = version + 1 WHERE site = $1`
	saveSettings = `UPDATE events_sites SET version = version + 1, image_size = $2, calendar_name = $3, messages = $4, mails = $5 WHERE site = $1`

	listPublic     = `SELECT id, type FROM events%s WHERE site = $1 AND slug IS NOT NULL AND over_at > $2 ORDER BY starts_at, id LIMIT $3`
	listPublicPast = `SELECT id, type FROM events%s WHERE site = $1 AND slug IS NOT NULL AND over_at <= $2 ORDER BY starts_at DESC, id DESC LIMIT $3`

	publicIndex = ` INDEXED BY events_public`

	// ofReader is the event that has an ID, which its page knows, or else whose page has a slug. SQLite
	// would read all events of the site if it had to find both at once.
	ofReader = ` WHERE site = $1 AND (slug = $2 OR id = $2 AND slug IS NOT NULL)
		AND id IN (SELECT id FROM events WHERE site = $1 AND slug = $2 UNION ALL SELECT $2) ORDER BY id = $2 DESC, updated_at DESC LIMIT 1`
	findBody = `SELECT public FROM events` + ofReader

	forgetEditors = `DELETE FROM events_editors WHERE site = $1 AND seen_at < $2`
	attendEvent   = `INSERT INTO events_editors (site, event, editor, name, seen_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (site, event, editor) DO UPDATE SET name = excluded.name, seen_at = excluded.seen_at`
	listEditors = `SELECT name FROM events_editors WHERE site = $1 AND event = $2 AND editor <> $3 AND seen_at >= $4 ORDER BY name LIMIT 20`
)

// findBodies has room for PublicBatch IDs.
var findBodies = func() string {
	var some database.Query
	some.Add(`SELECT id, public FROM events WHERE site = ? AND slug IS NOT NULL AND `, "")
	some.AddIn("id", make([]string, PublicBatch))
	return some.Text
}()

// argsOf has the order of columns, followed by those that lists use.
func argsOf(e *Event) []any {
	var slug any
	if e.body != "" {
		if slug = e.Post.Slug; IsID(e.Post.Slug) {
			slug = "" // it leads to the event that has the ID, now or later
		}
	}
	starts, over := spanOf(e)
	from, until := daysOf(e)
	return []any{
		e.Site, e.ID, e.Theme, e.Type, encode(e.Values), string(e.Status), e.Revision, e.CreatedAt.UnixMilli(), e.UpdatedAt.UnixMilli(),
		encode(e.Shape), encode(e.Post), database.Millis(e.lateAt), e.body, encode(wanted{e.Order, e.Moves, e.Known}), e.Post.ID, database.Searchable(textOf(e.Values, "name")), starts.UnixMilli(), over.UnixMilli(), slug,
		from.UnixMilli(), until.UnixMilli(),
	}
}

func scanEvent(row database.Row) (Event, error) {
	e, _, err := scanSized(row)
	return e, err
}

// scanSized is scanEvent, and returns how many bytes the values and the body have in the store.
func scanSized(row database.Row) (e Event, size int, err error) {
	var content, shape, post, order, status string
	var asked wanted
	var pending Pending
	if err := row.Scan(&e.Site, &e.ID, &e.Theme, &e.Type, &content, &status, &e.Revision,
		database.Time(&e.CreatedAt), database.Time(&e.UpdatedAt), &shape, &post, database.Time(&e.lateAt), &e.body, &order,
		database.Time(&pending.Since), &pending.Tries, &pending.Problem); err != nil {
		return Event{}, 0, err
	}
	err = errors.Join(json.Unmarshal([]byte(content), &e.Values), json.Unmarshal([]byte(shape), &e.Shape), json.Unmarshal([]byte(post), &e.Post), json.Unmarshal([]byte(order), &asked))
	e.Order, e.Moves, e.Known = asked.Order, asked.Moves, asked.Known
	e.Status = Status(status)
	if !pending.Since.IsZero() { // else nothing is pending, but for a check
		e.Pending = &pending
	}
	return e, len(content) + len(e.body), err
}

// Now is the database's clock.
func (s *SQL) Now() time.Time { return s.db.Now() }

// IsReconnecting reports what the database does.
func (s *SQL) IsReconnecting() bool { return s.db.IsReconnecting() }

// Insert also makes the site's row, and notes in the history that the editor created the event.
func (s *SQL) Insert(ctx context.Context, e Event, by Editor) error {
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, makeSite, e.Site); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insertEvent, argsOf(&e)...); err != nil {
			return err
		}
		_, err := s.Note(ctx, tx, Key{e.Site, e.ID}, by, "created")
		return err
	})
	return wrap("keeping an event", err)
}

// thingKind is the kind of events in their history and in the audit log.
const thingKind = "event"

func thing(k Key) history.Thing { return history.Thing{Site: k.Site, Kind: thingKind, Key: k.ID} }

// Note is part of the caller's transaction.
func (s *SQL) Note(ctx context.Context, tx *sql.Tx, k Key, by Editor, did string) (isNew bool, err error) {
	return s.history.Add(ctx, tx, thing(k), history.Entry{Editor: by, Did: did})
}

// History is bounded by the retention of [history.Log].
func (s *SQL) History(ctx context.Context, k Key) ([]history.Entry, error) {
	return s.history.List(ctx, thing(k))
}

// Change runs ChangeIn in a transaction of its own.
func (s *SQL) Change(ctx context.Context, site, id string, change func(*sql.Tx, *Event) error) (e Event, err error) {
	err = s.db.InIdempotentTx(ctx, func(tx *sql.Tx, _ bool) (err error) {
		e, err = s.ChangeIn(ctx, tx, site, id, change)
		return err
	})
	return e, err
}

// ChangeIn locks the row on PostgreSQL. The site's version changes only if readers get something
// else.
func (s *SQL) ChangeIn(ctx context.Context, tx *sql.Tx, site, id string, change func(*sql.Tx, *Event) error) (Event, error) {
	find := findEvent
	if s.db.Kind == database.Postgres { // SQLite has one writer at a time
		find += ` FOR UPDATE OF events`
	}
	e, err := scanEvent(tx.QueryRowContext(ctx, find, site, id))
	if err != nil {
		return e, wrap("changing an event", notFound(err))
	}
	body := e.body
	starts, _ := spanOf(&e)
	schedule, status, terms := e.Schedule(), e.Status, e.Terms()
	if err := change(tx, &e); err != nil {
		return e, wrap("changing an event", err)
	}
	e.noteMove(schedule, status, s.db.Now())
	if e.isOver {
		_, err := tx.ExecContext(ctx, removeEvent, site, id)
		if err == nil {
			err = s.history.Drop(ctx, tx, thing(Key{site, id}))
		}
		return e, wrap("removing an event", err)
	}
	if _, err := tx.ExecContext(ctx, updateEvent, argsOf(&e)...); err != nil {
		return e, wrap("changing an event", err)
	}
	if s.changed != nil && e.Status.isPublic() && (e.Status != status || e.Schedule() != schedule || !e.Terms().IsSame(terms)) {
		if err := s.changed(ctx, tx, &e); err != nil {
			return e, wrap("changing an event", err)
		}
	}
	if now, _ := spanOf(&e); e.body == body && (body == "" || now.Equal(starts)) {
		return e, nil
	}
	_, err = tx.ExecContext(ctx, bumpSite, site)
	return e, wrap("changing an event", err)
}

func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

func wrap(what string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Find also finds an event that is being deleted.
func (s *SQL) Find(ctx context.Context, site, id string) (Event, error) {
	e, err := scanEvent(s.db.Read.QueryRowContext(ctx, findEvent, site, id))
	return e, wrap("finding an event", notFound(err))
}

// list stops after events with most bytes in all, 0 for no limit. hasMore says that it did.
func (s *SQL) list(ctx context.Context, most int, query string, args ...any) (list []Event, hasMore bool, err error) {
	rows, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, false, wrap("listing events", err)
	}
	defer rows.Close()
	size := 0
	for rows.Next() {
		if most > 0 && size >= most {
			return list, true, nil
		}
		e, n, err := scanSized(rows)
		if err != nil {
			return nil, false, wrap("listing events", err)
		}
		size += n
		list = append(list, e)
	}
	return list, false, wrap("listing events", rows.Err())
}

// WithPosts reads at most withPostsAtOnce events in each query.
func (s *SQL) WithPosts(ctx context.Context, site string, posts []string, after string) ([]Event, error) {
	if posts == nil {
		list, _, err := s.list(ctx, 0, listPosted, site, after, withPostsAtOnce)
		return list, err
	}
	return s.in(ctx, site, "post_id", posts)
}

// in finds the events whose column has one of the texts. They are in order of ID within each part
// of withPostsAtOnce.
func (s *SQL) in(ctx context.Context, site, column string, texts []string) (all []Event, err error) {
	for part := range slices.Chunk(texts, withPostsAtOnce) {
		var some database.Query
		some.Add(selectEvents+` WHERE site = ? AND `, site)
		some.AddIn(column, part)
		some.Add(` ORDER BY id`)
		list, _, err := s.list(ctx, 0, some.Text, some.Args...)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// Sites orders by the last poll, the oldest first.
func (s *SQL) Sites(ctx context.Context, interval time.Duration) (sites []string, err error) {
	return s.texts(ctx, "listing sites with events", listSites, s.db.Now().Add(-interval).UnixMilli())
}

func (s *SQL) texts(ctx context.Context, what, query string, args ...any) ([]string, error) {
	list, err := database.List(ctx, s.db.Read, database.Text, query, args...)
	return list, wrap(what, err)
}

// ClaimPoll updates the row only if it is as it was read, so one of several processes claims the
// poll.
func (s *SQL) ClaimPoll(ctx context.Context, site string, interval time.Duration) (isTime bool, before time.Time, err error) {
	row, err := siteIn(ctx, s.db.Read.QueryRowContext, site)
	now := s.db.Now()
	if err != nil || row.polledAt > now.Add(-interval).UnixMilli() {
		return false, time.Time{}, err
	}
	n, err := database.Affected(s.db.Write.ExecContext(ctx, claimPoll, site, now.UnixMilli(), row.polledAt))
	if row.polledAt > 0 {
		before = time.UnixMilli(row.polledAt).UTC()
	}
	return n == 1, before, wrap("claiming a poll", err)
}

type siteRow struct {
	version, polledAt int64
	Settings
}

// siteIn reads a row in a database or a transaction. It is zero for a site without events.
func siteIn(ctx context.Context, find func(context.Context, string, ...any) *sql.Row, site string) (siteRow, error) {
	var row siteRow
	var messages, mails string
	err := find(ctx, findSite, site).Scan(&row.version, &row.polledAt, &row.ImageSize, &row.CalendarName, &messages, &mails)
	if errors.Is(err, sql.ErrNoRows) {
		return siteRow{}, nil
	}
	if err == nil {
		err = errors.Join(json.Unmarshal([]byte(messages), &row.Messages), json.Unmarshal([]byte(mails), &row.Mails))
	}
	return row, wrap("finding a site's events", err)
}

// attendance is how long an editor who says nothing counts as there: the desk's script says
// so every 20 seconds.
const attendance = 45 * time.Second

// Attend also forgets editors whose attendance has ended.
func (s *SQL) Attend(ctx context.Context, k Key, editor, name string) (others []string, err error) {
	now := s.db.Now()
	since := now.Add(-attendance).UnixMilli()
	err = s.db.InTxSoon(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, forgetEditors, k.Site, since); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, attendEvent, k.Site, k.ID, editor, name, now.UnixMilli())
		return err
	})
	if err != nil {
		return nil, wrap("noting an editor", err)
	}
	return s.texts(ctx, "listing editors", listEditors, k.Site, k.ID, editor, since)
}

// Version is 0 for a site without events.
func (s *SQL) Version(ctx context.Context, site string) (int64, Settings, error) {
	row, err := siteIn(ctx, s.db.Read.QueryRowContext, site)
	return row.version, row.Settings, err
}

// SettingsIn reads a site's settings in a transaction.
func (s *SQL) SettingsIn(ctx context.Context, tx *sql.Tx, site string) (Settings, error) {
	row, err := siteIn(ctx, tx.QueryRowContext, site)
	return row.Settings, err
}

// SaveSettings changes the version, since readers get messages from the settings.
func (s *SQL) SaveSettings(ctx context.Context, site string, settings Settings) error {
	err := s.db.InTx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, makeSite, site)
		if err == nil {
			_, err = tx.ExecContext(ctx, saveSettings, site, settings.ImageSize, settings.CalendarName, encode(settings.Messages), encode(settings.Mails))
		}
		return err
	})
	return wrap("keeping settings of events", err)
}

// PublicEntries reads an index alone: rows are large.
func (s *SQL) PublicEntries(ctx context.Context, site string, past bool) ([]PublicEntry, error) {
	query := listPublic
	if past {
		query = listPublicPast
	}
	index := ""
	if s.db.Kind == database.SQLite { // which would take one that lacks the type, and read each row
		index = publicIndex
	}
	kinds := make(map[string]string) // so that each is in memory once
	list, err := database.List(ctx, s.db.Read, func(row database.Row) (e PublicEntry, err error) {
		err = row.Scan(&e.ID, &e.Type)
		if kind, ok := kinds[e.Type]; ok {
			e.Type = kind
		} else {
			kinds[e.Type] = e.Type
		}
		return e, err
	}, fmt.Sprintf(query, index), site, s.db.Now().UnixMilli(), MaxListed)
	return list, wrap("listing events for readers", err)
}

// Bodies runs the same statement for any number of IDs, so that it is prepared once.
func (s *SQL) Bodies(ctx context.Context, site string, ids []string) (map[string]string, error) {
	args := []any{site}
	for i := range PublicBatch { // the same statement for any number
		args = append(args, ids[min(i, len(ids)-1)])
	}
	bodies, err := database.Map[string, string](ctx, s.db.Read, findBodies, args...)
	return bodies, wrap("finding events for readers", err)
}

// Body prefers the event that has the ID to one whose page has it for a slug.
func (s *SQL) Body(ctx context.Context, site, slug string) (string, error) {
	var body string
	err := s.db.Read.QueryRowContext(ctx, findBody, site, slug).Scan(&body)
	return body, wrap("finding an event for readers", notFound(err))
}

var _ Store = (*SQL)(nil)
