package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// This file copies a store while it is in use.

// Backup copies an SQLite database to a file that must not be there yet, readable for its
// owner alone. The copy has every transaction that was committed before, and none in part.
// Others read and write meanwhile: SQLite's VACUUM INTO reads one snapshot of the
// write-ahead log, and so keeps nobody from writing. Unlike a copy of the pages, the file
// has nothing of deleted rows. It is there once it is checked and on disk. Errors:
// fs.ErrExist.
func Backup(ctx context.Context, source, path string) (err error) {
	if err := checkFree(path); err != nil {
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if removeErr := os.Remove(partial.Name()); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}()
	if err = copySQLite(ctx, source, partial.Name()); err == nil {
		err = checkIntegrity(ctx, partial.Name())
	}
	if err == nil {
		err = partial.Sync() // SQLite does not
	}
	if err = errors.Join(err, partial.Close()); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	if err := publish(partial.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// copySQLite copies a database to a file that is empty, which SQLite takes for one that is
// not there. Other than with [Open], ctx interrupts it.
func copySQLite(ctx context.Context, source, path string) (err error) {
	absolute, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	options := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}}
	original, err := sql.Open("sqlite", dsn(absolute, options, "mode", "rw")) // and not made
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	_, err = original.ExecContext(ctx, "VACUUM INTO $1", path)
	return err
}

// checkFree makes sure that no file is overwritten. Errors: fs.ErrExist.
func checkFree(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return &fs.PathError{Op: "backup", Path: path, Err: fs.ErrExist}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// publish gives a file its name, unless another has it.
func publish(partial, path string) error {
	err := os.Link(partial, path) // a rename would replace another
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without links.
	if err := checkFree(path); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

// syncFolder waits until the names in a folder are on disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// checkIntegrity reads all of a database that nobody else uses.
func checkIntegrity(ctx context.Context, path string) (err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	copied, err := sql.Open("sqlite", dsn(absolute, url.Values{"immutable": {"1"}}, "mode", "ro"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	var response string // "ok", or the first of what is wrong
	if err := copied.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&response); err != nil {
		return fmt.Errorf("checking the copy: %w", err)
	}
	if response != "ok" {
		return fmt.Errorf("the copy is damaged: %s", response)
	}
	return nil
}

// DumpArguments are those with which PostgreSQL's pg_dump makes a backup of a store,
// without the passwords in its connection string.
func DumpArguments(source, path string) ([]string, error) {
	config, err := pgx.ParseConfig(source)
	if err != nil {
		return nil, err
	}
	args := []string{"--format=custom", "--file=" + path}
	if schema := config.RuntimeParams["search_path"]; schema != "" && !strings.ContainsAny(schema, `,"$`) {
		args = append(args, "--schema="+schema)
	}
	drop := slices.Clone(onlyForPgx)
	for name := range config.RuntimeParams {
		if !slices.Contains(forLibpqToo, name) {
			drop = append(drop, name)
		}
	}
	return append(args, without(source, drop)), nil
}

var (
	// onlyForPgx are settings of a connection string that are secret, or that pgx takes and
	// libpq refuses. pgx takes those of a session as well.
	onlyForPgx = []string{"password", "sslpassword", "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity", "min_read_buffer_size"}

	// forLibpqToo are settings of a session that libpq takes.
	forLibpqToo = []string{"application_name", "client_encoding", "options"}
)

// without drops settings from a connection string.
func without(source string, names []string) string {
	u, err := url.Parse(source)
	if err != nil || u.Scheme == "" { // keywords and values
		for _, name := range names {
			setting := regexp.MustCompile(`(?:^|\s)` + regexp.QuoteMeta(name) + `\s*=\s*(?:'(?:[^'\\]|\\.)*'|[^\s']\S*)?`)
			source = setting.ReplaceAllString(source, "")
		}
		return strings.TrimSpace(source)
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for _, name := range names {
		query.Del(name)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // which libpq takes for a plus
	return u.String()
}
