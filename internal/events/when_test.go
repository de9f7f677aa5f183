package events

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Days that begin at one o'clock, because the clocks go forward at midnight, are whole days
// all the same, also west of Greenwich.
func TestDaysWithoutMidnight(t *testing.T) {
	tests := map[string]struct {
		values                 map[string]any
		start, end, over, late string
	}{
		"the day, in Chile": {
			map[string]any{"event_date": "2026-09-06", "event_time_zone": "America/Santiago", "registration_deadline": "2026-09-05"},
			"2026-09-06", "2026-09-07", "2026-09-07T00:00:00-03:00", "2026-09-06T01:00:00-03:00",
		},
		"the day before, in Chile": {
			map[string]any{"event_date": "2026-09-05", "event_time_zone": "America/Santiago"},
			"2026-09-05", "2026-09-06", "2026-09-06T01:00:00-03:00", "",
		},
		"the evening before, in Chile": {
			map[string]any{"event_date": "2026-09-05", "event_time_start": "19:00", "event_time_zone": "America/Santiago"},
			"2026-09-05T19:00:00-04:00", "2026-09-05T19:00:00-04:00", "2026-09-06T01:00:00-03:00", "",
		},
		"the day, in Egypt": {
			map[string]any{"event_date": "2026-04-24", "event_time_zone": "Africa/Cairo", "registration_deadline": "2026-04-23"},
			"2026-04-24", "2026-04-25", "2026-04-25T00:00:00+03:00", "2026-04-24T01:00:00+03:00",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := whenOf(test.values)
			late := rfc3339(w.Deadline)
			if late == nil {
				late = ""
			}
			got := []any{w.format(w.Start), w.format(w.End), rfc3339(w.Over()), late}
			if diff := cmp.Diff([]any{test.start, test.end, test.over, test.late}, got); diff != "" {
				t.Errorf("start, end, over, deadline (-want +got): %s", diff)
			}
		})
	}
}

// A time that the clocks show twice is the first of both (RFC 5545, section 3.3.5), east and west of Greenwich, for each
// moment that an event has, and for months.
func TestTimesThatClocksShowTwice(t *testing.T) {
	for _, test := range []struct{ zone, date, clock, want string }{
		{"Europe/Berlin", "2026-10-25", "02:00", "2026-10-25T02:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25", "02:59", "2026-10-25T02:59:00+02:00"},
		{"Europe/Berlin", "2026-10-25", "03:00", "2026-10-25T03:00:00+01:00"},
		{"Europe/London", "2026-10-25", "01:30", "2026-10-25T01:30:00+01:00"},
		{"America/New_York", "2026-11-01", "01:30", "2026-11-01T01:30:00-04:00"},
		{"America/Los_Angeles", "2026-11-01", "01:00", "2026-11-01T01:00:00-07:00"},
		{"America/St_Johns", "2026-11-01", "01:30", "2026-11-01T01:30:00-02:30"},
		{"Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-05T01:45:00+11:00"}, // by half an hour
		{"Australia/Sydney", "2026-04-05", "02:30", "2026-04-05T02:30:00+11:00"},
		{"Pacific/Auckland", "2026-04-05", "02:30", "2026-04-05T02:30:00+13:00"},
		{"America/Havana", "2026-11-01", "00:30", "2026-11-01T00:30:00-04:00"},
	} {
		values := map[string]any{
			"event_date": test.date, "event_time_start": test.clock, "event_time_end": test.clock, "event_date_end": test.date,
			"registration_deadline": test.date, "deadline_time_end": test.clock, "event_time_zone": test.zone,
		}
		w := whenOf(values)
		for of, got := range map[string]any{"start": rfc3339(w.Start), "end": rfc3339(w.End), "deadline": rfc3339(w.Deadline)} {
			if got != test.want {
				t.Errorf("%s at %s on %s in %s: got %s, want %s", of, test.clock, test.date, test.zone, got, test.want)
			}
		}
	}
	havana, _ := parseZone("America/Havana")
	from, until, _ := MonthIn("2026-11", havana)
	if got := from.Format(time.RFC3339) + " " + until.Format(time.RFC3339); got != "2026-11-01T00:00:00-04:00 2026-12-01T00:00:00-05:00" {
		t.Errorf("November in Havana, which has its first midnight twice: got %s, want it from the first one", got)
	}
}

// Registration may be open until the end of the event's day, but not beyond.
func TestDeadlineOfTheDay(t *testing.T) {
	webinar := typeOf(t, "webinar")
	after := []manifest.Problem{{Field: "registration_deadline", Message: "Registration deadline must not be after the event."}}
	tests := map[string]struct {
		start, end, deadline, clock string
		want                        []manifest.Problem
	}{
		"the day":                     {"19:00", "21:00", "2031-05-01", "", []manifest.Problem{}},
		"the day, of the whole day":   {"", "", "2031-05-01", "", []manifest.Problem{}},
		"the day, without an end":     {"19:00", "", "2031-05-01", "", []manifest.Problem{}},
		"the end":                     {"19:00", "21:00", "2031-05-01", "21:00", []manifest.Problem{}},
		"after the end":               {"19:00", "21:00", "2031-05-01", "21:01", after},
		"the day after":               {"19:00", "21:00", "2031-05-02", "", after},
		"the day on which it ends":    {"19:00", "02:00", "2031-05-02", "", []manifest.Problem{}},
		"the end past midnight":       {"19:00", "02:00", "2031-05-02", "02:00", []manifest.Problem{}},
		"after the end past midnight": {"19:00", "02:00", "2031-05-02", "02:01", after},
		"the day after the whole day": {"", "", "2031-05-02", "", after},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{
				"name": "Party", "event_date": "2031-05-01", "event_time_start": test.start, "event_time_end": test.end,
				"event_time_zone": "Europe/Berlin", "registration_deadline": test.deadline, "deadline_time_end": test.clock,
			}
			if diff := cmp.Diff(test.want, webinar.Problems(values, platformtest.Limits)); diff != "" {
				t.Errorf("problems (-want +got): %s", diff)
			}
		})
	}
}

// An end time before the start is the next day's, and an end date says otherwise. Pages,
// search engines and calendars say the same, also where the clocks change meanwhile.
func TestEndBeforeStartIsTheNextDay(t *testing.T) {
	type ends struct{ start, end, over, text, linked, calendar string }
	tests := map[string]struct {
		values map[string]any
		want   ends
	}{
		"past midnight": {
			map[string]any{"event_date": "2026-05-01", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-05-01T22:00:00+02:00", "2026-05-02T02:00:00+02:00", "2026-05-02T02:00:00+02:00",
				"Friday, 1 May 2026 at 22:00 – Saturday, 2 May 2026 at 02:00 (Europe/Berlin)", "2026-05-02T02:00:00+02:00", "DTSTART:20260501T200000Z DTEND:20260502T000000Z",
			},
		},
		"at midnight": {
			map[string]any{"event_date": "2026-05-01", "event_time_start": "22:00", "event_time_end": "00:00"},
			ends{
				"2026-05-01T22:00:00Z", "2026-05-02T00:00:00Z", "2026-05-02T00:00:00Z",
				"Friday, 1 May 2026 at 22:00 – Saturday, 2 May 2026 at 00:00 (UTC)", "2026-05-02T00:00:00Z", "DTSTART:20260501T220000Z DTEND:20260502T000000Z",
			},
		},
		"the night in which the clocks go forward": {
			map[string]any{"event_date": "2026-03-28", "event_time_start": "22:00", "event_time_end": "04:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-03-28T22:00:00+01:00", "2026-03-29T04:00:00+02:00", "2026-03-29T04:00:00+02:00",
				"Saturday, 28 March 2026 at 22:00 – Sunday, 29 March 2026 at 04:00 (Europe/Berlin)", "2026-03-29T04:00:00+02:00", "DTSTART:20260328T210000Z DTEND:20260329T020000Z",
			},
		},
		"until the clocks go forward": {
			map[string]any{"event_date": "2026-03-28", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-03-28T22:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:00:00+02:00",
				"Saturday, 28 March 2026 at 22:00 – Sunday, 29 March 2026 at 03:00 (Europe/Berlin)", "2026-03-29T03:00:00+02:00", "DTSTART:20260328T210000Z DTEND:20260329T010000Z",
			},
		},
		"until a time that they show twice": {
			map[string]any{"event_date": "2026-10-24", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-10-24T22:00:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+02:00",
				"Saturday, 24 October 2026 at 22:00 – Sunday, 25 October 2026 at 02:00 (Europe/Berlin)", "2026-10-25T02:00:00+02:00", "DTSTART:20261024T200000Z DTEND:20261025T000000Z",
			},
		},
		"the night in which they go back": {
			map[string]any{"event_date": "2026-10-24", "event_time_start": "22:00", "event_time_end": "04:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-10-24T22:00:00+02:00", "2026-10-25T04:00:00+01:00", "2026-10-25T04:00:00+01:00",
				"Saturday, 24 October 2026 at 22:00 – Sunday, 25 October 2026 at 04:00 (Europe/Berlin)", "2026-10-25T04:00:00+01:00", "DTSTART:20261024T200000Z DTEND:20261025T030000Z",
			},
		},
		"days later, with times": {
			map[string]any{"event_date": "2026-10-23", "event_date_end": "2026-10-26", "event_time_start": "18:00", "event_time_end": "12:00", "event_time_zone": "America/New_York"},
			ends{
				"2026-10-23T18:00:00-04:00", "2026-10-26T12:00:00-04:00", "2026-10-26T12:00:00-04:00",
				"Friday, 23 October 2026 at 18:00 – Monday, 26 October 2026 at 12:00 (America/New_York)", "2026-10-26T12:00:00-04:00", "DTSTART:20261023T220000Z DTEND:20261026T160000Z",
			},
		},
		"days later, over a change of the clocks": {
			map[string]any{"event_date": "2026-03-27", "event_date_end": "2026-03-29", "event_time_start": "18:00", "event_time_end": "18:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-03-27T18:00:00+01:00", "2026-03-29T18:00:00+02:00", "2026-03-29T18:00:00+02:00",
				"Friday, 27 March 2026 at 18:00 – Sunday, 29 March 2026 at 18:00 (Europe/Berlin)", "2026-03-29T18:00:00+02:00", "DTSTART:20260327T170000Z DTEND:20260329T160000Z",
			},
		},
		"whole days, of which one has no midnight": {
			map[string]any{"event_date": "2026-09-05", "event_date_end": "2026-09-06", "event_time_zone": "America/Santiago"},
			ends{
				"2026-09-05", "2026-09-07", "2026-09-07T00:00:00-03:00",
				"Saturday, 5 September 2026 – Sunday, 6 September 2026", "2026-09-06", "DTSTART;VALUE=DATE:20260905 DTEND;VALUE=DATE:20260907",
			},
		},
		"with its last day, which has no time": {
			map[string]any{"event_date": "2026-10-23", "event_date_end": "2026-10-25", "event_time_start": "18:00", "event_time_zone": "Europe/Berlin"},
			ends{
				"2026-10-23T18:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-26T00:00:00+01:00",
				"Friday, 23 October 2026 at 18:00 – Sunday, 25 October 2026 (Europe/Berlin)", "2026-10-26T00:00:00+01:00", "DTSTART:20261023T160000Z DTEND:20261025T230000Z",
			},
		},
		"on the day that its end date repeats": {
			map[string]any{"event_date": "2026-05-01", "event_date_end": "2026-05-01", "event_time_start": "10:00", "event_time_end": "12:00"},
			ends{
				"2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z",
				"Friday, 1 May 2026, 10:00–12:00 (UTC)", "2026-05-01T12:00:00Z", "DTSTART:20260501T100000Z DTEND:20260501T120000Z",
			},
		},
		"a draft that ends before it starts": {
			map[string]any{"event_date": "2026-05-01", "event_date_end": "2026-04-30", "event_time_start": "10:00", "event_time_end": "12:00"},
			ends{
				"2026-05-01T10:00:00Z", "2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z",
				"Friday, 1 May 2026, 10:00–12:00 (UTC)", "2026-05-01T12:00:00Z", "DTSTART:20260501T100000Z DTEND:20260501T120000Z",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEvent(test.values)
			public := e.public(Post{}).values()
			entry, err := calendarEntry(e.publicJSON())
			if err != nil {
				t.Fatalf("calendarEntry: %v", err)
			}
			var moments []string
			for line := range strings.Lines(entry) {
				if strings.HasPrefix(line, "DTSTART") || strings.HasPrefix(line, "DTEND") {
					moments = append(moments, strings.TrimSpace(line))
				}
			}
			terms := e.Terms()
			over, _ := rfc3339(whenOf(test.values).Over()).(string)
			if !terms.IsOver(terms.End) || terms.IsOver(terms.End.Add(-1)) {
				t.Errorf("it is over at its end %t, and before that %t", terms.IsOver(terms.End), terms.IsOver(terms.End.Add(-1)))
			}
			linked, _ := (linkedEvent{public: public}).object().values()["endDate"].(string)
			got := ends{textOf(public, "start"), textOf(public, "end"), over, whenOf(public).Text("en-GB"), linked, strings.Join(moments, " ")}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(ends{})); diff != "" {
				t.Errorf("when it is (-want +got): %s", diff)
			}
		})
	}
}

// The editor says why an end cannot be, and on which day it is.
func TestEndProblems(t *testing.T) {
	webinar := typeOf(t, "webinar")
	tests := map[string]struct {
		start, end, date string
		want             []manifest.Problem
		endsOn           string
	}{
		"the next day":         {"22:00", "04:00", "", []manifest.Problem{}, "2026-03-29"},
		"the same day":         {"10:00", "12:00", "2026-03-28", []manifest.Problem{}, ""},
		"a later day":          {"10:00", "09:00", "2026-04-02", []manifest.Problem{}, "2026-04-02"},
		"a later day, no time": {"10:00", "", "2026-04-02", []manifest.Problem{}, "2026-04-02"},
		"whole days":           {"", "", "2026-04-02", []manifest.Problem{}, "2026-04-02"},
		"before the date":      {"", "", "2026-03-27", []manifest.Problem{{Field: endDate, Message: "End date must not be before the date."}}, ""},
		"no date":              {"", "", "2026-02-30", []manifest.Problem{{Field: endDate, Message: "End date must be a date that exists, such as 2026-05-31."}}, ""},
		"the last of all":      {"", "", "9999-12-31", []manifest.Problem{{Field: endDate, Message: "End date must be a date that exists, such as 2026-05-31."}}, ""}, // whose next day has five digits
		"before the start on the same day": {"22:00", "02:00", "2026-03-28", []manifest.Problem{{
			Field: "event_time_end", Message: "End time must not be before the start time on the same day. Without an end date, it is on the next day.",
		}}, ""},
		"when the clocks go forward": {"22:00", "02:00", "", []manifest.Problem{}, "2026-03-29"},
		"a time that the clocks leave out on the next day": {"22:00", "02:30", "", []manifest.Problem{{
			Field: "event_time_end", Message: "End time does not exist on 29 March 2026 in Europe/Berlin, where the clocks go forward then.",
		}}, "2026-03-29"},
		"one that they leave out on a later day": {"22:00", "02:30", "2026-03-29", []manifest.Problem{{
			Field: "event_time_end", Message: "End time does not exist on 29 March 2026 in Europe/Berlin, where the clocks go forward then.",
		}}, "2026-03-29"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{
				"name": "Party", "event_date": "2026-03-28", "event_time_start": test.start, "event_time_end": test.end, "event_date_end": test.date,
				"event_time_zone": "Europe/Berlin",
			}
			if diff := cmp.Diff(test.want, webinar.Problems(values, platformtest.Limits)); diff != "" {
				t.Errorf("problems (-want +got): %s", diff)
			}
			endsOn := ""
			if date, ok := webinar.EndsOn(values); ok {
				endsOn = date.Format(dateFormat)
			}
			if endsOn != test.endsOn {
				t.Errorf("it ends on another day, %q; want %q", endsOn, test.endsOn)
			}
		})
	}
	without := map[string]any{"name": "Party", "event_date_end": "2026-03-28"}
	want := []manifest.Problem{
		{Field: "event_date", Message: "Date is required."}, {Field: endDate, Message: "End date needs a date too: fill in date."},
	}
	if diff := cmp.Diff(want, webinar.Problems(without, platformtest.Limits)); diff != "" {
		t.Errorf("problems of an end date alone (-want +got): %s", diff)
	}
}

// A type that has a date has an end date, unless its theme has a field of its own by that key,
// which stays the theme's.
func TestTypeWithEndDate(t *testing.T) {
	for _, test := range []struct {
		name, fields  string
		end           any
		custom        map[string]any
		offered, kept []string
	}{
		{"with a date", "supported_fields: [name, event_date]", "2026-05-04", map[string]any{}, []string{"name", "event_date", endDate}, nil},
		{"without one", "supported_fields: [name]", nil, map[string]any{}, []string{"name"}, nil},
		{
			"with a field of its own", "supported_fields: [name, event_date]\n      custom_fields: [{key: event_date_end, type: text}]",
			"2026-05-02",
			map[string]any{endDate: "2026-05-03"},
			[]string{"name", "event_date"},
			[]string{endDate},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			parsed := manifest.Parse([]byte("manifest_version: 1\nevents:\n  types:\n    party:\n      post_template: custom-party\n      " + test.fields + "\n"))
			party, ok := NewType(parsed.Manifest.Events, "party")
			if !ok || len(parsed.Findings) > 0 {
				t.Fatalf("the manifest has findings: %v", parsed.Findings)
			}
			var offered []string
			for _, f := range party.Fields() {
				offered = append(offered, f.Key)
			}
			if diff := cmp.Diff(test.offered, offered); diff != "" {
				t.Errorf("standard fields of the type (-want +got): %s", diff)
			}
			e := newEvent(map[string]any{"event_date": "2026-05-01", endDate: "2026-05-03"})
			e.Shape = party.shape()
			if diff := cmp.Diff(test.kept, e.Shape.Own); diff != "" {
				t.Errorf("fields of the theme's own by such a key (-want +got): %s", diff)
			}
			public := e.public(Post{}).values()
			if diff := cmp.Diff([]any{test.end, test.custom}, []any{public["end"], public["fields"]}); diff != "" {
				t.Errorf("end and custom fields for readers (-want +got): %s", diff)
			}
		})
	}
}
