package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"

	"gopkg.in/yaml.v3"
)

// This file is what YAML 1.2 has and the library, which reads YAML 1.1, has not. The text is rewritten for the library, with as
// many code points in each line, so that places stay as they are.

// rewriting is a text for the library.
type rewriting struct {
	text string

	// breaks stand for the characters that end a line in YAML 1.1 alone (1.2.2, section 5.4): NEL, LS and PS. filler stands
	// behind an escape that became shorter. The text has none of them otherwise.
	breaks [3]rune
	filler rune
}

var breaksOf11 = [3]rune{'\u0085', '\u2028', '\u2029'}

// rewrite takes the line breaks of YAML 1.1 out of a text in UTF-8.
func rewrite(text []byte) *rewriting {
	const firstPrivate = '\U000F0000' // a file is too short to have all that are private
	there := make(map[rune]bool)
	for _, c := range string(text) {
		if c >= firstPrivate {
			there[c] = true
		}
	}
	free := rune(firstPrivate)
	next := func() rune {
		for there[free] {
			free++
		}
		free++
		return free - 1
	}
	r := &rewriting{text: string(text), breaks: [3]rune{next(), next(), next()}, filler: next()}
	r.text = strings.Map(func(c rune) rune {
		for i, of := range breaksOf11 {
			if c == of {
				return r.breaks[i]
			}
		}
		return c
	}, r.text)
	return r
}

var (
	version12 = regexp.MustCompile(`(?m)^(%YAML[ \t]+1\.)2\b`)

	// blankLine has a tab, which indents nothing.
	blankLine = regexp.MustCompile(`(?m)^[ \t]*\t[ \t]*(\r?)$`)

	// slash and pair are escapes of JSON's, behind other escapes of a backslash. Few write them, but all may.
	slash = regexp.MustCompile(`\\+/`)
	pair  = regexp.MustCompile(`\\+u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
)

// again rewrites what else the library refuses in YAML 1.2. It is called once the library has refused the text: what it
// rewrites in values without quotes comes back, but escapes of surrogates there in lower case.
func (r *rewriting) again() *rewriting {
	filler := string(r.filler)
	text := version12.ReplaceAllString(r.text, "${1}1")
	text = blankLine.ReplaceAllString(text, "$1")
	text = slash.ReplaceAllStringFunc(text, func(escape string) string {
		if len(escape)%2 != 0 {
			return escape // the backslashes are escaped themselves
		}
		return escape[:len(escape)-2] + "/" + filler
	})
	text = pair.ReplaceAllStringFunc(text, func(escapes string) string {
		before, units := escapes[:len(escapes)-len(`\ud800\udc00`)], escapes[len(escapes)-len(`\ud800\udc00`):]
		if len(before)%2 != 0 {
			return escapes
		}
		high, _ := strconv.ParseUint(units[2:6], 16, 16)
		low, _ := strconv.ParseUint(units[8:], 16, 16)
		code := strings.ToUpper(strconv.FormatInt(int64(utf16.DecodeRune(rune(high), rune(low))), 16))
		return before + `\U` + strings.Repeat("0", 8-len(code)) + code + filler + filler
	})
	return &rewriting{text, r.breaks, r.filler}
}

// restore undoes it in what the library has read.
func (r *rewriting) restore(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = r.original(n.Value, n.Style&yaml.DoubleQuotedStyle != 0)
	}
	for _, child := range n.Content {
		r.restore(child)
	}
}

// original is a text of the file as it was, in which the library has read the escapes already or has not.
func (r *rewriting) original(text string, isRead bool) string {
	if filler := string(r.filler); strings.Contains(text, filler) {
		if !isRead {
			text = strings.ReplaceAll(text, "/"+filler, `\/`)
			text = regexp.MustCompile(`\\U[0-9A-F]{8}`+filler+filler).ReplaceAllStringFunc(text, func(escape string) string {
				code, _ := strconv.ParseUint(escape[2:10], 16, 32)
				high, low := utf16.EncodeRune(rune(code))
				return `\u` + strconv.FormatInt(int64(high), 16) + `\u` + strconv.FormatInt(int64(low), 16)
			})
		}
		text = strings.ReplaceAll(text, filler, "")
	}
	return strings.Map(func(c rune) rune {
		for i, is := range r.breaks {
			if c == is {
				return breaksOf11[i]
			}
		}
		return c
	}, text)
}
