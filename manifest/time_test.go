package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// shape is a file of any size: a start, parts that are repeated, and an end. In
// a part, @ is its number.
type shape struct{ name, start, part, end string }

func (s shape) file(size int) []byte {
	if left := size - len(s.start) - len(s.end); !strings.Contains(s.part, "@") {
		return []byte(s.start + strings.Repeat(s.part, max(0, left/len(s.part))) + s.end)
	}
	var b strings.Builder
	b.WriteString(s.start)
	for i := 0; b.Len()+len(s.part)+8+len(s.end) < size; i++ {
		b.WriteString(strings.ReplaceAll(s.part, "@", strconv.Itoa(i)))
	}
	b.WriteString(s.end)
	return []byte(b.String())
}

// parsesInLinearTime holds that a file takes time in proportion to its size.
func parsesInLinearTime(t *testing.T, size int, file func(size int) []byte) {
	t.Helper()
	lineartest.Check(t, size, file, func(text []byte) {
		if len(text) > MaxSize {
			t.Fatalf("the file has %d bytes and is not read", len(text))
		}
		Parse(text)
	})
}

func hostileShapes() []shape {
	shapes := []shape{
		{"single quotes in a line", "a: [", "'',", "]"},
		{"double quotes in a line", "a: [", `"",`, "]"},
		{"quoted keys in a line", "a: {", `"@": '',`, "}"},
		{"quoted keys without a colon in a line", "a: {", `"@",`, "}"},
		{"quotes in lines that YAML 1.1 ends", "a: [\r", "'',\u2028", "]"},
		{"quotes whose lines are counted otherwise elsewhere", "b: '\r'\na: [", `"\"",`, "]"},
		{"quotes with comments", "a: [", "'' #\n,", "]"},
		{"quoted texts of many lines", "a: [", "'\n\n',", "]"},
		{"quotes with anchors", "a: [", "&a '',", "]"},
		{"escapes", `a: "`, `\u0041`, `"`},
		{"quotes in a quote", "a: '", "''", "'"},
		{"numbers in a line", "a: [", "1,", "]"},
		{"long numbers", "a: [", "11111111111111111111111111111111111111111,", "]"},
		{"a number", "a: ", "1", "\n"},
		{"a number with underscores", "a: ", "1_", "\n"},
		{"dates", "a: [", "2001-01-01,", "]"},
		{"empty values", "a: [", "~,", "]"},
		{"commas", "a: [", ",", "]"},
		{"lists in a line", "a: [", "[],", "]"},
		{"mappings in a line", "a: [", "{},", "]"},
		{"mappings without a value", "a: {", "{},", "}"},
		{"pairs in a list", "a: [", "b: c,", "]"},
		{"lists that are keys", "a: {", "? [a] : b,", "}"},
		{"mappings that are keys", "a: {", "{b: c}: d,", "}"},
		{"questions in a mapping", "a: {", "? ", "}"},
		{"open lists", "a: ", "[", ""},
		{"open mappings", "a: ", "{", ""},
		{"open mappings in keys", "a: ", "{a: ", ""},
		{"open questions", "a: ", "[?", ""},
		{"lists in lists in a line", "a:\n  ", "- ", "b"},
		{"questions in questions in a line", "", "? ", "b"},
		{"mappings in lists", "a:\n", "- - - b\n", ""},
		{"keys", "", "a@:\n", ""},
		{"keys in a line", "a: {", "a@,", "}"},
		{"keys that are twice in their mappings", "a: [", "{a: b, a: c},", "]"},
		{"a key", "", "a", ": b"},
		{"a key in quotes", `"`, "a", `": b`},
		{"a plain text", "a: ", "b ", "\n"},
		{"a plain text of many lines", "a: ", "b\n  ", "\n"},
		{"a block of text", "a: |\n", "  b\n", ""},
		{"a folded text", "a: >\n", "  b\n\n", ""},
		{"spaces", "a: ", " ", "\n"},
		{"tabs", "a: ", "\t", "\n"},
		{"tabs in a text", "a: b", "\tb", "\n"},
		{"tabs that indent", "a:", "\n\t", "b"},
		{"empty lines", "a: b", "\n", ""},
		{"lines of spaces", "a: b", "    \n", ""},
		{"carriage returns", "a: b", "\r", ""},
		{"other line breaks", "a: b", "\u2028", ""},
		{"a comment", "# ", "b", "\n"},
		{"comments", "a: b\n", "# b\n", ""},
		{"comments in comments", "a: b\n", "# # ", "\n"},
		{"comments with empty lines", "a: b\n", "# b\n\n", ""},
		{"comments behind values", "", "a@: b # c\n", ""},
		{"comments in front of keys", "", "# b\na@: c\n", ""},
		{"comments in front of entries", "a:\n", "# b\n- c\n", ""},
		{"comments under entries", "a:\n", "- c\n  # b\n", ""},
		{"comments in lists in a line", "a: [", "b, # c\n", "]"},
		{"comments in front of a list's end", "a: [", "# c\n", "]"},
		{"comments behind a colon", "a: ", " # c\n", ""},
		{"anchors", "a: [", "&a@ b,", "]"},
		{"the same anchor", "a: [", "&a b,", "]"},
		{"an anchor", "a: &", "b", " c"},
		{"aliases", "a: &a b\nc: [", "*a,", "]"},
		{"aliases of an alias's anchor", "a: &a b\n", "a@: &a [*a]\n", ""},
		{"anchors and aliases", "", "a@: &a@ b\nb@: *a@\n", ""},
		{"an unknown alias", "a: *", "b", ""},
		{"aliases that are keys", "a: &a b\nc: [", "{*a : b},", "]"},
		{"merges", "a: &a {b: c}\nd: [", "{<<: *a},", "]"},
		{"merges of many", "a: &a {b: c}\nd: {<<: [", "*a,", "]}"},
		{"merges of mappings in a line", "a: {<<: [", "{a@: b},", "]}"},
		{"tags", "a: [", "!!str ,", "]"},
		{"tags of their own", "a: [", "!a b,", "]"},
		{"a tag", "a: !", "b", " c"},
		{"an address for a tag", "a: !<", "b", "> c"},
		{"tag directives", "", "%TAG !a@! b\n", "---\na: b"},
		{"the same tag directive", "", "%TAG !a! b\n", "---\na: b"},
		{"directives", "", "%a\n", "---\na: b"},
		{"documents", "a: b\n", "---\n", ""},
		{"documents and their ends", "a: b\n", "...\n", ""},
		{"binary text", "a: !!binary ", "a", "\n"},
		{"characters that nothing starts with", "a: ", "@", "\n"},
		{"reserved characters", "a: ", "`", "\n"},
		{"percents", "a: ", "%", "\n"},
		{"accents", "a: [", "é,", "]"},
		{"accents in quotes", "a: [", "'é',", "]"},
		{"emoji", "a: ", "🎉", "\n"},
	}
	// In what is read, rather than ignored.
	for _, s := range []shape{
		{"types", "events:\n  types:\n", "    a@: {post_template: b}\n", ""},
		{"types without a template", "events:\n  types:\n", "    a@:\n", ""},
		{"types in a line", "events: {types: {", "a@,", "}}"},
		{"tags", "events: {default_tags: [", "a@,", "]}"},
		{"the same tags", "events: {default_tags: [", "a,", "]}"},
		{"unknown fields", "events: {types: {a: {supported_fields: [", "b,", "]}}}"},
		{"fields that are twice", "events: {types: {a: {supported_fields: [", "deadline_time_end,", "]}}}"},
		{"unknown fields in constraints", "events: {types: {a: {field_constraints: {", "b@,", "}}}}"},
		{"unknown keys of a type", "events: {types: {a: {", "b@,", "}}}"},
		{"custom fields", "events: {types: {a: {custom_fields: [", "{key: a@, type: text},", "]}}}"},
		{"custom fields that are wrong", "events: {types: {a: {custom_fields: [", "{key: a},", "]}}}"},
		{"empty custom fields", "events: {types: {a: {custom_fields: [", ",", "]}}}"},
		{"a key with spaces", "events: {types: {a: {custom_fields: [{key: b", " b", "}]}}}"},
		{"options", "events: {types: {a: {custom_fields: [{key: b, type: select, options: [", "a@,", "]}]}}}"},
		{"a long pattern", "events: {types: {a: {custom_fields: [{key: b, type: text, pattern: ", "(a", "}]}}}"},
		{"a long ratio", "events: {types: {a: {custom_fields: [{key: b, type: image, aspect_ratio: '", "1", ":1'}]}}}"},
		{"a large number", "events: {types: {a: {custom_fields: [{key: b, type: number, min: ", "9", "}]}}}"},
		{"a long fraction", "events: {types: {a: {custom_fields: [{key: b, type: number, min: 0.", "9", "}]}}}"},
		{"a large limit", "homepage_curation: {sections: [{picker: {recent_limit: ", "9", "}}]}"},
		{"states", "events: {types: {a: {messaging_states: [", "b,", "]}}}"},
		{"sections", "homepage_curation: {sections: [", "{key: a@, name: b, slots: [{key: a, label: b, tag: a@}]},", "]}"},
		{"empty sections", "homepage_curation: {sections: [", ",", "]}"},
		{"slots", "homepage_curation: {sections: [{slots: [", "{key: a@, label: b, tag: '#a@'},", "]}]}"},
		{"slots with the same tag", "homepage_curation: {sections: [{slots: [", "{tag: a},", "]}]}"},
		{"keys of a picker", "homepage_curation: {sections: [{picker: {", "a@,", "}}]}"},
		{"keys of a filter", "homepage_curation: {sections: [{picker: {recent_filter: {", "a@,", "}}}]}"},
		{"merges of a type", "x: &a {post_template: b, tags: [a, b]}\nevents:\n  types:\n", "    a@: {<<: *a}\n", ""},
		{"a merge of a merge of a merge", "x: {", "a@,", "}\nevents: {types: {a: {<<: " + strings.Repeat("{<<: ", 50) + "{<<: {b: c}}" + strings.Repeat("}", 50) + "}}}"},
	} {
		s.start = "manifest_version: 1\n" + s.start
		shapes = append(shapes, s)
	}
	return shapes
}

// Nobody can keep the edge busy with a file: what takes longer than its size
// justifies is a way to.
func TestTimeIsLinear(t *testing.T) {
	const size = MaxSize * 3 / 4 // some files become larger than what is asked for
	for _, s := range hostileShapes() {
		t.Run(s.name, func(t *testing.T) { parsesInLinearTime(t, size, s.file) })
	}
	// Half of each file is one list, half another, and each entry is looked for.
	t.Run("required fields that might be custom fields", func(t *testing.T) {
		parsesInLinearTime(t, size, func(size int) []byte {
			fields := shape{part: "{key: @},"}.file(size / 2)
			required := shape{part: "a@,"}.file(size / 2)
			return fmt.Appendf(nil, "manifest_version: 1\nevents: {types: {a: {custom_fields: [%s], required_fields: [%s]}}}", fields, required)
		})
	})
	t.Run("default types after one with a long name", func(t *testing.T) {
		parsesInLinearTime(t, size, func(size int) []byte {
			types := shape{part: "    a@: {default: true}\n"}.file(size / 2)
			return fmt.Appendf(nil, "manifest_version: 1\nevents:\n  types:\n    ? %s\n    : {default: true}\n%s", strings.Repeat("a", size/2-200), types)
		})
	})
	t.Run("tags of tag directives", func(t *testing.T) {
		parsesInLinearTime(t, size, func(size int) []byte {
			directives := shape{part: "%TAG !a@! b\n"}.file(size / 2)
			tags := shape{part: "!a0!b c,"}.file(size / 2)
			return fmt.Appendf(nil, "%s---\na: [%s]\n", directives, tags)
		})
	})
	t.Run("a large mapping, merged through many levels", func(t *testing.T) {
		parsesInLinearTime(t, size, func(size int) []byte {
			keys := shape{part: "a@,"}.file(size * 3 / 4)
			types := shape{part: "    t@: " + strings.Repeat("{<<: ", 50) + "*a" + strings.Repeat("}", 50) + "\n"}.file(min(size/4, 6*300))
			return fmt.Appendf(nil, "manifest_version: 1\nx: &a {%s}\nevents:\n  types:\n%s", keys, types)
		})
	})
	t.Run("indentation", func(t *testing.T) {
		parsesInLinearTime(t, size, func(size int) []byte {
			var b strings.Builder
			for i := 0; b.Len() < size-2*i; i++ {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return []byte(b.String())
		})
	})
}

// No part of a file takes more time the more of it there is in front of it.
func FuzzTimeIsLinear(f *testing.F) {
	for _, s := range hostileShapes() {
		f.Add(s.start, s.part, s.end)
	}
	f.Fuzz(func(t *testing.T, start, part, end string) {
		const size = 32 << 10
		if part == "" || len(start)+len(part)+len(end) > size/16 {
			return
		}
		parsesInLinearTime(t, size, shape{start: start, part: part, end: end}.file)
	})
}

// Nor can anybody with an event.
func TestTimeOfAnEventIsLinear(t *testing.T) {
	options := []string{strings.Repeat("a", 1000), "b"}
	event := EventType{CustomFields: []CustomField{
		{Key: "text", Type: "text", Required: true, Constraints: Constraints{MaxLength: 10}},
		{Key: "number", Type: "number", Constraints: Constraints{Min: new(1.0), Max: new(2.0)}},
		{Key: "select", Type: "select", Required: true, Options: options},
		{Key: "url", Type: "url"},
	}}
	for _, s := range []shape{
		{"letters", "", "a", ""},
		{"spaces", "", " ", ""},
		{"other spaces", "", "\u2003", ""},
		{"accents", "", "é", ""},
		{"digits", "", "1", ""},
		{"a fraction", "0.", "0", "1"},
		{"an exponent", "1e", "1", ""},
		{"signs", "", "+", ""},
		{"a host", "https://", "a.", "com"},
		{"an address", "https://[", "1:", "]"},
		{"a port", "https://a:", "1", ""},
		{"a user", "https://", "a@", "b"},
		{"a path", "https://a/", "../", ""},
		{"escapes", "https://a/", "%41", ""},
		{"a query", "https://a/?", "b&", ""},
	} {
		t.Run(s.name, func(t *testing.T) {
			lineartest.Check(t, 1<<20, s.file, func(text []byte) {
				event.Publish(map[string]any{"text": string(text), "number": string(text), "select": string(text), "url": string(text)})
			})
		})
	}
}
