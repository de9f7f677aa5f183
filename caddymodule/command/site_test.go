package command_test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

var (
	then  = time.Date(2026, 11, 21, 10, 54, 31, 0, time.UTC)
	later = time.Date(2026, 11, 22, 8, 0, 5, 0, time.UTC)
)

// siteFolder makes a folder with a Caddyfile of the sites daily, with the lines
// given, and weekly, and with their store.
func siteFolder(t *testing.T, lines ...string) (folder string, db *database.DB, store *memberstore.SQL) {
	t.Helper()
	folder = t.TempDir()
	file := filepath.Join(folder, "lychgate.db")
	writeFile(t, folder, "Caddyfile", twoSites{store: "sqlite " + file, daily: strings.Join(lines, "\n")}.caddyfile())
	db, err := database.Open(t.Context(), database.SQLite, file)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("db.Close: %v", err)
		}
	})
	if store, err = memberstore.NewSQL(t.Context(), db); err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	return folder, db, store
}

// addIntegration adds one in Custom ID mode.
func addIntegration(t *testing.T, store *memberstore.SQL, name string) {
	t.Helper()
	err := store.AddIntegration(t.Context(), members.Integration{
		Site: "daily", Name: name, Mode: members.CustomIDMode, KeyHash: members.HashKey(name), CreatedAt: then,
	})
	if err != nil {
		t.Fatalf("store.AddIntegration: %v", err)
	}
}

func insert(t *testing.T, store *memberstore.SQL, integration string, list ...members.Record) {
	t.Helper()
	for _, m := range list {
		m.Site, m.Version = "daily", 1
		if err := store.Insert(t.Context(), m, integration, members.Lease{}); err != nil {
			t.Fatalf("store.Insert: %v", err)
		}
	}
}

// lychgate runs caddy lychgate in a folder.
func lychgate(t *testing.T, folder string, args ...string) ran {
	t.Helper()
	return lychgateWith(t, folder, "", args...)
}

// lychgateWith is lychgate with what is on standard input.
func lychgateWith(t *testing.T, folder, input string, args ...string) ran {
	t.Helper()
	command := exec.Command(caddytest.Build(t), append([]string{"lychgate"}, args...)...)
	command.Dir, command.Stdin = folder, strings.NewReader(input)
	var out, complaint strings.Builder
	command.Stdout, command.Stderr = &out, &complaint
	_ = command.Run() // the code says it
	return ran{out.String(), progress.ReplaceAllString(complaint.String(), ""), command.ProcessState.ExitCode()}
}

// progress is what a command says that takes long, as it may on a loaded machine.
var progress = regexp.MustCompile(`(?m)^.* so far\n`)

// A command answers about the site that it was asked for, without log lines, and
// says which sites there are.
func TestCommandsAnswerAboutTheNamedSite(t *testing.T) {
	folder, _, _ := siteFolder(t)
	for args, want := range map[string]ran{
		"integration list --site weekly": {"NAME  MODE  LIMIT  KEY  LAST USED\n", "", 0},
		"integration list":               {"", "Error: name one of the configuration's sites with --site: daily, weekly\n", 1},
		"integration add x --site daily --placeholder-domain x.invalid": {"", "Error: integration x: placeholder_domain goes with allow_duplicate_emails only: write that too, or take it out\n", 1},
		"integration list --site nope":                                  {"", "Error: the configuration has no site nope, nor has the store: the configuration has daily, weekly\n", 1},
		"members show x --site daily":                                   {"", "Error: site daily has no member x: write a guid, as caddy lychgate members export lists them\n", 1},
		"members show jane@example.com --site daily":                    {"", "Error: name the member by its guid: caddy lychgate members export has those of all members, and the log and /lychgate/pending on the admin API those of pending ones\n", 1},
		"members import --site daily":                                   {"", "Error: site daily has platform none, so there are no members to import\n", 1},
		"members import --site weekly --config Caddyfile":               {"", "Error: site weekly has platform none, so there are no members to import\n", 1},
	} {
		if diff := cmp.Diff(want, lychgate(t, folder, strings.Fields(args)...)); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", args, diff)
		}
	}
	if got := lychgate(t, t.TempDir(), "members", "show", "x"); got != (ran{"", "Error: there is no Caddyfile in this folder: name the configuration with --config\n", 1}) {
		t.Errorf("without a Caddyfile: %+v", got)
	}
}

// A store that does not answer is what a command waits for, and it says so.
func TestWaitingForStore(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	defer listener.Close()
	folder := t.TempDir()
	config := "{\n\tlychgate {\n\t\tstore postgres postgres://" + listener.Addr().String() + "/lychgate?sslmode=disable\n" +
		"\t\tsite daily {\n\t\t\thosts localhost\n\t\t\tplatform none\n\t\t}\n\t}\n}\nhttp://localhost:8080 {\n\tmembers_api\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	command := exec.CommandContext(t.Context(), caddytest.Build(t), "lychgate", "members", "export")
	command.Dir = folder
	complaint, err := command.StderrPipe()
	if err != nil {
		t.Fatalf("command.StderrPipe: %v", err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("command.Start: %v", err)
	}
	line, err := bufio.NewReader(complaint).ReadString('\n')
	if line != "Waiting for the store …\n" || err != nil {
		t.Errorf("got %q, %v, want line %q, no error", line, err, "Waiting for the store …\n")
	}
	if err := command.Process.Kill(); err != nil {
		t.Errorf("command.Process.Kill: %v", err)
	}
	_ = command.Wait() // it was killed
}

// An import that cannot begin says why, and not that nobody was imported.
func TestImportThatFails(t *testing.T) {
	ghost := "127.0.0.1:" + freeport.New(t) // where nobody answers
	folder := t.TempDir()
	config := "{\n\tlychgate {\n\t\tstore sqlite " + filepath.Join(folder, "lychgate.db") + "\n" +
		"\t\tsite daily {\n\t\t\thosts localhost\n\t\t\tplatform ghost http://" + ghost + " {\n\t\t\t\tadmin_key 1:" + strings.Repeat("a", 64) + "\n\t\t\t}\n\t\t}\n\t}\n}\n" +
		"http://localhost:8080 {\n\tmembers_api\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "Caddyfile"), []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	want := ran{"", "Importing the members of site daily from http://" + ghost + " …\n" +
		"Error: nothing was imported: asking Ghost: dial tcp " + ghost + ": connect: connection refused\n", 1}
	if diff := cmp.Diff(want, lychgate(t, folder, "members", "import")); diff != "" {
		t.Errorf("lychgate (-want +got):\n%s", diff)
	}
}
