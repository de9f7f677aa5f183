// Package pages tests the pages of the desk as editors meet them: in the engines of Chrome,
// Firefox and Safari, and over a platform that fails on request. The tests one folder up
// have a real Ghost.
package pages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.MainWithBrowser(m, nil)
}

// e2e/button/install has fetched axe-core.
func axe(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(harness.Cache(t), "button-*", "axe.min.js"))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	if len(found) == 0 {
		harness.Need(t, "axe-core, which e2e/button/install fetches")
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
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
