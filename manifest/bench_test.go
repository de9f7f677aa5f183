package manifest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// largeFile declares that many types with 20 custom fields each.
func largeFile(types int) []byte {
	var b strings.Builder
	b.WriteString("manifest_version: 1\nevents:\n  default_tags: [Events]\n  types:\n")
	for i := range types {
		fmt.Fprintf(&b, "    type_%d:\n      post_template: custom-type-%d\n      label: Type %d\n      tags: [\"#type-%d\"]\n", i, i, i, i)
		b.WriteString("      required_fields: [name, event_date]\n      custom_fields:\n")
		for j := range 20 {
			fmt.Fprintf(&b, "        - key: field_%d\n          type: text\n          label: Field %d\n          required: true\n          max_length: 80\n", j, j)
		}
	}
	return []byte(b.String())
}

// BenchmarkParse is to take at most 3 times as long as BenchmarkYAML on the same
// file, and twice as long for twice the types; bench/manifest runs both.
func BenchmarkParse(b *testing.B) {
	for _, types := range []int{125, 250, 500, 1000} {
		b.Run(fmt.Sprintf("types=%d", types), func(b *testing.B) {
			text := largeFile(types)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if got := parse(text, math.MaxInt/maxExpansion); len(got.Manifest.Events.Types) != types || len(got.Findings) > 0 {
					b.Fatalf("parse: got %d types, findings %v, want %d and none", len(got.Manifest.Events.Types), got.Findings, types)
				}
			}
		})
	}
}

// BenchmarkYAML is what parsing into nodes takes alone.
func BenchmarkYAML(b *testing.B) {
	for _, types := range []int{125, 250, 500, 1000} {
		b.Run(fmt.Sprintf("types=%d", types), func(b *testing.B) {
			text := largeFile(types)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var node yaml.Node
				if err := yaml.Unmarshal(text, &node); err != nil {
					b.Fatalf("error %v, want none", err)
				}
			}
		})
	}
}

// BenchmarkFindings is a file in which every custom field is wrong.
func BenchmarkFindings(b *testing.B) {
	text := []byte(strings.ReplaceAll(string(largeFile(400)), "type: text", "type: txet"))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if got := parse(text, math.MaxInt/maxExpansion); len(got.Findings) != 8000 {
			b.Fatalf("len(got.Findings) = %v, want 8000", len(got.Findings))
		}
	}
}
