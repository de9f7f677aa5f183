package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func notSQLite(path string) error {
	return fmt.Errorf("%s is not an SQLite database: write the path of another file, which is made if it is not there", path)
}

// explainSQLite says what to do about an error of opening a file. Other errors it
// returns as they are.
func explainSQLite(path string, err error) error {
	var code int
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		code = lite.Code() & 0xff // https://sqlite.org/rescode.html#primary_result_codes_versus_extended_result_codes
	}
	_, ofFile := errors.AsType[*fs.PathError](err)
	switch {
	case code == sqlite3.SQLITE_NOTADB:
		return notSQLite(path)
	case ofFile, code == sqlite3.SQLITE_READONLY, code == sqlite3.SQLITE_CANTOPEN, code == sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s cannot be written: give it and its folder to the user that Caddy runs as, or write another path: %w", path, err)
	}
	return err
}

// explainPostgres says what to do about an error of which that is not plain. Other errors it
// returns as they are.
func explainPostgres(err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if ok && (pg.Code == "26000" || pg.Code == "42P05") { // see PostgreSQL's appendix A
		return fmt.Errorf("what is between the edge and PostgreSQL does not keep prepared statements: write %s=cache_describe in the connection string: %w", execModeOption, err)
	}
	return err
}

// ViolatedUnique reports whether a statement failed because it would have
// broken a unique constraint.
func ViolatedUnique(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}

// IsAway reports whether a statement failed because the database does not answer, or
// not in time, so that it may succeed later.
func IsAway(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok { // see PostgreSQL's appendix A
		return slices.Contains([]string{"08", "53", "57"}, pg.Code[:min(2, len(pg.Code))])
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return slices.Contains([]int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}, lite.Code()&0xff)
	}
	_, network := errors.AsType[net.Error](err)
	return network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}

// isNoTable reports whether a statement failed because a table is not there.
func isNoTable(err error) bool {
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return strings.Contains(lite.Error(), "no such table")
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "42P01"
}
