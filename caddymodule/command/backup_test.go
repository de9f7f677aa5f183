package command_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const backupKey = "a-key-for-trying-0123456789abcdef"

const backupConfig = "{\n{{global}}\nlychgate {\nstore sqlite {{folder}}/lychgate.db\nsite daily {\nhosts localhost\nplatform none\nintegration crm {\nkey " + backupKey + "\n}\n}\n}\n}\n" +
	"http://localhost:{{port}} {\nmembers_api {\nlimit 60000 1m\n}\n}\n"

// memberOf sends a request of the CRM's to an edge, and returns the response.
func memberOf(edge *caddytest.Edge, client *http.Client, method, path, body string) (status int, text string, err error) {
	got, err := exchange.Send(client, method, "http://localhost:"+edge.Port+"/integration/members"+path, strings.NewReader(body), "Authorization", "Bearer "+backupKey)
	return got.Status, got.Body, err
}

// writer makes one member after the other until it is stopped, and notes those that were
// acknowledged.
type writer struct {
	mu           sync.Mutex
	acknowledged []string
	stopped      bool
	failed       string
	running      sync.WaitGroup
}

func startWriter(edge *caddytest.Edge, client *http.Client) *writer {
	w := new(writer)
	for caller := range 2 {
		w.running.Go(func() {
			for n := 0; w.goesOn(); n++ {
				email := fmt.Sprintf("m%d-%d@example.com", caller, n)
				_, text, err := memberOf(edge, client, "POST", "", `{"email":"`+email+`","note":"`+strings.Repeat("n", 2000)+`"}`)
				w.mu.Lock()
				if err != nil || !strings.Contains(text, `"success":true`) {
					w.failed, w.stopped = fmt.Sprintf("%s: %s, %v", email, text, err), true
				} else {
					w.acknowledged = append(w.acknowledged, email)
				}
				w.mu.Unlock()
			}
		})
	}
	return w
}

func (w *writer) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stopped
}

func (w *writer) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.running.Wait()
}

// done lists the writes that were acknowledged so far.
func (w *writer) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clip(w.acknowledged)
}

func (w *writer) waitFor(t *testing.T, n int) {
	t.Helper()
	wait.Until(t, func() string {
		if got := len(w.done()); got < n && w.goesOn() {
			return fmt.Sprintf("%d of %d writes", got, n)
		}
		return ""
	})
}

// sizes are what differs each time in what backup prints.
var sizes = regexp.MustCompile(`[0-9.]+ (?:KiB|MiB)`)

// A backup of a store that is written has all that was acknowledged before, keeps no writer
// waiting, and Caddy goes on from it.
func TestBackupUnderWrites(t *testing.T) {
	t.Parallel()
	edge := caddytest.New(t, backupConfig, nil)
	folder := edge.Folder
	client := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	w := startWriter(edge, client)
	t.Cleanup(w.stop)
	w.waitFor(t, 300)
	before := w.done()
	got := lychgate(t, folder, "backup", "backup.db")
	during := len(w.done()) - len(before)
	w.waitFor(t, len(before)+during+50)
	w.stop()
	if w.failed != "" {
		t.Errorf("during the backup: %s, want no failed write", w.failed)
	}
	if during < 1 {
		t.Errorf("%d writes were acknowledged during the backup, want some", during)
	}
	got.Out = sizes.ReplaceAllString(got.Out, "#")
	if diff := cmp.Diff(ran{"Copied the store to backup.db: #, checked.\nKeep the configuration and its environment too.\nKeys that are rotated or revoked from now on are valid again once this is restored.\n", "", 0}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	if err := edge.Stop(); err != nil {
		t.Fatalf("edge.Stop: %v", err)
	}

	backup, err := os.ReadFile(filepath.Join(folder, "backup.db"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	restoredFolder := t.TempDir()
	if err := os.WriteFile(filepath.Join(restoredFolder, "lychgate.db"), backup, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	restored := caddytest.New(t, backupConfig, caddytest.Values{"folder": restoredFolder})
	for _, email := range before {
		if status, text, err := memberOf(restored, client, "GET", "/"+email, ""); status != http.StatusOK || err != nil {
			t.Fatalf("%s is not in the backup: %d %s, %v", email, status, text, err)
		}
	}
	if _, text, err := memberOf(restored, client, "POST", "", `{"email":"new@example.com"}`); !strings.Contains(text, `"success":true`) || err != nil {
		t.Errorf("after the restore: %s, %v", text, err)
	}
}

// Anyone who cannot be given a backup learns why, and what else to keep.
func TestBackupSaysWhyItCannotBeMade(t *testing.T) {
	folder, _, _ := siteFolder(t)
	file := filepath.Join(folder, "lychgate.db")
	writeFile(t, folder, "sealed", twoSites{store: "sqlite " + file, lychgate: "secret " + firstSecret}.caddyfile())
	writeFile(t, folder, "elsewhere", twoSites{store: "sqlite " + file + "x"}.caddyfile())
	writeFile(t, folder, "pg", twoSites{store: `postgres "host=127.0.0.1 password=s3cret user=o'neil"`}.caddyfile())
	no := func(text string) ran { return ran{"", "Error: " + text + "\n", 1} }
	const copied = "Copied the store to %s: #, checked.\nKeep the configuration and its environment too.\nKeys that are rotated or revoked from now on are valid again once this is restored.\n"
	for _, test := range []struct {
		args string
		want ran
	}{
		{"backup", no("name the file: caddy lychgate backup <file> [flags]")},
		{"backup one.db", ran{fmt.Sprintf(copied, "one.db"), "", 0}},
		{"backup one.db", no("one.db already exists: write the path of a new file, such as lychgate-$(date +%F).db")},
		{"backup lychgate.db", no("lychgate.db already exists: write the path of a new file, such as lychgate-$(date +%F).db")},
		{"backup nowhere/one.db", no("there is no folder nowhere: make it, or write another path")},
		{"backup two.db --config sealed --adapter caddyfile", ran{fmt.Sprintf(copied, "two.db") + "Keep the secret in another place: without it, keys of sites in the store cannot be opened.\n", "", 0}},
		{"backup three.db --config elsewhere --adapter caddyfile", no("there is no store at " + file + "x: see that store in the configuration is right, and run this in the environment of Caddy; Caddy makes it when it starts")},
		{"backup my.dump --config pg --adapter caddyfile", ran{
			"pg_dump --format=custom --file=my.dump 'host=127.0.0.1 user=o'\\''neil'\n",
			"Error: no backup was made, because PostgreSQL has a command of its own: run the one above, with umask 077; give it the password in the file .pgpass\n", 1,
		}},
	} {
		got := lychgate(t, folder, strings.Fields(test.args)...)
		got.Out = sizes.ReplaceAllString(got.Out, "#")
		got.Err = regexp.MustCompile(`\.db\.\d+`).ReplaceAllString(got.Err, ".db.#")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: output (-want +got):\n%s", test.args, diff)
		}
	}
	left, err := filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What backup prints for PostgreSQL is a command that works.
func TestBackupOfPostgres(t *testing.T) {
	source := dbtest.PostgresSource(t)
	folder, _, _ := siteFolder(t)
	writeFile(t, folder, "Caddyfile", twoSites{store: "postgres " + source}.caddyfile())
	got := lychgate(t, folder, "backup", "lychgate.dump")
	if got.Code != 1 {
		t.Errorf("exit code %d, want 1, since no backup was made", got.Code)
	}
	dump := runShell(t, folder, got.Out)
	info, err := os.Stat(filepath.Join(folder, "lychgate.dump"))
	if err != nil || info.Size() == 0 {
		t.Errorf("%s made no dump: %v, %s", got.Out, err, dump)
	}
}

// runShell runs a line in a folder, and returns what it prints.
func runShell(t *testing.T, folder, line string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Dir = folder
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s: CombinedOutput: %v, %s", line, err, output)
	}
	return string(output)
}
