package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

// yamlFile writes the defaults too. The file is longer than MaxSize only if defaults, or aliases of
// the parsed file, made it so.
func yamlFile(m *Manifest) ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	node, err := yamlOf(decoder)
	if err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	var file bytes.Buffer
	encoder := yaml.NewEncoder(&file)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, fmt.Errorf("encoding a manifest: %w", err)
	}
	return file.Bytes(), nil
}

// yamlOf turns the next value of some JSON into YAML, in its order.
func yamlOf(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode}
		if token == '[' {
			node.Kind = yaml.SequenceNode
		}
		for decoder.More() { // keys and values alternate in an object
			child, err := yamlOf(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err := decoder.Token()
		return node, err
	case string:
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: token}
		if !plain(token) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	default: // a number or a boolean
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(token)}, nil
	}
}

// plain reports whether text needs no quotes. The YAML encoder adds them to what
// is no text without, such as true.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}
