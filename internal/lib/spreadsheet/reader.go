package spreadsheet

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Reader reads CSV (RFC 4180) as spreadsheets save it. The separator is the comma, semicolon or tab that the first line
// has first; one such as sep=; before it, which is for Excel, is left out. A byte order mark tells UTF-8 and UTF-16. What is not text in the file's encoding is
// an error, and never replaced by U+FFFD.
type Reader struct {
	csv      *csv.Reader
	encoding encoding.Encoding // nil for UTF-8
	name     string            // of the encoding
}

// EncodingError is text that is not UTF-8. Its encoding, and what the cell says in that, are guesses.
type EncodingError struct {
	Line           int // from 1
	Encoding, Text string
}

func (e *EncodingError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d is not UTF-8, but looks like %s: save the file as \"CSV UTF-8\", or convert it with iconv -f %s -t utf-8",
			e.Line, e.Encoding, e.Encoding)
	}
	return fmt.Sprintf("line %d is not UTF-8. It looks like %s, where it says %q: if that is right, convert the file with iconv -f %s -t utf-8; "+
		"else save it as \"CSV UTF-8\"", e.Line, e.Encoding, e.Text, e.Encoding)
}

// NewReader reads a file in an encoding with one of the names of https://encoding.spec.whatwg.org/#names-and-labels, such
// as windows-1252. It is UTF-8 if the name is empty. The first line is looked at already.
// Errors: *EncodingError, a name that is not known, lines that end with CR alone, those of from.
func NewReader(from io.Reader, charset string) (*Reader, error) {
	r := &Reader{name: charset}
	fallback := transform.Transformer(transform.Nop)
	if charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		var err error
		if r.encoding, err = htmlindex.Get(charset); err != nil {
			return nil, fmt.Errorf("there is no encoding %q: write one such as windows-1252, macintosh, iso-8859-15, utf-16le or shift_jis", charset)
		}
		fallback = r.encoding.NewDecoder()
	}
	buffered := bufio.NewReader(transform.NewReader(from, unicode.BOMOverride(fallback)))
	start, err := buffered.Peek(buffered.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r.csv = csv.NewReader(buffered)
	if named := separatorLine.FindSubmatch(start); named != nil {
		r.csv.Comma = rune(named[1][0])
		_, err = r.csv.Read()
		r.csv.FieldsPerRecord = 0 // those of the next line
		return r, err
	}
	r.csv.Comma, err = separator(start)
	return r, err
}

// separatorLine is the first line of a file that tells Excel what is between the columns.
var separatorLine = regexp.MustCompile(`^(?i)"?sep=([,;\t|])"?\r?\n`)

// separator finds what is between the columns that the start of a file names.
func separator(start []byte) (rune, error) {
	if at := bytes.IndexByte(start, 0); at >= 0 && at < 2 { // a letter of two bytes
		return 0, &EncodingError{Line: 1, Encoding: []string{"utf-16be", "utf-16le"}[at]}
	}
	found, isQuoted := rune(0), false
	for i, c := range start {
		switch {
		case c == '"':
			isQuoted = !isQuoted
		case isQuoted:
		case c == '\r' && i+1 < len(start) && start[i+1] != '\n':
			return 0, errors.New(`the lines end with CR alone, as on old Macs: save the file as "CSV UTF-8", or convert it with tr '\r' '\n'`)
		case c == '\n':
			if found == 0 {
				return ',', nil
			}
			return found, nil
		case found == 0 && (c == ',' || c == ';' || c == '\t'):
			found = rune(c)
		}
	}
	if found == 0 {
		found = ','
	}
	return found, nil
}

// Read reads a row, which the next call overwrites. Errors: *EncodingError, *csv.ParseError, io.EOF, those of the file.
func (r *Reader) Read() ([]string, error) {
	row, err := r.csv.Read()
	if err != nil {
		return nil, err
	}
	for i, cell := range row {
		line, _ := r.csv.FieldPos(i)
		switch {
		case !utf8.ValidString(cell):
			return nil, guess(line, cell)
		case r.encoding == nil:
		case strings.ContainsRune(cell, utf8.RuneError):
			return nil, fmt.Errorf("line %d is not %s: name the encoding that the file has", line, r.name)
		case r.isUTF8(cell):
			return nil, fmt.Errorf("line %d is UTF-8 already, and not %s: leave the encoding out", line, r.name)
		}
	}
	return row, nil
}

// AllowRagged takes rows of different lengths. Else one that has not as many cells as the first is an error.
func (r *Reader) AllowRagged() { r.csv.FieldsPerRecord = -1 }

// Line is the line of a file, from 1, in which the row begins that was read last.
func (r *Reader) Line() int {
	line, _ := r.csv.FieldPos(0)
	return line
}

// isUTF8 reports whether a cell was UTF-8 before it was decoded. Text in an encoding with a byte for each letter nearly
// never is.
func (r *Reader) isUTF8(cell string) bool {
	if _, isMap := r.encoding.(*charmap.Charmap); !isMap {
		return false
	}
	before, err := r.encoding.NewEncoder().String(cell)
	return err == nil && utf8.ValidString(before) && strings.ContainsFunc(before, func(c rune) bool { return c >= utf8.RuneSelf })
}

// guess names the encoding of a spreadsheet that text is likely to have, so that a person can judge it.
func guess(line int, cell string) *EncodingError {
	of, name := charmap.Windows1252, "windows-1252"
	high, longest, run, isMac := 0, 0, 0, false
	for i := range len(cell) {
		c := cell[i]
		if run++; c < 0xC0 {
			run = 0
		}
		high, longest = max(high, int(c)), max(longest, run)
		// Windows has quotes and dashes from 0x91 to 0x97, and letters that are rare beside them. A Mac has é, ü, ä and ö there.
		isMac = isMac || c > 0x80 && c < 0xA0 && c != 0x85 && (c < 0x91 || c > 0x97) && c != 0x99
	}
	switch {
	case longest >= 3: // Latin letters with accents do not come in threes
		of, name = charmap.Windows1251, "windows-1251"
	case isMac && high < 0xC0:
		of, name = charmap.Macintosh, "macintosh"
	}
	text, _ := of.NewDecoder().String(cell) // each byte is a letter
	if runes := []rune(text); len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	return &EncodingError{Line: line, Encoding: name, Text: text}
}

// maxShown bounds the letters of a cell in a message.
const maxShown = 60
