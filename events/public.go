package events

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Public is what readers get of an event. Labels are never in it, and the link of an
// online event only where anyone has access.
type Public struct {
	ID          string `json:"id"`
	Slug        string `json:"slug,omitempty"` // of its page, which does without
	Type        string `json:"type"`
	Status      Status `json:"status"` // Published or Cancelled
	Name        string `json:"name"`
	Description string `json:"description"`
	URL         string `json:"url,omitempty"` // of its page
	Picture     string `json:"feature_image"`

	// The times as the editor wrote them.
	Date      string `json:"event_date"`
	TimeStart string `json:"event_time_start"`
	TimeEnd   string `json:"event_time_end"`
	TimeZone  string `json:"event_time_zone"`

	// The times as RFC 3339 has them; the whole day as dates, whose last is the day after.
	Start    *string `json:"start"`
	End      *string `json:"end"`
	AllDay   bool    `json:"all_day"`
	Deadline *string `json:"deadline"`

	Location     string  `json:"location"`
	PlatformURL  *string `json:"platform_url,omitempty"`
	MaxAttendees *int64  `json:"max_attendees"`
	Access       string  `json:"access"`

	// Fields are those of the theme's own, by their keys.
	Fields map[string]any `json:"fields"`

	UpdatedAt time.Time `json:"updated_at"`
}

// public returns what readers get of an event, apart from its slug and its address. Fields
// that its type does not have are left out.
func (e *Event) public() Public {
	values := e.shown()
	p := Public{
		ID: e.ID, Type: e.Type, Status: e.Status, UpdatedAt: e.UpdatedAt,
		Name: textOf(values, "name"), Description: textOf(values, "description"), Picture: textOf(values, "feature_image"),
		Date: textOf(values, "event_date"), TimeStart: textOf(values, "event_time_start"),
		TimeEnd: textOf(values, "event_time_end"), TimeZone: textOf(values, "event_time_zone"),
		Location: textOf(values, "location"), Fields: make(map[string]any),
	}
	p.Access, _ = accessOf(values)
	when := whenOf(values)
	p.AllDay = when.AllDay
	p.Start, p.End, p.Deadline = when.format(when.Start), when.format(when.End), rfc3339(when.Deadline)
	if !when.AllDay && !when.HasEnd {
		p.End = nil
	}
	if link := textOf(values, "platform_url"); link != "" && p.Access == AccessAnyone {
		p.PlatformURL = &link
	}
	if n, ok := wholeNumber(values["max_attendees"]); ok {
		p.MaxAttendees = &n
	}
	for key, value := range values {
		if !slices.Contains(manifest.StandardFields(), key) {
			p.Fields[key] = value
		}
	}
	return p
}

// shown returns the values of fields that the type of an event has.
func (e *Event) shown() map[string]any {
	values := maps.Clone(e.Values)
	maps.DeleteFunc(values, func(key string, _ any) bool { return !e.has(key) })
	return values
}

// format writes a time of the event: of the whole day its date alone.
func (w When) format(t time.Time) *string {
	if w.AllDay {
		return new(t.Format(dateFormat))
	}
	return rfc3339(t)
}

func rfc3339(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.Format(time.RFC3339))
}

// These enclose what an event puts into the head of its page. What staff write around it
// stays.
const (
	headStart = "<!-- lychgate-event: made anew by each save of the event -->"
	headEnd   = "<!-- /lychgate-event -->"

	// headID is in the last element of that part.
	headID = `id="lychgate-event"`
)

// head returns what an event puts into the head of its page: schema.org's Event for search
// engines, and the event as JSON for the theme's script.
func (p Public) head() string {
	return headStart + "\n" + script(`type="application/ld+json"`, p.linkedData()) + "\n" +
		script(`type="application/json" `+headID, p) + "\n" + headEnd
}

// script returns a script element with JSON, in which nothing ends the element: <, > and &
// are escaped, and so are U+2028 and U+2029.
func script(attributes string, content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // values come from JSON
	}
	return "<script " + attributes + ">" + string(text) + "</script>"
}

// withHead returns the HTML in the head of a page with the part of an event, "" for none,
// in place of the one that was there.
func withHead(html, part string) string {
	before, rest, found := strings.Cut(html, headStart)
	if !found {
		if part == "" {
			return html
		}
		return strings.TrimLeft(strings.TrimRight(html, "\n")+"\n"+part, "\n")
	}
	_, after, found := strings.Cut(rest, headEnd)
	if !found { // somebody cut it off
		_, after, _ = strings.Cut(rest, headID)
		_, after, _ = strings.Cut(after, "</script>")
	}
	rest = after
	if part == "" {
		return strings.TrimRight(before, "\n") + rest
	}
	return before + part + rest
}

// linkedData is an event in the vocabulary of schema.org
// (https://schema.org/Event).
type linkedData struct {
	Context        string   `json:"@context"`
	Kind           string   `json:"@type"`
	Name           string   `json:"name"`
	Description    string   `json:"description,omitempty"`
	Image          []string `json:"image,omitempty"`
	StartDate      string   `json:"startDate,omitempty"`
	EndDate        string   `json:"endDate,omitempty"`
	EventStatus    string   `json:"eventStatus"`
	AttendanceMode string   `json:"eventAttendanceMode,omitempty"`
	Location       []any    `json:"location,omitempty"`
	Capacity       *int64   `json:"maximumAttendeeCapacity,omitempty"`
	IsFree         *bool    `json:"isAccessibleForFree,omitempty"`
}

type linkedPlace struct {
	Kind    string `json:"@type"`
	Name    string `json:"name"`
	Address string `json:"address"`
}

type linkedLink struct {
	Kind string `json:"@type"`
	URL  string `json:"url"`
}

const schemaOrg = "https://schema.org/"

func (p Public) linkedData() linkedData {
	d := linkedData{
		Context: "https://schema.org", Kind: "Event", Name: p.Name, Description: p.Description,
		EventStatus: schemaOrg + "EventScheduled", Capacity: p.MaxAttendees,
	}
	if p.Status == Cancelled {
		d.EventStatus = schemaOrg + "EventCancelled"
	}
	if p.Picture != "" {
		d.Image = []string{p.Picture}
	}
	if p.Start != nil {
		d.StartDate = *p.Start
	}
	if p.End != nil && !p.AllDay { // of the whole day, the one date says it
		d.EndDate = *p.End
	}
	if p.Location != "" {
		d.Location = append(d.Location, linkedPlace{"Place", p.Location, p.Location})
		d.AttendanceMode = schemaOrg + "OfflineEventAttendanceMode"
	}
	if p.PlatformURL != nil {
		d.Location = append(d.Location, linkedLink{"VirtualLocation", *p.PlatformURL})
		d.AttendanceMode = schemaOrg + "OnlineEventAttendanceMode"
		if p.Location != "" {
			d.AttendanceMode = schemaOrg + "MixedEventAttendanceMode"
		}
	}
	if p.Access != "" {
		d.IsFree = new(p.Access != AccessPaid)
	}
	return d
}

// bodyOf returns the JSON that readers get of an event with a post.
func (e *Event) bodyOf(p Public) string {
	p.URL, p.Slug = e.Post.URL, e.Post.Slug
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		panic(err) // values come from JSON
	}
	return strings.TrimSuffix(body.String(), "\n")
}

// isShown reports whether readers find the post of an event.
func (p Post) isShown() bool { return p.ID != "" && p.Status == platform.Published }
