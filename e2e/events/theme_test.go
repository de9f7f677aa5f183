package events

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
)

// The example is as good as the theme of a marketplace has to be.
func TestThemeHasNoFindings(t *testing.T) {
	theme, err := filepath.Abs(themeFolder)
	theme = must(t, theme, err)
	for _, version := range []string{"5", "6"} {
		output, err := program(t, t.TempDir(), nil, "gscan", "--v"+version, theme)
		// Of a theme with warnings it says "Your theme has 2 warnings!", and ends well.
		if err != nil || !strings.Contains(output, "✓ Your theme is compatible with Ghost "+version+".x\n") {
			t.Errorf("gscan --v%s: %v: %s", version, err, output)
		}
	}
	output, err := exec.CommandContext(t.Context(), caddytest.Build(t), "lychgate", "manifest", "validate", "--strict", theme, "--format", "json").Output()
	if err != nil {
		t.Fatalf("validating %s: %v: %s", theme, err, output)
	}
	var got struct {
		Status   string
		Errors   []any `json:"_errors"`
		Manifest struct {
			Events struct {
				Types map[string]struct {
					Default      bool
					CustomFields []struct{ Type string } `json:"custom_fields"`
				}
			}
			Curation struct{ Sections []struct{ Key string } } `json:"homepage_curation"`
		}
	}
	if err := json.Unmarshal(output, &got); err != nil {
		t.Fatalf("decoding %s: %v", output, err)
	}
	kinds := make(map[string]bool)
	for _, custom := range got.Manifest.Events.Types["webinar"].CustomFields {
		kinds[custom.Type] = true
	}
	diff(t, "kinds of custom fields", map[string]bool{
		"text": true, "textarea": true, "number": true, "select": true, "url": true, "date": true, "toggle": true, "image": true,
	}, kinds)
	diff(t, "the rest", []any{"Valid", 0, 2, true, 1}, []any{
		got.Status, len(got.Errors), len(got.Manifest.Events.Types), got.Manifest.Events.Types["webinar"].Default, len(got.Manifest.Curation.Sections),
	})
}
