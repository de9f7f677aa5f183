package database_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
)

// notes makes a file that is not a database.
func notes(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("Notes of what is to be done, and by whom."), 0o600); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return path
}

// Anyone who names a source that cannot be one is told the path and what to write.
func TestInvalidSourcesAreExplained(t *testing.T) {
	folder, text := t.TempDir(), notes(t)
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	const emptyHost = "the connection string has an empty host: write one such as host=127.0.0.1, or leave host out for the socket of this machine"
	for _, test := range []struct {
		name   string
		kind   database.Kind
		source string
		want   string
	}{
		{"a file to be made", database.SQLite, filepath.Join(folder, "new", "lychgate.db"), ""},
		{"an empty file", database.SQLite, empty, ""},
		{"a folder", database.SQLite, folder, folder + " is a folder: write the file in it too, such as " + filepath.Join(folder, "lychgate.db")},
		{"another file", database.SQLite, text, text + " is not an SQLite database: write the path of another file, which is made if it is not there"},
		{"a URL", database.Postgres, "postgres://lychgate@127.0.0.1/lychgate", ""},
		{"a URL without host", database.Postgres, "postgres:///lychgate", ""},
		{"keywords", database.Postgres, "host=/run/postgresql dbname=lychgate", ""},
		{"keywords without host", database.Postgres, "dbname=lychgate", ""},
		{"an empty host", database.Postgres, "host=", emptyHost},
		{"an empty host in quotes", database.Postgres, "dbname=lychgate host = ''", emptyHost},
		{"an empty host before a port", database.Postgres, "host= port=5432", emptyHost},
		{"an empty host in a URL", database.Postgres, "postgres:///lychgate?host=", emptyHost},
		{"another key without a value", database.Postgres, "host=a dbname= password=x", "the connection string has no value for dbname: write one, or leave it out"},
		{"spaces around values", database.Postgres, "host = a dbname = b password = c=d", ""},
		{"quoted values", database.Postgres, "host=a password='x= y=z'", ""},
		{"a slash in a password", database.Postgres, "postgres://user:12/34@127.0.0.1/db", "the connection string has an @ behind its host: write %2F for each / in the password, %3F for ?, %23 for #, and %40 for @"},
		{"a name with an @ in the query", database.Postgres, "postgres://127.0.0.1/db?user=jane@server", ""},
		{"a database with an @", database.Postgres, "postgres://user:x@127.0.0.1/a@b", ""},
		{"connections", database.Postgres, "postgres:///lychgate?pool_max_conns=4", ""},
		{"too few connections", database.Postgres, "postgres:///lychgate?pool_max_conns=3", "pool_max_conns=3 in the connection string: write a number of connections, 4 or more"},
		{"connections that are no number", database.Postgres, "dbname=lychgate pool_max_conns=many", "pool_max_conns=many in the connection string: write a number of connections, 4 or more"},
		{"a password with host= in it", database.Postgres, "host=a password='host= x=1'", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got string
			if err := database.Check(test.kind, test.source); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A file that cannot be written is named, with what to do.
func TestOpenExplains(t *testing.T) {
	text := notes(t)
	inFile := filepath.Join(text, "lychgate.db")
	for _, test := range []struct{ name, path, want string }{
		{"not SQLite", text, "opening the sqlite store: " + text + " is not an SQLite database: write the path of another file, which is made if it is not there"},
		{"its folder is a file", inFile, "opening the sqlite store: " + inFile + " cannot be written: give it and its folder to the user that Caddy runs as, or write another path: mkdir " + text + ": not a directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, err := database.Open(t.Context(), database.SQLite, test.path)
			if err == nil {
				t.Fatalf("Open: got no error, want one (Close: %v)", db.Close())
			}
			if diff := cmp.Diff(test.want, strings.TrimSpace(err.Error())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
