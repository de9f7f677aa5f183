package events

import (
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/dates"
)

// This file says when an event is, for people.

// Text says when an event is, in its time zone and in the language of a BCP 47 tag, English for others: Thursday, May 1, 2031,
// 7:00 – 9:00 PM (Europe/Berlin). It is "" without a date.
func (w When) Text(tag string) string {
	in, last := dates.In(tag), w.LastDay()
	isLater := last.After(dateIn(w.Start))
	var text string
	switch {
	case w.Start.IsZero():
		return ""
	case w.AllDay && isLater:
		return in.Span(in.Day(w.Start), in.Day(last))
	case w.AllDay:
		return in.Day(w.Start)
	case w.EndsWithDay && isLater:
		text = in.Span(in.Moment(w.Start), in.Day(last))
	case isLater:
		text = in.Span(in.Moment(w.Start), in.Moment(w.End))
	case w.HasEnd && !w.EndsWithDay && w.End.After(w.Start):
		text = in.Times(w.Start, w.End)
	default:
		text = in.Moment(w.Start)
	}
	return text + zoneText(w.Start)
}

// DeadlineText says until when readers can register, as [When.Text] does. It is "" without a deadline.
func (t Terms) DeadlineText(tag string) string {
	switch in := dates.In(tag); {
	case t.Deadline.IsZero():
		return ""
	case t.DeadlineIsDay:
		return in.Day(t.Deadline.Add(-1))
	default:
		return in.Moment(t.Deadline) + zoneText(t.Deadline)
	}
}

// zoneText is behind a time of day.
func zoneText(t time.Time) string { return " (" + t.Location().String() + ")" }
