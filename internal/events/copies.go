package events

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file makes copies of an event.

// MaxCopies is how many copies of an event are made at once: one for each week of a year.
const MaxCopies = 52

// Rule says how far copies of an event are apart.
type Rule string

// The rules. The last two are on the weekday of the event's own date: as many weeks from the start of a month as that
// date, such as each first Tuesday, or in the last week of each month.
const (
	Weekly      Rule = "week"
	Fortnightly Rule = "two_weeks"
	Monthly     Rule = "month"
	MonthlyLast Rule = "month_last"
)

// Copies says on which dates copies of an event are.
type Copies struct {
	// Date is that of the first one, such as 2031-05-08. With Until, the first of a month's rule is not before it.
	Date  string
	Every Rule   // "" is Weekly
	Until string // the last date; "" for one copy, on Date, whatever Every is

	// Key is as for [Service.Duplicate].
	Key string
}

// isSeries reports whether the copies and the event are a series.
func (c Copies) isSeries() bool { return c.Until != "" }

// dates has at most MaxCopies dates for an event, and the months in which its rule has none. Errors: *InvalidError.
func (c Copies) dates(of *Event) (dates []time.Time, skipped []string, err error) {
	wrong := func(field, message string) ([]time.Time, []string, error) {
		return nil, nil, &InvalidError{[]manifest.Problem{{Field: field, Message: message}}}
	}
	first, ok := parseDate(c.Date)
	if !ok {
		return wrong("date", "The date of the copy must be a date that exists, such as 2031-05-08.")
	}
	own, hasDate := parseDate(textOf(of.Values, "event_date"))
	var next func(i int) (date time.Time, ok bool)
	switch c.Every {
	case "", Weekly:
		next = func(i int) (time.Time, bool) { return first.AddDate(0, 0, 7*i), true }
	case Fortnightly:
		next = func(i int) (time.Time, bool) { return first.AddDate(0, 0, 14*i), true }
	case Monthly, MonthlyLast:
		if !hasDate {
			return wrong("every", "An event without a date is on no weekday of a month. Give it a date first.")
		}
		next = func(i int) (time.Time, bool) { return c.Every.inMonth(own, first, i) }
	default:
		return wrong("every", "The copies are made every week, two_weeks, month or month_last.")
	}
	if c.Until == "" {
		return []time.Time{first}, nil, nil
	}
	last, ok := parseDate(c.Until)
	switch {
	case !ok:
		return wrong("until", "The last date of the copies must be a date that exists, such as 2031-12-31.")
	case last.Before(first):
		return wrong("until", "The last date of the copies must not be before the first one.")
	}
	for i := 0; ; i++ {
		date, ok := next(i)
		switch {
		case date.After(last):
			if len(dates) == 0 {
				return wrong("until", fmt.Sprintf("Until %s there is no such day. Choose a later date.", c.Until))
			}
			return dates, skipped, nil
		case date.Before(first):
		case !ok:
			skipped = append(skipped, date.Format(MonthFormat))
		case len(dates) == MaxCopies:
			return wrong("until", fmt.Sprintf("Until %s there are more than %d such days. Choose an earlier date.", c.Until, MaxCopies))
		default:
			dates = append(dates, date)
		}
	}
}

// inMonth is the day of a rule in the month that is so many months behind that of the first copy. In a month that has no
// such day, ok is false, and the date is the 29th or one behind it.
func (r Rule) inMonth(own, first time.Time, months int) (date time.Time, ok bool) {
	start := time.Date(first.Year(), first.Month()+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	if r == MonthlyLast {
		end := start.AddDate(0, 1, -1)
		return end.AddDate(0, 0, -int(end.Weekday()-own.Weekday()+7)%7), true
	}
	week, _ := WeekOf(own)
	date = start.AddDate(0, 0, int(own.Weekday()-start.Weekday()+7)%7+7*(week-1))
	if date.Month() != start.Month() {
		return start.AddDate(0, 1, -1), false
	}
	return date, true
}

// Next is the first day of a rule after the date of an event.
func (r Rule) Next(own time.Time) time.Time {
	switch r {
	case Monthly, MonthlyLast:
		for i := 0; ; i++ {
			if date, ok := r.inMonth(own, own, i); ok && date.After(own) {
				return date
			}
		}
	case Fortnightly:
		return own.AddDate(0, 0, 14)
	case Weekly:
	}
	return own.AddDate(0, 0, 7)
}

// WeekOf says which of its weekday in its month a date is, from 1 to 5, and whether it is the last one.
func WeekOf(date time.Time) (week int, isLast bool) {
	return (date.Day()-1)/7 + 1, date.AddDate(0, 0, 7).Month() != date.Month()
}

// Duplicate keeps a draft with the values of an event, but for its slug and its dates. A caller may ask
// again with the same key, because the response was lost: then it returns the draft that was made,
// whatever that is by now, or makes it again if somebody has deleted it. "" is for no key. Errors: those
// of Copy, but for *InvalidError.
func (s *Service) Duplicate(ctx context.Context, site, id, key string) (Event, error) {
	e, err := s.Find(ctx, site, id)
	if err != nil {
		return Event{}, err
	}
	made, err := s.copies(ctx, &e, []time.Time{{}}, Copies{Key: key})
	if err != nil {
		return Event{}, err
	}
	return made[0], nil
}

// Copy keeps copies of an event, drafts on other dates, and returns them in that order, with the months in which the rule
// has no day. Their end dates and the last days to register are as far from the date as the event's. Those that are made
// until a date are a series with the event ([Query.Series]).
// Errors: ErrNotFound, *InvalidError, *KeyUsedError while a copy that was made with the key is being
// deleted, ErrTooFast, ErrTooMany, those of the store. After one of the store, some may be there: with the
// same key, the others are made too.
func (s *Service) Copy(ctx context.Context, site, id string, c Copies) (made []Event, skipped []string, err error) {
	e, err := s.Find(ctx, site, id)
	if err != nil {
		return nil, nil, err
	}
	dates, skipped, err := c.dates(&e)
	if err != nil {
		return nil, nil, err
	}
	made, err = s.copies(ctx, &e, dates, c)
	return made, skipped, err
}

// copies keeps copies of an event on dates; a zero date is none.
func (s *Service) copies(ctx context.Context, e *Event, dates []time.Time, c Copies) (made []Event, err error) {
	made = make([]Event, len(dates))
	missing := 0
	for i, date := range dates {
		if made[i], err = s.copied(ctx, e, date, c); err != nil {
			return nil, err
		}
		if made[i].ID == "" {
			missing++
		}
	}
	if err := s.checkMade(ctx, e.Site, missing); missing > 0 && err != nil {
		return nil, err
	}
	for i, date := range dates {
		if made[i].ID != "" {
			continue
		}
		if made[i], err = s.copyTo(ctx, e, date, c); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// copyID is the ID of a copy on a date that the key makes, a random one without a key. The IDs of a series begin alike.
func (s *Service) copyID(e *Event, date time.Time, c Copies) string {
	id := newID()
	if c.Key != "" {
		on := ""
		if !date.IsZero() {
			on = date.Format(dateFormat)
		}
		id = idOf(e.Site, s.by.ID, encode([]string{"copy", e.ID, c.Key, on}))
	}
	if c.isSeries() {
		id = e.ID[:seriesLength] + id[seriesLength:]
	}
	return id
}

// copied finds a copy that an earlier request made with the key. If there is none, the event is
// zero.
func (s *Service) copied(ctx context.Context, e *Event, date time.Time, c Copies) (Event, error) {
	if c.Key == "" {
		return Event{}, nil
	}
	made, err := s.Find(ctx, e.Site, s.copyID(e, date, c))
	if errors.Is(err, ErrNotFound) {
		return Event{}, nil
	}
	return made, err
}

// copyTo keeps a copy on a date.
func (s *Service) copyTo(ctx context.Context, e *Event, date time.Time, c Copies) (Event, error) {
	id := s.copyID(e, date, c)
	values, err := Edit{e.Theme, e.Type, e.valuesOn(date)}.checked()
	if err != nil {
		return Event{}, err
	}
	made, err := s.keep(ctx, e.Site, id, Edit{e.Theme, e.Type, values})
	if !database.ViolatedUnique(err) {
		return made, err
	}
	made, err = s.Find(ctx, e.Site, id) // of the same request, which was sent twice
	if errors.Is(err, ErrNotFound) {
		err = new(KeyUsedError)
	}
	return made, err
}

// valuesOn moves the other dates of an event with its date, and drops the values that only one
// event may have.
func (e *Event) valuesOn(date time.Time) map[string]any {
	values := maps.Clone(e.Values)
	maps.DeleteFunc(values, func(key string, _ any) bool {
		f, ok := StandardField(key)
		return ok && f.isUnique
	})
	if date.IsZero() {
		return values
	}
	values["event_date"] = date.Format(dateFormat)
	was := textOf(e.Values, "event_date")
	if from, ok := parseDate(was); ok {
		for _, key := range []string{endDate, "registration_deadline"} {
			if was, ok := parseDate(textOf(e.Values, key)); ok {
				values[key] = was.Add(date.Sub(from)).Format(dateFormat)
			}
		}
	}
	if name := textOf(e.Values, "name"); name != "" {
		values["name"] = strings.TrimSuffix(name, ", "+was) // which an earlier release has put there
	}
	return values
}
