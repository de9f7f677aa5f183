package database

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Row is a row of a result, such as a [sql.Row] or the current one of [sql.Rows].
type Row interface{ Scan(values ...any) error }

// List reads all rows of a query, each by a function.
func List[T any](ctx context.Context, db *sql.DB, scan func(Row) (T, error), query string, args ...any) (list []T, err error) {
	err = Each(ctx, db, func(row Row) error {
		one, err := scan(row)
		list = append(list, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Each calls a function for each row of a query, until it returns an error.
func Each(ctx context.Context, db *sql.DB, read func(Row) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Text reads a row of one column.
func Text(row Row) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// Wrap says in an error what was being done, and what to do about it where that is not plain. It is
// nil for nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, explainPostgres(err))
}

// HasSite reports whether one of the tables has a row of a site.
func (db *DB) HasSite(ctx context.Context, site string, tables ...string) (has bool, err error) {
	var each []string
	for _, table := range tables {
		each = append(each, "EXISTS (SELECT 1 FROM "+table+" WHERE site = $1)")
	}
	err = db.Read.QueryRowContext(ctx, "SELECT "+strings.Join(each, " OR "), site).Scan(&has)
	return has, Wrap("looking for what is kept of site "+site, err)
}
