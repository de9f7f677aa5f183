package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const noStore = "no-store"

// MaxIdempotencyKey bounds the header Idempotency-Key, in bytes.
const MaxIdempotencyKey = 255

// Write writes a response, which is JSON and not kept. Its header values share one
// allocation, made anew for each response because handlers around this one may change them.
func Write(w http.ResponseWriter, status int, body []byte) {
	values := []string{"application/json", noStore, "nosniff"}
	header := w.Header()
	header["Content-Type"] = values[0:1:1]
	header["Cache-Control"] = values[1:2:2]
	header["X-Content-Type-Options"] = values[2:3:3]
	w.WriteHeader(status)
	w.Write(body) // an error means that the caller has left
}

// WriteJSON writes a response, whose value is encoded without escapes for HTML.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	var text bytes.Buffer
	encode(&text, value)
	Write(w, status, text.Bytes())
}

// JSON encodes without escapes for HTML, which make six bytes of one.
func JSON(value any) string {
	var text strings.Builder
	encode(&text, value)
	return strings.TrimSuffix(text.String(), "\n")
}

func encode(to io.Writer, value any) {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // the types of responses always encode
	}
}

// Time writes a time as all responses do: in UTC, to the second.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// TimeOrNull is nil for the zero time.
func TimeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(Time(t))
}

// TextOrNull is nil for "".
func TextOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// bodyTime is how long a body may take to arrive. Half of one would keep a goroutine and a connection for ever.
const bodyTime = time.Minute

// ReadBody reads a request's body, of so many bytes at most, within bodyTime. Errors: ErrTooLarge, those of
// a body that does not arrive.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(bodyTime)) // a writer without deadlines has those of Caddy
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil { // else it also ends the server's own read of what is left
		_ = connection.SetReadDeadline(time.Time{})
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, ErrTooLarge
	}
	return body, err
}

// ErrNotUnicode is what is wrong with JSON that encoding/json would read with U+FFFD
// in place of what is there, so that different texts would become one.
var ErrNotUnicode = errors.New("not UTF-8, or an escape of half a character")

// Unmarshal is json.Unmarshal for text from outside: UTF-8 without an escaped
// surrogate that is not one of a pair (RFC 8259, sections 8.1 and 8.2). Errors:
// ErrNotUnicode, those of json.Unmarshal.
func Unmarshal(text []byte, into any) error {
	if !utf8.Valid(text) || hasLoneSurrogate(text) {
		return ErrNotUnicode
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

// escaped is the code unit of the escape that text begins with, or -1.
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
