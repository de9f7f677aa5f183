package manifest

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// This file finds what [Parse] passes over, for people who write a manifest.

// StrictKeys warns of what Parse passes over: keys that the format does not have, keys of
// event types that are not in lower case with underscores, labels and tags that are no text, and values in curly quotes or with
// characters at an end that nobody sees. The findings are in the order of the
// file, 10,000 at most. A file that is not YAML has none. A key in an anchor is one finding,
// however many aliases it has.
func StrictKeys(text []byte) []Finding {
	c := keyChecker{seen: make(map[checkedValue]bool)}
	root, err := readDocument(text, MaxSize)
	if err != nil {
		return nil
	}
	c.check(root, nil, topKeys, false)
	return c.inOrder()
}

// typeKey is how the key of an event type is to be written (docs/manifest.md, "events").
var typeKey = regexp.MustCompile(`^[a-z0-9_]+$`)

// keyChecker collects keys to warn of.
type keyChecker struct {
	parser

	seen map[checkedValue]bool
}

// checkedValue is a value that was checked against a set of keys. It is checked once, however many
// aliases stand for it.
type checkedValue struct {
	value *yaml.Node
	set   *keySet
}

// check looks at the keys of a value that is to be a mapping. Of a merged mapping, the
// keys need only be those of any custom field: types of several kinds may share them.
func (c *keyChecker) check(n *yaml.Node, at *path, set *keySet, isMerged bool) {
	n = resolve(n)
	allowed := set
	if set == anyFieldKeys && !isMerged {
		if typed := fieldKeySets[mappingOf(n).text("type")]; typed != nil {
			allowed = typed
		}
	}
	if n.Kind != yaml.MappingNode || c.seen[checkedValue{n, allowed}] {
		return
	}
	c.seen[checkedValue{n, allowed}] = true
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		if isMerge(key) {
			c.checkMerged(value, at, set)
		} else if c.isKnown(key, at, allowed) {
			c.checkValue(resolve(key).Value, value, at, set)
		}
	}
}

// checkMerged looks at the mapping, or the list of mappings, that another merges.
func (c *keyChecker) checkMerged(source *yaml.Node, at *path, set *keySet) {
	if source.Kind != yaml.SequenceNode {
		c.check(source, at, set, true)
		return
	}
	for _, one := range source.Content {
		c.check(one, at, set, true)
	}
}

// checkValue looks at the value of a known key.
func (c *keyChecker) checkValue(name string, value *yaml.Node, at *path, set *keySet) {
	c.checkEnds(value, at.child(name))
	if slices.Contains(set.texts, name) && !isNull(value) {
		c.checkText(value, at.child(name), "write text")
	}
	if slices.Contains(set.textLists, name) && value.Kind == yaml.SequenceNode {
		for i, entry := range value.Content {
			c.checkText(entry, at.child(name).entry(i), "write text, in quotes if it starts with `#`")
		}
	}
	if value.Kind == yaml.SequenceNode {
		for i, entry := range value.Content {
			c.checkEnds(entry, at.child(name).entry(i))
		}
	}
	inside := set.parts[name]
	if set.own != nil {
		inside.set = set.own
	}
	switch {
	case inside.set == nil:
	case !inside.isList:
		c.check(value, at.child(name), inside.set, false)
	case value.Kind == yaml.SequenceNode:
		for i, entry := range value.Content {
			c.check(entry, at.child(name).entry(i), inside.set, false)
		}
	}
}

// checkText looks at what is to be text, with what to write instead.
func (c *keyChecker) checkText(n *yaml.Node, at *path, instead string) {
	if textOf(n) != "" {
		return
	}
	if n := resolve(n); n.Kind == yaml.ScalarNode && !isNull(n) && !isBlank(n.Value) {
		instead = "put it in quotes"
	}
	c.report(Warning, at, n, "%s is no text, so it is ignored; %s", show(n), instead)
}

// What programs for texts make of straight quotes, and characters that have no width. Both are part of a value.
const curlyQuotes, zeroWidth = "“”„‟‘’‚‛«»‹›″", "\u00ad\u200b\u200c\u200d\u2060\ufeff"

// checkEnds looks at what is around a value, and is part of it.
func (c *keyChecker) checkEnds(n *yaml.Node, at *path) {
	text := resolve(n).Value
	if resolve(n).Kind != yaml.ScalarNode || text == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(text)
	last, size := utf8.DecodeLastRuneInString(text)
	switch {
	case strings.ContainsRune(zeroWidth, first):
		c.report(Warning, at, n, "%s begins with %U, which nobody sees and which is part of it; type it again", show(n), first)
	case strings.ContainsRune(zeroWidth, last):
		c.report(Warning, at, n, "%s ends with %U, which nobody sees and which is part of it; type it again", show(n), last)
	case len(text) > size && strings.ContainsRune(curlyQuotes, first) && strings.ContainsRune(curlyQuotes, last):
		c.report(Warning, at, n, "%s has curly quotes around it, which are part of it; use straight ones, or none", show(n))
	}
}

// isKnown reports whether a key is one of a set, and the finding if it is not.
func (c *keyChecker) isKnown(key *yaml.Node, at *path, set *keySet) bool {
	name := resolve(key)
	switch {
	case name.Kind != yaml.ScalarNode || isNull(name):
		c.report(Warning, at, key, "%s is no key, so it is ignored; write a name", show(key))
		return false
	case set.own != nil && isBlank(name.Value):
		c.report(Warning, at.child(name.Value), key, "an event type has an empty key, so it is ignored; name it")
		return false
	case set.own != nil && !typeKey.MatchString(name.Value):
		c.report(Warning, at.child(name.Value), key,
			"the key of the event type %s is not in lower case with underscores; write one such as `house_concert`, before there are events of the type: they keep its key", Quote(name.Value))
		return true
	case set.own != nil, slices.Contains(set.keys, name.Value), at == nil && strings.HasPrefix(name.Value, anchorPrefix):
		return true
	case set.isParsed:
		return false
	}
	c.report(Warning, at.child(name.Value), key, "%s is not a key of %s, so it is ignored; %s", Quote(name.Value), set.of, instead{name.Value, set.keys, true})
	return false
}

// Named is a name in a manifest that is one of the theme's.
type Named struct {
	Name   string
	Field  string // the path of its key, as in [Finding]
	Line   int    // from 1, as in [Finding]
	Column int
}

// PostTemplates are those that a file names, in its order, also those of event types that
// are dropped; 10,000 at most. One that several types get from an anchor is there once.
func PostTemplates(text []byte) []Named {
	root, err := readDocument(text, MaxSize)
	if err != nil {
		return nil
	}
	var templates []Named
	seen := make(map[*yaml.Node]bool)
	in := (*path)(nil).child("events").child("types")
	events := mappingOf(root).get("events").value
	if events == nil {
		return nil
	}
	for _, entry := range typeEntries(mappingOf(events).get("types").value) {
		f := mappingOf(entry.value).get("post_template")
		name := textOf(f.value)
		if name == "" || seen[f.value] || len(templates) == maxFindings {
			continue
		}
		seen[f.value] = true
		templates = append(templates, Named{name, in.child(entry.name).child(f.name).String(), f.value.Line, f.value.Column})
	}
	return templates
}

// SlotTags are the tags of the slots that a file has, in its order; 10,000 at most.
func SlotTags(text []byte) []Named {
	root, err := readDocument(text, MaxSize)
	if err != nil {
		return nil
	}
	var tags []Named
	curation := mappingOf(root).get("homepage_curation").value
	if curation == nil {
		return nil
	}
	in := (*path)(nil).child("homepage_curation").child("sections")
	for i, section := range itemsOf(mappingOf(curation).get("sections").value) {
		for j, slot := range itemsOf(mappingOf(section).get("slots").value) {
			f := mappingOf(slot).get("tag")
			if name := textOf(f.value); name != "" && len(tags) < maxFindings {
				tags = append(tags, Named{name, in.entry(i).child("slots").entry(j).child(f.name).String(), f.value.Line, f.value.Column})
			}
		}
	}
	return tags
}

// itemsOf has the entries of a list, none of anything else.
func itemsOf(n *yaml.Node) []*yaml.Node {
	if n == nil || resolve(n).Kind != yaml.SequenceNode {
		return nil
	}
	return resolve(n).Content
}
