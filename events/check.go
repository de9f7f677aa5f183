package events

import (
	"fmt"
	"strings"

	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

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
	if wrong := f.wrongText(text, values); wrong != "" {
		return wrong
	}
	if f.check != nil {
		if wrong := f.check(text, values); wrong != "" {
			return wrong
		}
	}
	if f.limit != nil {
		return tooLong(text, f.limit(limits))
	}
	return tooLong(text, maxText)
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
	switch {
	case !ok && !manifest.IsFilled(values[f.date]):
		of, _ := StandardField(f.date)
		return "needs a date too: fill in " + strings.ToLower(of.Label)
	case !ok: // the date says so
	case isSkipped(date, clock, zoneOf(values)):
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
