package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Place names a source for people: the file, or the server and its database, without a
// password.
func Place(kind Kind, source string) string {
	if kind == SQLite {
		if path, err := filepath.Abs(source); err == nil {
			return path
		}
		return source
	}
	config, err := parsePostgres(source)
	if err != nil {
		return "with a connection string that cannot be read" // and may have a password in it
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
}

// CheckNew reports why a file of SQLite's that is not there yet could not be made by
// the user of this process. Nothing is left behind.
func CheckNew(path string) error {
	folder := Existing(filepath.Dir(path))
	file, err := os.CreateTemp(folder, ".lychgate-*")
	if err != nil {
		return explainSQLite(path, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// Existing finds the first of a path and the folders around it that exists.
func Existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// TryWrite writes to the tables, or makes one if there are none, and takes that back. The
// error is why the database could not be written.
func (s Schema) TryWrite(ctx context.Context, db *DB, hasTables bool) error {
	statement := "CREATE TABLE lychgate_test (x INTEGER)"
	if hasTables {
		statement = "UPDATE " + s.versionTable() + " SET version_id = version_id"
	}
	tx, err := db.Write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("writing to the store: %w", err)
	}
	if _, err := tx.ExecContext(ctx, statement); err != nil {
		return errors.Join(fmt.Errorf("writing to the store: %w", err), rollback(tx))
	}
	return rollback(tx)
}
