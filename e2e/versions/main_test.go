// Package versions runs the last release beside this Lychgate on one store, with a real Ghost, as
// while the edges of a fleet are upgraded one by one.
package versions

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// root is the folder of the repository.
const root = "../.."

// lastRelease is the binary of the commit that the file last_release names. It is kept for the next run.
func lastRelease(t *testing.T) (binary string) {
	t.Helper()
	commit := pinned(t)["commit"]
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		harness.Need(t, "git, and commit "+commit+" of the last release: git fetch --unshallow")
	}
	folder := filepath.Join(harness.Cache(t), fmt.Sprintf("release-%s-%s", commit[:12], runtime.Version()))
	binary = filepath.Join(folder, "caddy")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	source := t.TempDir()
	run(t, source, "sh", "-c", `git -C "$1" archive "$2" | tar -x`, "sh", absolute(t, root), commit)
	made := filepath.Join(source, "caddy-of-the-release")
	run(t, source, "go", "build", "-o", made, "./cmd/caddy")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatalf("os.MkdirAll: %v", err)
	}
	text, err := os.ReadFile(made)
	if err == nil {
		err = os.WriteFile(binary+".new", text, 0o700)
	}
	if err == nil {
		err = os.Rename(binary+".new", binary) // so that a run which is ended leaves no half of it
	}
	if err != nil {
		t.Fatalf("keeping the binary of the last release: %v", err)
	}
	return binary
}

// pinned is what the file last_release says: its words by the first of each line.
func pinned(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("last_release")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	values := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key != "#" {
			values[key] = value
		}
	}
	return values
}

func run(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	var output bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &output)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatalf("filepath.Abs: %v", err)
	}
	return path
}
