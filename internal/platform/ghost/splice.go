package ghost

import (
	"bytes"
	"encoding/json"
	"slices"
)

// This file changes single values in Ghost's responses, and leaves all else of them as it
// is, byte for byte.

// span is where a value is in a text of JSON. The zero value is none.
type span struct{ begin, end int }

func (s span) isNone() bool { return s.end == 0 }

// The span begins at the response's only value, and ends with the text.
func whole(text []byte) span { return span{len(text) - len(trimSpace(text)), len(text)} }

// find looks for a key in the object that begins where the span begins. If the key stands there
// twice, the last counts, as in browsers. ok is false if the value there is not an object. The text
// must be valid JSON.
func find(text []byte, object span, key string) (found span, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text[object.begin:object.end]))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return span{}, false
	}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return span{}, false
		}
		if end := object.begin + int(d.InputOffset()); name == key {
			found = span{end - len(value), end}
		}
	}
	return found, true
}

func trimSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

// pair is a key and its value, or an element. It becomes the first of the object, or of the list.
func insert(text []byte, object span, pair string) []byte {
	start := object.begin + 1
	if next := trimSpace(text[start:])[0]; next != '}' && next != ']' {
		pair += ","
	}
	return replace(text, span{start, start}, pair)
}

func replace(text []byte, at span, with string) []byte {
	return slices.Concat(text[:at.begin], []byte(with), text[at.end:])
}
