package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file reads values, and writes JSON of them.

// maxNumber is the largest whole number that each reader of JSON reads exactly.
const maxNumber = 1 << 53

// textOf trims white space. It is "" for a value that is not text.
func textOf(values map[string]any, key string) string {
	text, _ := values[key].(string)
	return strings.TrimSpace(text)
}

// wholeNumber is an int64, or nil. Text may be a number too.
func wholeNumber(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) && math.Abs(value) <= maxNumber {
			return int64(value)
		}
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
			return n
		}
	}
	return nil
}

// isText reports whether a text can be kept and shown: PostgreSQL keeps no NUL, and XML
// and calendars take no other control characters.
func isText(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
	})
}

func tooLong(text string, most int) string {
	if n := utf8.RuneCountInString(text); n > most {
		return fmt.Sprintf("must have %d characters at most; it has %d", most, n)
	}
	return ""
}

// lines has line breaks as calendars escape them.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// object is a JSON object whose members, at least one, keep their order.
type object []member

type member struct {
	key   string
	value any
}

func (o *object) add(key string, value any) { *o = append(*o, member{key, value}) }

// addFilled adds a value that is neither nil nor "".
func (o *object) addFilled(key string, value any) {
	if value != nil && value != "" {
		o.add(key, value)
	}
}

func (o object) values() map[string]any {
	values := make(map[string]any, len(o))
	for _, m := range o {
		values[m.key] = m.value
	}
	return values
}

// MarshalJSON leaves <, > and & as they are. [json.Marshal] escapes them in what it returns.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, m := range o {
		fmt.Fprintf(&text, "%c%q:", "{,"[min(i, 1)], m.key)
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
		text.Truncate(text.Len() - 1) // the line break
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// encode escapes <, > and & for use in HTML.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // values come from JSON
	}
	return string(text)
}
