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

// calendarFrame returns what stands around the events of a calendar file (RFC 5545). name is
// what a calendar that is subscribed to is called, "" for none. There is no METHOD: nobody is
// invited, and PUBLISH would need an ORGANIZER (RFC 5546, section 3.2.1).
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

// calendarEntry returns an event, as JSON for readers, as it stands in a calendar file: ""
// for one without a date. Times are in UTC, so that no calendar needs the rules of a time
// zone.
func calendarEntry(body string) (string, error) {
	var p Public
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		return "", err
	}
	if p.Date == "" || p.Start == nil {
		return "", nil
	}
	return p.calendarEvent().Serialize(serialization), nil
}

func (p Public) calendarEvent() *ical.VEvent {
	when := whenOf(map[string]any{
		"event_date": p.Date, "event_time_start": p.TimeStart, "event_time_end": p.TimeEnd, "event_time_zone": p.TimeZone,
	})
	e := ical.NewEvent(p.ID + "@lychgate")
	e.SetDtStampTime(p.UpdatedAt)
	e.SetLastModifiedAt(p.UpdatedAt)
	e.SetSequence(p.sequence())
	if when.AllDay {
		e.SetAllDayStartAt(dateIn(when.Start))
		e.SetAllDayEndAt(dateIn(when.End))
	} else {
		e.SetStartAt(when.Start.UTC())
		if when.End.After(when.Start) { // DTEND must be later (RFC 5545, section 3.8.2.2)
			e.SetEndAt(when.End.UTC())
		}
	}
	e.SetSummary(oneLine(p.Name))
	if p.Description != "" {
		e.SetDescription(lines(p.Description))
	}
	switch {
	case p.Location != "":
		e.SetLocation(oneLine(p.Location))
	case p.PlatformURL != nil:
		e.SetLocation(*p.PlatformURL)
	}
	if p.URL != "" {
		e.SetURL(p.URL)
	}
	e.SetStatus(ical.ObjectStatusConfirmed)
	if p.Status == Cancelled {
		e.SetStatus(ical.ObjectStatusCancelled)
	}
	return e
}

// sequence returns a number that grows with the changes of the event, by which a calendar that
// has it takes the newer one (RFC 5545, section 3.8.7.4): the seconds from the beginning of
// 2026 to the last change. Calendars have room for them until 2094.
func (p Public) sequence() int {
	return max(int(p.UpdatedAt.Unix()-time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()), 0)
}

// dateIn returns a date as a time in UTC, where it is the same date.
func dateIn(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// lines has line breaks as calendars escape them.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
