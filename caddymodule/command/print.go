package command

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"golang.org/x/term"
)

// printJSON prints a value for programs, and people who read along.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printable makes text harmless on a terminal: whatever would move or turn what
// is printed around it becomes U+FFFD.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
			return utf8.RuneError
		}
		return c
	}, text)
}

// lineEnd is what ends a line in YAML 1.1, by which findings have their lines.
var lineEnd = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

func splitLines(text string) []string {
	return lineEnd.Split(strings.TrimPrefix(text, "\ufeff"), -1)
}

func countOf(n int, of string) string {
	return humanize.Comma(int64(n)) + " " + english.PluralWord(n, of, "")
}

func shownTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func orEmpty(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// onTerminal reports whether w is a terminal that shows colours, and its user
// wants some (https://no-color.org).
func onTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
