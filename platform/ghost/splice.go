package ghost

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// This file changes single values in Ghost's responses, and leaves all else of them as it
// is, byte for byte.

// span is where a value is in a text of JSON. The zero value is none.
type span struct{ begin, end int }

func (s span) isNone() bool { return s.end == 0 }

// The span begins at the response's only value, and ends with the text.
func whole(text []byte) span { return span{skipSpace(text, 0), len(text)} }

// find looks for a key in the object that begins where the span begins. If the key stands there
// twice, the last counts, as in browsers. ok is false if the value there is not an object. The text
// must be valid JSON.
func find(text []byte, object span, key string) (found span, ok bool) {
	i := object.begin
	if text[i] != '{' {
		return span{}, false
	}
	for i = skipSpace(text, i+1); text[i] != '}'; i = skipSpace(text, i) {
		if text[i] == ',' {
			i++
			continue
		}
		name := span{i, skipString(text, i)}
		i = skipSpace(text, name.end)
		value := span{begin: skipSpace(text, i+1)} // behind the colon
		value.end = skipValue(text, value.begin)
		i = value.end
		if isString(text[name.begin:name.end], key) {
			found = value
		}
	}
	return found, true
}

// isString reports whether a string in JSON is a text.
func isString(quoted []byte, text string) bool {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) == text
	}
	var got string
	return json.Unmarshal(quoted, &got) == nil && got == text
}

// These return where what begins at i ends, in valid JSON.

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipValue(text []byte, i int) int {
	for depth := 0; ; {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		default:
			i++
			if depth > 0 {
				continue
			}
			for i < len(text) && strings.IndexByte(",]} \t\r\n", text[i]) < 0 { // a number or a word
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// pair is a key and its value. It becomes the first of the object.
func insert(text []byte, object span, pair string) []byte {
	start := object.begin + 1
	if text[skipSpace(text, start)] != '}' {
		pair += ","
	}
	return replace(text, span{start, start}, pair)
}

func replace(text []byte, at span, with string) []byte {
	return slices.Concat(text[:at.begin], []byte(with), text[at.end:])
}
