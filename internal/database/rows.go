package database

import (
	"context"
	"database/sql"
	"fmt"
)

// Row is a row of a result, such as a [sql.Row] or the current one of [sql.Rows].
type Row interface{ Scan(values ...any) error }

// List reads all rows of a query, each by a function.
func List[T any](ctx context.Context, db *sql.DB, scan func(Row) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// Text reads a row of one column.
func Text(row Row) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// Wrap says in an error what was being done. It is nil for nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
