package manifest

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// This file reads single values, as YAML 1.2 has them: `yes` and `on` are text,
// `2026` is a number and no text, and neither is a date.

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// field is a key of a mapping with its value.
type field struct {
	name  string
	key   *yaml.Node
	value *yaml.Node
}

// place is where the value stands; a value that is not there, where its key is.
func (f field) place() *yaml.Node {
	if isNull(f.value) {
		return f.key
	}
	return f.value
}

// mapping is a mapping of the file in its order. A key that is no text counts as
// it is written; one that is null, a list or a mapping does not count.
type mapping []field

// mappingOf reads the fields of a mapping, with merge keys (`<<`) replaced by what they
// stand for. Any other value has none.
func mappingOf(n *yaml.Node) mapping {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	m := make(mapping, 0, len(n.Content)/2)
	merges := false
	for i := 0; i < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			merges = true
		} else if f, ok := fieldAt(n, i); ok {
			m = append(m, f)
		}
	}
	if merges {
		known := make(map[string]bool, len(m))
		for _, f := range m {
			known[f.name] = true
		}
		m.merge(n, known)
	}
	return m
}

// The index is that of the key in the mapping's content. ok is whether the field counts.
func fieldAt(n *yaml.Node, i int) (field, bool) {
	key := resolve(n.Content[i])
	if key.Kind != yaml.ScalarNode || isNull(key) {
		return field{}, false
	}
	return field{key.Value, n.Content[i], resolve(n.Content[i+1])}, true
}

// merge adds those fields that the mapping n merges, and what these merge, unless
// they are known. So an own field wins, then the one that is merged first. Each
// field is looked at once, however deep the merges are.
func (m *mapping) merge(n *yaml.Node, known map[string]bool) {
	add := func(source *yaml.Node) {
		for i := 0; i < len(source.Content); i += 2 {
			if isMerge(source.Content[i]) {
				continue
			}
			if f, ok := fieldAt(source, i); ok && !known[f.name] {
				known[f.name] = true
				*m = append(*m, f)
			}
		}
		m.merge(source, known)
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		if source := resolve(n.Content[i+1]); source.Kind == yaml.SequenceNode {
			for _, one := range source.Content {
				add(resolve(one))
			}
		} else {
			add(source)
		}
	}
}

// The value of a field that is missing is nil.
func (m mapping) get(name string) field {
	for _, f := range m {
		if f.name == name {
			return f
		}
	}
	return field{name: name}
}

func (m mapping) text(name string) string { return textOf(m.get(name).value) }

// textOf is "" for a value that is not text, or blank.
func textOf(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || isBlank(n.Value) {
		return ""
	}
	return n.Value
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// isTrue reports whether a field is the boolean true.
func (m mapping) isTrue(name string) bool {
	n := m.get(name).value
	return n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && strings.EqualFold(n.Value, "true")
}

// digits are a whole number in YAML 1.2. The YAML library takes 010 for octal, as
// YAML 1.1 did, and 08 and what has more than 64 bits for no whole number.
var (
	digits = regexp.MustCompile(`^\+?[0-9]+$`)
	core   = regexp.MustCompile(`^(?:0x[0-9a-fA-F]+|0o[0-7]+)$`)
)

// positive is 0 for a value that is not a whole number above 0. One that is too large for
// an int is the largest.
func positive(n *yaml.Node) int {
	if n == nil || n.Kind != yaml.ScalarNode {
		return 0
	}
	tag := n.ShortTag()
	if tag != "!!int" && (tag != "!!float" || n.Style&yaml.TaggedStyle != 0) {
		return 0
	}
	if digits.MatchString(n.Value) {
		i, err := strconv.Atoi(n.Value)
		if err != nil {
			return math.MaxInt
		}
		return i
	}
	var i int // of YAML 1.2 (core schema); the library also knows 0b1 and 1_000
	if tag != "!!int" || !core.MatchString(n.Value) || n.Decode(&i) != nil {
		return 0
	}
	return max(0, i)
}

// number is nil for a value that is not a finite number.
func number(n *yaml.Node) *float64 {
	if n == nil || n.Kind != yaml.ScalarNode {
		return nil
	}
	var x float64
	switch tag := n.ShortTag(); {
	case tag != "!!int" && tag != "!!float":
		return nil
	case digits.MatchString(n.Value):
		x, _ = strconv.ParseFloat(n.Value, 64) // too large is infinite
	case n.Decode(&x) != nil:
		return nil
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

var ratio = regexp.MustCompile(`^0*[1-9][0-9]*(\.[0-9]+)?:0*[1-9][0-9]*(\.[0-9]+)?$`)

// readConstraint has how each constraint is read. A value that is wrong is left out, which is no
// finding.
var readConstraint = map[string]func(*Constraints, *yaml.Node){
	"max_length":       func(c *Constraints, n *yaml.Node) { c.MaxLength = positive(n) },
	"pattern":          func(c *Constraints, n *yaml.Node) { c.Pattern = textOf(n) },
	"min":              func(c *Constraints, n *yaml.Node) { c.Min = number(n) },
	"max":              func(c *Constraints, n *yaml.Node) { c.Max = number(n) },
	"aspect_ratio":     func(c *Constraints, n *yaml.Node) { c.AspectRatio = ratio.FindString(textOf(n)) },
	"min_width":        func(c *Constraints, n *yaml.Node) { c.MinWidth = positive(n) },
	"min_height":       func(c *Constraints, n *yaml.Node) { c.MinHeight = positive(n) },
	"max_file_size_kb": func(c *Constraints, n *yaml.Node) { c.MaxFileSizeKB = positive(n) },
}

// constraints reads those keys of a mapping.
func (m mapping) constraints(keys []string) Constraints {
	var c Constraints
	for _, key := range keys {
		readConstraint[key](&c, m.get(key).value)
	}
	return c
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Tag == "!!merge"
}
