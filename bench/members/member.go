package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// smallStore is how many members a store has at first, unless it is the large
// one.
const smallStore = 1000

const (
	aNote       = "Came from the CRM, where she has been known since spring."
	someLabels  = `["VIP","crm"]`
	columnNames = `guid, site, email, email_key, name, note, subscribed, labels, newsletters, tier_id, status, created_at, updated_at,
		version, applied, platform_id, deleted, attempts, next_attempt, problem, lease_owner, lease_until,
		sent_email, sent_key, sent_at, unanswered_at`
)

// fill makes a store with members 1 to n: rows as the members API makes them.
func fill(ctx context.Context, kind database.Kind, source string, n int) error {
	db, err := database.Open(ctx, kind, source)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := memberstore.NewSQL(ctx, db); err != nil {
		return err
	}
	numbers, guid := "generate_series($1::bigint, $2::bigint) AS s(n)", "md5(n::text)::uuid::text"
	address := "lpad((n * 2654435761 % 4294967296)::text, 10, '0') || '-' || n || '@example.com'"
	writer := db.Write
	if kind == database.SQLite {
		numbers = "(WITH RECURSIVE s(n) AS (SELECT $1 UNION ALL SELECT n + 1 FROM s WHERE n < $2) SELECT n FROM s)"
		guid = "printf('01900000-0000-7000-8000-%012x', n)"
		address = "printf('%010d-%d@example.com', n * 2654435761 % 4294967296, n)"
		if writer, err = openPlain(source, "cache_size(-400000)", "synchronous(OFF)"); err != nil {
			return err
		}
		defer writer.Close()
	}
	statement := `INSERT INTO members (` + columnNames + `) SELECT ` + guid + `, 'bench', ` + address + `, ` + address + `,
			'Jane Doe ' || n, '` + aNote + `', TRUE, '` + someLabels + `', 'null', NULL, 'free', $3, $3,
			1, 1, NULL, FALSE, 0, 0, '', '', 0, '', '', 0, 0 FROM ` + numbers
	const batch = 100_000
	for from := 1; from <= n; from += batch {
		if _, err := writer.ExecContext(ctx, statement, from, min(from+batch-1, n), time.Now().UnixMilli()); err != nil {
			return err
		}
	}
	if kind == database.Postgres { // which does so by itself after a while; SQLite does not
		_, err = writer.ExecContext(ctx, "ANALYZE")
	}
	return err
}

// openPlain opens SQLite as database.Open does its writer, without anything of
// Lychgate's.
func openPlain(path string, more ...string) (*sql.DB, error) {
	pragmas := append([]string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, more...)
	db, err := sql.Open("sqlite", "file:"+path+"?"+url.Values{"_pragma": pragmas, "_txlock": {"immediate"}}.Encode())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// freshPostgres makes an empty schema, and returns a connection string for it
// and what drops it.
func freshPostgres(ctx context.Context, source string) (fresh string, drop func(), err error) {
	db, err := database.Open(ctx, database.Postgres, source)
	if err != nil {
		return "", nil, err
	}
	schema := fmt.Sprintf("bench_%d", time.Now().UnixNano())
	separator := "?"
	if strings.Contains(source, "?") {
		separator = "&"
	}
	_, err = db.Write.ExecContext(ctx, "CREATE SCHEMA "+schema)
	return source + separator + "search_path=" + schema, func() {
		db.Write.ExecContext(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		db.Close()
	}, err
}

// The values are in the order of columnNames.
func row(n int64) []any {
	address := fmt.Sprintf("%010d-%d-bare@example.com", n*2654435761%4294967296, n)
	now := time.Now().UnixMilli()
	return []any{
		uuid.Must(uuid.NewV7()).String(), "bench", address, address, fmt.Sprintf("Jane Doe %d", n), aNote, true, someLabels, "null", nil,
		"free", now, now, 1, 1, nil, false, 0, 0, "", "", 0, "", "", 0, 0,
	}
}
