// Package caddytest builds Caddy with Lychgate for tests, as an operator does.
package caddytest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Build returns the path of a Caddy with Lychgate, which is built once for all
// tests of a package. TestMain calls Remove after them.
func Build(t testing.TB) string {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Remove removes what Build has built.
func Remove() error { return remove() }

var remove = func() error { return nil }

var build = sync.OnceValues(func() (binary string, err error) {
	_, file, _, _ := runtime.Caller(0)
	folder, err := os.MkdirTemp("", "lychgate-caddy-")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(folder, "caddy")
	command := exec.Command("go", "build", "-o", binary, "./cmd/caddy")
	command.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	if output, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("building Caddy: %w\n%s", err, output), os.RemoveAll(folder))
	}
	remove = func() error { return os.RemoveAll(folder) }
	return binary, nil
})
