package manifest

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// A file that YAML forbids, or that is no manifest at all, is ignored entirely,
// with one finding that says where and why.
func TestIgnoredFiles(t *testing.T) {
	units := utf16.Encode([]rune(clean))
	withBOM, _ := binary.Append(nil, binary.LittleEndian, append([]uint16{0xfeff}, units...))
	bigEndian, _ := binary.Append(nil, binary.BigEndian, append([]uint16{0xfeff}, units...))
	withoutBOM, _ := binary.Append(nil, binary.LittleEndian, units)
	deep := func(n int) string { return file("x: " + strings.Repeat("[", n) + strings.Repeat("]", n)) }
	var chain strings.Builder
	chain.WriteString("a0: &a0 [a, b, c, d, e, f, g, h, i, j]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&chain, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}

	for _, test := range []struct{ name, in, want string }{
		{"empty", "", "1:1 the file is empty; start it with `manifest_version: 1`"},
		{"only spaces", " \n\n", "1:1 the file is empty; start it with `manifest_version: 1`"},
		{"only a comment", "# manifest_version: 1\n", "1:1 the file is empty; start it with `manifest_version: 1`"},
		{"only a document's start", "---\n", "1:1 line 1: the file holds an empty value; a manifest is a mapping that starts with `manifest_version: 1`"},
		{"a list", "- manifest_version: 1\n", "1:1 line 1: the file holds a list; a manifest is a mapping that starts with `manifest_version: 1`"},
		{"text", "manifest_version\n", "1:1 line 1: the file holds `manifest_version`; a manifest is a mapping that starts with `manifest_version: 1`"},
		{"JSON null", "null\n", "1:1 line 1: the file holds an empty value; a manifest is a mapping that starts with `manifest_version: 1`"},

		{"an open quote", file("events: 'x"), "2:1 line 2: not valid YAML: found unexpected end of stream"},
		{"an open quote that another ends", file("x: \"16:9\ny: 1\ntag: \"#hero\""), "2:4 line 2: the quote that starts here ends in line 4, right before a `#`; close it where it should end, or put a space before the comment"},
		{"an open quote of the other kind", file("x: '16:9\ntag: '#hero'"), "2:4 line 2: the quote that starts here ends in line 3, right before a `#`; close it where it should end, or put a space before the comment"},
		{"a comment right behind a quote", file("x: {ä: \"a\\\"b\"#c\n}"), "2:8 line 2: the quote that starts here ends in line 2, right before a `#`; close it where it should end, or put a space before the comment"},
		{"a comment right behind a quoted key's quote", file("'it''s'#: x"), "2:1 line 2: not valid YAML: could not find expected ':'"},
		{"a tag without quotes in a list", file("x:\n  default_tags: [#event]\ny: 1\n"), "3:18 line 3: what follows # is a comment, so a bracket before it is not closed; put a value that starts with # in quotes"},
		{"a tag without quotes in a mapping", file("slots: [{ü: lead, tag: #lead}]\n"), "2:24 line 2: what follows # is a comment, so a bracket before it is not closed; put a value that starts with # in quotes"},
		{"an open bracket far behind a text with one", file("label: see [#12]\nx: [1, 2\ny: z"), "4:1 line 4: not valid YAML: did not find expected ',' or ']'"},
		{"a text with a bracket, and another mistake", file("label: [see #12\nevents:\n    types: {}\n  default_tags: []"), "2:13 line 2: what follows # is a comment, so a bracket before it is not closed; put a value that starts with # in quotes"},
		{"an open bracket before a comment", file("x: [1, # one\ny: z"), "3:1 line 3: not valid YAML: did not find expected ',' or ']'"},
		{"an open bracket, and a tag in quotes", file("x: [\"#a\", 2\ny: z"), "3:1 line 3: not valid YAML: did not find expected ',' or ']'"},
		{"an open bracket, and a tag behind a list", file("a: [1] #b\nx: [1, 2\ny: z"), "4:1 line 4: not valid YAML: did not find expected ',' or ']'"},
		{"an open bracket", file("x: [1, 2\ny: z"), "3:1 line 3: not valid YAML: did not find expected ',' or ']'"},
		{"an open brace", file("x: {a: 1"), "2:1 line 2: not valid YAML: did not find expected ',' or '}'"},
		{"indented too little", file("events:\n    types: {}\n  default_tags: []"), "4:3 line 4: not valid YAML: did not find expected key"},
		{"a mapping after a list", file("x:\n  - a\n  b: c"), "4:3 line 4: not valid YAML: did not find expected '-' indicator"},
		{"two colons", file("x: y: z"), "2:1 line 2: a colon where there can be none; check the indentation, or put a value that contains a colon in quotes"},
		{"a wrong escape", file(`x: "\q"`), "2:1 line 2: not valid YAML: found unknown escape character"},
		{"a character that YAML keeps for itself", file("x: @y"), "2:1 line 2: not valid YAML: found character that cannot start any token"},
		{"wrong in the first line", "a: b: c\n", "1:1 line 1: a colon where there can be none; check the indentation, or put a value that contains a colon in quotes"},

		{"a tab that indents", file("events:\n\ttypes: {}"), "3:2 line 3: a tab indents it; use spaces"},
		{"a tab among the spaces that indent", file("events:\n  \ttypes: {}\n  \tx: y"), "3:4 line 3: a tab indents it; use spaces"},
		{"a key twice", file("events: {}\nevents: {}"), "3:1 line 3: the key `events` is in line 2 already; a mapping has each key once"},
		{"a key twice, once in quotes", file("a: 1\n\"a\": 1"), "3:1 line 3: the key `a` is in line 2 already; a mapping has each key once"},
		{"a key twice where nothing reads it", file("x:\n  - y: {z: 1, zz: 2, z: 3}"), "3:22 line 3: the key `z` is in line 3 already; a mapping has each key once"},
		{"a key twice among many", file("x: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1, a: 2}"), "2:71 line 2: the key `a` is in line 2 already; a mapping has each key once"},
		{"a type twice", inTypes("talk: {post_template: a}\ntalk: {post_template: b}"), "5:5 line 5: the key `talk` is in line 4 already; a mapping has each key once"},
		{"an alias of nothing", file("x: *y"), "2:1 line 2: not valid YAML: unknown anchor 'y' referenced"},
		{"an alias in itself", file("x: &x [*x]"), "2:8 line 2: the alias `*x` contains itself"},
		{"an alias bomb", clean + chain.String(), "7:30 line 7: the aliases up to here stand for more than 1048576 bytes; write less of the file with aliases"},
		{"a merge of text", file("x: {<<: y}"), "2:5 line 2: `<<` merges mappings only; this is `y`"},
		{"a merge of a list of text", file("x: {<<: [{a: b}, y]}"), "2:5 line 2: `<<` merges mappings only; this is a list"},
		{"two documents", clean + "---\n" + clean, "2:1 line 2: a second document starts here; a manifest is one document, without `---` in it"},
		{"a second document that is empty", clean + "---\n", "2:1 line 2: a second document starts here; a manifest is one document, without `---` in it"},
		{"a second document that is wrong", clean + "---\na: b: c\n", "3:1 line 3: a colon where there can be none; check the indentation, or put a value that contains a colon in quotes"},

		{"a quote right before a hash, behind another kind of line end", "manifest_version: 1\rx: \"a\"#b\r", "2:4 line 2: the quote that starts here ends in line 2, right before a `#`; close it where it should end, or put a space before the comment"},
		{"a quote right before a hash, behind a byte order mark", "\ufeff\"x\": \"a\"#b\n", "1:6 line 1: the quote that starts here ends in line 1, right before a `#`; close it where it should end, or put a space before the comment"},
		{"an alias with a very long name", file("x: *" + strings.Repeat("y", 1000)), "2:1 line 2: not valid YAML: unknown anchor '" + strings.Repeat("y", 184) + "…"},
		{"many directives", strings.Repeat("%TAG !a! b\n", 17) + "---\n" + clean, "17:1 line 17: more than 16 lines start with a percent sign; remove some"},

		{"a NUL byte", file("x: a\x00b"), "2:5 line 2: a NUL byte; save the file as UTF-8 text"},
		{"a control character", file("x: a\x01b"), "2:1 line 2: not valid YAML: control characters are not allowed"},
		{"bytes that are not UTF-8", file("x: ä\nlabel: caf\xe9"), "3:11 line 3: the byte 0xe9 is not UTF-8; save the file as UTF-8"},
		{"UTF-16 of Windows", string(withBOM), "1:1 the file is UTF-16; save it as UTF-8"},
		{"UTF-16 the other way around", string(bigEndian), "1:1 the file is UTF-16; save it as UTF-8"},
		{"UTF-16 without a mark", string(withoutBOM), "1:2 line 1: a NUL byte; save the file as UTF-8 text"},
		{"a zip", "PK\x03\x04\x14\x00\x00\x00", "1:6 line 1: a NUL byte; save the file as UTF-8 text"},
		{"nested a level too deep", deep(maxDepth), "2:67 line 2: nested more than 64 deep"},
		{"nested very deep", deep(20_000), "2:1 line 2: not valid YAML: exceeded max depth of 10000"},
		{"a byte too long", clean + "#" + strings.Repeat("x", MaxSize-len(clean)), "0:0 the file has 262145 bytes; at most 262144 are read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := lineartest.ProcessTime()
			got := Parse([]byte(test.in))
			if got.Manifest != nil || len(got.Findings) != 1 || got.Findings[0].Field != "manifest" || got.Findings[0].Severity != Error {
				t.Fatalf("%+v, %q; want no manifest, one error on it", got.Manifest, asText(got.Findings))
			}
			f := got.Findings[0]
			if diff := cmp.Diff(test.want, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message)); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
			if took := lineartest.ProcessTime() - start; took > 5*time.Second {
				t.Errorf("took %v of CPU time", took)
			}
		})
	}
}

// What YAML allows means what YAML 1.2 says.
func TestUnusualYAML(t *testing.T) {
	deep := func(n int) string { return file("x: " + strings.Repeat("[", n) + strings.Repeat("]", n)) }
	for _, c := range []errorCase{
		{"a number sign in quotes, and a comment behind them", inType("label: \"a\\\"#b\" # c\ntags: ['it''s #1', \"#x\"]# d"), inType("label: 'a\"#b'\ntags: [\"it's #1\", '#x']"), nil},
		{"a byte order mark", "\ufeff" + inType("tags: [a]"), inType("tags: [a]"), nil},
		{"Windows line ends", strings.ReplaceAll(inType("tags: [a]"), "\n", "\r\n"), inType("tags: [a]"), nil},
		{"a document's start and end", "---\n" + inType("") + "...\n", inType(""), nil},
		{"JSON", `{"manifest_version": 1, "events": {"types": {"talk": {"post_template": "custom-talk"}}}}`, inType(""), nil},
		{"a tab that does not indent", inType("label:\tTalk"), inType(""), nil},
		{"nested as deep as allowed", deep(maxDepth - 1), clean, nil},
		{"as long as allowed", clean + "#" + strings.Repeat("x", MaxSize-len(clean)-1), clean, nil},
		{"unknown keys", file("colour: red\nevents: {x: 1, types: {talk: {post_template: custom-talk, x: 1}}}"), inType(""), nil},
		{"version in hexadecimal", "manifest_version: 0x1\n", clean, nil},

		{"an alias", file("x: &tags [a, b]\nevents: {types: {talk: {post_template: custom-talk, tags: *tags}}}"), inType("tags: [a, b]"), nil},
		{"an alias as a key", file("x: &key talk\nevents: {types: {*key : {post_template: custom-talk}}}"), inType(""), nil},
		{"a merge", file("x: &base {post_template: custom-talk, tags: [a]}\nevents: {types: {talk: {<<: *base, tags: [b]}}}"), inType("tags: [b]"), nil},
		{"a merge of several: the first wins", file("x: [&a {post_template: custom-talk}, &b {post_template: b, tags: [b]}]\nevents: {types: {talk: {<<: [*a, *b]}}}"), inType("tags: [b]"), nil},
		{"a merge in a merge", file("x: [&a {tags: [a]}, &b {<<: *a, post_template: custom-talk}]\nevents: {types: {talk: {<<: *b}}}"), inType("tags: [a]"), nil},
		{"a merge key in quotes is a key", inType("'<<': {tags: [a]}"), inType(""), nil},
		{"an alias that is wrong, twice", inTypes("a: &a {post_template: x, tags: b}\nb: *a"), inTypes("a: {post_template: x}\nb: {post_template: x}"), []string{
			"4:36 warning events.types.a.tags: `tags` is `b`, so it is ignored; make it a list",
			"4:36 warning events.types.b.tags: `tags` is `b`, so it is ignored; make it a list",
		}},

		{"yes, no, on and off are text", inType("label: no\ntags: [yes, on, off]"), inType("label: 'no'\ntags: ['yes', 'on', 'off']"), nil},
		{"yes and on are no booleans", inType("default: yes\ncustom_fields: [{key: on, type: text, required: on}]"), inType("custom_fields: [{key: 'on', type: text}]"), nil},
		{"a boolean in quotes is text", inType("default: 'true'\ncustom_fields: [{key: a, type: text, required: \"true\"}]"), inType("custom_fields: [{key: a, type: text}]"), nil},
		{"numbers and dates are no text", inType("label: 2026\ntags: [2026, 1.5, 2026-01-31, true, ~, a]"), inType("tags: [a]"), nil},
		{"text by its tag", inType("tags: [!!str 2026]"), inType("tags: ['2026']"), nil},
		{"a tag of its own is no text", inType("label: !name Talk\ntags: [!x a]"), inType(""), nil},
		{"keys that are no text count as written", inTypes("2026: {post_template: x}\ntrue: {post_template: x}\n2026-01-31: {post_template: x}"), inTypes("'2026': {post_template: x}\n'true': {post_template: x}\n'2026-01-31': {post_template: x}"), nil},
		{"keys that are null, lists or mappings do not count", inTypes("~: {post_template: x}\n? [a]\n: {post_template: x}\n? {a: b}\n: {post_template: x}\ntalk: {post_template: custom-talk}"), inType(""), nil},
		{"wrong values without a category", inType("label: [x]\nfield_constraints: name\ndefault: 1\ncustom_fields: [{key: a, type: text, required: 1, label: 5, help_text: [], max_length: -1, pattern: 5}]"), inType("custom_fields: [{key: a, type: text}]"), nil},
		{"a wrong picker", inSection("picker: search\ndescription: 5"), inSection(""), nil},
		{"constraints of another kind of field", inType("field_constraints: {name: {min: 1, min_width: 2}, event_date: {min: 1}, feature_image: {max_length: 5}}"), inType(""), nil},
		{"numbers that are none", inType("custom_fields: [{key: a, type: number, min: .nan, max: .inf}]"), inType("custom_fields: [{key: a, type: number}]"), nil},
		{"a long key is cut in paths", inTypes(strings.Repeat("k", 101) + ": {post_template: x, tags: a}"), inTypes(strings.Repeat("k", 101) + ": {post_template: x}"), []string{
			"4:133 warning events.types.kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk….tags: `tags` is `a`, so it is ignored; make it a list",
		}},
	} {
		t.Run(c.name, c.check)
	}
}

// A file that would make the edge do much more than its size allows.
func TestHostileFiles(t *testing.T) {
	many := func(n int, s string) string { return strings.Repeat(s, n) }
	for _, test := range []struct{ name, in string }{
		{"mistakes in a type with a long name", inTypes("? " + many(100_000, "k") + "\n: supported_fields: [" + many(70_000, "x,") + "]")},
		{"mistakes in long names", inType("supported_fields: [" + many(200, many(1000, "x")+",") + "]")},
		{"many mistakes through aliases", file("x: &f [" + many(300, "x,") + "]\nevents:\n  types:\n" + func() string {
			var b strings.Builder
			for i := range 3000 {
				fmt.Fprintf(&b, "    t%d: {supported_fields: *f}\n", i)
			}
			return b.String()
		}())},
		{"a long text through aliases", file("x: &l " + many(100_000, "x") + "\nevents: {types: {t: {post_template: x, tags: [" + many(20_000, "*l,") + "]}}}")},
		{"merges in merges", func() string {
			var b strings.Builder
			b.WriteString("m0: &m0 {a: b}\n")
			for i := 1; i < 9000; i++ {
				fmt.Fprintf(&b, "m%d: &m%d {<<: *m%d}\n", i, i, i-1)
			}
			return file(b.String())
		}()},
		{"deep without ends", file("x: " + many(200_000, "["))},
		{"deep by indentation", file(func() string {
			var b strings.Builder
			for i := range 700 {
				b.WriteString(many(i, " ") + "k:\n")
			}
			return b.String()
		}())},
		{"lists in a line", file("x:\n  " + many(100_000, "- "))},
		{"questions", file(many(100_000, "? "))},
		{"anchors", file("x: [" + many(80_000, "&a,") + "]")},
		{"a plain text of many lines", file("x: " + many(60_000, "a\n  "))},
		{"comments", file(many(80_000, "#\n"))},
		{"colons", many(130_000, ": ")},
		{"many keys", file("x: {" + func() string {
			var b strings.Builder
			for i := range 30_000 {
				fmt.Fprintf(&b, "k%d,", i)
			}
			return b.String()
		}() + "}")},
	} {
		t.Run(test.name, func(t *testing.T) {
			start := lineartest.ProcessTime()
			got := Parse([]byte(test.in)[:min(len(test.in), MaxSize)])
			size := 0
			for _, f := range got.Findings {
				size += len(f.Field) + len(f.Message)
			}
			if size > 10<<20 {
				t.Errorf("%d findings of %d bytes", len(got.Findings), size)
			}
			if took := lineartest.ProcessTime() - start; took > 5*time.Second {
				t.Errorf("took %v of CPU time", took)
			}
		})
	}
}
