// Package fold makes texts comparable as people search for them: without case and accents.
package fold

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// letters are those that Unicode does not take apart, as they are typed without them.
var letters = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ħ': "h", 'ı': "i",
}

// Text folds a text to lower case without the accents of Latin, Greek and Cyrillic letters. In
// other scripts marks are letters of their own, and stay. If a text contains another, its folded
// form contains the other's.
func Text(text string) string {
	var folded strings.Builder
	isPlain := false // the letter before may have lost its accents
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(text, "\ufffd")) {
		if unicode.Is(unicode.Mn, r) {
			if !isPlain {
				folded.WriteRune(r)
			}
			continue
		}
		isPlain = unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
		r = unicode.ToLower(r)
		if plain, ok := letters[r]; ok {
			folded.WriteString(plain)
		} else {
			folded.WriteRune(r)
		}
	}
	return folded.String()
}
