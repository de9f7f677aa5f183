package database

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Row is a row of a result, such as a [sql.Row] or the current one of [sql.Rows].
type Row interface{ Scan(values ...any) error }

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// List reads all rows of a query, each by a function.
func List[T any](ctx context.Context, from querier, scan func(Row) (T, error), query string, args ...any) (list []T, err error) {
	err = Each(ctx, from, func(row Row) error {
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
func Each(ctx context.Context, from querier, read func(Row) error, query string, args ...any) error {
	rows, err := from.QueryContext(ctx, query, args...)
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

// Map reads all rows of a query for two columns, a key and its value.
func Map[K comparable, V any](ctx context.Context, from querier, query string, args ...any) (map[K]V, error) {
	values := make(map[K]V)
	err := Each(ctx, from, func(row Row) error {
		var key K
		var value V
		err := row.Scan(&key, &value)
		values[key] = value
		return err
	}, query, args...)
	return values, err
}

// Affected counts the rows that a statement has changed: it takes what ExecContext returns.
func Affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Millis is a time as it is kept, in Unix milliseconds. The zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time scans into a time what [Millis] made of it. NULL is the zero time.
func Time(to *time.Time) sql.Scanner { return scanTime{to} }

type scanTime struct{ to *time.Time }

func (s scanTime) Scan(value any) error {
	at, isNumber := value.(int64)
	if !isNumber && value != nil {
		return fmt.Errorf("a time in milliseconds is a number, and not %T", value)
	}
	*s.to = time.Time{}
	if at != 0 {
		*s.to = time.UnixMilli(at).UTC()
	}
	return nil
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
