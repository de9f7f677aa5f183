// Package client tests docs/openapi.yaml as the author of a client meets it: a
// client is generated from it, type-checked, and run against the built edge.
package client

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const key = "a-key-for-trying-0123456789abcdef"

const caddyfile = `{
	admin off
	persist_config off
	storage file_system {{folder}}/data
	lychgate {
		store sqlite {{folder}}/lychgate.db
		site daily {
			hosts 127.0.0.1
			platform none
			integration crm {
				key {{key}}
			}
		}
	}
}

http://127.0.0.1:{{port}} {
	bind fd/3
	inbox_provider
	members_api
}
`

// Otherwise the author of a client gets types that do not compile, or answers
// that the types do not have.
func TestGeneratedClient(t *testing.T) {
	modules := installed(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	document, err := filepath.Abs("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run(t, folder, "openapi-typescript", document, "--output", "schema.ts")
	run(t, folder, "tsc")
	run(t, folder, "node", "client.mjs", startEdge(t), key)
}

// installed returns the node_modules of e2e/client/install. Without them the test
// is skipped, or fails where nothing may skip.
func installed(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv("LYCHGATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "lychgate")
	}
	sum := sha256.Sum256(lock)
	folder := filepath.Join(cache, fmt.Sprintf("client-%x", sum[:8]))
	if _, err := os.Stat(filepath.Join(folder, ".installed")); err != nil {
		const needs = "needs Node.js, openapi-typescript and openapi-fetch: run e2e/client/install"
		if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
			t.Fatal(needs)
		}
		t.Skip(needs)
	}
	return filepath.Join(folder, "node_modules")
}

// run runs a program of the folder's node_modules there.
func run(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	programs := filepath.Join(folder, "node_modules", ".bin")
	command := exec.CommandContext(t.Context(), filepath.Join(programs, program), args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// startEdge builds Caddy with Lychgate, runs it until the test ends, and returns
// its URL. Caddy is handed the socket, which is fd/3 in the Caddyfile, so a
// client that connects before Caddy runs waits for its answer.
func startEdge(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	binary := filepath.Join(folder, "caddy")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/caddy")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building Caddy: %v: %s", err, out)
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("{{folder}}", folder, "{{key}}", key, "{{port}}", port).Replace(caddyfile)
	path := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	edge := exec.CommandContext(t.Context(), binary, "run", "--config", path)
	edge.Cancel = func() error { return edge.Process.Signal(os.Interrupt) }
	edge.Stdout, edge.Stderr = &log, &log
	edge.ExtraFiles = []*os.File{socket}
	if err := edge.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // when t.Context has ended
		edge.Wait()
		if t.Failed() {
			t.Logf("the edge's log:\n%s", log.String())
		}
	})
	return "http://127.0.0.1:" + port
}
