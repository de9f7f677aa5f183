package manifest

import (
	"slices"
	"testing"
)

// Each problem in homepage_curation (docs/manifest.md, "Findings").
func TestCurationErrors(t *testing.T) {
	for _, c := range curationErrors {
		t.Run(c.name, c.check)
	}
}

var curationErrors = slices.Concat(sectionErrors, slotErrors, pickerErrors)

// sectionErrors are problems in the list of sections, and in the key, the name and the list of slots of one.
var sectionErrors = []errorCase{
	// missing or invalid sections array
	{"no sections", inCuration("foo: bar"), clean, []string{
		"2:1 warning homepage_curation.sections: `homepage_curation` has no `sections`, so it is dropped; add a list with at least one entry",
	}},
	{"no section in sections", inCuration("sections: []"), clean, []string{
		"3:13 warning homepage_curation.sections: the `sections` of `homepage_curation` are empty, so it is dropped; add at least one",
	}},
	{"sections as a mapping", inCuration("sections: {top: {name: Top}}"), clean, []string{
		"3:13 warning homepage_curation.sections: the `sections` of `homepage_curation` are a mapping, so it is dropped; make them a list with at least one entry",
	}},
	{"sections left empty", inCuration("sections:"), clean, []string{
		"3:3 warning homepage_curation.sections: the `sections` of `homepage_curation` are an empty value, so it is dropped; make them a list with at least one entry",
	}},
	{"curation left empty", file("homepage_curation:"), clean, []string{
		"2:1 warning homepage_curation.sections: `homepage_curation` is an empty value, so it is dropped; give it `sections`, a list with at least one entry",
	}},
	{"curation as a list", file("homepage_curation: []"), clean, []string{
		"2:20 warning homepage_curation.sections: `homepage_curation` is a list, so it is dropped; give it `sections`, a list with at least one entry",
	}},

	// missing or duplicate section key
	{"no section key", inSections("- {name: A, slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:7 error homepage_curation.sections[0].key: the section has no `key`, so it is dropped; add one",
	}},
	{"section key is a number", inSections("- {key: 1, name: A, slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:13 error homepage_curation.sections[0].key: the `key` of the section is no text, so it is dropped; put `1` in quotes",
	}},
	{"section key is blank", inSections("- {key: '', name: A, slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:13 error homepage_curation.sections[0].key: the `key` of the section is empty text, so it is dropped; write text",
	}},
	{"section key twice", inSections("- {key: a, name: A, slots: [{key: a, label: A, tag: a}]}\n- {key: a, name: B, slots: [{key: a, label: A, tag: b}]}"), inSections("- {key: a, name: A, slots: [{key: a, label: A, tag: a}]}"), []string{
		"5:13 error homepage_curation.sections[1].key: the `key` `a` is used before, so the section is dropped; choose another",
	}},
	{"section key of one that is dropped", inSections("- {key: a, slots: [{key: a, label: A, tag: a}]}\n- {key: a, name: B, slots: [{key: a, label: A, tag: b}]}"), inSections("- {key: a, name: B, slots: [{key: a, label: A, tag: b}]}"), []string{
		"4:7 error homepage_curation.sections[0].name: the section has no `name`, so it is dropped; add one",
	}},
	{"slot tag in a section that is dropped", inSections("- {key: a, slots: [{key: a, label: A, tag: a}]}\n- {key: b, name: B, slots: [{key: a, label: A, tag: a}]}"), inSections("- {key: b, name: B, slots: [{key: a, label: A, tag: a}]}"), []string{
		"4:7 error homepage_curation.sections[0].name: the section has no `name`, so it is dropped; add one",
	}},
	{"slot tag twice in a section that is dropped", inSections("- {key: a, slots: [{key: a, label: A, tag: a}, {key: b, label: B, tag: a}]}"), inSections(""), []string{
		"4:7 error homepage_curation.sections[0].name: the section has no `name`, so it is dropped; add one",
		"4:76 error homepage_curation.sections[0].slots[1].tag: the `tag` `a` is used before, so the slot is dropped; choose another",
	}},

	// missing section name
	{"no section name", inSections("- {key: a, slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:7 error homepage_curation.sections[0].name: the section has no `name`, so it is dropped; add one",
	}},
	{"section name left empty", inSections("- {key: a, name: , slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:16 error homepage_curation.sections[0].name: the `name` of the section is an empty value, so it is dropped; write text",
	}},
	{"section name is a boolean", inSections("- {key: a, name: true, slots: [{key: a, label: A, tag: a}]}"), inSections(""), []string{
		"4:22 error homepage_curation.sections[0].name: the `name` of the section is no text, so it is dropped; put `true` in quotes",
	}},
	{"section as text, the only one", inCuration("sections: [top]"), clean, []string{
		"3:14 error homepage_curation.sections[0].key: the section has no `key`, so it is dropped; add one",
		"3:14 error homepage_curation.sections[0].name: the section has no `name`, so it is dropped; add one",
		"3:14 error homepage_curation.sections[0].slots: the section is `top`, so it is dropped; give it `slots`, a list with at least one entry",
	}},

	// section with no valid slots
	{"no slots", inSections("- {key: a, name: A}"), inSections(""), []string{
		"4:7 error homepage_curation.sections[0].slots: the section has no `slots`, so it is dropped; add a list with at least one entry",
	}},
	{"no slot in slots", inSections("- {key: a, name: A, slots: []}"), inSections(""), []string{
		"4:32 error homepage_curation.sections[0].slots: the `slots` of the section are empty, so it is dropped; add at least one",
	}},
	{"slots as text", inSections("- {key: a, name: A, slots: a}"), inSections(""), []string{
		"4:32 error homepage_curation.sections[0].slots: the `slots` of the section are `a`, so it is dropped; make them a list with at least one entry",
	}},
	{"no slot that is right", inSections("- {key: a, name: A, slots: [{key: a, label: A}]}"), inSections(""), []string{
		"4:25 error homepage_curation.sections[0].slots: the section has no valid slot, so it is dropped; fix at least one",
		"4:33 error homepage_curation.sections[0].slots[0].tag: the slot has no `tag`, so it is dropped; add one",
	}},
}

// slotErrors are problems in a slot.
var slotErrors = []errorCase{
	// missing or duplicate slot key
	{"no slot key", inSlots("- {label: A, tag: a}"), inSlots(""), []string{
		"7:11 error homepage_curation.sections[0].slots[0].key: the slot has no `key`, so it is dropped; add one",
	}},
	{"slot key left empty", inSlots("- {key: , label: A, tag: a}"), inSlots(""), []string{
		"7:12 error homepage_curation.sections[0].slots[0].key: the `key` of the slot is an empty value, so it is dropped; write text",
	}},
	{"slot key twice", inSlots("- {key: a, label: A, tag: a}\n- {key: a, label: B, tag: b}"), inSlots("- {key: a, label: A, tag: a}"), []string{
		"8:17 error homepage_curation.sections[0].slots[1].key: the `key` `a` is used before, so the slot is dropped; choose another",
	}},
	{"slot key of a slot that is dropped", inSlots("- {key: a, label: A}\n- {key: a, label: B, tag: b}\n- {key: c, label: C, tag: c}"), inSlots("- {key: a, label: B, tag: b}\n- {key: c, label: C, tag: c}"), []string{
		"7:11 error homepage_curation.sections[0].slots[0].tag: the slot has no `tag`, so it is dropped; add one",
	}},
	{"slot key and tag of a slot that is dropped", inSlots("- {key: z, tag: t}\n- {key: z, label: Z, tag: t}"), inSlots("- {key: z, label: Z, tag: t}"), []string{
		"7:11 error homepage_curation.sections[0].slots[0].label: the slot has no `label`, so it is dropped; add one",
	}},
	{"slot key three times", inSlots("- {key: a, label: A, tag: a}\n- {key: a, label: B, tag: b}\n- {key: 'a', label: C, tag: c}"), inSlots("- {key: a, label: A, tag: a}"), []string{
		"8:17 error homepage_curation.sections[0].slots[1].key: the `key` `a` is used before, so the slot is dropped; choose another",
		"9:17 error homepage_curation.sections[0].slots[2].key: the `key` `a` is used before, so the slot is dropped; choose another",
	}},
	{"slot key of another section", inSections("- {key: a, name: A, slots: [{key: end, label: A, tag: a}]}"), inSections("- {key: a, name: A, slots: [{key: end, label: A, tag: a}]}"), nil},
	{"slot as text", inSlots("- a"), inSlots(""), []string{
		"7:11 error homepage_curation.sections[0].slots[0].key: the slot has no `key`, so it is dropped; add one",
		"7:11 error homepage_curation.sections[0].slots[0].label: the slot has no `label`, so it is dropped; add one",
		"7:11 error homepage_curation.sections[0].slots[0].tag: the slot has no `tag`, so it is dropped; add one",
	}},

	// missing slot label
	{"no slot label", inSlots("- {key: a, tag: a}"), inSlots(""), []string{
		"7:11 error homepage_curation.sections[0].slots[0].label: the slot has no `label`, so it is dropped; add one",
	}},
	{"slot label is a date", inSlots("- {key: a, label: 2026-01-31, tag: a}"), inSlots(""), []string{
		"7:27 error homepage_curation.sections[0].slots[0].label: the `label` of the slot is no text, so it is dropped; put `2026-01-31` in quotes",
	}},
	{"slot label is a list", inSlots("- {key: a, label: [A], tag: a}"), inSlots(""), []string{
		"7:27 error homepage_curation.sections[0].slots[0].label: the `label` of the slot is a list, so it is dropped; write text",
	}},

	// missing or duplicate slot tag
	{"no slot tag", inSlots("- {key: a, label: A}"), inSlots(""), []string{
		"7:11 error homepage_curation.sections[0].slots[0].tag: the slot has no `tag`, so it is dropped; add one",
	}},
	{"slot tag that YAML takes for a comment", inSlots("- key: a\n  label: A\n  tag: #a"), inSlots(""), []string{
		"9:11 error homepage_curation.sections[0].slots[0].tag: the `tag` of the slot is an empty value, so it is dropped; write a tag, in quotes if it starts with #",
	}},
	{"slot tag twice", inSlots("- {key: a, label: A, tag: hash-a}\n- {key: b, label: B, tag: hash-a}"), inSlots("- {key: a, label: A, tag: hash-a}"), []string{
		"8:35 error homepage_curation.sections[0].slots[1].tag: the `tag` `hash-a` is used before, so the slot is dropped; choose another",
	}},
	{"slot tag in its other form", inSlots("- {key: a, label: A, tag: '#a'}\n- {key: b, label: B, tag: hash-a}"), inSlots("- {key: a, label: A, tag: '#a'}"), []string{
		"8:35 error homepage_curation.sections[0].slots[1].tag: the `tag` `hash-a` is used before, so the slot is dropped; choose another",
	}},
	{"slot tag of another section", inSections("- {key: a, name: A, slots: [{key: a, label: A, tag: a}, {key: b, label: B, tag: b}]}\n- {key: b, name: B, slots: [{key: b, label: B, tag: b}, {key: c, label: C, tag: c}]}"), inSections("- {key: a, name: A, slots: [{key: a, label: A, tag: a}, {key: b, label: B, tag: b}]}\n- {key: b, name: B, slots: [{key: c, label: C, tag: c}]}"), []string{
		"5:57 error homepage_curation.sections[1].slots[0].tag: the `tag` `b` is used before, so the slot is dropped; choose another",
	}},
	{"a tag without the prefix is another", inSlots("- {key: a, label: A, tag: '#a'}\n- {key: b, label: B, tag: a}"), inSlots("- {key: a, label: A, tag: '#a'}\n- {key: b, label: B, tag: a}"), nil},
}

// pickerErrors are problems in the picker of a section.
var pickerErrors = []errorCase{
	// invalid picker default_view or recent_limit
	{"a typo in the view", inPicker("default_view: recnt"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.default_view: `recnt` is not a view; use `recent` or `search`",
	}},
	{"a view with a capital", inPicker("default_view: Search"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.default_view: `Search` is not a view; use `recent` or `search`",
	}},
	{"the view left empty", inPicker("default_view:"), inSection(""), []string{
		"7:9 warning homepage_curation.sections[0].picker.default_view: an empty value is not a view; use `recent` or `search`",
	}},
	{"a limit of 0", inPicker("recent_limit: 0"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.recent_limit: `0` is not a number of posts; use a whole number from 1 to 50, without quotes",
	}},
	{"a negative limit", inPicker("recent_limit: -5"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.recent_limit: `-5` is not a number of posts; use a whole number from 1 to 50, without quotes",
	}},
	{"a limit of 7.5", inPicker("recent_limit: 7.5"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.recent_limit: `7.5` is not a number of posts; use a whole number from 1 to 50, without quotes",
	}},
	{"a limit in quotes", inPicker("recent_limit: '10'"), inSection(""), []string{
		"7:23 warning homepage_curation.sections[0].picker.recent_limit: \"10\" is not a number of posts; use a whole number from 1 to 50, without quotes",
	}},
	{"a wrong limit beside a right view", inPicker("recent_limit: many\ndefault_view: search"), inPicker("default_view: search"), []string{
		"7:23 warning homepage_curation.sections[0].picker.recent_limit: `many` is not a number of posts; use a whole number from 1 to 50, without quotes",
	}},

	// invalid picker recent_filter.tag
	{"a filter without a tag", inPicker("recent_filter: {}"), inSection(""), []string{
		"7:9 warning homepage_curation.sections[0].picker.recent_filter.tag: the filter has no `tag`, so it is dropped; name one",
	}},
	{"the tag left empty", inPicker("recent_filter: {tag: }"), inSection(""), []string{
		"7:25 warning homepage_curation.sections[0].picker.recent_filter.tag: the `tag` of the filter is an empty value, so the filter is dropped; name one",
	}},
	{"the tag is a number", inPicker("recent_filter: {tag: 5}"), inSection(""), []string{
		"7:30 warning homepage_curation.sections[0].picker.recent_filter.tag: the `tag` of the filter is no text, so the filter is dropped; put `5` in quotes",
	}},
	{"the tag is blank", inPicker("recent_filter: {tag: ' '}"), inSection(""), []string{
		"7:30 warning homepage_curation.sections[0].picker.recent_filter.tag: the `tag` of the filter is empty text, so the filter is dropped; name one",
	}},
	{"the filter as text", inPicker("recent_filter: news"), inSection(""), []string{
		"7:24 warning homepage_curation.sections[0].picker.recent_filter.tag: the filter is `news`, so it is dropped; write `tag:` and the name of a tag in it",
	}},

	// unknown picker key
	{"a typo in a key", inPicker("recent_limt: 5\nrecent_limit: 6"), inPicker("recent_limit: 6"), []string{
		"7:9 warning homepage_curation.sections[0].picker.recent_limt: `recent_limt` is not a key of a picker, so it is dropped; did you mean `recent_limit`?",
	}},
	{"nothing like a key", inPicker("colour: red"), inSection(""), []string{
		"7:9 warning homepage_curation.sections[0].picker.colour: `colour` is not a key of a picker, so it is dropped; use `default_view`, `recent_limit` or `recent_filter`",
	}},
	{"a key that is a number", inPicker("5: red"), inSection(""), []string{
		"7:9 warning homepage_curation.sections[0].picker.5: `5` is not a key of a picker, so it is dropped; use `default_view`, `recent_limit` or `recent_filter`",
	}},
	{"a typo in the filter", inPicker("recent_filter: {tag: a, tga: b}"), inPicker("recent_filter: {tag: a}"), []string{
		"7:33 warning homepage_curation.sections[0].picker.recent_filter.tga: `tga` is not a key of a picker's filter, so it is dropped; use `tag`",
	}},
}
