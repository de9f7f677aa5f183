package events

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// Edit is an event as an editor leaves it.
type Edit struct {
	Theme, Type string
	Values      map[string]any
}

const (
	// maxValues bounds the values of an event as JSON, in bytes.
	maxValues = 128 << 10

	// maxKey bounds the keys of themes, types and fields, in bytes.
	maxKey = 200

	// maxList bounds a value that is a list.
	maxList = 1000
)

// checked drops empty values. A draft may have values that publishing refuses, but none that no
// field has, such as an object. Errors: *InvalidError.
func (d Edit) checked() (map[string]any, error) {
	var problems []manifest.Problem
	wrong := func(field, message string) {
		problems = append(problems, manifest.Problem{Field: field, Message: message})
	}
	if !isKey(d.Theme) {
		wrong("theme", "The theme must be named, with 200 bytes at most.")
	}
	if !isKey(d.Type) {
		wrong("type", "The event type must be named, with 200 bytes at most.")
	}
	values := make(map[string]any)
	for key, value := range d.Values {
		value = kept(key, value)
		switch {
		case !isKey(key):
			wrong("values", "The key of a field must have 1 to 200 bytes, and no control characters.")
		case value == nil || value == "":
		case !isValue(value):
			wrong(key, "The value must be text without control characters other than tabs and line breaks, a number, true or false, or a list of texts.")
		default:
			values[key] = value
		}
	}
	if size := len(encode(values)); len(problems) == 0 && size > maxValues {
		wrong("values", fmt.Sprintf("The values have %d bytes as JSON, and may have %d.", size, maxValues))
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b manifest.Problem) int { return strings.Compare(a.Field, b.Field) })
		return nil, &InvalidError{problems}
	}
	return values, nil
}

// In a standard field, white space around a text means nothing, and a time zone may be in any case.
// Custom fields are the theme's to read, so they stay as they are.
func kept(key string, value any) any {
	text, isText := value.(string)
	f, isStandard := StandardField(key)
	if !isText || !isStandard {
		return value
	}
	text = strings.TrimSpace(text)
	if f.spell != nil {
		text = f.spell(text)
	}
	return text
}

// IsLine reports whether a text can be kept and shown, is one line, and has so many code points at
// most.
func IsLine(text string, most int) bool {
	return isLine(text) && tooLong(text, most) == ""
}

func isLine(text string) bool { return isText(text) && !strings.ContainsAny(text, "\t\r\n") }

func isKey(text string) bool {
	return text != "" && len(text) <= maxKey && isLine(text)
}

func isValue(value any) bool {
	switch value := value.(type) {
	case string:
		return isText(value)
	case bool, float64:
		return true
	case []any:
		return len(value) <= maxList && !slices.ContainsFunc(value, func(entry any) bool {
			text, ok := entry.(string)
			return !ok || !isText(text)
		})
	}
	return false
}

// IsUntouched reports whether nobody has changed an event since it was made.
func (e *Event) IsUntouched() bool { return e.UpdatedAt.Equal(e.CreatedAt) }

// isAs reports whether an event is as an editor leaves it, but for a slug that the platform
// has made since.
func (e *Event) isAs(d Edit) bool {
	values := e.Values
	if _, ok := d.Values["slug"]; !ok && e.Post.Slug != "" && values["slug"] == e.Post.Slug {
		values = maps.Clone(values)
		delete(values, "slug")
	}
	return e.Theme == d.Theme && e.Type == d.Type && reflect.DeepEqual(values, d.Values)
}
