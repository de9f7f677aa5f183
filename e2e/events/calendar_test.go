package events

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-ical"
)

// entry is an event as a calendar program reads it.
type entry struct {
	UID, Summary, Description, Location, URL, Status string

	Conference string // the online link

	// Start and End are RFC 3339, or dates; End is "" if there is none.
	Start, End string

	Changed string // when, by DTSTAMP and LAST-MODIFIED
}

// calendarCases are events with what their calendar entries have to be.
var calendarCases = []struct {
	name, kind string
	cancelled  bool
	values     map[string]any
	want       entry // without what the site chooses
}{
	{
		name: "Days with a change of the clocks", kind: "meetup",
		values: map[string]any{"event_date": "2031-03-29", "event_date_end": "2031-03-31", "event_time_zone": "Europe/Berlin", "location": "The Pier"},
		want:   entry{Start: "2031-03-29", End: "2031-04-01", Location: "The Pier"},
	},
	{
		name: "The clocks go forward", kind: "webinar",
		values: map[string]any{"event_date": "2031-03-30", "event_time_start": "01:30", "event_time_end": "03:30", "event_time_zone": "Europe/Berlin"},
		want:   entry{Start: "2031-03-30T00:30:00Z", End: "2031-03-30T01:30:00Z"},
	},
	{
		name: "An evening without an end", kind: "meetup",
		values: map[string]any{"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "location": "The Pier"},
		want:   entry{Start: "2031-05-01T17:00:00Z", End: "2031-05-01T18:00:00Z", Location: "The Pier"},
	},
	{
		name: "By a quarter of an hour", kind: "webinar",
		values: map[string]any{"event_date": "2031-07-01", "event_time_start": "09:00", "event_time_end": "10:00", "event_time_zone": "Asia/Kathmandu"},
		want:   entry{Start: "2031-07-01T03:15:00Z", End: "2031-07-01T04:15:00Z"},
	},
	{
		name: `Commas, semicolons; backslashes \ and "quotes"`, kind: "meetup",
		values: map[string]any{
			"event_date": "2031-08-01", "event_time_start": "10:00", "event_time_end": "11:00", "event_time_zone": "UTC", "location": `Pier 4; "The \n Hall", left`,
			"description": "One, two; three\\four\nA line of its own: \\n is no line break, and \\, no comma\n\n🎉👩‍👩‍👧 שלום, مرحبا",
		},
		want: entry{
			Start: "2031-08-01T10:00:00Z", End: "2031-08-01T11:00:00Z", Location: `Pier 4; "The \n Hall", left`,
			Description: "One, two; three\\four\nA line of its own: \\n is no line break, and \\, no comma\n\n🎉👩‍👩‍👧 שלום, مرحبا",
		},
	},
	{
		name: "BEGIN:VALARM", kind: "meetup",
		values: map[string]any{
			"event_date": "2031-08-02", "event_time_start": "10:00", "event_time_end": "11:00", "event_time_zone": "UTC", "location": "Here\r\nATTACH:https://evil.example",
			"description": "END:VEVENT\r\nATTENDEE:mailto:a@example.com",
		},
		want: entry{
			Start: "2031-08-02T10:00:00Z", End: "2031-08-02T11:00:00Z", Location: "Here ATTACH:https://evil.example",
			Description: "END:VEVENT\nATTENDEE:mailto:a@example.com",
		},
	},
	{
		name: "Letters of one byte " + strings.Repeat("x", 200), kind: "meetup",
		values: map[string]any{
			"event_date": "2031-08-03", "event_time_start": "10:00", "event_time_zone": "UTC", "location": strings.Repeat("1,", 1000),
			"description": strings.Repeat("long", 75),
		},
		want: entry{Start: "2031-08-03T10:00:00Z", End: "2031-08-03T11:00:00Z", Location: strings.Repeat("1,", 1000), Description: strings.Repeat("long", 75)},
	},
	{
		name: "Letters of more " + strings.Repeat("é", 200), kind: "meetup",
		values: map[string]any{
			"event_date": "2031-08-04", "event_time_start": "10:00", "event_time_zone": "UTC", "location": strings.Repeat("שלום ", 100) + ".",
			"description": "x" + strings.Repeat("🎉", 299),
		},
		want: entry{Start: "2031-08-04T10:00:00Z", End: "2031-08-04T11:00:00Z", Location: strings.Repeat("שלום ", 100) + ".", Description: "x" + strings.Repeat("🎉", 299)},
	},
	{
		name: "By half an hour, where it is spring", kind: "webinar",
		values: map[string]any{"event_date": "2031-10-05", "event_time_start": "01:30", "event_time_end": "03:00", "event_time_zone": "Australia/Lord_Howe"},
		want:   entry{Start: "2031-10-04T15:00:00Z", End: "2031-10-04T16:00:00Z"},
	},
	{
		name: "The clocks go back", kind: "webinar",
		values: map[string]any{"event_date": "2031-10-26", "event_time_start": "01:30", "event_time_end": "03:30", "event_time_zone": "Europe/Berlin"},
		want:   entry{Start: "2031-10-25T23:30:00Z", End: "2031-10-26T02:30:00Z"},
	},
	{
		name: "They go back in America", kind: "webinar", cancelled: true,
		values: map[string]any{
			"event_date": "2031-11-02", "event_time_start": "00:30", "event_time_end": "03:00", "event_time_zone": "America/New_York",
			"access": "anyone", "platform_url": "https://meet.example.com/a?b=c,d;e&f=%20#g",
		},
		want: entry{
			Start: "2031-11-02T04:30:00Z", End: "2031-11-02T08:00:00Z", Status: "CANCELLED", Location: "https://meet.example.com/a?b=c,d;e&f=%20#g",
			Conference: "https://meet.example.com/a?b=c,d;e&f=%20#g",
		},
	},
	{
		name: "For members alone", kind: "webinar",
		values: map[string]any{"event_date": "2031-11-03", "event_time_start": "10:00", "event_time_zone": "UTC", "access": "paid", "platform_url": "https://meet.example.com/secret"},
		want:   entry{Start: "2031-11-03T10:00:00Z", End: "2031-11-03T11:00:00Z"},
	},
	{
		name: "At a place and online", kind: "webinar",
		values: map[string]any{
			"event_date": "2031-11-04", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin", "location": "The Pier",
			"access": "anyone", "platform_url": "https://meet.example.com/a?b=c,d", "description": "Wine.",
		},
		want: entry{
			Start: "2031-11-04T21:00:00Z", End: "2031-11-05T01:00:00Z", Location: "The Pier", Conference: "https://meet.example.com/a?b=c,d",
			Description: "Wine.\n\nhttps://meet.example.com/a?b=c,d",
		},
	},
	{
		name: "The whole of the last day", kind: "meetup",
		values: map[string]any{"event_date": "2031-12-31", "event_time_zone": "Pacific/Kiritimati", "location": "The Pier"},
		want:   entry{Start: "2031-12-31", End: "2032-01-01", Location: "The Pier"},
	},
}

// Calendar programs read from our files what the editor wrote. Three libraries stand for
// them, none of which wrote the files.
func TestCalendarProgramsReadOurFiles(t *testing.T) {
	s := newSite(t, "")
	var all []entry
	for _, c := range calendarCases {
		c.values["name"] = c.name
		if c.kind == "webinar" {
			c.values["speaker"] = "Ada"
		}
		e := s.publish(c.kind, c.values)
		if c.cancelled {
			e = s.change(e, "cancel")
		}
		var public struct {
			UpdatedAt time.Time `json:"updated_at"`
		}
		s.send("GET", "/ghost/lychgate/events/"+e.slug(), nil, &public)
		want := c.want
		want.UID, want.Summary, want.URL = e.ID+"@lychgate", c.name, s.base+"/"+e.slug()+"/"
		want.Changed = public.UpdatedAt.UTC().Truncate(time.Second).Format(time.RFC3339)
		if want.Status == "" {
			want.Status = "CONFIRMED"
		}
		all = append(all, want)
		s.checkCalendar(c.name, "/ghost/lychgate/events/"+e.slug()+".ics", []entry{want})
	}
	s.checkCalendar("the whole calendar", "/ghost/lychgate/events.ics", all)
	s.checkLinkedData()
}

// checkCalendar compares what the libraries read of a file with what there is to be. Of one event only go-ical reads
// it: node takes a second to start, and the whole calendar has the same lines.
func (s *site) checkCalendar(what, path string, want []entry) {
	s.t.Helper()
	file, header := s.do("GET", path, "", nil)
	diff(s.t, what+": Content-Type", "text/calendar; charset=utf-8", header.Get("Content-Type"))
	for line := range strings.SplitSeq(strings.TrimSuffix(file, "\r\n"), "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") || strings.ToValidUTF8(line, "") != line { // RFC 5545, section 3.1
			s.t.Errorf("%s: the line %q of %d bytes", what, line, len(line))
		}
	}
	diff(s.t, what+" by go-ical", want, goICal(s.t, file))
	if len(want) == 1 {
		return
	}
	diff(s.t, what+" by ical.js", want, byNode(s.t, file, "ical.mjs"))
	misread := slices.Clone(want) // node-ical takes a backslash before an n for one and a line break
	for i, e := range misread {
		misread[i].Description, misread[i].Location = strings.ReplaceAll(e.Description, `\n`, "\\\n"), strings.ReplaceAll(e.Location, `\n`, "\\\n")
	}
	diff(s.t, what+" by node-ical", misread, byNode(s.t, file, "node-ical.mjs"))
}

// goICal reads a file with github.com/emersion/go-ical.
func goICal(t *testing.T, file string) []entry {
	t.Helper()
	calendar, err := ical.NewDecoder(strings.NewReader(file)).Decode()
	if err != nil {
		t.Fatalf("decoding %s: %v", file, err)
	}
	var entries []entry
	for _, e := range calendar.Events() {
		text := func(name string) string {
			prop := e.Props.Get(name)
			if prop == nil {
				return ""
			}
			text, err := prop.Text()
			return must(t, text, err)
		}
		moment := func(name string) string {
			prop := e.Props.Get(name)
			if prop == nil {
				return ""
			}
			at, err := prop.DateTime(time.UTC)
			if must(t, at, err); prop.ValueType() == ical.ValueDate {
				return at.Format(time.DateOnly)
			}
			if !strings.HasSuffix(prop.Value, "Z") {
				t.Errorf("%s is %s, which is not in UTC", name, prop.Value)
			}
			return at.Format(time.RFC3339)
		}
		link := ""
		if prop := e.Props.Get(ical.PropURL); prop != nil {
			u, err := prop.URI()
			link = must(t, u, err).String()
		}
		conference := ""
		if prop := e.Props.Get("CONFERENCE"); prop != nil {
			u, err := prop.URI()
			conference = must(t, u, err).String()
		}
		diff(t, "DTSTAMP", moment(ical.PropLastModified), moment(ical.PropDateTimeStamp))
		entries = append(entries, entry{
			UID: text(ical.PropUID), Summary: text(ical.PropSummary), Description: text(ical.PropDescription), Location: text(ical.PropLocation),
			Conference: conference, URL: link, Status: text(ical.PropStatus), Start: moment(ical.PropDateTimeStart), End: moment(ical.PropDateTimeEnd), Changed: moment(ical.PropLastModified),
		})
	}
	return entries
}

// byNode reads a file with a script of this folder: one with Mozilla's ical.js, and one with
// node-ical.
func byNode(t *testing.T, file, script string) (entries []entry) {
	t.Helper()
	output, err := program(t, withModules(t, script), strings.NewReader(file), "node", script)
	if err == nil {
		err = json.Unmarshal([]byte(output), &entries)
	}
	return must(t, entries, err)
}

// withModules copies files of this folder beside node_modules.
func withModules(t *testing.T, files ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err := os.WriteFile(filepath.Join(folder, name), must(t, content, err), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	if err := os.Symlink(installed(t), filepath.Join(folder, "node_modules")); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	return folder
}

// checkLinkedData has the TypeScript compiler hold the JSON-LD in the pages of all events
// against schema-dts, which is made of schema.org's vocabulary: that each property is one of
// its type's, its value of a type that it may have, and each enumeration's value known. It
// does not check the text of dates. What must not pass shows that it looks.
func (s *site) checkLinkedData() {
	s.t.Helper()
	var list struct{ Events []struct{ URL string } }
	s.send("GET", "/ghost/lychgate/events", nil, &list)
	folder := withModules(s.t, "tsconfig.json")
	compile := func(data []string) (string, error) {
		source := "import type {Event, WithContext} from 'schema-dts';\nexport const events: WithContext<Event>[] = [" + strings.Join(data, ",\n") + "];\n"
		if err := os.WriteFile(filepath.Join(folder, "events.ts"), []byte(source), 0o600); err != nil {
			s.t.Fatalf("os.WriteFile: %v", err)
		}
		return program(s.t, folder, nil, "tsc")
	}
	var found []string
	for _, e := range list.Events {
		_, rest, _ := strings.Cut(s.get(strings.TrimPrefix(e.URL, s.base)), `<script type="application/ld+json">{"@context":"https://schema.org","@type":"Event"`)
		data, _, isThere := strings.Cut(rest, "</script>")
		if !isThere {
			s.t.Fatalf("%s has no JSON-LD", e.URL)
		}
		found = append(found, `{"@context":"https://schema.org","@type":"Event"`+data)
	}
	diff(s.t, "pages with JSON-LD", len(calendarCases), len(found))
	if output, err := compile(found); err != nil {
		s.t.Errorf("compiling the JSON-LD: %v: %s", err, output)
	}
	cancelled := slices.IndexFunc(found, func(data string) bool { return strings.Contains(data, "EventCancelled") })
	for old, wrong := range map[string]string{
		`"startDate"`: `"begins"`, "EventCancelled": "EventGone", `"VirtualLocation"`: `"Link"`, `"@type":"Event"`: `"@type":"Evening"`,
	} {
		broken := strings.Replace(found[cancelled], old, wrong, 1)
		if _, err := compile([]string{broken}); err == nil || broken == found[cancelled] {
			s.t.Errorf("%s passes: %v", broken, err)
		}
	}
}
