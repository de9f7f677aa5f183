package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// A key that nothing reads is found wherever it is, and told what it is meant to be.
func TestStrictKeys(t *testing.T) {
	const eventTypeKeys = "`post_template`, `label`, `tags`, `supported_fields`, `required_fields`, `field_constraints`, `custom_fields`, `messaging_states`, `ask_name` or `default`"
	const writeKey = "write one such as `house_concert`, before there are events of the type: they keep its key"
	for _, c := range []struct {
		name, in string
		want     []string // line:column field: message
	}{
		{"none", file("x-base: {anything: here}\nevents: {types: {a: {post_template: custom-a}}}"), nil},
		{"top", "manifest_versn: 1\n", []string{"1:1 manifest_versn: `manifest_versn` is not a key of a manifest, so it is ignored; did you mean `manifest_version`?"}},
		{"top of another version", "manifest_version: 2\nevent: {}\n", []string{"2:1 event: `event` is not a key of a manifest, so it is ignored; did you mean `events`?"}},
		{"x- inside", file("events: {x-a: 1, types: {}}"), []string{"2:10 events.x-a: `x-a` is not a key of `events`, so it is ignored; use `default_tags` or `types`"}},
		{"events", file("events: {tpyes: {}, types: {}}"), []string{"2:10 events.tpyes: `tpyes` is not a key of `events`, so it is ignored; did you mean `types`?"}},
		{"event type", inType("max_length: 3\nrequired_feilds: [name]"), []string{
			"6:7 events.types.talk.max_length: `max_length` is not a key of an event type, so it is ignored; use " + eventTypeKeys,
			"7:7 events.types.talk.required_feilds: `required_feilds` is not a key of an event type, so it is ignored; did you mean `required_fields`?",
		}},
		{"dropped event type", inTypes("a: {post_templte: custom-a}"), []string{
			"4:9 events.types.a.post_templte: `post_templte` is not a key of an event type, so it is ignored; did you mean `post_template`?",
		}},
		{"event type without a name", inTypes("'': {post_template: custom-a}\n' ': {}\nb: {post_template: custom-b}"), []string{
			"4:5 events.types.: an event type has an empty key, so it is ignored; name it",
			"5:5 events.types. : an event type has an empty key, so it is ignored; name it",
		}},
		{"event types in capitals", inTypes("Talk: {post_template: custom-a}\nhouse concert: {tgs: [a]}\nb-2: {post_template: custom-a}\nb_2: {post_template: custom-a}"), []string{
			"4:5 events.types.Talk: the key of the event type `Talk` is not in lower case with underscores; " + writeKey,
			"5:5 events.types.house concert: the key of the event type `house concert` is not in lower case with underscores; " + writeKey,
			"5:21 events.types.house concert.tgs: `tgs` is not a key of an event type, so it is ignored; did you mean `tags`?",
			"6:5 events.types.b-2: the key of the event type `b-2` is not in lower case with underscores; " + writeKey,
		}},
		{"keys that are no names", inType("~: 1\n[a]: 2\n? {b: c}\n: 3"), []string{
			"6:7 events.types.talk: an empty value is no key, so it is ignored; write a name",
			"7:7 events.types.talk: a list is no key, so it is ignored; write a name",
			"8:9 events.types.talk: a mapping is no key, so it is ignored; write a name",
		}},
		{"hints", inType("field_constraints:\n  name: {max_lengt: 3, min: 1}\n  feature_image: {min_widht: 4}\n  access: {pattern: x}"), []string{
			"7:16 events.types.talk.field_constraints.name.max_lengt: `max_lengt` is not a key of the hints for `name`, so it is ignored; did you mean `max_length`?",
			"7:30 events.types.talk.field_constraints.name.min: `min` is not a key of the hints for `name`, so it is ignored; use `max_length` or `pattern`",
			"8:25 events.types.talk.field_constraints.feature_image.min_widht: `min_widht` is not a key of the hints for `feature_image`, so it is ignored; did you mean `min_width`?",
			"9:18 events.types.talk.field_constraints.access.pattern: `pattern` is not a key of the hints for `access`, so it is ignored; remove it",
		}},
		{"unknown field, which is a finding already", inType("field_constraints: {nme: {max_lengt: 3}}"), nil},
		{"custom field", inFields("- {key: a, type: text, max_lengt: 3}"), []string{
			"7:32 events.types.talk.custom_fields[0].max_lengt: `max_lengt` is not a key of a custom field of the type `text`, so it is ignored; did you mean `max_length`?",
		}},
		{"custom field with a key of another type", inFields("- {key: a, type: number, max_length: 3}"), []string{
			"7:34 events.types.talk.custom_fields[0].max_length: `max_length` is not a key of a custom field of the type `number`, so it is ignored; " +
				"use `key`, `type`, `label`, `required`, `help_text`, `min` or `max`",
		}},
		{"options of a select", inFields("- {key: a, type: select, options: [b]}"), nil},
		{"custom field of an unknown type", inFields("- {key: a, typ: text, max_length: 3, lable: A}"), []string{
			"7:20 events.types.talk.custom_fields[0].typ: `typ` is not a key of a custom field, so it is ignored; did you mean `type`?",
			"7:46 events.types.talk.custom_fields[0].lable: `lable` is not a key of a custom field, so it is ignored; did you mean `label`?",
		}},
		{"custom fields that are a mapping", inType("custom_fields: {keey: a}"), nil},
		{"curation", inCuration("section: []\nsections:\n- {key: a, name: A, titel: B, slots: [{key: a, label: A, tags: [a], tag: hash-a}]}"), []string{
			"3:3 homepage_curation.section: `section` is not a key of `homepage_curation`, so it is ignored; did you mean `sections`?",
			"5:23 homepage_curation.sections[0].titel: `titel` is not a key of a section, so it is ignored; use `key`, `name`, `description`, `picker` or `slots`",
			"5:60 homepage_curation.sections[0].slots[0].tags: `tags` is not a key of a slot, so it is ignored; did you mean `tag`?",
		}},
		{"picker, whose keys are findings already", inPicker("defult_view: recent\nrecent_filter: {tga: a}"), nil},
		{"anchor used twice", inTypes("a: &a {post_template: custom-a, lable: A}\nb: *a\nc: {<<: *a, lable: C}\nd: {<<: [*a]}"), []string{
			"4:37 events.types.a.lable: `lable` is not a key of an event type, so it is ignored; did you mean `label`?",
			"6:17 events.types.c.lable: `lable` is not a key of an event type, so it is ignored; did you mean `label`?",
		}},
		{"custom fields that share keys of their types", inFields("- &a {key: a, type: text, max_length: 3}\n- {<<: *a, key: b, type: number, min: 1}"), nil},
		{"long and strange key", file(strings.Repeat("a", 150) + ": 1\n\"\\e[31m\": 2"), []string{
			"2:1 " + strings.Repeat("a", 100) + "…: `" + strings.Repeat("a", 60) + "…` is not a key of a manifest, so it is ignored; use `manifest_version`, `events` or `homepage_curation`",
			"3:1 \x1b[31m: \"\\x1b[31m\" is not a key of a manifest, so it is ignored; use `manifest_version`, `events` or `homepage_curation`",
		}},
		{"numbers for texts", inType("label: 2026\ntags: [a, 7, \"8\", {b: c}]\ncustom_fields:\n- {key: a, type: text, label: yes, help_text: true}"), []string{
			"6:14 events.types.talk.label: `2026` is no text, so it is ignored; put it in quotes",
			"7:17 events.types.talk.tags[1]: `7` is no text, so it is ignored; put it in quotes",
			"7:25 events.types.talk.tags[3]: a mapping is no text, so it is ignored; write text, in quotes if it starts with `#`",
			"9:53 events.types.talk.custom_fields[0].help_text: `true` is no text, so it is ignored; put it in quotes",
		}},
		{"tags that are comments", file("events:\n  default_tags:\n  - #event\n  - \"#event\"\n  types: {a: {post_template: custom-a, label: , tags: }}"), []string{
			"4:4 events.default_tags[0]: an empty value is no text, so it is ignored; write text, in quotes if it starts with `#`",
		}},
		{"descriptions", inCuration("sections:\n- {key: a, name: A, description: [b], slots: [{key: a, label: A, tag: a}]}"), []string{
			"4:36 homepage_curation.sections[0].description: a list is no text, so it is ignored; write text",
		}},
		{"no YAML", "a: [", nil},
		{"too long", "a: " + strings.Repeat("b", MaxSize), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range StrictKeys([]byte(c.in)) {
				got = append(got, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Column, f.Field, f.Message))
				if f.Severity != Warning {
					t.Errorf("the severity of %s is %s", f.Field, f.Severity)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("in\n%s\n(-want +got):\n%s", c.in, diff)
			}
		})
	}
}

// What programs for texts put around a value is told, in values that Parse reads and in lists of them; quotes inside are text.
func TestStrictQuotesAndZeroWidth(t *testing.T) {
	in := inType("label: “Talk”\ntags: [‘a’, \u200bb, c\ufeff, it’s, “d” e]\ncustom_fields: [{key: a, type: select, options: [„x“, «y», “]}]")
	var got []string
	for _, f := range StrictKeys([]byte(in)) {
		got = append(got, fmt.Sprintf("%d:%d %s: %s", f.Line, f.Column, f.Field, f.Message))
	}
	const quotes = " has curly quotes around it, which are part of it; use straight ones, or none"
	want := []string{
		"6:14 events.types.talk.label: `“Talk”`" + quotes,
		"7:14 events.types.talk.tags[0]: `‘a’`" + quotes,
		"7:19 events.types.talk.tags[1]: `\u200bb` begins with U+200B, which nobody sees and which is part of it; type it again",
		"7:23 events.types.talk.tags[2]: `c\ufeff` ends with U+FEFF, which nobody sees and which is part of it; type it again",
		"8:56 events.types.talk.custom_fields[0].options[0]: `„x“`" + quotes,
		"8:61 events.types.talk.custom_fields[0].options[1]: `«y»`" + quotes,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings of\n%s\n(-want +got):\n%s", in, diff)
	}
}

// What is a finding anyhow is none of --strict's.
func TestStrictKeysAreNoFindingsOfParse(t *testing.T) {
	for _, c := range slices.Concat(eventErrors, curationErrors) {
		known := make(map[string]bool)
		for _, f := range Parse([]byte(c.in)).Findings {
			known[fmt.Sprint(f.Line, f.Column, f.Field)] = true
		}
		for _, f := range StrictKeys([]byte(c.in)) {
			if known[fmt.Sprint(f.Line, f.Column, f.Field)] {
				t.Errorf("%s: %s is a finding of both", c.name, f.Field)
			}
		}
	}
}

// An editor that completes by the schema offers the keys that --strict knows.
func TestKeysAreThoseOfTheSchema(t *testing.T) {
	text, err := os.ReadFile("../docs/manifest.schema.json")
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	type object struct {
		Properties map[string]*struct {
			Properties map[string]any `json:"properties"`
		} `json:"properties"`
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatalf("error %v, want none", err)
	}
	keysOf := func(o object) []string { return slices.Collect(maps.Keys(o.Properties)) }
	inside := func(o object, key string) []string { return slices.Collect(maps.Keys(o.Properties[key].Properties)) }
	for name, keys := range map[string]struct{ ours, schemas []string }{
		"a manifest":                 {topKeys.keys, keysOf(schema.object)},
		"events":                     {eventsKeys.keys, inside(schema.object, "events")},
		"homepage_curation":          {curationKeys.keys, inside(schema.object, "homepage_curation")},
		"an event type":              {typeKeys.keys, keysOf(schema.Defs["eventType"])},
		"field_constraints":          {typeKeys.parts["field_constraints"].set.keys, inside(schema.Defs["eventType"], "field_constraints")},
		"hints for text":             {textHints, keysOf(schema.Defs["textConstraints"])},
		"hints for an image":         {imageHints, keysOf(schema.Defs["imageConstraints"])},
		"hints for a number":         {numberHints, keysOf(schema.Defs["numberConstraints"])},
		"hints for any other":        {nil, keysOf(schema.Defs["noneConstraints"])},
		"a custom field":             {anyFieldKeys.keys, keysOf(schema.Defs["customField"])},
		"a section":                  {sectionKeys.keys, keysOf(schema.Defs["section"])},
		"a slot":                     {slotKeys.keys, keysOf(schema.Defs["slot"])},
		"a picker":                   {pickerKeys, keysOf(schema.Defs["picker"])},
		"the filter of a picker":     {filterKeys, inside(schema.Defs["picker"], "recent_filter")},
		"a custom field of any type": {fieldKeySets["url"].keys, commonFieldKeys},
	} {
		byName := cmpopts.SortSlices(strings.Compare)
		if diff := cmp.Diff(keys.schemas, keys.ours, byName, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the keys of %s (-schema +ours):\n%s", name, diff)
		}
	}
}

func TestPostTemplates(t *testing.T) {
	const in = clean + `x-base: &base
  post_template: custom-base
events:
  types:
    a: {post_template: custom-a, custom_fields: 1}
    b: {<<: *base}
    c: {<<: *base, label: C}
    d: {post_template: 2026}
    e: {}
    f: x
    g: {post_template: "custom-a.hbs"}
`
	want := []Named{
		{"custom-a", "events.types.a.post_template", 6, 24},
		{"custom-base", "events.types.b.post_template", 3, 18},
		{"custom-a.hbs", "events.types.g.post_template", 12, 24},
	}
	if diff := cmp.Diff(want, PostTemplates([]byte(in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, in := range []string{"", "a: [", clean, file("events:"), file("events: {types: [a]}")} {
		if got := PostTemplates([]byte(in)); got != nil {
			t.Errorf("%q: PostTemplates = %v, want none", in, got)
		}
	}
}

// Nobody can keep --strict busy: not with keys to compare, and not with aliases.
func TestTimeOfStrictKeysIsLinear(t *testing.T) {
	inField := "manifest_version: 1\nevents: {types: {a: {custom_fields: ["
	for _, s := range append(hostileShapes(),
		shape{"unknown keys", "", "manifest_versn@: 1\n", ""},
		shape{"unknown keys of an event type", "manifest_version: 1\nevents:\n  types:\n    a:\n", "      required_feilds@: 1\n", ""},
		shape{"keys as long as can be meant", "manifest_version: 1\nevents: {types: {a: {", strings.Repeat("a", 35) + "@: 1,", "}}}"},
		shape{"unknown keys of custom fields", inField, "{max_lengt: 1},", "]}}}"},
		shape{"custom fields with an alias", "x-a: &a {max_lengt: 1}\n" + inField, "*a,", "]}}}"},
		shape{"custom fields that merge", "x-a: &a {max_lengt: 1}\n" + inField, "{<<: *a},", "]}}}"},
		shape{"event types that share their fields", "x-a: &a [{max_lengt: 1}]\nevents:\n  types:\n", "    t@: {custom_fields: *a}\n", ""},
	) {
		t.Run(s.name, func(t *testing.T) {
			lineartest.Check(t, 64<<10, s.file, func(text []byte) {
				StrictKeys(text)
				PostTemplates(text)
			})
		})
	}
}
