// Package events tests events as readers meet them: in the pages of examples/events-theme,
// in their calendars and in search engines. The edge is in front of a real Ghost.
package events

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
)

// readersZone is the time zone of the browser.
const readersZone = "America/New_York"

func TestMain(m *testing.M) {
	if err := os.Setenv("TZ", readersZone); err != nil { // of the browser
		panic(err)
	}
	harness.MainWithBrowser(m, nil)
}

// installed is the node_modules of e2e/events/install. Without them the test is skipped, or fails
// where nothing may skip.
func installed(t *testing.T) string {
	t.Helper()
	return harness.Modules(t, "events", "gscan, ical.js, node-ical, axe-core and schema-dts: run e2e/events/install")
}

// program runs a program of [installed] in a folder, and returns what it prints.
func program(t *testing.T, folder string, input io.Reader, name string, args ...string) (output string, err error) {
	t.Helper()
	programs := filepath.Join(installed(t), ".bin")
	command := exec.CommandContext(t.Context(), filepath.Join(programs, name), args...)
	command.Dir, command.Stdin, command.Stderr = folder, input, os.Stderr
	command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "NO_COLOR=1")
	out, err := command.Output()
	return string(out), err
}

// diff compares whole values.
func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// must ends a test after an error.
func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
	return value
}
