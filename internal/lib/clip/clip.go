// Package clip cuts texts of strangers to a length at which they can be shown.
package clip

import (
	"strings"
	"unicode"
)

// Text cuts a text behind a number of code points. Control characters become U+FFFD.
func Text(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}
