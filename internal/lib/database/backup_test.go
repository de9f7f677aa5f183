package database_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// numberedStore opens a new store with a table of numbers.
func numberedStore(t *testing.T) (db *database.DB, folder string) {
	t.Helper()
	folder = t.TempDir()
	db, err := database.Open(t.Context(), database.SQLite, filepath.Join(folder, "lychgate.db"))
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Write.ExecContext(t.Context(), "CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return db, folder
}

func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

// A backup has what was committed before it began, and nobody waits for it to write.
func TestBackupWhileWriting(t *testing.T) {
	db, folder := numberedStore(t)
	var last atomic.Int64 // that is committed
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	begun := make(chan struct{})
	writing.Go(func() {
		for n := int64(1); ctx.Err() == nil; n++ {
			_, err := db.Write.ExecContext(context.WithoutCancel(ctx), "INSERT INTO numbers (n, text) VALUES ($1, $2)", n, fmt.Sprintf("%01000d", n))
			if err != nil {
				t.Errorf("error %v, want none", err)
			}
			if last.Store(n); n == 200 {
				close(begun)
			}
		}
	})
	<-begun
	for i := range 3 {
		path := filepath.Join(folder, fmt.Sprintf("backup-%d.db", i))
		before := last.Load()
		if err := database.Backup(t.Context(), filepath.Join(folder, "lychgate.db"), path); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		after := last.Load()
		copied, err := database.Open(t.Context(), database.SQLite, path)
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		var n, most int64
		if err := copied.Read.QueryRowContext(t.Context(), "SELECT count(*), max(n) FROM numbers").Scan(&n, &most); err != nil {
			t.Fatalf("error %v, want none", err)
		}
		if n != most || most < before || most > after+1 {
			t.Errorf("%d numbers up to %d, want all up to one from %d to %d", n, most, before, after)
		}
		copied.Close()
	}
	stop()
	writing.Wait()
}

// A backup takes no other file's place, can be read by its owner alone, and leaves nothing
// behind when it fails.
func TestBackupFiles(t *testing.T) {
	_, folder := numberedStore(t)
	path := filepath.Join(folder, "a", "backup.db")
	if err := database.Backup(t.Context(), filepath.Join(folder, "lychgate.db"), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := database.Backup(cancelled, filepath.Join(folder, "lychgate.db"), path); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is done: %v", err)
	}
	if diff := cmp.Diff([]string(nil), names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("after it failed: %s", diff)
	}
	if err := database.Backup(t.Context(), filepath.Join(folder, "lychgate.db"), path); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if err := os.Symlink("nowhere", filepath.Join(folder, "a", "link.db")); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	for _, name := range []string{"backup.db", "link.db", "../lychgate.db", "../lychgate.db-wal"} {
		if err := database.Backup(t.Context(), filepath.Join(folder, "lychgate.db"), filepath.Join(folder, "a", name)); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over %s: %v, want %v", name, err, fs.ErrExist)
		}
	}
	now, err := os.ReadFile(path)
	if err != nil || !cmp.Equal(whole, now) {
		t.Errorf("the first backup was changed, %v", err)
	}
	if diff := cmp.Diff([]string{"backup.db", "link.db"}, names(t, filepath.Dir(path))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A deleted member is in no backup.
func TestBackupOfDeleted(t *testing.T) {
	db, folder := numberedStore(t)
	for _, statement := range []string{"INSERT INTO numbers (n, text) VALUES (1, 'jane@example.com'), (2, 'joe@example.com')", "DELETE FROM numbers WHERE n = 1"} {
		if _, err := db.Write.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("error %v, want none", err)
		}
	}
	path := filepath.Join(folder, "backup.db")
	if err := database.Backup(t.Context(), filepath.Join(folder, "lychgate.db"), path); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	for name, want := range map[string]bool{"jane@example.com": false, "joe@example.com": true} {
		if got := bytes.Contains(text, []byte(name)); got != want {
			t.Errorf("the backup has %s: %v, want %v", name, got, want)
		}
	}
}

// pg_dump takes what is printed of a connection string, and no password is in it.
func TestDumpArguments(t *testing.T) {
	for source, want := range map[string]string{
		"postgres://lychgate@127.0.0.1/lychgate":                               "postgres://lychgate@127.0.0.1/lychgate",
		"postgres://lychgate:s3cret@db.example:5433/lychgate?sslmode=require":  "postgres://lychgate@db.example:5433/lychgate?sslmode=require",
		"postgresql:///lychgate?user=caddy&password=s3cret&host=/run/postgres": "postgresql:///lychgate?host=%2Frun%2Fpostgres&user=caddy",
		"postgres://a:s3cret@one.example:1,two.example:2/lychgate":             "postgres://a@one.example:1,two.example:2/lychgate",
		"postgres://a@b/lychgate?options=-c%20work_mem%3D1MB":                  "postgres://a@b/lychgate?options=-c%20work_mem%3D1MB",
		"postgres://a@b/lychgate?search_path=news&statement_timeout=9":         "--schema=news postgres://a@b/lychgate",
		"postgres://a@b/x?application_name=y&default_query_exec_mode=exec":     "postgres://a@b/x?application_name=y",
		"host=127.0.0.1 password=s3cret dbname=lychgate":                       "host=127.0.0.1 dbname=lychgate",
		`password = 's3 \' cret' host=127.0.0.1`:                               "host=127.0.0.1",
		"host=127.0.0.1 sslpassword='s3cret' password='s3cret'":                "host=127.0.0.1",
		"host=127.0.0.1 search_path='news' user=x":                             "--schema=news host=127.0.0.1 user=x",
		"host=127.0.0.1 password= user=x":                                      "host=127.0.0.1", // its password is user=x
	} {
		got, err := database.DumpArguments(source, "a.dump")
		if text := strings.Join(got, " "); text != "--format=custom --file=a.dump "+want || err != nil {
			t.Errorf("%s: %s, %v, want %s", source, text, err, want)
		}
	}
}
