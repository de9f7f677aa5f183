// Package caddytest builds Caddy with Lychgate for tests and benchmarks, as an
// operator does, and runs it in a process of its own.
package caddytest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
)

// Binary builds Caddy with Lychgate, once for a process. Call Remove at its end. LYCHGATE_TEST_CADDY
// names one that is built already, since each package of tests would spend ten seconds on it.
func Binary() (string, error) { return build() }

// Build is [Binary] for tests, whose TestMain runs [M].
func Build(t testing.TB) string {
	t.Helper()
	binary, err := Binary()
	if err != nil {
		t.Fatalf("Binary: %v", err)
	}
	return binary
}

// M runs a package's tests, and then removes what they have built.
type M struct{ *testing.M }

// Run is called by goleak: what [Binary] has built is removed before goroutines are
// counted.
func (m M) Run() int {
	code := m.M.Run()
	if err := Remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Remove removes what [Binary] has built.
func Remove() error { return remove() }

var remove = func() error { return nil }

var build = sync.OnceValues(func() (binary string, err error) {
	if given := os.Getenv("LYCHGATE_TEST_CADDY"); given != "" {
		return given, nil
	}
	folder, err := os.MkdirTemp("", "lychgate-caddy-")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(folder, "caddy")
	command := exec.Command("go", "build", "-o", binary, "./cmd/caddy")
	command.Dir = checkout.Path("")
	if output, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building Caddy: %w\n%s", err, output), os.RemoveAll(folder))
	}
	remove = func() error { return os.RemoveAll(folder) }
	return binary, nil
})
