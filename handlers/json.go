package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// errNotUnicode is what is wrong with JSON that encoding/json would read with U+FFFD
// in place of what is there, so that different texts would become one.
var errNotUnicode = errors.New("not UTF-8, or an escape of half a character")

// unmarshal is json.Unmarshal for text from outside: UTF-8 without an escaped
// surrogate that is not one of a pair (RFC 8259, sections 8.1 and 8.2). Errors:
// errNotUnicode, those of json.Unmarshal.
func unmarshal(text []byte, into any) error {
	if !utf8.Valid(text) || hasLoneSurrogate(text) {
		return errNotUnicode
	}
	return json.Unmarshal(text, into)
}

// hasLoneSurrogate reports whether a backslash-u escape in JSON is a surrogate
// without its other half. Backslashes are only found in strings.
func hasLoneSurrogate(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		if text[i+1] != 'u' {
			text = text[i+2:]
			continue
		}
		first := escaped(text[i:])
		text = text[min(i+6, len(text)):]
		if !utf16.IsSurrogate(first) {
			continue
		}
		if utf16.DecodeRune(first, escaped(text)) == utf8.RuneError {
			return true
		}
		text = text[6:]
	}
}

// escaped returns the code unit of the escape that text begins with, or -1.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
