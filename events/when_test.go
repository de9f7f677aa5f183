package events

import (
	"strings"
	"testing"

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

// Only IANA names of time zones are known, each in one way: what is known is kept.
func TestZones(t *testing.T) {
	for name, isKnown := range map[string]bool{
		"Europe/Berlin": true, "America/Argentina/Buenos_Aires": true, "UTC": true,
		"": false, "Local": false, "Mars/Base": false, "Europe//Berlin": false, "Europe/./Berlin": false, "Europe/Berlin/": false,
		"./UTC": false, "../zoneinfo/UTC": false, "Europe/../UTC": false, "/usr/share/zoneinfo/UTC": false, strings.Repeat("a", 65): false,
	} {
		for range 2 {
			if zone, ok := parseZone(name); ok != isKnown || ok && zone.String() != name {
				t.Errorf("%q: %v, known %v, want known %v", name, zone, ok, isKnown)
			}
		}
	}
}
