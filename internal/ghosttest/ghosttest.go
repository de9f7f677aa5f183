// Package ghosttest gives tests the real Ghost that e2e/ghost/start has started.
package ghosttest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // Ghost's database
)

// The folder of the package that is tested.
var folder, folderErr = os.Getwd()

// Real returns the address and the Admin API key of the Ghost that the
// environment variable LYCHGATE_TEST_GHOST names. Without it the test is
// skipped, or fails if LYCHGATE_TEST_SERVERS says that all servers are there.
//
// A line with the package's folder and the test's name is added to the file
// that LYCHGATE_TEST_GHOST_USERS names, so that .ci/run can run the tests that
// need a Ghost, and no others, against another Ghost.
func Real(t testing.TB) (url, key string) {
	t.Helper()
	fields := setting()
	if len(fields) < 2 {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatal("LYCHGATE_TEST_GHOST is not set")
		}
		t.Skip("needs Ghost: run e2e/ghost/start, and set LYCHGATE_TEST_GHOST to what it prints")
	}
	if err := note(t.Name()); err != nil {
		t.Fatal(err)
	}
	return fields[0], fields[1]
}

// Folder returns the folder that the Ghost runs in.
func Folder(t testing.TB) string {
	t.Helper()
	Real(t)
	fields := setting()
	return "/proc/" + fields[len(fields)-1] + "/cwd"
}

// Query returns the one value that a query finds in the Ghost's database. It
// must be written as SQLite and MariaDB both understand it.
func Query(t testing.TB, query string) string {
	t.Helper()
	var config struct {
		Database struct {
			Client     string
			Connection struct {
				Filename, Host, User, Database string
				Port                           int
			}
		}
	}
	text, err := os.ReadFile(Folder(t) + "/config.production.json")
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	connection := config.Database.Connection
	if config.Database.Client != "mysql" {
		return querySQLite(t, connection.Filename, query)
	}
	client := exec.CommandContext(t.Context(), "mariadb", "--no-defaults", "--protocol=tcp", "--host="+connection.Host,
		"--port="+strconv.Itoa(connection.Port), "--user="+connection.User, "--batch", "--skip-column-names",
		"--execute="+query, connection.Database)
	client.Stderr = os.Stderr
	answer, err := client.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(answer), "\n")
}

func querySQLite(t testing.TB, file, query string) (value string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func setting() []string {
	return strings.Fields(strings.TrimPrefix(os.Getenv("LYCHGATE_TEST_GHOST"), "LYCHGATE_TEST_GHOST="))
}

// note adds a test to the list of those that need a Ghost.
func note(test string) error {
	name := os.Getenv("LYCHGATE_TEST_GHOST_USERS")
	if name == "" {
		return nil
	}
	if folderErr != nil {
		return folderErr
	}
	list, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	test, _, _ = strings.Cut(test, "/")
	_, err = fmt.Fprintln(list, folder, test)
	if closeErr := list.Close(); err == nil {
		err = closeErr
	}
	return err
}
