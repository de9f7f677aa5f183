// Package harness starts what the packages of tests here have in common: a browser, and the
// built Caddy, which tests start by caddytest.
package harness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// Engine is the browser of a package that runs with a browser, nil if it is not installed.
var Engine browser.Engine

var lacks string // what is to be installed for the browser

// Main runs the tests of a package, and removes what they have built.
func Main(m *testing.M) { os.Exit(caddytest.M{M: m}.Run()) }

// MainWithBrowser is Main for tests in a browser. Where that is installed, start is called
// before the tests with a temporary folder, and what it returns after them; it may be nil.
func MainWithBrowser(m *testing.M, start func(folder string) (stop func() error, err error)) {
	code, err := runWithBrowser(m, start)
	if err := errors.Join(err, caddytest.Remove()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithBrowser(m *testing.M, start func(folder string) (stop func() error, err error)) (code int, err error) {
	folder, err := os.MkdirTemp("", "lychgate-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	Engine, err = browser.Start(folder)
	if missing, ok := errors.AsType[browser.NotInstalled](err); ok {
		lacks = string(missing)
		return m.Run(), nil // each test says that it skips
	}
	if err != nil {
		return 1, err
	}
	defer Engine.Stop()
	stop := func() error { return nil }
	if start != nil {
		if stop, err = start(folder); err != nil {
			return 1, err
		}
	}
	return m.Run(), stop()
}

// NeedBrowser skips a test where there is no browser, or fails it where nothing may skip.
func NeedBrowser(t testing.TB) {
	t.Helper()
	if Engine == nil {
		Need(t, lacks)
	}
}

// Need skips a test that lacks something, or fails it where nothing may skip.
func Need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
		t.Fatal("needs " + what)
	}
	t.Skip("needs " + what)
}

// Cache is the folder of what is slow to install; it outlives a run.
func Cache(t *testing.T) string {
	t.Helper()
	if cache := os.Getenv("LYCHGATE_CACHE"); cache != "" {
		return cache
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("os.UserCacheDir: %v", err)
	}
	return filepath.Join(user, "lychgate")
}

// Modules is the node_modules that the script install beside the test has made of
// package-lock.json. Where they are missing, the test is skipped or fails, and says what
// it needs.
func Modules(t *testing.T, name, needs string) string {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(Cache(t), fmt.Sprintf("%s-%x", name, sum[:8]))
	if _, err := os.Stat(filepath.Join(folder, ".installed")); err != nil {
		Need(t, needs)
	}
	return filepath.Join(folder, "node_modules")
}
