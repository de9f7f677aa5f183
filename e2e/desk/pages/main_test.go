// Package pages tests the pages of the desk as editors meet them: in the engines of Chrome,
// Firefox and Safari, and over a platform that fails on request. The tests one folder up
// have a real Ghost.
package pages

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

var (
	engine browser.Engine // nil if it is not installed
	lacks  string         // what is not installed
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	folder, err := os.MkdirTemp("", "lychgate-desk-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	defer caddytest.Remove()
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

// axe returns axe-core, which e2e/button/install has fetched.
func axe(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("LYCHGATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatalf("os.UserCacheDir: %v", err)
		}
		cache = filepath.Join(user, "lychgate")
	}
	found, err := filepath.Glob(filepath.Join(cache, "button-*", "axe.min.js"))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	if len(found) == 0 {
		need(t, "axe-core, which e2e/button/install fetches")
	}
	text, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}
