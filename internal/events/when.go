package events

import (
	"time"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// When is when an event is, as far as its values say. Times are in the event's time zone.
type When struct {
	// Start and End are zero if the event has no date. An event without a start time lasts
	// whole days, and End is the day after the last. One without an end time and without an
	// end date ends when it starts.
	Start, End time.Time
	AllDay     bool

	zone *time.Location

	// HasEnd means that the event says when it ends. If it says so by an end date alone, End is
	// the end of that day, and EndsWithDay is true.
	HasEnd, EndsWithDay bool

	// Deadline is the last moment to register, zero for none. One without a time is the
	// end of its day.
	Deadline time.Time

	// DeadlineIsDay means that the deadline has no time.
	DeadlineIsDay bool
}

// Zone is UTC if the event has no valid time zone.
func (w When) Zone() *time.Location { return w.zone }

// Over is the end, or the end of the day if the event does not say when it ends.
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

// endDate is the key of the date on which an event ends. Manifests do not know it.
const endDate = "event_date_end"

// whenOf takes values that are not valid for missing, and an unknown time zone for UTC.
func whenOf(values map[string]any) When {
	zone := zoneOf(values)
	w := When{zone: zone}
	if date, ok := parseDate(textOf(values, "event_date")); ok {
		start, hasStart := parseClock(textOf(values, "event_time_start"))
		end, hasEnd := parseClock(textOf(values, "event_time_end"))
		last, isGiven := lastDate(values)
		w.AllDay, w.HasEnd = !hasStart, hasStart && (hasEnd || isGiven)
		w.EndsWithDay = hasStart && isGiven && !hasEnd
		w.Start = at(date, start, zone)
		switch {
		case w.AllDay, w.EndsWithDay:
			w.End = at(last.AddDate(0, 0, 1), 0, zone)
		case hasEnd:
			w.End = at(last, end, zone)
		default:
			w.End = w.Start
		}
	}
	if date, ok := parseDate(textOf(values, "registration_deadline")); ok {
		if clock, ok := parseClock(textOf(values, "deadline_time_end")); ok {
			w.Deadline = at(date, clock, zone)
		} else {
			w.Deadline, w.DeadlineIsDay = at(date.AddDate(0, 0, 1), 0, zone), true
		}
	}
	return w
}

// lastDate is for an event with a date. isGiven says that the end date is set. Without one, an end
// time before the start is on the next day.
func lastDate(values map[string]any) (date time.Time, isGiven bool) {
	first, _ := parseDate(textOf(values, "event_date"))
	if last, ok := parseDate(textOf(values, endDate)); ok && !last.Before(first) {
		return last, true
	}
	start, hasStart := parseClock(textOf(values, "event_time_start"))
	end, hasEnd := parseClock(textOf(values, "event_time_end"))
	if hasStart && hasEnd && end < start {
		return first.AddDate(0, 0, 1), false
	}
	return first, false
}

// laterDay is the last date of an event, as a time in UTC. ok is false if the event ends on the
// date on which it starts.
func laterDay(values map[string]any) (date time.Time, ok bool) {
	first, hasDate := parseDate(textOf(values, "event_date"))
	last, _ := lastDate(values)
	return last, hasDate && last.After(first)
}

// at is when the clocks of a zone show a time, the first time if they show it twice (RFC 5545, section 3.3.5). It moves
// one that they leave out to as much later. time.Date promises neither.
func at(date time.Time, clock time.Duration, zone *time.Location) time.Time {
	t := time.Date(date.Year(), date.Month(), date.Day(), int(clock/time.Hour), int(clock%time.Hour/time.Minute), 0, 0, zone)
	_, offset := t.Zone()
	if change, _ := t.ZoneBounds(); !change.IsZero() {
		_, before := change.Add(-1).Zone()
		if first := t.Add(time.Duration(offset-before) * time.Second); first.Before(change) && before > offset {
			return first
		}
	}
	if early := date.Add(clock).Sub(t.UTC()) - time.Duration(offset)*time.Second; early > 0 { // west of Greenwich
		t = t.Add(early)
	}
	return t
}

// dateIn is midnight in UTC of the same calendar date.
func dateIn(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// LastDay is for an event with a date. It is midnight in UTC of that calendar date.
func (w When) LastDay() time.Time {
	if w.AllDay || w.EndsWithDay {
		return dateIn(w.End.Add(-1))
	}
	return dateIn(w.End)
}

// format leaves the time out of an event of whole days.
func (w When) format(t time.Time) any {
	if w.AllDay {
		return t.Format(dateFormat)
	}
	return rfc3339(t)
}

// rfc3339 is nil for the zero time.
func rfc3339(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// isSkipped reports whether the clocks of a zone leave a time of a date out. What ends at the moment at which they go
// forward ends at a time that exists, if by another name: 02:00 is 03:00.
func isSkipped(date time.Time, clock time.Duration, zone *time.Location, mayBeChange bool) bool {
	t := at(date, clock, zone)
	change, _ := t.ZoneBounds()
	return time.Duration(t.Hour())*time.Hour+time.Duration(t.Minute())*time.Minute != clock && (!mayBeChange || !t.Equal(change))
}

// parseDate reads a date of a year from 1000 to 9998: the day after it, which calendars need, has four
// digits for its year too.
func parseDate(text string) (time.Time, bool) {
	date, err := time.Parse(dateFormat, text)
	return date, err == nil && date.Year() >= 1000 && date.Year() <= 9998
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

// checkEnd says what is wrong with the end time of an event that has a date.
func checkEnd(text string, values map[string]any) string {
	end, _ := parseClock(text)
	start, hasStart := parseClock(textOf(values, "event_time_start"))
	first, hasDate := parseDate(textOf(values, "event_date"))
	last, isGiven := lastDate(values)
	switch {
	case !hasDate: // the date says so
	case !hasStart:
		return "needs a start time too"
	case isGiven && last.Equal(first) && end < start:
		return "must not be before the start time on the same day. Without an end date, it is on the next day"
	}
	return ""
}

// checkEndDate says what is wrong with the end date of an event.
func checkEndDate(text string, values map[string]any) string {
	last, _ := parseDate(text)
	first, hasDate := parseDate(textOf(values, "event_date"))
	switch {
	case !hasDate && !manifest.IsFilled(values["event_date"]):
		return "needs a date too: fill in date"
	case hasDate && last.Before(first):
		return "must not be before the date"
	}
	return ""
}

// checkDeadline says what is wrong with the last day to register. Without a time of day it may
// be the last day of the event.
func checkDeadline(text string, values map[string]any) string {
	date, _ := parseDate(text)
	_, hasDay := parseDate(textOf(values, "event_date"))
	last, _ := lastDate(values)
	isLate := hasDay && date.After(last)
	if _, hasClock := parseClock(textOf(values, "deadline_time_end")); hasDay && hasClock {
		w := whenOf(values)
		isLate = w.Deadline.After(w.Over())
	}
	if isLate {
		return "must not be after the event"
	}
	return ""
}
