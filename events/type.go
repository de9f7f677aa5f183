package events

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Type is an event type of a theme, with the tags that its posts get.
type Type struct {
	manifest.EventType
	Tags []string // the theme's default tags and the type's own
}

// NewType returns the type with a key, and false if there is none.
func NewType(declared *manifest.Events, key string) (*Type, bool) {
	t, ok := declared.Type(key)
	if !ok {
		return nil, false
	}
	return &Type{t, declared.EventTags(t)}, true
}

// shape returns how posts of the type are made.
func (t *Type) shape() Shape {
	fields := slices.Clone(t.SupportedFields)
	for _, custom := range t.CustomFields {
		fields = append(fields, custom.Key)
	}
	return Shape{Label: t.Label, Template: t.PostTemplate, Tags: t.Tags, Fields: fields}
}

// These are who may register for an event: its access.
const (
	AccessAnyone = "anyone"
	AccessFree   = "free"
	AccessPaid   = "paid"
)

// accessOf returns who may register for an event, "" if its editor did not say, and whether
// that is a value that it may be published with. White space around the value is ignored: no
// reader of values looks at them but by this function.
func accessOf(values map[string]any) (access string, isValid bool) {
	if !manifest.IsFilled(values["access"]) {
		return "", true
	}
	switch access = textOf(values, "access"); access {
	case AccessAnyone, AccessFree, AccessPaid:
		return access, true
	}
	return "", false
}

// Problems returns why an event with some values cannot be published: what the manifest
// demands (docs/manifest.md), values of standard fields that nobody can use, such as a date
// that does not exist, and texts that are longer than the platform takes. The order is that
// of the fields in the editor; none is an empty list.
func (t *Type) Problems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	found := t.Publish(values)
	missing := make(map[string]bool)
	for i, p := range found {
		missing[p.Field] = true
		if slices.Contains(t.RequiredFields, p.Field) {
			found[i].Message = Label(p.Field) + " is required." // as the editor names the field
		}
	}
	c := checker{t, values, limits}
	for _, key := range t.SupportedFields {
		if missing[key] || !manifest.IsFilled(values[key]) {
			continue
		}
		if wrong := c.check(key); wrong != "" {
			found = append(found, manifest.Problem{Field: key, Message: Label(key) + " " + wrong + "."})
		}
	}
	order := t.fields()
	slices.SortStableFunc(found, func(a, b manifest.Problem) int {
		return slices.Index(order, a.Field) - slices.Index(order, b.Field)
	})
	return found
}

// postProblems returns why the platform would not take what the theme says of the posts of
// the type.
func (t *Type) postProblems(values map[string]any, limits platform.PostLimits) []manifest.Problem {
	var found []manifest.Problem
	if wrong := tooLong(t.Label, limits.Title); wrong != "" && textOf(values, "name") == "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The event has no name, and the type's label, which would be the title, " + wrong + "."})
	}
	if wrong := tooLong(t.PostTemplate, limits.Template); wrong != "" {
		found = append(found, manifest.Problem{Field: "type", Message: "The name of the type's template " + wrong + "."})
	}
	for _, tag := range t.Tags {
		if wrong := tooLong(tag, limits.Tag); wrong != "" {
			found = append(found, manifest.Problem{Field: "type", Message: "The type's tag " + clip.Text(tag, 40) + " " + wrong + "."})
		}
	}
	return found
}

// fields returns the keys of the type's fields, in the order of the editor.
func (t *Type) fields() []string {
	order := manifest.StandardFields()
	for _, custom := range t.CustomFields {
		order = append(order, custom.Key)
	}
	return order
}

// Label returns the name of a standard field in the editor.
func Label(key string) string {
	switch key {
	case "slug":
		return "URL slug"
	case "event_time_start":
		return "Start time"
	case "event_time_end":
		return "End time"
	case "event_time_zone":
		return "Time zone"
	case "event_date":
		return "Date"
	case "platform_url":
		return "Online event link"
	case "max_attendees":
		return "Maximum attendees"
	case "feature_image":
		return "Featured image"
	case "rsvp_labels":
		return "Labels for registrants"
	case "deadline_time_end":
		return "Deadline time"
	}
	label := strings.ReplaceAll(key, "_", " ")
	return strings.ToUpper(label[:1]) + label[1:]
}

// checker checks the standard fields of an event.
type checker struct {
	*Type
	values map[string]any
	limits platform.PostLimits
}

const (
	// maxText bounds texts that the platform does not keep, in code points.
	maxText = 2000

	// maxAttendees is a number that each reader of JSON reads exactly.
	maxAttendees = 1 << 53

	// maxLabels bounds the labels of an event.
	maxLabels = 100
)

var slugPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check says what is wrong with a field that is filled, or "".
func (c *checker) check(key string) string {
	value := c.values[key]
	text, isText := value.(string)
	text = strings.TrimSpace(text)
	switch key {
	case "max_attendees":
		if n, ok := wholeNumber(value); !ok || n < 1 || n > maxAttendees {
			return "must be a whole number from 1 on, such as 120"
		}
		return ""
	case "rsvp_labels":
		return c.checkLabels(value)
	}
	if !isText {
		return "must be text"
	}
	switch key {
	case "name":
		return tooLong(text, c.limits.Title)
	case "slug":
		if !slugPattern.MatchString(text) {
			return "must have lower-case letters, digits and single hyphens only, such as summer-party"
		}
		return tooLong(text, c.limits.Slug)
	case "description":
		return tooLong(text, c.limits.Excerpt)
	case "location":
		return tooLong(text, maxText)
	case "feature_image":
		if !manifest.IsURL(text) {
			return "must be the URL of a picture, such as https://example.com/picture.jpg"
		}
		return tooLong(text, c.limits.Picture)
	case "platform_url":
		if !manifest.IsURL(text) {
			return "must be a URL such as https://example.com/meeting"
		}
		return tooLong(text, maxText)
	case "access":
		if _, isValid := accessOf(c.values); !isValid {
			return "must be anyone, free or paid"
		}
		return ""
	}
	return c.checkTime(key, text)
}

// checkTime says what is wrong with a date, a time of day or a time zone.
func (c *checker) checkTime(key, text string) string {
	switch key {
	case "event_time_zone":
		if _, ok := parseZone(text); !ok {
			return "must be the name of a time zone, such as Europe/Berlin"
		}
	case "event_date", "registration_deadline":
		date, ok := parseDate(text)
		if !ok {
			return "must be a date that exists, such as 2026-05-31"
		}
		if key == "registration_deadline" && c.isLate(date) {
			return "must not be after the event"
		}
	case "event_time_start", "event_time_end", "deadline_time_end":
		return c.checkClock(key, text)
	}
	return ""
}

// isLate reports whether a deadline on a date is after the event. Without a time of day it
// may be the event's day.
func (c *checker) isLate(date time.Time) bool {
	day, ok := parseDate(textOf(c.values, "event_date"))
	if _, hasClock := parseClock(textOf(c.values, "deadline_time_end")); !ok || !hasClock {
		return ok && date.After(day)
	}
	when := whenOf(c.values)
	return when.Deadline.After(when.Over())
}

// clockOf are the dates of times of day.
var clockOf = map[string]string{
	"event_time_start": "event_date", "event_time_end": "event_date", "deadline_time_end": "registration_deadline",
}

func (c *checker) checkClock(key, text string) string {
	clock, ok := parseClock(text)
	if !ok {
		return "must be a time of day, such as 19:30"
	}
	date, ok := parseDate(textOf(c.values, clockOf[key]))
	switch {
	case !ok && !manifest.IsFilled(c.values[clockOf[key]]):
		return "needs a date too: fill in " + strings.ToLower(Label(clockOf[key]))
	case !ok:
		return "" // the date says so
	case isSkipped(date, clock, zoneOf(c.values)):
		return fmt.Sprintf("does not exist on %s in %s, where the clocks go forward then", date.Format("2 January 2006"), zoneOf(c.values))
	}
	if key == "event_time_end" {
		start, ok := parseClock(textOf(c.values, "event_time_start"))
		switch {
		case !ok:
			return "needs a start time too"
		case clock < start:
			return "must not be before the start time. An event that goes past midnight can end at 23:59, and say more in its description"
		}
	}
	return ""
}

func (c *checker) checkLabels(value any) string {
	list, ok := value.([]any)
	if !ok || len(list) > maxLabels {
		return fmt.Sprintf("must be a list of %d labels at most", maxLabels)
	}
	for _, entry := range list {
		label, ok := entry.(string)
		if !ok {
			return "must be a list of texts"
		}
		if wrong := tooLong(label, c.limits.Tag); wrong != "" {
			return wrong
		}
	}
	return ""
}

func tooLong(text string, most int) string {
	if n := utf8.RuneCountInString(text); n > most {
		return fmt.Sprintf("must have %d characters at most; it has %d", most, n)
	}
	return ""
}

// wholeNumber returns a value that is a whole number, or text that is one.
func wholeNumber(value any) (int64, bool) {
	switch value := value.(type) {
	case float64:
		return int64(value), value == math.Trunc(value) && math.Abs(value) <= maxAttendees
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		return n, err == nil
	}
	return 0, false
}
