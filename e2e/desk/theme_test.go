package desk

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
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

// everyField is a manifest whose type has all standard fields, and custom fields of all
// eight kinds.
const everyField = `manifest_version: 1
events:
  types:
    party:
      post_template: custom-party
      required_fields: [name, event_date]
      custom_fields:
        - {key: motto, type: text, max_length: 60, help_text: "One line."}
        - {key: menu, type: textarea, max_length: 200}
        - {key: seats, type: number, min: 1, max: 10}
        - {key: dress, type: select, options: [casual, formal]}
        - {key: page, type: url}
        - {key: doors, type: date}
        - {key: outdoors, type: toggle}
        - {key: badge, type: image, aspect_ratio: "1:1", min_width: 300}
`

// declare keeps a manifest for the theme that a new Ghost has active.
func (s *site) declare(text string) {
	s.t.Helper()
	db, err := database.Open(s.t.Context(), database.SQLite, s.store)
	if err != nil {
		s.t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	kept, err := themes.NewSQL(s.t.Context(), db)
	if err != nil {
		s.t.Fatalf("themes.NewSQL: %v", err)
	}
	service := themes.Service{Site: "daily", Store: kept, Now: time.Now}
	if report, err := service.Take(s.t.Context(), "source", func(context.Context) ([]byte, error) { return []byte(text), nil }); err != nil || len(report.Findings) > 0 {
		s.t.Fatalf("service.Take: got findings %v, %v, want none and no error", report.Findings, err)
	}
}
