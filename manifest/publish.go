package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is why an event cannot be published.
type Problem struct {
	Field   string `json:"field"` // the key of the standard or the custom field
	Message string `json:"message"`
}

// Publish checks the values of an event before it is published (docs/manifest.md,
// "Custom fields"). values are by the keys of standard and custom fields, as
// encoding/json decodes them into `any`.
//
// Checked are the required standard fields. Of the custom fields it checks
//   - required: a toggle has to be true, as HTML has it of a required checkbox;
//   - the bounds of numbers; a number may also be text that is a decimal number;
//   - that a URL is one of http or https with a host;
//   - the options of a select;
//   - max_length, in code points.
//
// Nothing else is checked: constraints on standard
// fields are hints, and patterns and the properties of images are stored only.
//
// What is null, blank or an empty list is not filled. The problems are in the
// order of the file, the standard fields first; none is an empty list.
func (t EventType) Publish(values map[string]any) []Problem {
	problems := []Problem{}
	for _, key := range t.RequiredFields {
		if !IsFilled(values[key]) {
			problems = append(problems, Problem{key, labelOf(key) + " is required."})
		}
	}
	for _, c := range t.CustomFields {
		if wrong := c.check(values[c.Key]); wrong != "" {
			problems = append(problems, Problem{c.Key, c.Label + " " + wrong + "."})
		}
	}
	return problems
}

// IsFilled reports whether a field has a value. `false` and 0 are some.
func IsFilled(value any) bool {
	switch value := value.(type) {
	case nil:
		return false
	case string:
		return !isBlank(value)
	case []any:
		return slices.ContainsFunc(value, IsFilled)
	case []string:
		return slices.ContainsFunc(value, func(s string) bool { return !isBlank(s) })
	}
	return true
}

// check says what is wrong with a value, or "".
func (c *CustomField) check(value any) string {
	switch {
	case c.Required && c.Type == "toggle" && value != true:
		return "must be ticked"
	case c.Required && !IsFilled(value):
		return "is required"
	case !IsFilled(value) && (c.Type != "text" && c.Type != "textarea" || value == nil):
		return ""
	}
	switch c.Type {
	case "text", "textarea":
		return c.checkText(value)
	case "number":
		return c.checkNumber(value)
	case "select":
		if s, ok := value.(string); !ok || !slices.Contains(c.Options, s) {
			return "must be one of its options"
		}
	case "url":
		if s, ok := value.(string); !ok || !IsURL(s) {
			return "must be a URL such as https://example.com/page"
		}
	}
	return ""
}

func (c *CustomField) checkText(value any) string {
	if c.MaxLength == 0 {
		return ""
	}
	s, ok := value.(string) // also blank text has a length
	if !ok {
		return "must be text"
	}
	if n := utf8.RuneCountInString(s); n > c.MaxLength {
		return fmt.Sprintf("must have %d characters at most; it has %d", c.MaxLength, n)
	}
	return ""
}

func (c *CustomField) checkNumber(value any) string {
	x, ok := numberOf(value)
	switch {
	case !ok:
		return "must be a number"
	case c.Min != nil && x < *c.Min:
		return "must be " + decimal(*c.Min) + " or more"
	case c.Max != nil && x > *c.Max:
		return "must be " + decimal(*c.Max) + " or less"
	}
	return ""
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// numberOf reads a finite number, or text that is one.
func numberOf(value any) (float64, bool) {
	var s string
	switch value := value.(type) {
	case float64:
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	case int:
		return float64(value), true
	case int64:
		return float64(value), true
	case json.Number:
		s = value.String()
	case string:
		s = strings.TrimSpace(value)
	}
	if strings.Trim(s, "+-.0123456789eE") != "" { // Inf, NaN, 0x10
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}

// IsURL reports whether a text is a URL of http or https, with a host.
func IsURL(s string) bool {
	if strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}
