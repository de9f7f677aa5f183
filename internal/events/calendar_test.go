package events

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// A calendar has the events that have a date, in lines that each program takes.
func TestCalendarHasEventsWithADate(t *testing.T) {
	var bodies []string
	for _, values := range []map[string]any{
		{"event_date": "2026-03-29", "event_time_start": "01:30", "event_time_end": "03:30", "event_time_zone": "Europe/Berlin", "location": " A,\tb;\r\nc\\ "},
		{"event_time_start": "10:00"},
		{"event_date": "2026-05-01", "event_time_start": "10:00", "event_time_end": "10:00"}, // DTEND has to be later
		{"event_date": "2026-12-31", "event_time_zone": "Pacific/Kiritimati", "description": "One\r\ntwo\rthree\nfour, " + strings.Repeat("é", 40)},
	} {
		e := newEvent(values)
		bodies = append(bodies, e.publicJSON())
	}
	cancelled := newEvent(map[string]any{"event_date": "2026-10-25", "event_time_start": "03:30", "event_time_zone": "Europe/Berlin", "access": "anyone", "platform_url": "https://meet.example.com/?a,b;c"})
	cancelled.Status = Cancelled
	bodies = append(bodies, cancelled.publicJSON())
	const before, after = `
BEGIN:VEVENT
UID:abcdefghijklmnopqrstuvwxyz@lychgate
DTSTAMP:20260504T150000Z
LAST-MODIFIED:20260504T150000Z
SEQUENCE:10681200
`, `URL:https://example.com/gates/
`
	entries := []string{
		before + `DTSTART:20260329T003000Z
DTEND:20260329T013000Z
SUMMARY:Gates
LOCATION:A\, b\; c\\
` + after + `STATUS:CONFIRMED
END:VEVENT`,
		before + `DTSTART:20260501T100000Z
DTEND:20260501T110000Z
SUMMARY:Gates
` + after + `STATUS:CONFIRMED
END:VEVENT`,
		before + `DTSTART;VALUE=DATE:20261231
DTEND;VALUE=DATE:20270101
SUMMARY:Gates
DESCRIPTION:One\ntwo\nthree\nfour\, ` + strings.Repeat("é", 40) + `
` + after + `STATUS:CONFIRMED
END:VEVENT`,
		before + `DTSTART:20261025T023000Z
DTEND:20261025T033000Z
SUMMARY:Gates
LOCATION:https://meet.example.com/?a\,b\;c
` + after + `CONFERENCE;VALUE=URI:https://meet.example.com/?a,b;c
STATUS:CANCELLED
END:VEVENT`,
	}
	for name, head := range map[string]string{
		"": "", "The\nDaily": "\nNAME:The Daily\nX-WR-CALNAME:The Daily\nREFRESH-INTERVAL;VALUE=DURATION:PT1H",
	} {
		want := "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Lychgate//Events//EN" + head + strings.Join(entries, "") + "\nEND:VCALENDAR\n"
		start, end := calendarFrame(name)
		parts := []string{start}
		for _, body := range bodies {
			entry, err := calendarEntry(body)
			if err != nil {
				t.Fatalf("entry of %s: %v", body, err)
			}
			parts = append(parts, entry)
		}
		got := strings.Join(append(parts, end), "")
		folded := strings.Split(strings.TrimSuffix(got, "\r\n"), "\r\n")
		if i := slices.IndexFunc(folded, func(line string) bool { return len(line) > 75 || strings.ContainsAny(line, "\r\n") }); i >= 0 {
			t.Errorf("the line %q, want at most 75 bytes, without a line break", folded[i])
		}
		unfolded := strings.ReplaceAll(strings.ReplaceAll(got, "\r\n ", ""), "\r\n", "\n")
		if diff := cmp.Diff(want, unfolded); diff != "" {
			t.Errorf("named %q (-want +got): %s", name, diff)
		}
	}
}

// A reader who may have the online link gets it, beside the place too; nobody else does.
func TestCalendarWithLink(t *testing.T) {
	const link = "https://meet.example.com/?a,b"
	for _, test := range []struct {
		name         string
		values       map[string]any
		link         string
		lines, place string
	}{
		{"for nobody", map[string]any{}, "", "", ""},
		{"for a registrant", map[string]any{}, link, "CONFERENCE;VALUE=URI:" + link, `LOCATION:https://meet.example.com/?a\,b`},
		{
			"at a place too",
			map[string]any{"location": "The Pier"},
			link, "CONFERENCE;VALUE=URI:" + link + ` DESCRIPTION:https://meet.example.com/?a\,b`,
			"LOCATION:The Pier",
		},
		{
			"at a place, and described",
			map[string]any{"location": "The Pier", "description": "Wine."},
			link,
			"CONFERENCE;VALUE=URI:" + link + ` DESCRIPTION:Wine.\n\nhttps://meet.example.com/?a\,b`, "LOCATION:The Pier",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := want[*SQL](t)(NewSQL(t.Context(), dbtest.SQLite(t)))
			e := newEvent(test.values)
			e.Values["event_date"], e.Values["access"], e.Values["platform_url"] = "2031-05-01", "free", link
			e.Site, e.body = "daily", e.publicJSON()
			if err := store.Insert(t.Context(), *e, Editor{}); err != nil {
				t.Fatalf("store.Insert: %v", err)
			}
			file, name, err := NewFeed(store).CalendarWith(t.Context(), "daily", "gates", test.link)
			if err != nil || name != "Gates" {
				t.Fatalf("the calendar file of %q, %v; want that of Gates", name, err)
			}
			var lines []string
			place := ""
			for line := range strings.Lines(strings.ReplaceAll(file, "\r\n ", "")) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "LOCATION") {
					place = line
				}
				if strings.HasPrefix(line, "DESCRIPTION") || strings.HasPrefix(line, "CONFERENCE") {
					lines = append(lines, line)
				}
			}
			slices.Sort(lines)
			if diff := cmp.Diff([]string{test.lines, test.place}, []string{strings.Join(lines, " "), place}); diff != "" {
				t.Errorf("link and place (-want +got): %s", diff)
			}
		})
	}
}
