package manifest

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// list reads a list key, and whether it is there as a list. Anything but a list is a
// finding, and the key is ignored.
func (p *parser) list(m mapping, in *path, name string) ([]*yaml.Node, bool) {
	f := m.get(name)
	switch {
	case f.value == nil:
		return nil, false
	case f.value.Kind != yaml.SequenceNode:
		p.report(Warning, in.child(name), f.place(), "`%s` is %s, so it is ignored; make it a list", name, show(f.value))
		return nil, false
	}
	return f.value.Content, true
}

// texts reads the entries of a list key that are text, without doubles. Others are left
// out without a finding.
func (p *parser) texts(m mapping, in *path, name string) []string {
	entries, _ := p.list(m, in, name)
	return distinct(entries)
}

func distinct(entries []*yaml.Node) []string {
	texts := []string{}
	seen := make(map[string]bool, len(entries))
	for _, entry := range entries {
		if text := textOf(entry); text != "" && !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}

// names reads the entries of a list key that are among the known, without doubles. Any
// other is a warning that calls it "not a …" and says what to use instead.
func (p *parser) names(m mapping, in *path, name string, known []string, what string) (names []string, there bool) {
	entries, there := p.list(m, in, name)
	names = []string{}
	for i, entry := range entries {
		text := textOf(entry)
		switch {
		case !slices.Contains(known, text):
			p.report(Warning, in.child(name).entry(i), entry, "%s is not %s, so it is dropped; %s", show(entry), what, instead{name: text, known: known})
		case !slices.Contains(names, text):
			names = append(names, text)
		}
	}
	return names, there
}

// required reads a field that has to be text and not blank. If it is not, that is an error
// of its entry, which is what is dropped.
func (p *parser) required(m mapping, in *path, entry *yaml.Node, name, what string) string {
	if text := m.text(name); text != "" {
		return text
	}
	f := m.get(name)
	switch {
	case f.value == nil:
		p.report(Error, in.child(name), entry, "%s has no `%s`, so it is dropped; add one", what, name)
	case isNumberOrDate(f.value):
		p.report(Error, in.child(name), f.place(), "the `%s` of %s is no text, so it is dropped; put %s in quotes", name, what, show(f.value))
	case isNull(f.value) && name == "tag": // `tag: #hero`
		p.report(Error, in.child(name), f.place(), "the `tag` of %s is an empty value, so it is dropped; write a tag, in quotes if it starts with #", what)
	default:
		p.report(Error, in.child(name), f.place(), "the `%s` of %s is %s, so it is dropped; write text", name, what, show(f.value))
	}
	return ""
}

func isNumberOrDate(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!timestamp":
		return true
	}
	return false
}
