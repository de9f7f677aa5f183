package manifest

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// events reads the events. It returns nil if no type is left: the
// default tags are nothing without one.
func (p *parser) events(f field) *Events {
	at := (*path)(nil).child(f.name)
	m := mappingOf(f.value)
	events := &Events{DefaultTags: p.texts(m, at, "default_tags")}

	types := m.get("types")
	entries := typeEntries(types.value)
	switch {
	case types.value == nil && f.value.Kind != yaml.MappingNode:
		p.report(Warning, at.child("types"), f.place(),
			"`events` is %s, so there are no event types; give it `types` with at least one event type", show(f.value))
	case types.value == nil:
		p.report(Warning, at.child("types"), f.key, "`events` has no `types`, so there are no event types; add at least one")
	case types.value.Kind != yaml.MappingNode:
		p.report(Warning, at.child("types"), types.place(),
			"`types` is %s, so there are no event types; make it a mapping of event types, at least one", show(types.value))
	case len(entries) == 0:
		p.report(Warning, at.child("types"), types.place(), "`types` is empty, so there are no event types; add at least one")
	}
	for _, entry := range entries {
		if t, ok := p.eventType(at.child("types").child(entry.name), entry); ok {
			events.Types = append(events.Types, t)
		}
	}
	if len(events.Types) == 0 {
		return nil
	}
	return events
}

// typeEntries leaves out a type whose key is blank: nothing could name it.
func typeEntries(types *yaml.Node) mapping {
	var entries mapping
	if types == nil {
		return entries
	}
	for _, entry := range mappingOf(types) {
		if !isBlank(entry.name) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// eventType reads an event type. It reports false if the
// type is dropped.
func (p *parser) eventType(at *path, f field) (EventType, bool) {
	m := mappingOf(f.value)
	t := EventType{Key: f.name, Label: m.text("label"), Tags: p.texts(m, at, "tags")}
	if t.Label == "" {
		t.Label = labelOf(f.name)
	}
	t.PostTemplate = p.required(m, at, f.key, "post_template", "the event type "+Quote(f.name))
	var there bool
	if t.SupportedFields, there = p.names(m, at, "supported_fields", standardFields, "a standard field"); !there {
		t.SupportedFields = StandardFields()
	}
	t.FieldConstraints = p.fieldConstraints(m, at)
	var keys map[string]bool
	t.CustomFields, keys = p.customFields(m, at)
	t.RequiredFields = p.requiredFields(m, at, t.SupportedFields, keys)
	t.MessagingStates, _ = p.names(m, at, "messaging_states", messagingStates, "a messaging state")
	t.AskName = p.nameQuestion(m, at)
	if t.PostTemplate == "" {
		return t, false
	}
	t.Default = m.isTrue("default") && p.claimDefault(m.get("default"), at)
	return t, true
}

func (p *parser) nameQuestion(m mapping, at *path) NameQuestion {
	f := m.get("ask_name")
	switch question := NameQuestion(m.text("ask_name")); {
	case question == NameIsOptional, question == NameIsRequired:
		return question
	case f.value != nil && question != "off":
		p.report(Warning, at.child("ask_name"), f.value, "%s is not how to ask for a name, so it is ignored; use `off`, `optional` or `required`", show(f.value))
	}
	return ""
}

// claimDefault reports whether a type that claims to be the default is the first
// that does, of those that are not dropped.
func (p *parser) claimDefault(f field, at *path) bool {
	if p.defaultType != "" {
		p.report(Warning, at.child("default"), f.place(), "%s is the default event type already; set `default` on one type only", Quote(p.defaultType))
		return false
	}
	p.defaultType = at.key
	return true
}

// requiredFields keeps those standard fields that the type supports.
func (p *parser) requiredFields(m mapping, at *path, supported []string, customKeys map[string]bool) []string {
	const name = "required_fields"
	entries, _ := p.list(m, at, name)
	required := []string{}
	for i, entry := range entries {
		text := textOf(entry)
		switch {
		case slices.Contains(supported, text):
			if !slices.Contains(required, text) {
				required = append(required, text)
			}
		case slices.Contains(standardFields, text):
			p.report(Warning, at.child(name).entry(i), entry,
				"%s is not among the `supported_fields`, so it is not required; add it there or remove it here", show(entry))
		case customKeys[text]:
			p.report(Warning, at.child(name).entry(i), entry,
				"%s is not a standard field, so it is ignored here; set `required: true` on the custom field", show(entry))
		default:
			p.report(Warning, at.child(name).entry(i), entry,
				"%s is not a standard field, so it is not required; %s", show(entry), instead{name: text, known: supported})
		}
	}
	return required
}

// fieldConstraints reads the hints for standard fields: of each standard field
// the constraints of its kind. A field without any is left out.
func (p *parser) fieldConstraints(m mapping, at *path) FieldConstraints {
	list := FieldConstraints{}
	f := m.get("field_constraints")
	if f.value == nil {
		return list
	}
	for _, entry := range mappingOf(f.value) {
		hints, known := hintKeys[entry.name]
		if !known {
			p.report(Warning, at.child(f.name).child(entry.name), entry.key,
				"%s is not a standard field, so it is dropped; %s", Quote(entry.name), instead{name: entry.name, known: standardFields})
			continue
		}
		c := mappingOf(entry.value).constraints(hints)
		if c != (Constraints{}) {
			list = append(list, FieldConstraint{entry.name, c})
		}
	}
	return list
}
