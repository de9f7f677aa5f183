// Package fold makes texts comparable: as people search for them, without case and accents, and as platforms tell names apart.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Label folds the name of a label or a tag. It is equal for two names that are one to Ghost, which compares what
// JavaScript's toLowerCase makes of them: case alone, with Unicode's mappings to several letters and without those
// that [strings.EqualFold] takes for case too, such as of ſ. İ and i are two, as are ſ and s.
func Label(name string) string {
	if strings.IndexFunc(name, func(c rune) bool { return c >= utf8.RuneSelf }) < 0 {
		return strings.ToLower(name)
	}
	return cases.Lower(language.Und).String(name)
}

// letters are those that Unicode does not take apart, as they are typed without them.
var letters = map[rune]string{
	'’': "'", '‘': "'", '‛': "'", 'ʼ': "'", 'ʻ': "'", '′': "'", '`': "'", // as phones and programs for texts write an apostrophe
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ħ': "h", 'ı': "i",
}

// Text folds a text to lower case with straight apostrophes and without the accents of Latin, Greek and Cyrillic letters. In
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
