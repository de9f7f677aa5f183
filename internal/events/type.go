package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Type is an event type of a theme, with the tags that its posts get.
type Type struct {
	manifest.EventType
	Tags []string // the theme's default tags and the type's own
}

// NewType fails, with ok false, if the theme does not declare the key.
func NewType(declared *manifest.Events, key string) (*Type, bool) {
	t, ok := declared.Type(key)
	if !ok {
		return nil, false
	}
	return &Type{t, declared.EventTags(t)}, true
}

// Has reports whether the type has a standard field: one that its manifest names, or one that
// comes with such a field.
func (t *Type) Has(f *Field) bool {
	if f.with != "" {
		return slices.Contains(t.SupportedFields, f.with) && !t.isOwn(f.Key)
	}
	return slices.Contains(t.SupportedFields, f.Key)
}

// Fields are the standard fields that the type has, in the order of the editor.
func (t *Type) Fields() []*Field {
	return slices.DeleteFunc(slices.Clone(editorFields), func(f *Field) bool { return !t.Has(f) })
}

func (t *Type) isOwn(key string) bool {
	return slices.ContainsFunc(t.CustomFields, func(c manifest.CustomField) bool { return c.Key == key })
}

func (t *Type) shape() Shape {
	s := Shape{Label: t.Label, Template: t.PostTemplate, Tags: t.Tags, AskName: t.AskName}
	for _, f := range t.Fields() {
		s.Fields = append(s.Fields, f.Key)
	}
	for _, key := range []string{"name", "slug", "description", "feature_image"} {
		if slices.Contains(t.RequiredFields, key) {
			s.Required = append(s.Required, key)
		}
	}
	for _, custom := range t.CustomFields {
		s.Fields = append(s.Fields, custom.Key)
		if _, isStandard := StandardField(custom.Key); isStandard {
			s.Own = append(s.Own, custom.Key)
		}
		if custom.Type != "image" {
			s.Labels = append(s.Labels, FieldLabel{custom.Key, custom.Label})
		}
	}
	return s
}

// standard drops custom fields. One of these may have the key of a standard field.
func (t *Type) standard(values map[string]any) map[string]any {
	own := maps.Clone(values)
	maps.DeleteFunc(own, func(key string, _ any) bool { return t.isOwn(key) })
	return own
}

// EndsOn is the last date of an event, as a time in UTC. ok is false if the event ends on the date
// on which it starts.
func (t *Type) EndsOn(values map[string]any) (date time.Time, ok bool) {
	return laterDay(t.standard(values))
}

// Problems says why an event cannot be published. It checks what the manifest demands
// (docs/manifest.md), values of standard fields that are not valid, such as a date that does not
// exist, and texts that are too long for the platform. They are in the order of the fields in the
// editor.
func (t *Type) Problems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	found := []manifest.Problem{}
	standard := t.standard(values)
	for _, f := range t.Fields() {
		wrong := ""
		switch isFilled := manifest.IsFilled(standard[f.Key]); {
		case isFilled:
			wrong = f.wrong(standard, limits)
		case slices.Contains(t.RequiredFields, f.Key):
			wrong = "is required"
		}
		if wrong != "" {
			found = append(found, manifest.Problem{Field: f.Key, Message: f.Label + " " + wrong + "."})
		}
	}
	for _, p := range t.Publish(values) {
		if _, isStandard := StandardField(p.Field); !isStandard || t.isOwn(p.Field) {
			found = append(found, p)
		}
	}
	return found
}

const (
	// maxText bounds texts that the platform does not keep, in code points.
	maxText = 2000

	// maxLabels bounds the labels of an event.
	maxLabels = 100
)

// wrong says what is wrong with the value of a field that is filled, "" for nothing.
func (f *Field) wrong(values map[string]any, limits platform.PostLimits) string {
	value := values[f.Key]
	switch f.Kind {
	case "number":
		if n, ok := wholeNumber(value).(int64); !ok || n < 1 || n > maxNumber {
			return "must be a whole number from 1 on, such as 120"
		}
		return ""
	case LabelsKind:
		return wrongLabels(value, limits.Tag)
	}
	text, isText := value.(string)
	if !isText {
		return "must be text"
	}
	text = strings.TrimSpace(text)
	wrong := f.wrongText(text, values)
	if wrong == "" && f.check != nil {
		wrong = f.check(text, values)
	}
	most := maxText
	if f.limit != nil {
		most = f.limit(limits)
	}
	return cmp.Or(wrong, tooLong(text, most))
}

// wrongText says what is wrong with a text of the field's kind.
func (f *Field) wrongText(text string, values map[string]any) string {
	switch f.Kind {
	case "url":
		if !manifest.IsURL(text) {
			return "must be a URL such as https://example.com/meeting"
		}
	case "image":
		if !manifest.IsURL(text) {
			return "must be the URL of a picture, such as https://example.com/picture.jpg"
		}
	case "date":
		if _, ok := parseDate(text); !ok {
			return "must be a date that exists, such as 2026-05-31"
		}
	case ZoneKind:
		if _, ok := parseZone(text); !ok {
			return "must be the name of a time zone, such as Europe/Berlin"
		}
	case TimeKind:
		return f.wrongTime(text, values)
	case ChoiceKind:
		if !slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == text }) {
			return "must be one of the choices, or empty"
		}
	case AccessKind:
		if accessOf(values) == "" {
			return "must be anyone, free or paid"
		}
	}
	return ""
}

func (f *Field) wrongTime(text string, values map[string]any) string {
	clock, ok := parseClock(text)
	if !ok {
		return "must be a time of day, such as 19:30"
	}
	date, ok := parseDate(textOf(values, f.date))
	if ok && f.isEnd {
		date, _ = lastDate(values)
	}
	switch {
	case !ok && !manifest.IsFilled(values[f.date]):
		of, _ := StandardField(f.date)
		return "needs a date too: fill in " + strings.ToLower(of.Label)
	case !ok: // the date says so
	case isSkipped(date, clock, zoneOf(values), f.Key != "event_time_start"):
		return fmt.Sprintf("does not exist on %s in %s, where the clocks go forward then", date.Format("2 January 2006"), zoneOf(values))
	}
	return ""
}

func wrongLabels(value any, most int) string {
	list, ok := value.([]any)
	if !ok || len(list) > maxLabels {
		return fmt.Sprintf("must be a list of %d labels at most", maxLabels)
	}
	for _, entry := range list {
		label, ok := entry.(string)
		if !ok {
			return "must be a list of texts"
		}
		if wrong := tooLong(label, most); wrong != "" {
			return wrong
		}
	}
	return ""
}
