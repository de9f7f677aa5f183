// Package events tests events as readers meet them: in the pages of examples/events-theme,
// in their calendars and in search engines. The edge is in front of a real Ghost.
package events

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// engine is the browser, which is started once.
var (
	engine browser.Engine // nil if it is not installed
	lacks  string         // what is not installed
)

// readersZone is the time zone of the browser.
const readersZone = "America/New_York"

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "lychgate-events-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	defer caddytest.Remove()
	if err := os.Setenv("TZ", readersZone); err != nil {
		return 0, err
	}
	engine, err = browser.Start(folder)
	if missing, ok := errors.AsType[browser.NotInstalled](err); ok {
		lacks = string(missing)
		return m.Run(), nil // each test says that it skips
	}
	if err != nil {
		return 0, err
	}
	defer engine.Stop()
	return m.Run(), nil
}

// need skips a test that lacks something, or fails it where nothing may skip.
func need(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
		t.Fatal("needs " + what)
	}
	t.Skip("needs " + what)
}

// installed returns the node_modules of e2e/events/install.
func installed(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	cache := os.Getenv("LYCHGATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatalf("os.UserCacheDir: %v", err)
		}
		cache = filepath.Join(user, "lychgate")
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(cache, fmt.Sprintf("events-%x", sum[:8]))
	if _, err := os.Stat(filepath.Join(folder, ".installed")); err != nil {
		need(t, "gscan, ical.js, axe-core and schema-dts: run e2e/events/install")
	}
	return filepath.Join(folder, "node_modules")
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
		t.Errorf("%s: %s", what, diff)
	}
}

// must ends a test after an error.
func must[T any](t *testing.T, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}
