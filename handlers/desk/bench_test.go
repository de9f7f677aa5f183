package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// The page of themes, of a site that has 200 themes kept.
func BenchmarkThemesPage(b *testing.B) {
	var long strings.Builder
	long.WriteString("manifest_version: 1\nevents:\n  types:\n")
	for i := range 1000 {
		fmt.Fprintf(&long, "    type_%d: {post_template: custom-%d, label: \"Type %d\", tags: [a, b, c]}\n", i, i, i)
	}
	for name, text := range map[string]string{
		"a usual manifest": "manifest_version: 1\nevents: {types: {webinar: {post_template: custom-webinar}}}\n" + curated,
		"80 KB":            long.String(),
		"10,000 findings":  "manifest_version: 1\n" + curated + "\nevents: {types: {a: {post_template: a, supported_fields: [" + strings.Repeat("nothing, ", 10_000) + "]}}}",
	} {
		b.Run(name, func(b *testing.B) {
			h := &harness{desktest.New(b)}
			for i := range 200 {
				theme := fmt.Sprint("theme-", i)
				h.Manifest(theme, text)
				h.Ghost.Themes = append(h.Ghost.Themes, platform.InstalledTheme{Name: theme})
			}
			b.ReportAllocs()
			for b.Loop() {
				if response := h.ask("GET", path+"themes", "Owner", ""); response.Code != 200 {
					b.Fatalf("answer.Code = %v, want 200", response.Code)
				}
			}
		})
	}
}
