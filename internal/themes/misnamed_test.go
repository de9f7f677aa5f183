package themes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A manifest with nearly the right name is a finding that says both names. What was stored before is not cleared: nobody has
// removed it.
func TestMisnamedManifest(t *testing.T) {
	for _, test := range []struct {
		file string
		want string // "" for a theme without a manifest
	}{
		{"lychgate-manifest.yml", "there is no `lychgate-manifest.yaml`, but \"lychgate-manifest.yml\"; give it that name"},
		{"Lychgate-Manifest.YAML", "there is no `lychgate-manifest.yaml`, but \"Lychgate-Manifest.YAML\"; give it that name"},
		{"LYCHGATE-manifest.Yml", "there is no `lychgate-manifest.yaml`, but \"LYCHGATE-manifest.Yml\"; give it that name"},
		{"other-manifest.yml", ""},
		{"lychgate-manifest.yaml.orig", ""},
		{"partials/lychgate-manifest.yml", ""},
	} {
		want := []manifest.Finding{{Field: "manifest", Message: test.want, Severity: manifest.Error}}
		if test.want == "" {
			want = []manifest.Finding{}
		}
		check := func(where string, source Source) {
			t.Helper()
			report, err := Read(t.Context(), source)
			if diff := cmp.Diff(want, report.Findings); diff != "" || err != nil || (report.Status == NoManifest) != (test.want == "") {
				t.Errorf("%s in %s: status %q, %v, findings (-want +got):\n%s", test.file, where, report.Status, err, diff)
			}
		}
		_, zipped := read(t, zipOf(t, files("index.hbs", test.file)...))
		check("a zip", func(context.Context) ([]byte, error) { return nil, zipped })

		server := gittest.New(t)
		server.Init("theme")
		server.Commit("theme", map[string]string{"index.hbs": "", test.file: "manifest_version: 1\n"})
		repository, err := git.New(git.Config{URL: server.Start() + "/theme", Token: gittest.Token})
		if err != nil {
			t.Fatalf("git.New: %v", err)
		}
		check("a repository", FromRepository(repository, name))

		folder := t.TempDir()
		if err := os.MkdirAll(filepath.Join(folder, "partials"), 0o700); err != nil {
			t.Fatalf("os.MkdirAll: %v", err)
		}
		if err := os.WriteFile(filepath.Join(folder, test.file), []byte("manifest_version: 1\n"), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
		_, opened := Open(folder, name)
		misnamed, is := errors.AsType[*MisnamedError](opened)
		if is != (test.want != "") || is && misnamed.Path != filepath.Join(folder, test.file) {
			t.Errorf("%s in a folder: got error %v, want one that names it: %t", test.file, opened, test.want != "")
		}
	}
}
