package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// listed keeps an event that a list may have.
func listed(t testing.TB, store *SQL, id, name, kind string, status Status, date string) {
	t.Helper()
	e := Event{
		Site: "daily", ID: id, Theme: "solo", Type: kind, Status: status, Revision: 1, CreatedAt: updatedAt, UpdatedAt: updatedAt,
		Values: map[string]any{"name": name, "event_time_zone": "UTC", "description": strings.Repeat("x", 1000)},
		Shape:  Shape{Fields: []string{"name", "event_date", "event_time_start", "event_time_end", "event_time_zone"}},
	}
	if date != "" {
		e.Values["event_date"], e.Values["event_time_start"], e.Values["event_time_end"] = date, "20:00", "23:00"
	}
	if err := store.Insert(t.Context(), e, Editor{}); err != nil {
		t.Fatalf("store.Insert: %v", err)
	}
}

// An editor narrows a list of hundreds by type, month and words, and sees beforehand how many
// events each choice has.
func TestNarrowedLists(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("NewSQL: %v", err)
		}
		id := func(n int) string { return fmt.Sprintf("%026d", n) }
		listed(t, store, id(1), "Old concert", "concert", Published, "2020-05-31")
		listed(t, store, id(2), "Old webinar", "webinar", Published, "2020-06-10")
		listed(t, store, id(3), "New concert", "concert", Published, "2100-05-01")
		listed(t, store, id(4), "New webinar", "webinar", Cancelled, "2100-05-20")
		listed(t, store, id(5), "Concert one day", "concert", Draft, "")
		listed(t, store, id(6), "Concert in May", "concert", Draft, "2100-05-20")
		kolkata, err := time.LoadLocation("Asia/Kolkata")
		if err != nil {
			t.Fatalf("time.LoadLocation: %v", err)
		}
		month := func(q Query, month string, zone *time.Location) Query {
			var ok bool
			if q.From, q.Until, ok = MonthIn(month, zone); !ok {
				t.Fatalf("MonthIn(%q) is none", month)
			}
			return q
		}
		for name, test := range map[string]struct {
			query Query
			zone  *time.Location
			want  []int
			tally Tally
		}{
			"all, the latest first": {
				Query{IsLatestFirst: true},
				time.UTC,
				[]int{5, 6, 4, 3, 2, 1},
				Tally{
					map[View]int{AllEvents: 6, Upcoming: 2, Past: 2, Drafts: 2},
					map[string]int{"concert": 4, "webinar": 2},
					map[string]int{"2020-05": 1, "2020-06": 1, "2100-05": 3},
				},
			},
			"a type of what is coming up": {
				Query{View: Upcoming, Type: "webinar"},
				time.UTC,
				[]int{4},
				Tally{map[View]int{AllEvents: 2, Upcoming: 1, Past: 1}, map[string]int{"concert": 1, "webinar": 1}, map[string]int{"2100-05": 1}},
			},
			"words, in all": {
				Query{Text: "CONCERT"},
				time.UTC,
				[]int{1, 3, 6, 5},
				Tally{map[View]int{AllEvents: 4, Upcoming: 1, Past: 1, Drafts: 2}, map[string]int{"concert": 4}, map[string]int{"2020-05": 1, "2100-05": 2}},
			},
			"a month": {
				month(Query{}, "2100-05", time.UTC), time.UTC,
				[]int{3, 4, 6},
				Tally{map[View]int{AllEvents: 3, Upcoming: 2, Drafts: 1}, map[string]int{"concert": 2, "webinar": 1}, map[string]int{"2020-05": 1, "2020-06": 1, "2100-05": 3}},
			},
			"a month elsewhere, in which an event is past midnight": {
				month(Query{View: Past}, "2020-06", kolkata), kolkata,
				[]int{2, 1},
				Tally{map[View]int{AllEvents: 2, Past: 2}, map[string]int{"concert": 1, "webinar": 1}, map[string]int{"2020-06": 2}},
			},
		} {
			page, err := store.List(t.Context(), "daily", withMost(test.query, 10))
			if err != nil {
				t.Fatalf("%s: store.List: %v", name, err)
			}
			var got []int
			for _, e := range page.Events {
				got = append(got, int(e.ID[25]-'0'))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || page.Total != len(test.want) {
				t.Errorf("%s: got a total of %d, events (-want +got):\n%s", name, page.Total, diff)
			}
			tally, err := store.Tally(t.Context(), "daily", test.query, test.zone)
			if err != nil {
				t.Fatalf("%s: store.Tally: %v", name, err)
			}
			if diff := cmp.Diff(test.tally, tally); diff != "" {
				t.Errorf("%s: tally (-want +got):\n%s", name, diff)
			}
		}
	})
}

// An event of whole days is in the months of its own dates, wherever the site is. So is one that an
// earlier version has kept.
func TestMonthsOfWholeDays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store := want[*SQL](t)(NewSQL(t.Context(), db))
		keep := func(n int, values map[string]any) {
			t.Helper()
			if err := store.Insert(t.Context(), Event{
				Site: "daily", ID: fmt.Sprintf("%026d", n), Theme: "solo", Type: "fair", Status: Draft, Revision: 1, CreatedAt: updatedAt, UpdatedAt: updatedAt,
				Values: values, Shape: Shape{Fields: []string{"event_date", endDate, "event_time_start", "event_time_end", "event_time_zone"}},
			}, Editor{}); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
		}
		keep(1, map[string]any{"event_date": "2100-06-01", "event_time_zone": "Asia/Tokyo"})       // begins in May where the site is
		keep(2, map[string]any{"event_date": "2100-05-31", "event_time_zone": "America/New_York"}) // ends in June there
		keep(3, map[string]any{"event_date": "2100-05-31", endDate: "2100-06-01", "event_time_zone": "Asia/Tokyo"})
		keep(4, map[string]any{"event_date": "2100-06-01", "event_time_start": "03:00", "event_time_end": "04:00", "event_time_zone": "Asia/Tokyo"}) // at a time, which is in May there
		keep(5, map[string]any{})
		berlin := want[*time.Location](t)(time.LoadLocation("Europe/Berlin"))
		for _, version := range []string{"this version", "an earlier version"} {
			if version == "an earlier version" {
				dbtest.Exec(t, db, `UPDATE events SET day_from = NULL, day_until = NULL`)
				store = want[*SQL](t)(NewSQL(t.Context(), db))
			}
			for month, wanted := range map[string][]string{"2100-05": {"3", "2", "4"}, "2100-06": {"3", "1"}, "2100-07": nil} {
				q := Query{Most: 10}
				q.From, q.Until, _ = MonthIn(month, berlin)
				page := want[Page](t)(store.List(t.Context(), "daily", q))
				var got []string
				for _, e := range page.Events {
					got = append(got, strings.TrimLeft(e.ID, "0"))
				}
				if diff := cmp.Diff(wanted, got); diff != "" || page.Total != len(wanted) {
					t.Errorf("%s, %s: got a total of %d, events (-want +got):\n%s", version, month, page.Total, diff)
				}
				tally := want[Tally](t)(store.Tally(t.Context(), "daily", q, berlin))
				if diff := cmp.Diff(map[string]int{"2100-05": 3, "2100-06": 1}, tally.Months); diff != "" || tally.Views[Drafts] != len(wanted) {
					t.Errorf("%s, %s: %d drafts in the tally, want %d, months (-want +got):\n%s", version, month, tally.Views[Drafts], len(wanted), diff)
				}
			}
		}
	})
}

func withMost(q Query, most int) Query {
	q.Most = most
	return q
}

// No request of a reader or of staff reads each event of a site, where it need not: a site may have many.
func TestReadsUseAnIndex(t *testing.T) {
	db := dbtest.SQLite(t)
	if _, err := NewSQL(t.Context(), db); err != nil {
		t.Fatalf("NewSQL: %v", err)
	}
	for _, query := range []string{
		tallyEvents + ` WHERE site = $1 AND status <> $2`,
		`SELECT COUNT(*) FROM events WHERE site = $1 AND status <> $2 AND over_at > 5`,
		`SELECT COUNT(*) FROM events WHERE site = $1 AND status <> $2 AND starts_at < 5 AND (day_from < 5 AND day_until > 4 OR COALESCE(day_from, 9) = 9 AND starts_at < 5 AND over_at > 4)`,
		listWithoutDays, findEvent, findPublic, findBody, listPosted, fmt.Sprintf(listPublic, publicIndex), fmt.Sprintf(listPublicPast, publicIndex),
	} {
		isOne := query == findPublic || query == findBody // of an ID and a slug
		if dbtest.ByIndex(t, db, query, "daily", "text", "1") && !isOne {
			t.Errorf("%s sorts what it finds", query)
		}
	}
}

// BenchmarkLists reads the lists of a site with 10,000 events.
func BenchmarkLists(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres"} {
		db := dbtest.SQLite(b)
		if kind == "postgres" {
			db = dbtest.Postgres(b)
		}
		store, err := NewSQL(b.Context(), db)
		if err != nil {
			b.Fatalf("NewSQL: %v", err)
		}
		first := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range 10000 {
			listed(b, store, fmt.Sprintf("%026d", i), fmt.Sprint("An evening ", i), "concert", Published, first.AddDate(0, 0, i/2).Format(dateFormat))
		}
		for name, q := range map[string]Query{
			"upcoming": {View: Upcoming}, "past": {View: Past}, "all": {IsLatestFirst: true}, "words": {Text: "evening 77"},
			"month": {From: first.AddDate(8, 0, 0), Until: first.AddDate(8, 1, 0)},
		} {
			q.Most = 25
			b.Run(kind+"/list/"+name, func(b *testing.B) {
				for b.Loop() {
					if _, err := store.List(b.Context(), "daily", q); err != nil {
						b.Fatalf("store.List: %v", err)
					}
				}
			})
			b.Run(kind+"/tally/"+name, func(b *testing.B) {
				for b.Loop() {
					if _, err := store.Tally(b.Context(), "daily", q, time.UTC); err != nil {
						b.Fatalf("store.Tally: %v", err)
					}
				}
			})
		}
	}
}
