package events

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// An editor makes a course of an evening: one draft a week, of the same name. What was asked for twice is made once.
func TestCopiesAreMadeOncePerDate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := r.published(map[string]any{
			"name": "Choir", "event_date": "2031-05-01", "event_time_start": "19:00", "event_date_end": "2031-05-02", "registration_deadline": "2031-04-29", "speaker": "Ada",
		})
		of := func(date, end, deadline string) map[string]any {
			return map[string]any{
				"name": "Choir", "event_date": date, "event_time_start": "19:00", "event_date_end": end, "registration_deadline": deadline, "speaker": "Ada",
			}
		}
		s := r.By(Editor{ID: "ada", Name: "Ada"})
		weekly := Copies{Date: "2031-05-08", Until: "2031-05-28", Key: "1"}
		var ids []string
		for range 2 {
			made := r.copies(s, e.ID, weekly)
			got, again := []map[string]any{}, []string{}
			for _, e := range made {
				got, again = append(got, e.Values), append(again, e.ID)
				if e.Status != Draft || e.Post.ID != "" {
					t.Errorf("got %+v, want a draft without a post", e)
				}
			}
			if diff := cmp.Diff([]map[string]any{of("2031-05-08", "2031-05-09", "2031-05-06"), of("2031-05-15", "2031-05-16", "2031-05-13"), of("2031-05-22", "2031-05-23", "2031-05-20")}, got); diff != "" {
				t.Errorf("the copies (-want +got): %s", diff)
			}
			if ids != nil && !cmp.Equal(ids, again) {
				t.Errorf("asked again, got %v, want %v", again, ids)
			}
			ids = again
		}
		if page := want[Page](t)(r.List(ctx, "daily", Query{View: Drafts, Most: 10})); page.Total != 3 {
			t.Errorf("%d drafts, want 3", page.Total)
		}
		earlier := want[Event](t)(s.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Choir, 2031-05-01", "event_date": "2031-05-01"}}))
		next := r.copies(s, earlier.ID, Copies{Date: "2032-05-08"})
		if len(next) != 1 || next[0].Values["name"] != "Choir" {
			t.Errorf("a copy of one that an earlier release has made: got %+v, want one that is called Choir", next)
		}
	})
}

// A duplicate without dates that is asked for twice is made once, whatever somebody makes of it. Of
// copies that somebody has deleted, those are made again that are asked for again.
func TestDuplicateAskedAgain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := r.published(map[string]any{"name": "Choir", "event_date": "2031-05-01", "speaker": "Ada"})
		s := r.By(Editor{ID: "ada", Name: "Ada"})
		one := want[Event](t)(s.Duplicate(ctx, "daily", e.ID, "1"))
		if diff := cmp.Diff(map[string]any{"name": "Choir", "speaker": "Ada"}, one.Values); diff != "" || one.Status != Draft || one.Post.ID != "" {
			t.Errorf("got %+v, want a draft without a post (-want +got): %s", one, diff)
		}
		want[Event](t)(s.Save(ctx, "daily", one.ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball"}}, nil))
		if again := want[Event](t)(s.Duplicate(ctx, "daily", e.ID, "1")); again.ID != one.ID || again.Values["name"] != "Ball" {
			t.Errorf("asked again: got %+v, want %s as somebody has changed it", again, one.ID)
		}
		for who, key := range map[string]string{"ada": "2", "bea": "1"} {
			if other := want[Event](t)(r.By(Editor{ID: who}).Duplicate(ctx, "daily", e.ID, key)); other.ID == one.ID {
				t.Errorf("%s with the key %s gets the copy of ada with the key 1, want another one", who, key)
			}
		}
		remove := func(id string) {
			t.Helper()
			if err := s.Delete(ctx, "daily", id, 0); err != nil {
				t.Fatalf("s.Delete: %v", err)
			}
		}
		remove(one.ID)
		if again := want[Event](t)(s.Duplicate(ctx, "daily", e.ID, "1")); again.Values["name"] != "Choir" {
			t.Errorf("asked again after it was deleted: got %+v, want a copy of %+v", again, e)
		}

		weekly := Copies{Date: "2031-05-08", Until: "2031-05-28", Key: "3"}
		names := func(list []Event) (names []string) {
			for _, e := range list {
				names = append(names, fmt.Sprint(e.Values["name"], " ", e.Values["event_date"]))
			}
			return names
		}
		made := r.copies(s, e.ID, weekly)
		want[Event](t)(s.Save(ctx, "daily", made[0].ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball"}}, nil))
		remove(made[1].ID)
		if diff := cmp.Diff([]string{"Ball <nil>", "Choir 2031-05-15", "Choir 2031-05-22"}, names(r.copies(s, e.ID, weekly))); diff != "" {
			t.Errorf("asked again after one was deleted (-want +got): %s", diff)
		}

		// One whose post Ghost has still to take back says so.
		want[Event](t)(s.Write(ctx, "daily", made[2].ID, 0, typeOf(t, "webinar")))
		r.ghost.Break(platformtest.ErrDown)
		remove(made[2].ID)
		if _, _, err := s.Copy(ctx, "daily", e.ID, weekly); !errors.As(err, new(*KeyUsedError)) {
			t.Errorf("asked again while one is being deleted: got %v, want %v", err, new(KeyUsedError))
		}
	})
}

// copies are those that a service makes.
func (r *bench) copies(s *Service, id string, c Copies) []Event {
	r.t.Helper()
	made, _, err := s.Copy(r.t.Context(), "daily", id, c)
	if err != nil {
		r.t.Fatalf("s.Copy(%+v): %v", c, err)
	}
	return made
}

// Copies are on the days that a rule says: in months the weekday of the event's own date, and none where a month has none.
func TestDatesOfCopies(t *testing.T) {
	for name, test := range map[string]struct {
		own   string
		c     Copies
		dates []string
		none  []string
	}{
		"each week":                   {"", Copies{Date: "2031-03-24", Until: "2031-04-07"}, []string{"2031-03-24", "2031-03-31", "2031-04-07"}, nil},
		"every second week":           {"", Copies{Date: "2031-12-22", Every: Fortnightly, Until: "2032-01-05"}, []string{"2031-12-22", "2032-01-05"}, nil},
		"one":                         {"2031-05-06", Copies{Date: "2031-05-08", Every: Fortnightly}, []string{"2031-05-08"}, nil},
		"the first Tuesday":           {"2031-05-06", Copies{Date: "2031-05-07", Every: Monthly, Until: "2031-08-05"}, []string{"2031-06-03", "2031-07-01", "2031-08-05"}, nil},
		"the first Tuesday, itself":   {"2031-05-06", Copies{Date: "2031-05-06", Every: Monthly, Until: "2031-06-02"}, []string{"2031-05-06"}, nil},
		"one, of a month's rule":      {"2031-05-06", Copies{Date: "2031-05-08", Every: Monthly}, []string{"2031-05-08"}, nil},
		"the next first Tuesday":      {"2031-05-06", Copies{Date: "2031-05-07", Every: Monthly, Until: "2031-06-30"}, []string{"2031-06-03"}, nil},
		"the last Friday":             {"2031-10-31", Copies{Date: "2031-11-01", Every: MonthlyLast, Until: "2032-02-29"}, []string{"2031-11-28", "2031-12-26", "2032-01-30", "2032-02-27"}, nil},
		"the fifth Friday":            {"2031-10-31", Copies{Date: "2031-11-01", Every: Monthly, Until: "2032-05-01"}, []string{"2032-01-30", "2032-04-30"}, []string{"2031-11", "2031-12", "2032-02", "2032-03"}},
		"a fifth Sunday in February":  {"2032-02-29", Copies{Date: "2032-03-01", Every: Monthly, Until: "2032-06-01"}, []string{"2032-05-30"}, []string{"2032-03", "2032-04"}},
		"of an event on the last day": {"2031-01-31", Copies{Date: "2031-02-01", Every: MonthlyLast, Until: "2031-03-01"}, []string{"2031-02-28"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			of := Event{Values: map[string]any{"event_date": test.own}}
			dates, skipped, err := test.c.dates(&of)
			if err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			var got []string
			for _, date := range dates {
				got = append(got, date.Format(dateFormat))
			}
			if diff := cmp.Diff([][]string{test.dates, test.none}, [][]string{got, skipped}); diff != "" {
				t.Errorf("dates, and months without one (-want +got): %s", diff)
			}
		})
	}
}

// A copy begins at the same time by the clock, also if the clocks have changed since.
func TestCopiesKeepTheTimeOfDay(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	e := r.published(map[string]any{"name": "Choir", "event_date": "2031-03-25", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin"})
	var got []string
	for _, e := range append([]Event{e}, r.copies(r.Service, e.ID, Copies{Date: "2031-04-01"})...) {
		got = append(got, e.When().Start.Format("2006-01-02T15:04Z07:00"))
	}
	if diff := cmp.Diff([]string{"2031-03-25T19:00+01:00", "2031-04-01T19:00+02:00"}, got); diff != "" {
		t.Errorf("the starts (-want +got): %s", diff)
	}
}

// What cannot be copied is told before anything is made.
func TestCopiesThatAreRefused(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": "Choir"}}))
	for _, test := range []struct {
		date, until string
		every       Rule
		want        string
	}{
		{"", "", "", "The date of the copy must be a date that exists, such as 2031-05-08."},
		{"2031-02-30", "", "", "The date of the copy must be a date that exists, such as 2031-05-08."},
		{"2031-05-01", "soon", "", "The last date of the copies must be a date that exists, such as 2031-12-31."},
		{"2031-05-01", "2031-04-30", "", "The last date of the copies must not be before the first one."},
		{"2031-01-01", "2031-12-31", "", "Until 2031-12-31 there are more than 52 such days. Choose an earlier date."},
		{"2031-01-01", "2099-12-31", Fortnightly, "Until 2099-12-31 there are more than 52 such days. Choose an earlier date."},
		{"2031-01-01", "", "day", "The copies are made every week, two_weeks, month or month_last."},
		{"2031-01-01", "", Monthly, "An event without a date is on no weekday of a month. Give it a date first."},
	} {
		_, _, err := r.Copy(ctx, "daily", e.ID, Copies{Date: test.date, Every: test.every, Until: test.until})
		if invalid, ok := errors.AsType[*InvalidError](err); !ok || invalid.Problems[0].Message != test.want {
			t.Errorf("from %q until %q: got %v, want %s", test.date, test.until, err, test.want)
		}
	}
	if made := r.copies(r.Service, e.ID, Copies{Date: "2031-01-01", Until: "2031-12-30"}); len(made) != MaxCopies {
		t.Errorf("%d copies, want %d", len(made), MaxCopies)
	}
	last := Copies{Date: "2032-01-01", Until: "2032-12-29", Key: "1"}
	r.copies(r.Service, e.ID, last)
	if again := r.copies(r.Service, e.ID, last); len(again) != MaxCopies {
		t.Errorf("asked again where there is no room for more: got %d copies, want the %d", len(again), MaxCopies)
	}
	_, _, err := r.Copy(ctx, "daily", e.ID, Copies{Date: "2033-01-01", Until: "2033-12-30"})
	page := want[Page](t)(r.List(ctx, "daily", Query{View: Drafts, Most: 1}))
	if got, want := fmt.Sprint(err, page.Total), fmt.Sprint(ErrTooFast, 1+2*MaxCopies); got != want {
		t.Errorf("more than a site makes in a minute: got %s, want %s", got, want)
	}
}
