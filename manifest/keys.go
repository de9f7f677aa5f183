package manifest

import "slices"

// keySet says which keys a mapping of the file has (docs/manifest.md). A test compares it
// with docs/manifest.schema.json.
type keySet struct {
	of   string   // what has the keys, with its article
	keys []string // in the order of the docs

	// texts and textLists are keys of which Parse leaves out without a finding what is not text.
	texts, textLists []string

	// parts are the values of keys that are mappings with keys themselves.
	parts map[string]part

	// own has the values of all keys, if these are the theme's own. Then there are no keys.
	own *keySet

	// isParsed reports whether [Parse] has a finding for each unknown key already.
	isParsed bool
}

// part is the value of a key: a mapping with keys, or a list of such.
type part struct {
	set    *keySet
	isList bool
}

var topKeys = &keySet{
	of: "a manifest", keys: []string{"manifest_version", "events", "homepage_curation"},
	parts: map[string]part{"events": {set: eventsKeys}, "homepage_curation": {set: curationKeys}},
}

// anchorPrefix starts the keys at the top that are the theme's own, for anchors.
const anchorPrefix = "x-"

var (
	eventsKeys = &keySet{
		of: "`events`", keys: []string{"default_tags", "types"}, textLists: []string{"default_tags"},
		parts: map[string]part{"types": {set: &keySet{own: typeKeys}}},
	}
	typeKeys = &keySet{
		of: "an event type",
		keys: []string{
			"post_template", "label", "tags", "supported_fields", "required_fields", "field_constraints", "custom_fields",
			"messaging_states", "ask_name", "default",
		},
		texts: []string{"label"}, textLists: []string{"tags"},
		parts: map[string]part{"field_constraints": {set: constraintSets()}, "custom_fields": {anyFieldKeys, true}},
	}

	// anyFieldKeys are those of a custom field whose type is not known.
	anyFieldKeys = &keySet{of: "a custom field", keys: slices.Concat(commonFieldKeys, allProperties()), texts: []string{"label", "help_text"}}

	curationKeys = &keySet{
		of: "`homepage_curation`", keys: []string{"sections"}, parts: map[string]part{"sections": {sectionKeys, true}},
	}
	sectionKeys = &keySet{
		of: "a section", keys: []string{"key", "name", "description", "picker", "slots"}, texts: []string{"description"},
		parts: map[string]part{"slots": {slotKeys, true}},
	}
	slotKeys = &keySet{of: "a slot", keys: []string{"key", "label", "tag"}}
)

// constraintSets are the keys of field_constraints, whose unknown ones are findings of
// Parse, with those of each field.
func constraintSets() *keySet {
	set := &keySet{of: "`field_constraints`", keys: standardFields, isParsed: true, parts: make(map[string]part)}
	for _, name := range standardFields {
		set.parts[name] = part{set: &keySet{of: "the hints for " + Quote(name), keys: hintKeys[name]}}
	}
	return set
}

// commonFieldKeys are those that a custom field of any type has.
var commonFieldKeys = []string{"key", "type", "label", "required", "help_text"}

// fieldKeySets are the keys of custom fields, by type.
var fieldKeySets = func() map[string]*keySet {
	sets := make(map[string]*keySet)
	for _, name := range customFieldTypes {
		sets[name] = &keySet{of: "a custom field of the type " + Quote(name), keys: slices.Concat(commonFieldKeys, propertiesOf(name))}
	}
	return sets
}()

func propertiesOf(fieldType string) []string {
	if fieldType == "select" {
		return []string{"options"}
	}
	return typeProperties[fieldType]
}

func allProperties() []string {
	var all []string
	for _, name := range customFieldTypes {
		for _, key := range propertiesOf(name) {
			if !slices.Contains(all, key) {
				all = append(all, key)
			}
		}
	}
	return all
}
