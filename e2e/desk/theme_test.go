package desk

import (
	"archive/zip"
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// themeZip is Ghost's own theme Source. manifest may be empty.
func themeZip(t *testing.T, manifest string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if err := w.AddFS(os.DirFS(ghosttest.Folder(t) + "/content/themes/source/.")); err != nil {
		t.Fatalf("w.AddFS: %v", err)
	}
	if manifest != "" {
		file, err := w.Create("lychgate-manifest.yaml")
		if err == nil {
			_, err = file.Write([]byte(manifest))
		}
		if err != nil {
			t.Fatalf("w.Create: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("w.Close: %v", err)
	}
	return out.Bytes()
}

// cleanManifest has no findings.
const cleanManifest = `manifest_version: 1
events:
  types:
    webinar:
      post_template: custom-webinar
homepage_curation:
  sections:
    - key: top
      name: Top stories
      slots:
        - {key: lead, label: Lead, tag: "#lead"}
`

// hostileManifest has three, with what would run or be seen if it were HTML.
var hostileManifest = strings.Replace(cleanManifest, "post_template: custom-webinar\n", `post_template: custom-webinar
      supported_fields: [name, "<script>window.hostile = 1</script>", "<img src=x onerror='window.hostile = 2'>", "<b>bold</b>"]
`, 1)
