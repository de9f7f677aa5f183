package desk

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events"
)

// This file shows a month of events as a calendar, in the time zone of the site.

// maxMonthPages bounds the pages of a list that a month is read from: 300 events, or less if they
// are large.
const maxMonthPages = 12

// month fills in the month that is chosen.
func (r *eventsView) month(ctx context.Context, shown *eventList, zone *time.Location) error {
	filter := shown.Filter
	query := filter.query(zone)
	month := monthOf(query.From, r.events.Now().In(zone))
	for n := range maxMonthPages { // of which one is in memory at a time
		page, err := r.events.List(ctx, r.site.Name, query)
		if err != nil {
			return away(err)
		}
		if n == 0 {
			shown.Total, month.More = page.Total, page.Total
		}
		for _, e := range page.Events {
			month.add(e, zone)
		}
		month.More -= len(page.Events)
		if query.After = page.Next; query.After == "" {
			break
		}
	}
	near := func(by int) monthLink {
		f := filter
		f.Month = query.From.AddDate(0, by, 0).Format(events.MonthFormat)
		return monthLink{monthName(f.Month), f.address("")}
	}
	month.Before, month.Behind = near(-1), near(1)
	filter.View = allTab
	month.List = filter.address("")
	shown.Month = month
	return nil
}

// monthOf has whole weeks from Monday on, without events. first is the first day of the month.
func monthOf(first, now time.Time) *shownMonth {
	m := &shownMonth{Name: first.Format("January 2006")}
	back := (int(first.Weekday()) + 6) % 7 // days since Monday
	for day := first.AddDate(0, 0, -back); len(m.Weeks) == 0 || day.Before(first.AddDate(0, 1, 0)); {
		var week []shownDay
		for range 7 {
			week = append(week, shownDay{
				Date: day.Format(time.DateOnly), Name: day.Format("Monday, 2 January"), Number: day.Day(),
				IsOther: day.Month() != first.Month(), IsToday: day.Format(time.DateOnly) == now.Format(time.DateOnly),
			})
			day = day.AddDate(0, 0, 1)
		}
		m.Weeks = append(m.Weeks, week)
	}
	return m
}

// add shows an event on each of its days.
func (m *shownMonth) add(e events.Event, zone *time.Location) {
	w := e.When()
	first, last := w.Start, w.LastDay()
	if !w.AllDay { // days of the event's own zone otherwise, as all lists have them
		first, last = w.Start.In(zone), w.Start.In(zone)
		if w.End.After(w.Start) {
			last = w.End.Add(-time.Millisecond).In(zone)
		}
	}
	from, until := first.Format(time.DateOnly), last.Format(time.DateOnly)
	for _, week := range m.Weeks {
		for i := range week {
			day := &week[i]
			if day.Date < from || day.Date > until {
				continue
			}
			of := dayEvent{ID: e.ID, Name: nameOf(e.Values), Status: string(e.Status)}
			if day.Date == from && !w.AllDay {
				of.Time = first.Format(clockFormat)
			}
			day.Events = append(day.Events, of)
		}
	}
}
