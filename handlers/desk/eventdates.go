package desk

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
)

// This file says when events are: in a list in the time zone of the site, so that its times can
// be compared, and on the pages of one event in that event's. The browser's counts nowhere.

// siteZone is UTC, and isKnown is false, while the platform does not respond.
func (v *view) siteZone(ctx context.Context) (zone *time.Location, isKnown bool) {
	zone, err := v.events.Posts.Zone(ctx, v.site.Name)
	if err != nil && ctx.Err() == nil {
		v.desk.Logger.Warn("cannot read the site's time zone", zap.String("site", v.site.Name), zap.Error(err))
	}
	return zone, err == nil
}

// dateOf says when an event is in its own time zone, "" without a date.
func dateOf(e events.Event) string {
	w := e.When()
	if w.Start.IsZero() {
		return clip.Text(textOfValue(e.Values["event_date"]), maxLabel)
	}
	text := dateIn(w, w.Start.Location())
	if !w.AllDay {
		text += " " + w.Start.Location().String()
	}
	return text
}

// deadlineOf says how long readers can register for an event that was moved, since its deadline stays. It is "" without a deadline.
func deadlineOf(e events.Event, now time.Time) string {
	w, terms := e.When(), e.Terms()
	if terms.Deadline.IsZero() || terms.Access == "" {
		return ""
	}
	text, starts := terms.Deadline.Format(dayFormat+", "+clockFormat)+" "+terms.Deadline.Location().String(), w.Start
	if terms.DeadlineIsDay {
		text = terms.Deadline.Add(-1).Format(dayFormat)
		starts = w.Start.AddDate(0, 0, 1) // the day of the start is no mistake
	}
	switch {
	case terms.IsLate(now):
		return " Its deadline was " + text + ", so nobody can register any more. Change it if they should."
	case !w.Start.IsZero() && terms.Deadline.After(starts):
		return " Its deadline, " + text + ", is after the start now. Change it if readers should register before that."
	}
	return " Its deadline is " + text + "."
}

const (
	dayFormat   = "2 Jan 2006"
	clockFormat = "15:04"
)

// dateIn says when an event that has a date is in a time zone. Days are the same in each.
func dateIn(w events.When, zone *time.Location) string {
	if w.AllDay {
		first, last := w.Start.Format(dayFormat), w.LastDay().Format(dayFormat)
		if first == last {
			return first
		}
		return first + " – " + last
	}
	start, end := w.Start.In(zone), w.End.In(zone)
	if w.EndsWithDay { // the last minute of it
		end = end.Add(-time.Minute)
	}
	day := start.Format(dayFormat)
	text := day + ", " + start.Format(clockFormat)
	switch {
	case !w.HasEnd:
	case end.Format(dayFormat) == day:
		text += "–" + end.Format(clockFormat)
	default:
		text += " – " + end.Format(dayFormat+", "+clockFormat)
	}
	return text
}
