// Package desk tests what a publication's staff see of Lychgate: in a browser, in front
// of a real Ghost, signed in on Ghost's own page.
package desk

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// engine is the browser, which is started once.
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
	engine, err = browser.Start(folder)
	if missing, ok := errors.AsType[browser.NotInstalled](err); ok {
		lacks = string(missing)
		return m.Run(), nil // each test says that it skips
	}
	if err != nil {
		return 0, err
	}
	defer engine.Stop()
	defer caddytest.Remove()
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
