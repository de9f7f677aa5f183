package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The choices that messages end with.
const (
	allFields = "`name`, `slug`, `description`, `event_date`, `event_time_start`, `event_time_end`, `event_time_zone`, `location`, `platform_url`, `max_attendees`, `feature_image`, `access`, `rsvp_labels`, `registration_deadline` or `deadline_time_end`"
	allTypes  = "`text`, `textarea`, `number`, `select`, `url`, `date`, `toggle` or `image`"
	allStates = "`can_register`, `login_required_free`, `login_required_paid`, `upgrade_required`, `registered`, `registration_closed` or `event_passed`"
)

// clean is a file without any problem, with no events and no curation.
const clean = "manifest_version: 1\n"

// file, inEvents and so on put YAML at its place in a file that is otherwise
// right.
func file(yaml string) string { return clean + yaml + "\n" }

func inEvents(yaml string) string {
	return file("events:\n  types: {talk: {post_template: custom-talk}}\n" + indented(yaml, 2))
}

func inTypes(yaml string) string { return file("events:\n  types:\n" + indented(yaml, 4)) }

func inType(yaml string) string {
	return inTypes("talk:\n  post_template: custom-talk\n" + indented(yaml, 2))
}

// inFields adds a second custom field, so that what survives has one.
func inFields(yaml string) string {
	return inType("custom_fields:\n" + indented(yaml, 2) + "  - {key: last, type: text}")
}

func inCuration(yaml string) string { return file("homepage_curation:\n" + indented(yaml, 2)) }

func inSections(yaml string) string {
	return inCuration("sections:\n" + indented(yaml, 2) +
		"  - {key: last, name: Last, slots: [{key: end, label: End, tag: hash-end}]}")
}

func inSection(yaml string) string {
	return inCuration("sections:\n  - key: top\n    name: Top\n" + indented(yaml, 4) +
		"    slots: [{key: a, label: A, tag: hash-a}]")
}

func inPicker(yaml string) string { return inSection("picker:\n" + indented(yaml, 2)) }

func inSlots(yaml string) string {
	return inCuration("sections:\n  - key: top\n    name: Top\n    slots:\n" + indented(yaml, 6) +
		"      - {key: end, label: End, tag: hash-end}")
}

func indented(yaml string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(yaml + "\n") {
		b.WriteString(strings.Repeat(" ", n) + line)
	}
	return b.String()
}

// asText writes a finding as a person would see it, one a line.
func asText(findings []Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%d:%d %s %s: %s", f.Line, f.Column, f.Severity, f.Field, f.Message))
	}
	return lines
}

// errorCase is a problem in a file.
type errorCase struct {
	name     string
	in       string
	left     string // a clean file that declares what survives; "" for nothing stored
	findings []string
}

func (c errorCase) check(t *testing.T) {
	got := Parse([]byte(c.in))
	if diff := cmp.Diff(c.findings, asText(got.Findings)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	var want Result
	if c.left != "" {
		if want = Parse([]byte(c.left)); want.Manifest == nil || len(want.Findings) > 0 {
			t.Fatalf("what should survive is not clean: %q", asText(want.Findings))
		}
	}
	if diff := cmp.Diff(want.Manifest, got.Manifest); diff != "" {
		t.Errorf("what survives (-want +got):\n%s", diff)
	}
}

// What theme developers are told, and what the editor keeps: each problem
// in an event type (docs/manifest.md, "Findings").
func TestEventErrors(t *testing.T) {
	for _, c := range eventErrors {
		t.Run(c.name, c.check)
	}
}

var eventErrors = slices.Concat(typeErrors, listErrors, customFieldErrors)

// talk is a file with one event type, and without any problem.
var talk = inType("")

// typeErrors are problems in the version of the file, in its event types, and in their templates and defaults.
var typeErrors = []errorCase{
	// unknown manifest_version
	{"no version", "events: {}\n", "", []string{
		"1:1 warning manifest_version: there is no `manifest_version`, so the file is ignored; start it with `manifest_version: 1`",
	}},
	{"version 2", "manifest_version: 2\n", "", []string{
		"1:19 warning manifest_version: `manifest_version` is `2`, so the file is ignored; use `1`, a whole number without quotes",
	}},
	{"version in quotes", "manifest_version: \"1\"\n", "", []string{
		"1:19 warning manifest_version: `manifest_version` is \"1\", so the file is ignored; use `1`, a whole number without quotes",
	}},
	{"version 1.0", "manifest_version: 1.0\n", "", []string{
		"1:19 warning manifest_version: `manifest_version` is `1.0`, so the file is ignored; use `1`, a whole number without quotes",
	}},
	{"version left empty", "manifest_version:\nevents: {}\n", "", []string{
		"1:1 warning manifest_version: `manifest_version` is an empty value, so the file is ignored; use `1`, a whole number without quotes",
	}},
	{"version as a list", "manifest_version: [1]\n", "", []string{
		"1:19 warning manifest_version: `manifest_version` is a list, so the file is ignored; use `1`, a whole number without quotes",
	}},

	// missing or invalid types section
	{"no types", file("events: {default_tags: [a]}"), clean, []string{
		"2:1 warning events.types: `events` has no `types`, so there are no event types; add at least one",
	}},
	{"no type in types", file("events: {types: {}}"), clean, []string{
		"2:17 warning events.types: `types` is empty, so there are no event types; add at least one",
	}},
	{"types left empty", file("events:\n  types:\n  default_tags: [a]"), clean, []string{
		"3:3 warning events.types: `types` is an empty value, so there are no event types; make it a mapping of event types, at least one",
	}},
	{"types as a list", file("events:\n  types: [talk]"), clean, []string{
		"3:10 warning events.types: `types` is a list, so there are no event types; make it a mapping of event types, at least one",
	}},
	{"events left empty", file("events:"), clean, []string{
		"2:1 warning events.types: `events` is an empty value, so there are no event types; give it `types` with at least one event type",
	}},
	{"events as text", file("events: talk"), clean, []string{
		"2:9 warning events.types: `events` is `talk`, so there are no event types; give it `types` with at least one event type",
	}},
	{"only a type that nothing can name", inTypes("'': {post_template: x}"), clean, []string{
		"4:5 warning events.types: `types` is empty, so there are no event types; add at least one",
	}},

	// missing post_template
	{"no template", inTypes("talk: {post_template: custom-talk}\ngig: {label: Gig}"), talk, []string{
		"5:5 error events.types.gig.post_template: the event type `gig` has no `post_template`, so it is dropped; add one",
	}},
	{"template left empty", inTypes("gig:\n  post_template:\ntalk: {post_template: custom-talk}"), talk, []string{
		"5:7 error events.types.gig.post_template: the `post_template` of the event type `gig` is an empty value, so it is dropped; write text",
	}},
	{"blank template", inTypes("gig: {post_template: ' '}\ntalk: {post_template: custom-talk}"), talk, []string{
		"4:26 error events.types.gig.post_template: the `post_template` of the event type `gig` is empty text, so it is dropped; write text",
	}},
	{"template is a number", inTypes("gig: {post_template: 2026}\ntalk: {post_template: custom-talk}"), talk, []string{
		"4:26 error events.types.gig.post_template: the `post_template` of the event type `gig` is no text, so it is dropped; put `2026` in quotes",
	}},
	{"type left empty", inTypes("gig:\ntalk: {post_template: custom-talk}"), talk, []string{
		"4:5 error events.types.gig.post_template: the event type `gig` has no `post_template`, so it is dropped; add one",
	}},
	{"type as a list, the only one", inTypes("gig: [custom-gig]"), clean, []string{
		"4:5 error events.types.gig.post_template: the event type `gig` has no `post_template`, so it is dropped; add one",
	}},

	// several types marked default
	{"two defaults", inTypes("a: {post_template: x, default: true}\nb: {post_template: x, default: true}"), inTypes("a: {post_template: x, default: true}\nb: {post_template: x}"), []string{
		"5:36 warning events.types.b.default: `a` is the default event type already; set `default` on one type only",
	}},
	{"three defaults", inTypes("a: {post_template: x}\nb: {post_template: x, default: true}\nc: {post_template: x, default: true}\nd: {post_template: x, default: true}"), inTypes("a: {post_template: x}\nb: {post_template: x, default: true}\nc: {post_template: x}\nd: {post_template: x}"), []string{
		"6:36 warning events.types.c.default: `b` is the default event type already; set `default` on one type only",
		"7:36 warning events.types.d.default: `b` is the default event type already; set `default` on one type only",
	}},
	{"the first is dropped", inTypes("a: {default: true}\nb: {post_template: x, default: true}"), inTypes("b: {post_template: x, default: true}"), []string{
		"4:5 error events.types.a.post_template: the event type `a` has no `post_template`, so it is dropped; add one",
	}},
	{"a later one is dropped", inTypes("a: {post_template: x, default: true}\nb: {default: true}"), inTypes("a: {post_template: x, default: true}"), []string{
		"5:5 error events.types.b.post_template: the event type `b` has no `post_template`, so it is dropped; add one",
	}},
	{"false is no claim, nor is yes", inTypes("a: {post_template: x, default: false}\nb: {post_template: x, default: yes}\nc: {post_template: x, default: true}"), inTypes("a: {post_template: x}\nb: {post_template: x}\nc: {post_template: x, default: true}"), nil},
}

// listErrors are problems in what an event type lists: fields, states and tags.
var listErrors = []errorCase{
	// unknown standard field
	{"a typo among the supported", inType("supported_fields: [name, locaton]"), inType("supported_fields: [name]"), []string{
		"6:32 warning events.types.talk.supported_fields[1]: `locaton` is not a standard field, so it is dropped; did you mean `location`?",
	}},
	{"capitals", inType("supported_fields: [Name]"), inType("supported_fields: []"), []string{
		"6:26 warning events.types.talk.supported_fields[0]: `Name` is not a standard field, so it is dropped; did you mean `name`?",
	}},
	{"a number and nothing", inType("supported_fields: [1, name, ~]"), inType("supported_fields: [name]"), []string{
		"6:26 warning events.types.talk.supported_fields[0]: `1` is not a standard field, so it is dropped; use " + allFields,
		"6:35 warning events.types.talk.supported_fields[2]: an empty value is not a standard field, so it is dropped; use " + allFields,
	}},
	{"nothing like a field", inType("supported_fields: [name, zzz]"), inType("supported_fields: [name]"), []string{
		"6:32 warning events.types.talk.supported_fields[1]: `zzz` is not a standard field, so it is dropped; use " + allFields,
	}},
	{"among the constraints", inType("field_constraints:\n  nme: {max_length: 3}\n  slug: {max_length: 4}"), inType("field_constraints: {slug: {max_length: 4}}"), []string{
		"7:9 warning events.types.talk.field_constraints.nme: `nme` is not a standard field, so it is dropped; did you mean `name`?",
	}},

	// required field not in supported fields
	{"required, not supported", inType("supported_fields: [name]\nrequired_fields: [name, slug]"), inType("supported_fields: [name]\nrequired_fields: [name]"), []string{
		"7:31 warning events.types.talk.required_fields[1]: `slug` is not among the `supported_fields`, so it is not required; add it there or remove it here",
	}},
	{"required before supported", inType("required_fields: [slug]\nsupported_fields: [name]"), inType("supported_fields: [name]"), []string{
		"6:25 warning events.types.talk.required_fields[0]: `slug` is not among the `supported_fields`, so it is not required; add it there or remove it here",
	}},
	{"required, no standard field", inType("required_fields: [nam, name]"), inType("required_fields: [name]"), []string{
		"6:25 warning events.types.talk.required_fields[0]: `nam` is not a standard field, so it is not required; did you mean `name`?",
	}},
	{"required, a custom field", inType("required_fields: [speaker]\ncustom_fields: [{key: speaker, type: text}]"), inType("custom_fields: [{key: speaker, type: text}]"), []string{
		"6:25 warning events.types.talk.required_fields[0]: `speaker` is not a standard field, so it is ignored here; set `required: true` on the custom field",
	}},
	{"required, nothing supported", inType("supported_fields: []\nrequired_fields: [zzz, [name]]"), inType("supported_fields: []"), []string{
		"7:25 warning events.types.talk.required_fields[0]: `zzz` is not a standard field, so it is not required; remove it",
		"7:30 warning events.types.talk.required_fields[1]: a list is not a standard field, so it is not required; remove it",
	}},

	// unknown messaging state
	{"a typo in a state", inType("messaging_states: [registred, event_passed]"), inType("messaging_states: [event_passed]"), []string{
		"6:26 warning events.types.talk.messaging_states[0]: `registred` is not a messaging state, so it is dropped; did you mean `registered`?",
	}},
	{"a state as a number", inType("messaging_states: [7]"), talk, []string{
		"6:26 warning events.types.talk.messaging_states[0]: `7` is not a messaging state, so it is dropped; use " + allStates,
	}},
	{"a state as a mapping", inType("messaging_states:\n  - registered: yes"), talk, []string{
		"7:11 warning events.types.talk.messaging_states[0]: a mapping is not a messaging state, so it is dropped; use " + allStates,
	}},

	// list key given a non-list value
	{"default_tags as text", inEvents("default_tags: events"), talk, []string{
		"4:17 warning events.default_tags: `default_tags` is `events`, so it is ignored; make it a list",
	}},
	{"default_tags left empty", inEvents("default_tags:"), talk, []string{
		"4:3 warning events.default_tags: `default_tags` is an empty value, so it is ignored; make it a list",
	}},
	{"tags as a mapping", inType("tags: {a: b}"), talk, []string{
		"6:13 warning events.types.talk.tags: `tags` is a mapping, so it is ignored; make it a list",
	}},
	{"tags as text with commas", inType("tags: a, b"), talk, []string{
		"6:13 warning events.types.talk.tags: `tags` is `a, b`, so it is ignored; make it a list",
	}},
	{"supported_fields as text", inType("supported_fields: name"), talk, []string{
		"6:25 warning events.types.talk.supported_fields: `supported_fields` is `name`, so it is ignored; make it a list",
	}},
	{"required_fields as a boolean", inType("required_fields: true"), talk, []string{
		"6:24 warning events.types.talk.required_fields: `required_fields` is `true`, so it is ignored; make it a list",
	}},
	{"custom_fields as a mapping", inType("custom_fields: {speaker: {type: text}}"), talk, []string{
		"6:22 warning events.types.talk.custom_fields: `custom_fields` is a mapping, so it is ignored; make it a list",
	}},
	{"a question for a name that is none", inType("ask_name: maybe"), talk, []string{
		"6:17 warning events.types.talk.ask_name: `maybe` is not how to ask for a name, so it is ignored; use `off`, `optional` or `required`",
	}},
	{"messaging_states as a number", inType("messaging_states: 3"), talk, []string{
		"6:25 warning events.types.talk.messaging_states: `messaging_states` is `3`, so it is ignored; make it a list",
	}},
}

// customFieldErrors are problems in the custom fields of an event type.
var customFieldErrors = []errorCase{
	// custom field missing key
	{"no key", inFields("- {type: text}"), inFields(""), []string{
		"7:11 error events.types.talk.custom_fields[0].key: the custom field has no `key`, so it is dropped; add one",
	}},
	{"key left empty", inFields("- {key: , type: text}"), inFields(""), []string{
		"7:12 error events.types.talk.custom_fields[0].key: the `key` of the custom field is an empty value, so it is dropped; write text",
	}},
	{"key is a number", inFields("- {key: 1, type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the `key` of the custom field is no text, so it is dropped; put `1` in quotes",
	}},
	{"key is blank", inFields("- {key: ' ', type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the `key` of the custom field is empty text, so it is dropped; write text",
	}},
	{"field as text", inFields("- speaker"), inFields(""), []string{
		"7:11 error events.types.talk.custom_fields[0].key: the custom field has no `key`, so it is dropped; add one",
		"7:11 error events.types.talk.custom_fields[0].type: the custom field has no `type`, so it is dropped; use " + allTypes,
	}},

	// custom field missing type
	{"no type of field", inFields("- {key: a}"), inFields(""), []string{
		"7:11 error events.types.talk.custom_fields[0].type: the custom field has no `type`, so it is dropped; use " + allTypes,
	}},
	{"type of field left empty", inFields("- key: a\n  type:"), inFields(""), []string{
		"8:11 error events.types.talk.custom_fields[0].type: the `type` of the custom field is empty, so it is dropped; use " + allTypes,
	}},
	{"type of field is blank", inFields("- {key: a, type: ''}"), inFields(""), []string{
		"7:26 error events.types.talk.custom_fields[0].type: the `type` of the custom field is empty, so it is dropped; use " + allTypes,
	}},

	// custom field key collides with a standard key
	{"key of a standard field", inFields("- {key: name, type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the key `name` is that of a standard field, so the custom field is dropped; choose another",
	}},
	{"key of one that is not supported", inType("supported_fields: []\ncustom_fields: [{key: rsvp_labels, type: text}]"), inType("supported_fields: []"), []string{
		"7:29 error events.types.talk.custom_fields[0].key: the key `rsvp_labels` is that of a standard field, so the custom field is dropped; choose another",
	}},
	{"key of a standard field, and no type", inFields("- {key: slug}"), inFields(""), []string{
		"7:11 error events.types.talk.custom_fields[0].type: the custom field has no `type`, so it is dropped; use " + allTypes,
		"7:17 error events.types.talk.custom_fields[0].key: the key `slug` is that of a standard field, so the custom field is dropped; choose another",
	}},
	{"capitals do not collide", inFields("- {key: Name, type: text}"), inFields("- {key: Name, type: text}"), nil},

	// unknown custom field type
	{"a typo in the type", inFields("- {key: a, type: txt}"), inFields(""), []string{
		"7:26 error events.types.talk.custom_fields[0].type: `txt` is not a type of field, so the custom field is dropped; did you mean `text`?",
	}},
	{"type with a capital", inFields("- {key: a, type: Date}"), inFields(""), []string{
		"7:26 error events.types.talk.custom_fields[0].type: `Date` is not a type of field, so the custom field is dropped; did you mean `date`?",
	}},
	{"nothing like a type", inFields("- {key: a, type: checkbox}"), inFields(""), []string{
		"7:26 error events.types.talk.custom_fields[0].type: `checkbox` is not a type of field, so the custom field is dropped; use " + allTypes,
	}},
	{"type as a list", inFields("- {key: a, type: [text]}"), inFields(""), []string{
		"7:26 error events.types.talk.custom_fields[0].type: a list is not a type of field, so the custom field is dropped; use " + allTypes,
	}},

	// select without options
	{"no options", inFields("- {key: a, type: select}"), inFields(""), []string{
		"7:11 error events.types.talk.custom_fields[0].options: the select has no `options`, so it is dropped; list what can be selected",
	}},
	{"no option in options", inFields("- {key: a, type: select, options: []}"), inFields(""), []string{
		"7:43 error events.types.talk.custom_fields[0].options: the `options` of the select are empty, so it is dropped; list as text what can be selected",
	}},
	{"options as text", inFields("- {key: a, type: select, options: a b}"), inFields(""), []string{
		"7:43 error events.types.talk.custom_fields[0].options: the `options` of the select are `a b`, so it is dropped; make them a list",
	}},
	{"options that are numbers", inFields("- {key: a, type: select, options: [1, 2]}"), inFields(""), []string{
		"7:43 error events.types.talk.custom_fields[0].options: the `options` of the select are no text, so it is dropped; list as text what can be selected",
	}},
	{"options with one text", inFields("- {key: a, type: select, options: [1, b]}"), inFields("- {key: a, type: select, options: [b]}"), nil},

	// duplicate custom field key
	{"key of an earlier field", inFields("- {key: a, type: text}\n- {key: a, type: url}"), inFields("- {key: a, type: text}"), []string{
		"8:17 error events.types.talk.custom_fields[1].key: the key `a` is that of an earlier custom field, so this one is dropped; choose another",
	}},
	{"key of an earlier field that is dropped", inFields("- {key: a}\n- {key: a, type: url}"), inFields("- {key: a, type: url}"), []string{
		"7:11 error events.types.talk.custom_fields[0].type: the custom field has no `type`, so it is dropped; use " + allTypes,
	}},
	{"key three times", inFields("- {key: a, type: text}\n- {key: a, type: url}\n- {key: a, type: date}"), inFields("- {key: a, type: text}"), []string{
		"8:17 error events.types.talk.custom_fields[1].key: the key `a` is that of an earlier custom field, so this one is dropped; choose another",
		"9:17 error events.types.talk.custom_fields[2].key: the key `a` is that of an earlier custom field, so this one is dropped; choose another",
	}},
	{"key of a field of another type", inTypes("a: {post_template: x, custom_fields: [{key: k, type: url}]}\nb: {post_template: x, custom_fields: [{key: k, type: url}]}"), inTypes("a: {post_template: x, custom_fields: [{key: k, type: url}]}\nb: {post_template: x, custom_fields: [{key: k, type: url}]}"), nil},

	// custom field key with spaces
	{"key with a space", inFields("- {key: guest speaker, type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the key `guest speaker` contains a space, so the custom field is dropped; use `guest_speaker`",
	}},
	{"key with a space in front", inFields("- {key: ' a', type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the key ` a` contains a space, so the custom field is dropped; use `a`",
	}},
	{"key with a tab", inFields("- {key: \"a\\tb\", type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the key \"a\\tb\" contains a space, so the custom field is dropped; use `a_b`",
	}},
	{"key with a no-break space", inFields("- {key: \"a\\_b\", type: text}"), inFields(""), []string{
		"7:17 error events.types.talk.custom_fields[0].key: the key `a\u00a0b` contains a space, so the custom field is dropped; use `a_b`",
	}},
}
