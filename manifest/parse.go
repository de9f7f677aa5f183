package manifest

import (
	"errors"

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
// inside a part that is dropped, so that fixing one does not bring up another. What is
// dropped takes no key that has to be unique. Two problems are errors
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
