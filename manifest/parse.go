package manifest

import (
	"errors"
	"slices"

	"gopkg.in/yaml.v3"
)

// Result is what a file is worth.
type Result struct {
	// Manifest is what survives. It is nil if the file is ignored entirely:
	// after a syntax error or with an unknown version, nothing is to be stored.
	Manifest *Manifest

	// Findings are the problems in the order of the file; of more than 10,000,
	// some 10,000. Homepage Curation needs a manifest without any. Never nil.
	Findings []Finding
}

// Parse reads a manifest file of at most [MaxSize] bytes.
//
// Each problem in a category of docs/manifest.md, "Findings", is a finding, also
// inside a part that is dropped, so that mending one does not bring up another.
// For the same reason a key that has to be unique is taken by the first that
// has it, dropped or not. Two problems are errors
// too, and drop the custom field: a key that another custom field of the type
// has, and a key with spaces. Any other wrong value, and any unknown key outside
// a picker, is left out without a finding.
//
// A key that is there without a value counts as present and wrong. Text has to
// be text in YAML: the number 2026 needs quotes, and blank text counts as
// missing. What YAML itself forbids is in document.go.
func Parse(text []byte) Result { return parse(text, MaxSize) }

func parse(text []byte, limit int) Result {
	p := parser{findings: []Finding{}}
	root, err := readDocument(text, limit)
	if err != nil {
		var wrong *syntaxError
		errors.As(err, &wrong)
		at := yaml.Node{Line: wrong.line, Column: wrong.column}
		p.report(Error, (*path)(nil).child("manifest"), &at, "%s", wrong.message)
		return Result{Findings: p.findings}
	}
	return Result{Manifest: p.manifest(root), Findings: p.inOrder()}
}

func (p *parser) manifest(root *yaml.Node) *Manifest {
	m := mappingOf(root)
	if !p.version(root, m.get("manifest_version")) {
		return nil
	}
	manifest := &Manifest{Version: Version}
	if events := m.get("events"); events.value != nil {
		manifest.Events = p.events(events)
	}
	if curation := m.get("homepage_curation"); curation.value != nil {
		manifest.Curation = p.curation(curation)
	}
	return manifest
}

func (p *parser) version(root *yaml.Node, version field) bool {
	at := (*path)(nil).child("manifest_version")
	if version.value == nil {
		p.report(Warning, at, root, "there is no `manifest_version`, so the file is ignored; start it with `manifest_version: 1`")
		return false
	}
	if positive(version.value) != Version {
		p.report(Warning, at, version.place(),
			"`manifest_version` is %s, so the file is ignored; use `1`, a whole number without quotes",
			show(version.value))
		return false
	}
	return true
}

// list returns the entries of a list key, and whether it is there as a list.
// Anything but a list is a finding, and the key is ignored.
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

// texts returns the entries of a list key that are text, without doubles. Others
// are left out without a finding.
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

// names returns the entries of a list key that are among the known, without
// doubles. Any other is a warning that calls it "not a …" and says what to use
// instead.
func (p *parser) names(m mapping, in *path, name string, known []string, what string) (names []string, there bool) {
	entries, there := p.list(m, in, name)
	names = []string{}
	for i, entry := range entries {
		text := textOf(entry)
		switch {
		case !slices.Contains(known, text):
			p.report(Warning, in.child(name).entry(i), entry, "%s is not %s, so it is dropped; %s", show(entry), what, instead{text, known})
		case !slices.Contains(names, text):
			names = append(names, text)
		}
	}
	return names, there
}

// required returns a field that has to be text and not blank. If it is not, that
// is an error of its entry, which is what is dropped.
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
