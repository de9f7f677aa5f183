package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// This file makes docs/members_openapi.yaml, the members API alone, of docs/openapi.yaml.

const (
	membersPaths = "/integration/" // what the paths of the members API begin with
	membersTag   = "members"
)

// membersHead is what the document has in place of the head of the whole one.
const membersHead = `# Made of openapi.yaml by: go -C e2e run ./openapi members ../docs/openapi.yaml
`

// membersAlone cuts a document down to the members API: its paths, and the components that
// these use.
func membersAlone(document []byte) ([]byte, error) {
	var whole yaml.Node
	if err := yaml.Unmarshal(document, &whole); err != nil {
		return nil, err
	}
	root := whole.Content[0]
	expand(root)
	only(child(root, "paths"), func(path string) bool { return strings.HasPrefix(path, membersPaths) })
	tags := child(root, "tags")
	tags.Content = slices.DeleteFunc(tags.Content, func(tag *yaml.Node) bool { return child(tag, "name").Value != membersTag })
	info := child(root, "info")
	child(info, "title").Value = "Lychgate's members API"
	child(info, "summary").Value = "Members of a Ghost publication for a CRM."
	// Of the whole description, the part about this API.
	parts := strings.Split(child(info, "description").Value, "\n\n")
	parts = slices.DeleteFunc(parts, func(part string) bool { return !strings.HasPrefix(part, "The **members API**") })
	if len(parts) != 1 {
		return nil, fmt.Errorf("%d paragraphs of the description begin with The **members API**, want 1", len(parts))
	}
	child(info, "description").Value = parts[0] + "\n\nThe paths here are the defaults; an operator may choose others, and other limits.\n"

	components := child(root, "components")
	used := map[string]bool{"#/components/securitySchemes/integrationKey": true}
	refer(child(root, "paths"), components, used)
	for i := 0; i < len(components.Content); i += 2 {
		kind := components.Content[i].Value
		only(components.Content[i+1], func(name string) bool { return used["#/components/"+kind+"/"+name] })
	}
	var text bytes.Buffer
	text.WriteString(membersHead)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&whole); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}

// expand puts what they stand for in place of aliases, whose anchors may be in a part that
// is left out. Comments are left out, as they may be about other parts.
func expand(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for i, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			c = c.Alias
		}
		copied := *c
		copied.Anchor, copied.Content = "", slices.Clone(c.Content)
		n.Content[i] = &copied
		expand(&copied)
	}
}

// refer notes what a node refers to among the components, and what that refers to.
func refer(n, components *yaml.Node, used map[string]bool) {
	for i, c := range n.Content {
		ref := ""
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == "$ref" {
			ref = c.Value
		}
		if ref == "" || used[ref] {
			refer(c, components, used)
			continue
		}
		used[ref] = true
		parts := strings.Split(ref, "/") // #/components/<kind>/<name>
		refer(child(child(components, parts[2]), parts[3]), components, used)
	}
}

// child looks a key up; the node is empty if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return new(yaml.Node)
}

// only keeps the entries of a mapping whose keys are wanted.
func only(n *yaml.Node, wanted func(key string) bool) {
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if wanted(n.Content[i].Value) {
			kept = append(kept, n.Content[i], n.Content[i+1])
		}
	}
	n.Content = kept
}
