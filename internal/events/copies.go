package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// This file makes copies of an event.

// MaxCopies is how many copies of an event are made at once: one for each week of a year.
const MaxCopies = 52

// week is how far copies are apart.
const week = 7 * 24 * time.Hour

// Copies says on which dates copies of an event are.
type Copies struct {
	Date  string // of the first one, such as 2031-05-08
	Until string // there is one each week up to this date; "" for the first one alone

	// Key is as for [Service.Duplicate].
	Key string
}

// dates has one date for each week, at most MaxCopies. Errors: *InvalidError.
func (c Copies) dates() ([]time.Time, error) {
	wrong := func(field, message string) ([]time.Time, error) {
		return nil, &InvalidError{[]manifest.Problem{{Field: field, Message: message}}}
	}
	first, ok := parseDate(c.Date)
	if !ok {
		return wrong("date", "The date of the copy must be a date that exists, such as 2031-05-08.")
	}
	if c.Until == "" {
		return []time.Time{first}, nil
	}
	last, ok := parseDate(c.Until)
	switch {
	case !ok:
		return wrong("until", "The last date of the copies must be a date that exists, such as 2031-12-31.")
	case last.Before(first):
		return wrong("until", "The last date of the copies must not be before the first one.")
	case last.Sub(first) >= MaxCopies*week:
		return wrong("until", fmt.Sprintf("Until %s there are more than %d weeks. Choose an earlier date.", c.Until, MaxCopies))
	}
	var dates []time.Time
	for date := first; !date.After(last); date = date.Add(week) {
		dates = append(dates, date)
	}
	return dates, nil
}

// Duplicate keeps a draft with the values of an event, but for its slug and its dates. A caller may ask
// again with the same key, because the response was lost: then it returns the draft that was made,
// whatever that is by now, or makes it again if somebody has deleted it. "" is for no key. Errors: those
// of Copy, but for *InvalidError.
func (s *Service) Duplicate(ctx context.Context, site, id, key string) (Event, error) {
	made, err := s.copies(ctx, site, id, []time.Time{{}}, key)
	if err != nil {
		return Event{}, err
	}
	return made[0], nil
}

// Copy keeps copies of an event, drafts on other dates, and returns them in that order. Their dates
// are in their names. Its end date and the last day to register are as far from the date as the event's.
// Errors: ErrNotFound, *InvalidError, *KeyUsedError while a copy that was made with the key is being
// deleted, ErrTooFast, ErrTooMany, those of the store. After one of the store, some may be there: with the
// same key, the others are made too.
func (s *Service) Copy(ctx context.Context, site, id string, c Copies) ([]Event, error) {
	dates, err := c.dates()
	if err != nil {
		return nil, err
	}
	return s.copies(ctx, site, id, dates, c.Key)
}

// copies keeps copies of an event on dates; a zero date is none.
func (s *Service) copies(ctx context.Context, site, id string, dates []time.Time, key string) ([]Event, error) {
	e, err := s.Find(ctx, site, id)
	if err != nil {
		return nil, err
	}
	made := make([]Event, len(dates))
	missing := 0
	for i, date := range dates {
		if made[i], err = s.copied(ctx, &e, date, key); err != nil {
			return nil, err
		}
		if made[i].ID == "" {
			missing++
		}
	}
	if err := s.checkMade(ctx, site, missing); missing > 0 && err != nil {
		return nil, err
	}
	for i, date := range dates {
		if made[i].ID != "" {
			continue
		}
		if made[i], err = s.copyTo(ctx, &e, date, key); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// copyID is the ID of a copy on a date that a key makes.
func (s *Service) copyID(e *Event, date time.Time, key string) string {
	on := ""
	if !date.IsZero() {
		on = date.Format(dateFormat)
	}
	return idOf(e.Site, s.by.ID, encode([]string{"copy", e.ID, key, on}))
}

// copied finds a copy that an earlier request made with the key. If there is none, the event is
// zero.
func (s *Service) copied(ctx context.Context, e *Event, date time.Time, key string) (Event, error) {
	if key == "" {
		return Event{}, nil
	}
	made, err := s.Find(ctx, e.Site, s.copyID(e, date, key))
	if errors.Is(err, ErrNotFound) {
		return Event{}, nil
	}
	return made, err
}

// copyTo keeps a copy on a date.
func (s *Service) copyTo(ctx context.Context, e *Event, date time.Time, key string) (Event, error) {
	id := newID()
	if key != "" {
		id = s.copyID(e, date, key)
	}
	values, err := Edit{e.Theme, e.Type, e.valuesOn(date, s.Posts.limits(e.Site).Title)}.checked()
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
// event may have. most bounds the name, in code points.
func (e *Event) valuesOn(date time.Time, most int) map[string]any {
	values := maps.Clone(e.Values)
	maps.DeleteFunc(values, func(key string, _ any) bool {
		f, ok := StandardField(key)
		return ok && f.isUnique
	})
	if date.IsZero() {
		return values
	}
	values["event_date"] = date.Format(dateFormat)
	if from, ok := parseDate(textOf(e.Values, "event_date")); ok {
		for _, key := range []string{endDate, "registration_deadline"} {
			if was, ok := parseDate(textOf(e.Values, key)); ok {
				values[key] = was.Add(date.Sub(from)).Format(dateFormat)
			}
		}
	}
	if name := textOf(e.Values, "name"); name != "" {
		values["name"] = nameOn(name, date, most)
	}
	return values
}

// dated is the end of a name that was made here.
var dated = regexp.MustCompile(`, \d{4}-\d{2}-\d{2}$`)

// nameOn adds the date to a name, so that copies can be told apart. The form of the date is the
// same in all languages.
func nameOn(name string, date time.Time, most int) string {
	end := ", " + date.Format(dateFormat)
	name = dated.ReplaceAllString(name, "")
	if free := cmp.Or(most, maxText) - len(end); utf8.RuneCountInString(name) > free {
		name = string([]rune(name)[:free])
	}
	return name + end
}
