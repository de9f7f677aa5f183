package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// An editor makes a course of an evening: one draft a week, each with its date in its name. What was
// asked for twice is made once.
func TestCopiesAreMadeOncePerDate(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r, ctx := newBench(t, db), t.Context()
		e := r.published(map[string]any{
			"name": "Choir", "event_date": "2031-05-01", "event_time_start": "19:00", "event_date_end": "2031-05-02", "registration_deadline": "2031-04-29", "speaker": "Ada",
		})
		of := func(date, end, deadline string) map[string]any {
			return map[string]any{
				"name": "Choir, " + date, "event_date": date, "event_time_start": "19:00", "event_date_end": end, "registration_deadline": deadline, "speaker": "Ada",
			}
		}
		s := r.By(Editor{ID: "ada", Name: "Ada"})
		weekly := Copies{Date: "2031-05-08", Until: "2031-05-28", Key: "1"}
		var ids []string
		for range 2 {
			made := want[[]Event](t)(s.Copy(ctx, "daily", e.ID, weekly))
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
		next := want[[]Event](t)(s.Copy(ctx, "daily", ids[0], Copies{Date: "2032-05-08"}))
		if len(next) != 1 || next[0].Values["name"] != "Choir, 2032-05-08" {
			t.Errorf("a copy of a copy: got %+v, want one that is called Choir, 2032-05-08", next)
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
		names := func(list []Event) (names []any) {
			for _, e := range list {
				names = append(names, e.Values["name"])
			}
			return names
		}
		made := want[[]Event](t)(s.Copy(ctx, "daily", e.ID, weekly))
		want[Event](t)(s.Save(ctx, "daily", made[0].ID, 0, Edit{"solo", "webinar", map[string]any{"name": "Ball"}}, nil))
		remove(made[1].ID)
		if diff := cmp.Diff([]any{"Ball", "Choir, 2031-05-15", "Choir, 2031-05-22"}, names(want[[]Event](t)(s.Copy(ctx, "daily", e.ID, weekly)))); diff != "" {
			t.Errorf("asked again after one was deleted (-want +got): %s", diff)
		}

		// One whose post Ghost has still to take back says so.
		want[Event](t)(s.Write(ctx, "daily", made[2].ID, 0, typeOf(t, "webinar")))
		r.ghost.Break(platformtest.ErrDown)
		remove(made[2].ID)
		if _, err := s.Copy(ctx, "daily", e.ID, weekly); !errors.As(err, new(*KeyUsedError)) {
			t.Errorf("asked again while one is being deleted: got %v, want %v", err, new(KeyUsedError))
		}
	})
}

// What cannot be copied is told before anything is made.
func TestCopiesThatAreRefused(t *testing.T) {
	r, ctx := newBench(t, dbtest.SQLite(t)), t.Context()
	e := want[Event](t)(r.Create(ctx, "daily", Edit{"solo", "webinar", map[string]any{"name": strings.Repeat("é", 255)}}))
	for _, test := range []struct {
		date, until, want string
	}{
		{"", "", "The date of the copy must be a date that exists, such as 2031-05-08."},
		{"2031-02-30", "", "The date of the copy must be a date that exists, such as 2031-05-08."},
		{"2031-05-01", "soon", "The last date of the copies must be a date that exists, such as 2031-12-31."},
		{"2031-05-01", "2031-04-30", "The last date of the copies must not be before the first one."},
		{"2031-01-01", "2031-12-31", "Until 2031-12-31 there are more than 52 weeks. Choose an earlier date."},
	} {
		_, err := r.Copy(ctx, "daily", e.ID, Copies{Date: test.date, Until: test.until})
		if invalid, ok := errors.AsType[*InvalidError](err); !ok || invalid.Problems[0].Message != test.want {
			t.Errorf("from %q until %q: got %v, want %s", test.date, test.until, err, test.want)
		}
	}
	made := want[[]Event](t)(r.Copy(ctx, "daily", e.ID, Copies{Date: "2031-01-01", Until: "2031-12-30"}))
	if len(made) != MaxCopies || made[0].Values["name"] != strings.Repeat("é", 243)+", 2031-01-01" {
		t.Errorf("%d copies, the first of the name %v, want %d, with a name of 255 characters", len(made), made[0].Values["name"], MaxCopies)
	}
	last := Copies{Date: "2032-01-01", Until: "2032-12-29", Key: "1"}
	want[[]Event](t)(r.Copy(ctx, "daily", e.ID, last))
	if again, err := r.Copy(ctx, "daily", e.ID, last); err != nil || len(again) != MaxCopies {
		t.Errorf("asked again where there is no room for more: got %d copies, %v, want the %d", len(again), err, MaxCopies)
	}
	_, err := r.Copy(ctx, "daily", e.ID, Copies{Date: "2033-01-01", Until: "2033-12-30"})
	page := want[Page](t)(r.List(ctx, "daily", Query{View: Drafts, Most: 1}))
	if got, want := fmt.Sprint(err, page.Total), fmt.Sprint(ErrTooFast, 1+2*MaxCopies); got != want {
		t.Errorf("more than a site makes in a minute: got %s, want %s", got, want)
	}
}
