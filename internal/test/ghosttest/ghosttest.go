// Package ghosttest gives tests and benchmarks the real Ghost that
// e2e/ghost/start has started, and starts others.
package ghosttest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// Ghost is a Ghost that e2e/ghost/start has started.
type Ghost struct {
	URL string
	Key string // of the Admin API
	PID int
}

// FromEnv takes a Ghost of LYCHGATE_TEST_GHOST for this process, which has it alone until it ends: tests
// activate themes, and count posts. Of several, one a line, it takes the first that is free, and waits if
// none is. It is nil if the variable is not set.
var FromEnv = sync.OnceValues(func() (*Ghost, error) { return take(os.Getenv("LYCHGATE_TEST_GHOST")) })

func take(lines string) (*Ghost, error) {
	var all []*Ghost
	for line := range strings.Lines(lines) {
		g, err := parse(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	for len(all) > 0 {
		for _, g := range all {
			var err error
			if taken, err = net.Listen("unix", g.lock()); err == nil {
				return g, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, nil
}

// taken holds the name of the Ghost that this process has.
var taken net.Listener

// lock names a Unix socket without a file, which Linux removes when its process ends, however it does.
func (g *Ghost) lock() string { return fmt.Sprint("@lychgate-test-ghost-", g.PID) }

func parse(line string) (*Ghost, error) {
	g := new(Ghost)
	_, err := fmt.Sscanf(strings.TrimPrefix(line, "LYCHGATE_TEST_GHOST="), "%s %s %d", &g.URL, &g.Key, &g.PID)
	if err != nil {
		return nil, fmt.Errorf("LYCHGATE_TEST_GHOST is %q: write the line that e2e/ghost/start prints", line)
	}
	return g, nil
}

// Folder is where the Ghost runs.
func (g *Ghost) Folder() string { return fmt.Sprintf("/proc/%d/cwd", g.PID) }

// Real has the address and the Admin API key of the Ghost of [FromEnv]. Without it the
// test is skipped, or fails if LYCHGATE_TEST_SERVERS says that all servers are there.
//
// A line with the package's folder and the test's name is added to the file that
// LYCHGATE_TEST_GHOST_USERS names, so that .ci/run can run the tests that need a Ghost,
// and no others, against another Ghost.
func Real(t testing.TB) (url, key string) {
	t.Helper()
	g := need(t)
	return g.URL, g.Key
}

// Settled sends a test's own change to Ghost, by the function send, and again up to nine
// times while Ghost's database undoes it: MySQL does so where another package's test
// changes tags, labels or staff at the same moment.
func Settled(send func() (status int, body string)) (status int, body string) {
	for range 10 {
		status, body = send()
		if status != http.StatusInternalServerError || !strings.Contains(body, `"UPDATE_RELATION"`) && !strings.Contains(body, `"UNEXPECTED_ERROR"`) {
			break
		}
	}
	return status, body
}

// Folder is where the Ghost of [Real] runs.
func Folder(t testing.TB) string {
	t.Helper()
	return need(t).Folder()
}

func need(t testing.TB) *Ghost {
	t.Helper()
	skipWithout(t)
	g, err := FromEnv()
	if err != nil {
		t.Fatalf("FromEnv: %v", err)
	}
	return g
}

// skipWithout skips a test where there is no Ghost, or fails it where nothing may skip.
func skipWithout(t testing.TB) {
	t.Helper()
	if os.Getenv("LYCHGATE_TEST_GHOST") == "" {
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatal("LYCHGATE_TEST_GHOST is not set")
		}
		t.Skip("needs Ghost: run e2e/ghost/start, and set LYCHGATE_TEST_GHOST to what it prints")
	}
	if err := note(t.Name()); err != nil {
		t.Fatalf("note: %v", err)
	}
}

// The folder of the package that is tested.
var folder, folderErr = os.Getwd()

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
