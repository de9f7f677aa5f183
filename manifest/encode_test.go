package manifest

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What is shown to the event editor and to who runs the command line.
func TestJSON(t *testing.T) {
	text, err := json.MarshalIndent(full, "", "  ")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(fixture(t, "full.json"))), string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkWritten(t, full)
}

func TestJSONIsChecked(t *testing.T) {
	for _, text := range []string{
		`{"events": {"types": []}}`, `{"events": {"types": "talk"}}`, `{"events": {"types": {"talk": 5}}}`,
		`{"events": {"types": {"talk": {"field_constraints": 5}}}}`, `{"events": {"types": {"talk": {"field_constraints": {"name": 5}}}}}`,
	} {
		var m Manifest
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkWritten fails unless a manifest is itself again after JSON and after
// YAML, without a finding.
func checkWritten(t fataler, m *Manifest) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	var again Manifest
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if diff := cmp.Diff(m, &again); diff != "" {
		t.Fatalf("after JSON (-want +got):\n%s", diff)
	}
	text, err = yamlFile(m)
	if err != nil {
		t.Fatalf("yamlFile: %v", err)
	}
	got := parse(text, math.MaxInt/maxExpansion)
	if diff := cmp.Diff(Result{Manifest: m, Findings: []Finding{}}, got); diff != "" {
		t.Fatalf("after YAML (-want +got):\n%s\n%s", diff, text)
	}
}

// checkFile fails unless a file is read the same twice, its findings are in
// order and have a place in it, and what survives can be written.
func checkFile(t fataler, text []byte) {
	t.Helper()
	got := Parse(text)
	if diff := cmp.Diff(got, Parse(text)); diff != "" {
		t.Fatalf("not the same twice: %s", diff)
	}
	lines, line := 1, 0
	for _, c := range string(text) {
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", c) {
			lines++
		}
	}
	for _, f := range got.Findings {
		if f.Field == "" || f.Message == "" || f.Severity != Error && f.Severity != Warning || f.Line < line || f.Line > lines {
			t.Fatalf("finding %+v after line %d of %d", f, line, lines)
		}
		line = f.Line
	}
	if got.Manifest == nil {
		if len(got.Findings) != 1 {
			t.Fatalf("ignored with findings %q", asText(got.Findings))
		}
		return
	}
	checkWritten(t, got.Manifest)
}

func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(names) == 0 {
		f.Fatalf("filepath.Glob: got %d fixtures, %v, want some", len(names), err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatalf("error %v, want none", err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"", "\rs", "a: &a [*a]", inType("<<: [{tags: [a]}, {label: b}]"), inFields("- {key: \"a\\n\\x7f\\u2028\\ufeff\", type: url}"),
		inPicker("recent_limit: 99999999999999999999"), inTypes("? |\n  a\n  b\n: {post_template: \" x\\t\"}"), "x: !!binary aGk=", "\ufeff" + clean,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { checkFile(t, text) })
}

// Files that are likelier to be nearly right than those of a fuzzer: all
// keys, each with values that fit and values that do not.
func TestLikelyFiles(t *testing.T) {
	word := rapid.SampledFrom([]string{
		"name", "slug", "feature_image", "max_attendees", "registered", "event_passed", "text", "select", "number", "image", "url",
		"talk", "house_concert", "a b", "recent", "search", "recnt", "#a", "hash-a", "16:9", "-", "null", "true", "1", "0x1", "1e3", "<<",
		"2026-01-31", "'", "\"", "ä\u2028", "a: b", "# x", " x ", "\t", "\n", "|", "\x7f", "\u0085", "",
	})
	scalar := rapid.OneOf(
		rapid.Map(word, func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, false, 0, 1, 7, 50, 51, -3, 1.5, 1e20, 1e-7}),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list")
			case 1:
				return rapid.MapOfN(word, value(depth-1), 0, 3).Draw(t, "mapping")
			}
			return scalar.Draw(t, "scalar")
		})
	}
	// some draws a mapping of keys, each there or not, with what is right most of
	// the time.
	some := func(t *rapid.T, keys map[string]*rapid.Generator[any]) any {
		m := make(map[string]any)
		for _, key := range rapid.Permutation(sortedKeys(keys)).Draw(t, "keys") {
			switch rapid.IntRange(0, 9).Draw(t, key) {
			case 0:
			case 1:
				m[key] = value(2).Draw(t, key)
			default:
				m[key] = keys[key].Draw(t, key)
			}
		}
		return m
	}
	mapping := func(keys map[string]*rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any { return some(t, keys) })
	}
	list := func(of *rapid.Generator[any], least int) *rapid.Generator[any] {
		return rapid.Map(rapid.SliceOfN(of, least, 4), func(s []any) any { return s })
	}
	named := func(of *rapid.Generator[any]) *rapid.Generator[any] {
		return rapid.Map(rapid.MapOfN(word, of, 0, 4), func(m map[string]any) any { return m })
	}
	constraints := map[string]*rapid.Generator[any]{
		"max_length": scalar, "pattern": scalar, "min": scalar, "max": scalar, "aspect_ratio": scalar, "min_width": scalar, "min_height": scalar,
	}
	custom := map[string]*rapid.Generator[any]{
		"key": scalar, "type": rapid.SampledFrom([]any{"text", "textarea", "number", "select", "url", "date", "toggle", "image"}),
		"label": scalar, "required": scalar, "help_text": scalar, "options": list(scalar, 1), "max_length": scalar, "max": scalar, "max_file_size_kb": scalar,
	}
	eventType := map[string]*rapid.Generator[any]{
		"post_template": scalar, "label": scalar, "tags": list(scalar, 0), "supported_fields": list(scalar, 0), "required_fields": list(scalar, 0),
		"field_constraints": named(mapping(constraints)), "custom_fields": list(mapping(custom), 0), "messaging_states": list(scalar, 0), "default": scalar,
	}
	slot := map[string]*rapid.Generator[any]{"key": scalar, "label": scalar, "tag": scalar}
	section := map[string]*rapid.Generator[any]{
		"key": scalar, "name": scalar, "description": scalar, "slots": list(mapping(slot), 1),
		"picker": mapping(map[string]*rapid.Generator[any]{
			"default_view": scalar, "recent_limit": scalar, "recent_filter": mapping(map[string]*rapid.Generator[any]{"tag": scalar}),
		}),
	}
	declared := mapping(map[string]*rapid.Generator[any]{
		"events":            mapping(map[string]*rapid.Generator[any]{"default_tags": list(scalar, 0), "types": named(mapping(eventType))}),
		"homepage_curation": mapping(map[string]*rapid.Generator[any]{"sections": list(mapping(section), 1)}),
	})
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(declared.Draw(t, "manifest"))
		if err != nil {
			t.Fatalf("error %v, want none", err)
		}
		// A JSON text is YAML, but for two characters that YAML wants escaped.
		escaped := strings.NewReplacer("\x7f", `\u007f`, "\u0085", `\u0085`).Replace(string(text))
		file := []byte(`{"manifest_version": 1,` + strings.TrimPrefix(escaped, "{"))
		file = []byte(strings.Replace(string(file), ",}", "}", 1))
		if Parse(file).Manifest == nil {
			t.Fatalf("ignored: %q", asText(Parse(file).Findings))
		}
		checkFile(t, file)
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
