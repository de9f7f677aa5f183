package events

import (
	"path"
	"sync"
	"time"
	_ "time/tzdata" // an edge may be in a container without time zones
)

// When is when an event is, as far as its values say. Times are in the event's time zone.
type When struct {
	// Start and End are zero if the event has no date. An event without a start time lasts
	// the whole day, and End is the day after it. One without an end time ends when it
	// starts.
	Start, End time.Time
	AllDay     bool

	// HasEnd means that the event says when it ends.
	HasEnd bool

	// Deadline is the last moment to register, zero for none. One without a time is the
	// end of its day.
	Deadline time.Time
}

// Over returns when the event is over: at its end, or with its day if it does not say.
func (w When) Over() time.Time {
	if w.AllDay || w.HasEnd || w.Start.IsZero() {
		return w.End
	}
	return at(dateIn(w.Start).AddDate(0, 0, 1), 0, w.Start.Location())
}

// These are how dates and clock times are written (RFC 3339, section 5.6, without seconds).
const (
	dateFormat  = "2006-01-02"
	clockFormat = "15:04"
)

// whenOf returns when an event with some values is. What is not valid counts as not given,
// and a time zone that nobody knows as UTC.
func whenOf(values map[string]any) When {
	zone := zoneOf(values)
	var w When
	if date, ok := parseDate(textOf(values, "event_date")); ok {
		start, hasStart := parseClock(textOf(values, "event_time_start"))
		end, hasEnd := parseClock(textOf(values, "event_time_end"))
		w.AllDay, w.HasEnd = !hasStart, hasStart && hasEnd
		w.Start = at(date, start, zone)
		switch {
		case w.AllDay:
			w.Start, w.End = at(date, 0, zone), at(date.AddDate(0, 0, 1), 0, zone)
		case hasEnd:
			w.End = at(date, end, zone)
		default:
			w.End = w.Start
		}
	}
	if date, ok := parseDate(textOf(values, "registration_deadline")); ok {
		if clock, ok := parseClock(textOf(values, "deadline_time_end")); ok {
			w.Deadline = at(date, clock, zone)
		} else {
			w.Deadline = at(date.AddDate(0, 0, 1), 0, zone)
		}
	}
	return w
}

// at returns a time of day on a date in a zone. A time that the clocks leave out counts as
// so much later.
func at(date time.Time, clock time.Duration, zone *time.Location) time.Time {
	t := time.Date(date.Year(), date.Month(), date.Day(), int(clock/time.Hour), int(clock%time.Hour/time.Minute), 0, 0, zone)
	_, offset := t.Zone()
	if early := date.Add(clock).Sub(t.UTC()) - time.Duration(offset)*time.Second; early > 0 { // west of Greenwich
		t = t.Add(early)
	}
	return t
}

// dateIn returns a date as a time in UTC, where it is the same date.
func dateIn(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// format returns a time of the event as JSON has it: of the whole day its date alone.
func (w When) format(t time.Time) any {
	if w.AllDay {
		return t.Format(dateFormat)
	}
	return rfc3339(t)
}

// rfc3339 returns a time as JSON has it, nil for the zero value.
func rfc3339(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// isSkipped reports whether the clocks of a zone leave a time of a date out.
func isSkipped(date time.Time, clock time.Duration, zone *time.Location) bool {
	t := at(date, clock, zone)
	return time.Duration(t.Hour())*time.Hour+time.Duration(t.Minute())*time.Minute != clock
}

// zoneOf returns the time zone of an event, UTC if it has none that is known.
func zoneOf(values map[string]any) *time.Location {
	if zone, ok := parseZone(textOf(values, "event_time_zone")); ok {
		return zone
	}
	return time.UTC
}

// maxZone is longer than any name of a time zone.
const maxZone = 64

// zones caches time zones, which would be read from a file each time, for an hour: their rules
// change. Some file systems know a zone by any number of names.
var zones struct {
	sync.Mutex
	known map[string]*time.Location
	until time.Time
}

const (
	maxZones = 1000
	zoneTTL  = time.Hour
)

// parseZone reads the IANA name of a time zone.
func parseZone(name string) (*time.Location, bool) {
	zones.Lock()
	defer zones.Unlock()
	if now := time.Now(); len(zones.known) >= maxZones || !now.Before(zones.until) {
		zones.known, zones.until = make(map[string]*time.Location), now.Add(zoneTTL)
	}
	if zone, ok := zones.known[name]; ok {
		return zone, true
	}
	if name == "" || name == "Local" || len(name) > maxZone || path.Clean(name) != name || name[0] == '.' {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.known[name] = zone
	}
	return zone, err == nil
}

// parseDate reads a date of a year from 1000 on.
func parseDate(text string) (time.Time, bool) {
	date, err := time.Parse(dateFormat, text)
	return date, err == nil && date.Year() >= 1000
}

// parseClock reads a time of day. Seconds may be there, and do not count: browsers send
// them where a form has them.
func parseClock(text string) (time.Duration, bool) {
	t, err := time.Parse(clockFormat, text)
	if err != nil {
		t, err = time.Parse(time.TimeOnly, text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
}

// checkEnd says what is wrong with the end of an event that has a date.
func checkEnd(text string, values map[string]any) string {
	end, _ := parseClock(text)
	start, hasStart := parseClock(textOf(values, "event_time_start"))
	switch _, hasDate := parseDate(textOf(values, "event_date")); {
	case !hasDate: // the date says so
	case !hasStart:
		return "needs a start time too"
	case end < start:
		return "must not be before the start time. An event that goes past midnight can end at 23:59, and say more in its description"
	}
	return ""
}

// checkDeadline says what is wrong with the last day to register. Without a time of day it may
// be the day of the event.
func checkDeadline(text string, values map[string]any) string {
	date, _ := parseDate(text)
	day, hasDay := parseDate(textOf(values, "event_date"))
	isLate := hasDay && date.After(day)
	if _, hasClock := parseClock(textOf(values, "deadline_time_end")); hasDay && hasClock {
		w := whenOf(values)
		isLate = w.Deadline.After(w.Over())
	}
	if isLate {
		return "must not be after the event"
	}
	return ""
}
