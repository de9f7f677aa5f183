package manifest

import (
	"slices"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// customFields reads custom fields (docs/manifest.md, "Custom fields"). It also returns the
// keys of all the fields, dropped or not.
func (p *parser) customFields(m mapping, in *path) (fields []CustomField, keys map[string]bool) {
	entries, _ := p.list(m, in, "custom_fields")
	fields = make([]CustomField, 0, len(entries))
	seen := make(map[string]bool, len(entries))
	keys = make(map[string]bool, len(entries))
	for i, entry := range entries {
		at := in.child("custom_fields").entry(i)
		m := mappingOf(entry)
		c := CustomField{Required: m.isTrue("required"), Label: m.text("label"), HelpText: m.text("help_text")}
		fine := p.customKey(&c, m, at, entry, seen)
		if p.customType(&c, m, at, entry) && fine {
			fields = append(fields, c)
			seen[c.Key] = true
		}
		if c.Key != "" {
			keys[c.Key] = true
		}
	}
	return fields, keys
}

// customKey reads the key and the label, and reports whether the key is fine. Those
// that were seen are taken.
func (p *parser) customKey(c *CustomField, m mapping, in *path, entry *yaml.Node, seen map[string]bool) bool {
	c.Key = p.required(m, in, entry, "key", "the custom field")
	if c.Key == "" {
		return false
	}
	if c.Label == "" {
		c.Label = labelOf(c.Key)
	}
	at, place := in.child("key"), m.get("key").place()
	standard := slices.Contains(standardFields, c.Key)
	switch {
	case strings.ContainsFunc(c.Key, unicode.IsSpace):
		p.report(Error, at, place, "the key %s contains a space, so the custom field is dropped; use %s",
			Quote(c.Key), Quote(strings.Join(strings.Fields(c.Key), "_")))
	case standard:
		p.report(Error, at, place, "the key %s is that of a standard field, so the custom field is dropped; choose another",
			Quote(c.Key))
	case seen[c.Key]:
		p.report(Error, at, place, "the key %s is that of an earlier custom field, so this one is dropped; choose another",
			Quote(c.Key))
	default:
		return true
	}
	return false
}

// customType reads the type and what belongs to it, and reports whether that is
// fine.
func (p *parser) customType(c *CustomField, m mapping, in *path, entry *yaml.Node) bool {
	at, f := in.child("type"), m.get("type")
	c.Type = textOf(f.value)
	switch {
	case f.value == nil:
		p.report(Error, at, entry, "the custom field has no `type`, so it is dropped; use %s", oneOf(customFieldTypes))
		return false
	case isNull(f.value), f.value.Kind == yaml.ScalarNode && isBlank(f.value.Value):
		p.report(Error, at, f.place(), "the `type` of the custom field is empty, so it is dropped; use %s", oneOf(customFieldTypes))
		return false
	case !slices.Contains(customFieldTypes, c.Type):
		p.report(Error, at, f.place(), "%s is not a type of field, so the custom field is dropped; %s",
			show(f.value), instead{name: c.Type, known: customFieldTypes})
		return false
	}
	c.Constraints = m.constraints(typeProperties[c.Type])
	return c.Type != "select" || p.options(c, m, in, entry)
}

// options reads the options of a select: the texts of a list. Without any, the
// field is dropped.
func (p *parser) options(c *CustomField, m mapping, in *path, entry *yaml.Node) bool {
	at, f := in.child("options"), m.get("options")
	switch {
	case f.value == nil:
		p.report(Error, at, entry, "the select has no `options`, so it is dropped; list what can be selected")
		return false
	case f.value.Kind != yaml.SequenceNode:
		p.report(Error, at, f.place(), "the `options` of the select are %s, so it is dropped; make them a list", show(f.value))
		return false
	}
	if c.Options = distinct(f.value.Content); len(c.Options) > 0 {
		return true
	}
	why := "are empty"
	if len(f.value.Content) > 0 {
		why = "are no text"
	}
	p.report(Error, at, f.place(), "the `options` of the select %s, so it is dropped; list as text what can be selected", why)
	return false
}
