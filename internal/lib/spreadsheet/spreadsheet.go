// Package spreadsheet reads CSV files that people saved in a spreadsheet, and writes cells of those that they open in one,
// so that what strangers wrote is text there and no formula.
package spreadsheet

import (
	"strings"
	"unicode"
)

// Cell quotes a value for CSV (RFC 4180), escaped so that it is no formula.
func Cell(value string) string {
	return `"` + strings.ReplaceAll(Escape(value), `"`, `""`) + `"`
}

// formulas are the characters that begin a formula at the start of a cell
// (https://owasp.org/www-community/attacks/CSV_Injection), and breaks those after which a
// cell may start, or that a spreadsheet leaves out at the start of one.
const formulas, breaks = "=+-@＝＋－＠", "\t\r\n"

// Escape puts a ' in front of each character that begins a formula at the
// start of a cell. A cell starts with the value. If a spreadsheet splits lines at another
// separator, cells start behind each separator in the value too. Where a ' is there
// already, it puts another one, so that Unescape can undo it.
func Escape(value string) string {
	var b strings.Builder
	start, leading := true, true
	for _, c := range value {
		if start && strings.ContainsRune(formulas, c) || leading && strings.ContainsRune(breaks, c) {
			b.WriteByte('\'')
		}
		b.WriteRune(c)
		start, leading = startsCell(start, c), leading && c == '\''
	}
	return b.String()
}

// startsCell reports whether a cell may start behind a character.
func startsCell(start bool, c rune) bool {
	return strings.ContainsRune("\t\r\n,;\"", c) || start && (unicode.IsSpace(c) || unicode.IsControl(c) || c == '\'')
}

// Unescape undoes Escape.
func Unescape(cell string) string {
	var b strings.Builder
	start, leading := true, true
	runes := []rune(cell)
	for i, c := range runes {
		if c == '\'' && i+1 < len(runes) &&
			(start && strings.ContainsRune(formulas, runes[i+1]) || leading && strings.ContainsRune(breaks, runes[i+1])) {
			continue
		}
		b.WriteRune(c)
		start, leading = startsCell(start, c), leading && c == '\''
	}
	return b.String()
}
