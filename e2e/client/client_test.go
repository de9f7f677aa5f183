// Package client tests docs/openapi.yaml as the author of a client meets it: a
// client is generated from it, type-checked, and run against the built edge.
package client

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

const key = "a-key-for-trying-0123456789abcdef"

const caddyfile = `{
	{{global}}
	lychgate {
		store sqlite {{folder}}/lychgate.db
		site daily {
			hosts 127.0.0.1
			platform none
			integration crm {
				key ` + key + `
			}
		}
	}
}

http://127.0.0.1:{{port}} {
	inbox_provider
	members_api
}
`

func TestMain(m *testing.M) { harness.Main(m) }

// Otherwise the author of a client gets types that do not compile, or answers
// that the types do not have.
func TestGeneratedClient(t *testing.T) {
	modules := installed(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(".")); err != nil {
		t.Fatalf("os.CopyFS: %v", err)
	}
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatalf("filepath.Abs: %v", err)
	}
	run(t, folder, "openapi-typescript", filepath.Join(docs, "openapi.yaml"), "--output", "schema.ts")
	run(t, folder, "openapi-typescript", filepath.Join(docs, "members_openapi.yaml"), "--output", "members.ts")
	run(t, folder, "tsc")
	edge := caddytest.New(t, caddyfile, nil)
	run(t, folder, "node", "client.mjs", "http://127.0.0.1:"+edge.Port, key)
}

// Without e2e/client/install the test is skipped, or fails where nothing may skip.
func installed(t *testing.T) string {
	t.Helper()
	return harness.Modules(t, "client", "Node.js, openapi-typescript and openapi-fetch: run e2e/client/install")
}

// run runs a program of the folder's node_modules there.
func run(t *testing.T, folder, program string, args ...string) {
	t.Helper()
	programs := filepath.Join(folder, "node_modules", ".bin")
	command := exec.CommandContext(t.Context(), filepath.Join(programs, program), args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: CombinedOutput: %v: %s", program, err, out)
	}
}
