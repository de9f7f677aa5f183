package events

import (
	"encoding/json"
	"strings"
	"time"

	ical "github.com/arran4/golang-ical"
)

// product names us in calendar files (RFC 5545, section 3.7.3).
const product = "-//Lychgate//Events//EN"

// serialization is how calendar files are written: lines of at most 75 bytes that end in
// CRLF (RFC 5545, section 3.1).
var serialization = &ical.SerializationConfiguration{MaxLength: 75, PropertyMaxLength: 75, NewLine: "\r\n"}

// calendarFrame writes what stands around the events of a calendar file (RFC 5545). name is for a
// calendar that people subscribe to, else "". There is no METHOD: nobody is invited, and PUBLISH
// would need an ORGANIZER (RFC 5546, section 3.2.1).
func calendarFrame(name string) (start, end string) {
	calendar := ical.NewCalendar()
	calendar.SetProductId(product)
	if name != "" {
		calendar.SetName(oneLine(name))
		calendar.SetXWRCalName(oneLine(name))
		calendar.SetRefreshInterval("PT1H")
	}
	end = "END:VCALENDAR" + serialization.NewLine
	return strings.TrimSuffix(calendar.Serialize(serialization), end), end
}

// defaultLength is how long an event is in a calendar that does not say when it ends. Calendars
// show one of no length badly, or not at all.
const defaultLength = time.Hour

// withLink adds the online link to an event, as JSON for readers. The caller has checked that the
// reader may have it.
func withLink(body, link string) (string, error) {
	var public map[string]any
	if err := json.Unmarshal([]byte(body), &public); err != nil {
		return "", err
	}
	public["platform_url"] = link
	return encode(public), nil
}

// calendarEntry writes an event, as JSON for readers, as a VEVENT, "" if it has no date. Times are
// in UTC, so that no calendar needs the rules of a time zone (docs/events_api.md#calendars).
func calendarEntry(body string) (string, error) {
	e, err := calendarEvent(body)
	if e == nil || err != nil {
		return "", err
	}
	return e.Serialize(serialization), nil
}

// calendarEvent is nil if the event has no date.
func calendarEvent(body string) (*ical.VEvent, error) {
	var public map[string]any
	if err := json.Unmarshal([]byte(body), &public); err != nil || textOf(public, "start") == "" {
		return nil, err
	}
	updatedAt, err := time.Parse(time.RFC3339, textOf(public, "updated_at"))
	if err != nil {
		return nil, err
	}
	e := ical.NewEvent(textOf(public, "id") + "@lychgate")
	e.SetDtStampTime(updatedAt)
	e.SetLastModifiedAt(updatedAt)
	e.SetSequence(sequence(updatedAt))
	if when := whenOf(public); when.AllDay {
		e.SetAllDayStartAt(dateIn(when.Start))
		e.SetAllDayEndAt(dateIn(when.End))
	} else {
		end := when.End
		if !end.After(when.Start) { // DTEND must be later (RFC 5545, section 3.8.2.2)
			end = when.Start.Add(defaultLength)
		}
		e.SetStartAt(when.Start.UTC())
		e.SetEndAt(end.UTC())
	}
	e.SetSummary("") // which each entry has, also of an event without a name
	for _, f := range standardFields {
		text := oneLine(textOf(public, f.Key))
		if f.Kind == "textarea" {
			text = lines(textOf(public, f.Key))
		}
		if p := e.GetProperty(f.calendar); text != "" && f.calendar != "" && (p == nil || p.Value == "") {
			e.SetProperty(f.calendar, text)
		}
	}
	if url := textOf(public, "url"); url != "" {
		e.SetURL(url)
	}
	addLink(e, oneLine(textOf(public, "platform_url")))
	e.SetStatus(ical.ObjectStatusConfirmed)
	if textOf(public, "status") == string(Cancelled) {
		e.SetStatus(ical.ObjectStatusCancelled)
	}
	return e, nil
}

// addLink adds the online link of an event, "" for none. Many programs do not know CONFERENCE
// (RFC 7986, section 5.11), so the link is also in the description, unless it is the place.
func addLink(e *ical.VEvent, link string) {
	if link == "" {
		return
	}
	e.AddProperty(ical.ComponentProperty("CONFERENCE"), link, ical.WithValue("URI"))
	if place := e.GetProperty(ical.ComponentPropertyLocation); place != nil && place.Value == link {
		return
	}
	var description string
	if p := e.GetProperty(ical.ComponentPropertyDescription); p != nil {
		description = p.Value + "\n\n"
	}
	e.SetProperty(ical.ComponentPropertyDescription, description+link)
}

// A calendar takes the entry with the greater number (RFC 5545, section 3.8.7.4). The number is the
// seconds from the beginning of 2026 to the last change. Calendars have room for them until 2094.
func sequence(updatedAt time.Time) int {
	return max(int(updatedAt.Unix()-time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()), 0)
}
