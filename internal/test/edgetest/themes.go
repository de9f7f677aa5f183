package edgetest

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
)

// Section is "" while curation is inactive.
func Section(e *Edge, theme, cookie string) string {
	e.T.Helper()
	got := e.Do("GET", "/ghost/lychgate/themes/"+theme+"/curation", "Cookie", cookie, "Origin", e.Base)
	if got.Status != http.StatusOK && got.Status != http.StatusNotFound {
		e.T.Errorf("got %v, want status 200 or 404", got)
	}
	_, rest, _ := strings.Cut(got.Body, `"name":"`)
	name, _, _ := strings.Cut(rest, `"`)
	if got.Status == http.StatusNotFound {
		return ""
	}
	return name
}

// SourceZip zips Ghost's own theme Source. folder and manifest may be empty.
func SourceZip(t testing.TB, folder, manifest string) []byte {
	t.Helper()
	others := map[string]string{}
	if manifest != "" {
		others[folder+"lychgate-manifest.yaml"] = manifest
	}
	return SourceZipWith(t, folder, others)
}

// SourceZipWith puts Source after other files in the zip.
func SourceZipWith(t testing.TB, folder string, others map[string]string) []byte {
	t.Helper()
	return ZipThemeWith(t, ghosttest.Folder(t)+"/content/themes/source/.", folder, others)
}

// ZipThemeWith puts the theme after other files in the zip. folder is the path of the theme in it.
func ZipThemeWith(t testing.TB, source, folder string, others map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	theme := os.DirFS(source)
	add := func(name string, text []byte) {
		content, err := w.Create(name)
		if err == nil {
			_, err = content.Write(text)
		}
		if err != nil {
			t.Fatalf("w.Create: %v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		add(name, []byte(others[name]))
	}
	err := fs.WalkDir(theme, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(theme, path)
		add(folder+path, text)
		return err
	})
	if err != nil || w.Close() != nil {
		t.Fatalf("zipping the theme: %v", err)
	}
	return out.Bytes()
}

// CleanManifest has no findings. Its section has the name.
func CleanManifest(name string) string {
	return `manifest_version: 1
events:
  default_tags: [Events]
  types:
    webinar:
      post_template: custom-webinar
      tags: ["#webinar", Events]
      required_fields: [name]
      custom_fields:
        - {key: speaker, type: text, required: true, max_length: 5}
        - {key: seats, type: number, min: 1, max: 10}
    meetup: {post_template: custom-meetup}
    gala:
      post_template: custom-gala
      field_constraints: {feature_image: {aspect_ratio: "16:9", min_width: 1200}}
homepage_curation:
  sections:
    - key: top
      name: ` + name + `
      slots: [{key: lead, label: Lead, tag: "#lead"}]
`
}

// WarnedManifest has a finding in an event type.
func WarnedManifest(name string) string {
	return strings.Replace(CleanManifest(name), "custom-meetup}", "custom-meetup, supported_fields: [event_day]}", 1)
}

// What is said of manifests in responses.
const (
	NoFindings   = `"_errors":[]`
	OneFinding   = "\"_errors\":[{\"field\":\"events.types.meetup.supported_fields[0]\",\"message\":\"`event_day` is not a standard field, so it is dropped; did you mean `event_date`?\",\"severity\":\"warning\"}]"
	BrokenYAML   = "manifest_version: 1\nevents: [\n"
	InactiveBody = `{"message":"Homepage Curation is inactive: it starts with a manifest that has it and no finding."}` + "\n"
)

// ThemeBranches has the repository theme with three branches: the manifest of main has no finding,
// that of next has one, and removed, which is checked out, has no manifest.
func ThemeBranches(t *testing.T) *gittest.Server {
	git := gittest.New(t)
	git.Init("theme")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": CleanManifest("main"), "index.hbs": ""})
	git.Git("theme", "checkout", "-q", "-b", "next")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": WarnedManifest("next")})
	git.Git("theme", "checkout", "-q", "-b", "removed")
	git.Git("theme", "rm", "-q", "lychgate-manifest.yaml")
	git.Commit("theme", nil)
	return git
}
