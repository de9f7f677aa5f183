package manifest

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// curation reads homepage_curation. It returns nil if no section is
// left.
func (p *parser) curation(f field) *Curation {
	at := (*path)(nil).child(f.name)
	entries := p.entries(f, mappingOf(f.value).get("sections"), at, Warning, "`homepage_curation`", "it is dropped")
	curation := new(Curation)
	c := claims{keys: make(map[string]bool), tags: make(map[string]bool)}
	for i, entry := range entries {
		if s, ok := p.section(at.child("sections").entry(i), entry, c); ok {
			curation.Sections = append(curation.Sections, s)
			c.keys[s.Key] = true
			for _, slot := range s.Slots {
				c.tags[TagIdentity(slot.Tag)] = true
			}
		}
	}
	if len(curation.Sections) == 0 {
		return nil
	}
	return curation
}

// claims are the keys and tags that are taken, by sections or slots that are not
// dropped.
type claims struct{ keys, tags map[string]bool }

// A list without an entry is a finding.
func (p *parser) entries(of, list field, in *path, s Severity, what, effect string) []*yaml.Node {
	at := in.child(list.name)
	switch {
	case list.value == nil && of.value.Kind != yaml.MappingNode:
		p.report(s, at, of.place(), "%s is %s, so %s; give it `%s`, a list with at least one entry", what, show(of.value), effect, list.name)
	case list.value == nil:
		p.report(s, at, of.key, "%s has no `%s`, so %s; add a list with at least one entry", what, list.name, effect)
	case list.value.Kind != yaml.SequenceNode:
		p.report(s, at, list.place(), "the `%s` of %s are %s, so %s; make them a list with at least one entry",
			list.name, what, show(list.value), effect)
	case len(list.value.Content) == 0:
		p.report(s, at, list.place(), "the `%s` of %s are empty, so %s; add at least one", list.name, what, effect)
	default:
		return list.value.Content
	}
	return nil
}

// A field that is missing, or taken already, is a finding.
func (p *parser) unique(m mapping, in *path, entry *yaml.Node, name, what string, taken func(string) bool) string {
	text := p.required(m, in, entry, name, what)
	if text == "" || !taken(text) {
		return text
	}
	p.report(Error, in.child(name), m.get(name).place(), "the `%s` %s is used before, so %s is dropped; choose another",
		name, Quote(text), what)
	return ""
}

// section reads one section. It reports false if the section is dropped. The keys
// and tags of others are taken.
func (p *parser) section(at *path, entry *yaml.Node, others claims) (Section, bool) {
	m := mappingOf(entry)
	s := Section{
		Key:         p.unique(m, at, entry, "key", "the section", func(key string) bool { return others.keys[key] }),
		Name:        p.required(m, at, entry, "name", "the section"),
		Description: m.text("description"),
		Picker:      p.picker(at, m),
	}
	self := field{key: entry, value: resolve(entry)}
	entries := p.entries(self, m.get("slots"), at, Error, "the section", "it is dropped")
	own := claims{keys: make(map[string]bool), tags: make(map[string]bool)}
	for i, entry := range entries {
		if slot, ok := p.slot(at.child("slots").entry(i), entry, own, others.tags); ok {
			s.Slots = append(s.Slots, slot)
			own.keys[slot.Key], own.tags[TagIdentity(slot.Tag)] = true, true
		}
	}
	if len(entries) > 0 && len(s.Slots) == 0 {
		p.report(Error, at.child("slots"), m.get("slots").key, "the section has no valid slot, so it is dropped; fix at least one")
	}
	return s, s.Key != "" && s.Name != "" && len(s.Slots) > 0
}

// slot reads one slot. It reports false if the slot is dropped. The keys and tags
// in its section are taken, and the tags in others.
func (p *parser) slot(at *path, entry *yaml.Node, section claims, others map[string]bool) (Slot, bool) {
	m := mappingOf(entry)
	s := Slot{
		Key:   p.unique(m, at, entry, "key", "the slot", func(key string) bool { return section.keys[key] }),
		Label: p.required(m, at, entry, "label", "the slot"),
		Tag: p.unique(m, at, entry, "tag", "the slot", func(tag string) bool {
			id := TagIdentity(tag)
			return section.tags[id] || others[id]
		}),
	}
	return s, s.Key != "" && s.Label != "" && s.Tag != ""
}

var (
	pickerKeys = []string{"default_view", "recent_limit", "recent_filter"}
	filterKeys = []string{"tag"}
)

// picker reads the picker of a section. What is wrong in it gets its default.
func (p *parser) picker(in *path, section mapping) Picker {
	picker := Picker{DefaultView: RecentView, RecentLimit: DefaultRecentLimit}
	f := section.get("picker")
	if f.value == nil {
		return picker
	}
	at := in.child(f.name)
	for _, f := range mappingOf(f.value) {
		switch f.name {
		case "default_view":
			if view := textOf(f.value); slices.Contains(views, view) {
				picker.DefaultView = view
			} else {
				p.report(Warning, at.child(f.name), f.place(), "%s is not a view; use %s", show(f.value), oneOf(views))
			}
		case "recent_limit":
			if limit := positive(f.value); limit > 0 {
				picker.RecentLimit = min(limit, MaxRecentLimit)
			} else {
				p.report(Warning, at.child(f.name), f.place(), "%s is not a number of posts; use a whole number from 1 to %d, without quotes",
					show(f.value), MaxRecentLimit)
			}
		case "recent_filter":
			picker.RecentFilter = p.recentFilter(at.child(f.name), f)
		default:
			p.report(Warning, at.child(f.name), f.key, "%s is not a key of a picker, so it is dropped; %s",
				Quote(f.name), instead{name: f.name, known: pickerKeys})
		}
	}
	return picker
}

// recentFilter reads the tag that limits a picker. Without a tag there is no
// filter.
func (p *parser) recentFilter(at *path, f field) *RecentFilter {
	m := mappingOf(f.value)
	for _, other := range m {
		if !slices.Contains(filterKeys, other.name) {
			p.report(Warning, at.child(other.name), other.key, "%s is not a key of a picker's filter, so it is dropped; %s",
				Quote(other.name), instead{name: other.name, known: filterKeys})
		}
	}
	tag := m.get("tag")
	if text := textOf(tag.value); text != "" {
		return &RecentFilter{text}
	}
	switch at := at.child("tag"); {
	case tag.value == nil && f.value.Kind != yaml.MappingNode:
		p.report(Warning, at, f.place(), "the filter is %s, so it is dropped; write `tag:` and the name of a tag in it", show(f.value))
	case tag.value == nil:
		p.report(Warning, at, f.key, "the filter has no `tag`, so it is dropped; name one")
	case isNumberOrDate(tag.value):
		p.report(Warning, at, tag.place(), "the `tag` of the filter is no text, so the filter is dropped; put %s in quotes", show(tag.value))
	default:
		p.report(Warning, at, tag.place(), "the `tag` of the filter is %s, so the filter is dropped; name one", show(tag.value))
	}
	return nil
}
