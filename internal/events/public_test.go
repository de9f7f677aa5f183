package events

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// shape has all standard fields, and three of a theme's own.
var shape = Shape{
	Fields: append(EditorKeys(), "speaker", "price", "captions"),
	Labels: []FieldLabel{{"speaker", "Speaker"}, {"former", "Former"}, {"captions", "Captions"}, {"price", "Price"}},
}

var updatedAt = time.Date(2026, time.May, 4, 15, 0, 0, 123456789, time.UTC)

// The event is published, and has the fields of shape.
func newEvent(values map[string]any) *Event {
	values["name"] = "Gates"
	return &Event{
		ID: "abcdefghijklmnopqrstuvwxyz", Type: "webinar", Status: Published, Values: values, Shape: shape, UpdatedAt: updatedAt,
		Post: Post{ID: "1", Slug: "gates", URL: "https://example.com/gates/"},
	}
}

// What readers' scripts get, and search engines: all of it.
func TestScriptsAndSearchEnginesGetWholeEvents(t *testing.T) {
	// These stand in each response.
	always := `"id":"abcdefghijklmnopqrstuvwxyz","slug":"gates","type":"webinar","status":"published","name":"Gates"`
	after := `"updated_at":"2026-05-04T15:00:00.123456789Z"`
	linked := `"@context":"https://schema.org","@type":"Event","name":"Gates"`
	tests := map[string]struct {
		change         func(*Event)
		values         map[string]any
		public, linked string
	}{
		"without a date": {
			values: map[string]any{"event_time_start": "19:00", "location": " "},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"","event_time_start":"19:00","event_time_end":"",` +
				`"event_date_end":"","event_time_zone":"","start":null,"end":null,"all_day":false,"deadline":null,"location":"","max_attendees":null,"access":"","fields":{},AFTER}`,
			linked: `{LINKED,"eventStatus":"https://schema.org/EventScheduled"}`,
		},
		"at a place, with every field": {
			values: map[string]any{
				"slug": "another", "description": " Old\nand new ", "event_date": "2026-05-01", "event_time_start": "19:00", "event_time_end": "21:30:15",
				"event_time_zone": "Europe/Berlin", "location": "The Pier", "max_attendees": "1200", "feature_image": "https://example.com/a.jpg",
				"access": "paid", "rsvp_labels": []any{"guests"}, "registration_deadline": "2026-04-30", "speaker": "Ada", "price": 12.5, "captions": false,
				"former": "which the type has no more",
			},
			public: `{ALWAYS,"description":"Old\nand new","url":"https://example.com/gates/","feature_image":"https://example.com/a.jpg","event_date":"2026-05-01",` +
				`"event_time_start":"19:00","event_time_end":"21:30:15","event_date_end":"","event_time_zone":"Europe/Berlin","start":"2026-05-01T19:00:00+02:00",` +
				`"end":"2026-05-01T21:30:00+02:00","all_day":false,"deadline":"2026-05-01T00:00:00+02:00","location":"The Pier","max_attendees":1200,"access":"paid",` +
				`"fields":{"captions":false,"price":12.5,"speaker":"Ada"},"labels":{"speaker":"Speaker","price":"Price"},AFTER}`,
			linked: `{LINKED,"description":"Old\nand new","image":["https://example.com/a.jpg"],"startDate":"2026-05-01T19:00:00+02:00",` +
				`"endDate":"2026-05-01T21:30:00+02:00","eventStatus":"https://schema.org/EventScheduled","eventAttendanceMode":"https://schema.org/OfflineEventAttendanceMode",` +
				`"location":[{"@type":"Place","name":"The Pier","address":"The Pier"}],"maximumAttendeeCapacity":1200}`,
		},
		"online, for anyone": {
			values: map[string]any{
				"event_date": "2026-12-01", "event_time_start": "19:00", "event_time_zone": "America/New_York", "access": "anyone",
				"platform_url": "https://meet.example.com/?a=b&c=d", "registration_deadline": "2026-11-30", "deadline_time_end": "12:00",
			},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"2026-12-01","event_time_start":"19:00","event_time_end":"",` +
				`"event_date_end":"","event_time_zone":"America/New_York","start":"2026-12-01T19:00:00-05:00","end":null,"all_day":false,"deadline":"2026-11-30T12:00:00-05:00","location":"",` +
				`"platform_url":"https://meet.example.com/?a=b&c=d","max_attendees":null,"access":"anyone","fields":{},AFTER}`,
			linked: `{LINKED,"startDate":"2026-12-01T19:00:00-05:00","eventStatus":"https://schema.org/EventScheduled",` +
				`"eventAttendanceMode":"https://schema.org/OnlineEventAttendanceMode","location":[{"@type":"VirtualLocation","url":"https://meet.example.com/?a=b\u0026c=d"}],` +
				`"isAccessibleForFree":true}`,
		},
		"online, for members alone": {
			values: map[string]any{"event_date": "2026-12-01", "event_time_start": "19:00", "access": "free", "platform_url": "https://meet.example.com/secret"},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"2026-12-01","event_time_start":"19:00","event_time_end":"",` +
				`"event_date_end":"","event_time_zone":"","start":"2026-12-01T19:00:00Z","end":null,"all_day":false,"deadline":null,"location":"","max_attendees":null,"access":"free",` +
				`"fields":{},AFTER}`,
			linked: `{LINKED,"startDate":"2026-12-01T19:00:00Z","eventStatus":"https://schema.org/EventScheduled",` +
				`"eventAttendanceMode":"https://schema.org/OnlineEventAttendanceMode","isAccessibleForFree":true}`,
		},
		"online, where nothing says for whom": {
			values: map[string]any{"event_date": "2026-12-01", "platform_url": "https://meet.example.com/secret"},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"2026-12-01","event_time_start":"","event_time_end":"",` +
				`"event_date_end":"","event_time_zone":"","start":"2026-12-01","end":"2026-12-02","all_day":true,"deadline":null,"location":"","max_attendees":null,"access":"",` +
				`"fields":{},AFTER}`,
			linked: `{LINKED,"startDate":"2026-12-01","eventStatus":"https://schema.org/EventScheduled",` +
				`"eventAttendanceMode":"https://schema.org/OnlineEventAttendanceMode"}`,
		},
		"at a place and online, and cancelled": {
			change: func(e *Event) { e.Status = Cancelled },
			values: map[string]any{
				"event_date": "2026-05-01", "event_time_start": "19:00", "event_time_end": "19:00", "location": "The Pier", "access": "anyone",
				"platform_url": "https://meet.example.com/",
			},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"2026-05-01","event_time_start":"19:00",` +
				`"event_time_end":"19:00","event_date_end":"","event_time_zone":"","start":"2026-05-01T19:00:00Z","end":"2026-05-01T19:00:00Z","all_day":false,"deadline":null,` +
				`"location":"The Pier","platform_url":"https://meet.example.com/","max_attendees":null,"access":"anyone","fields":{},AFTER}`,
			linked: `{LINKED,"startDate":"2026-05-01T19:00:00Z","endDate":"2026-05-01T19:00:00Z","eventStatus":"https://schema.org/EventCancelled",` +
				`"eventAttendanceMode":"https://schema.org/MixedEventAttendanceMode","location":[{"@type":"Place","name":"The Pier","address":"The Pier"},` +
				`{"@type":"VirtualLocation","url":"https://meet.example.com/"}],"isAccessibleForFree":true}`,
		},
		"the whole of a day at which the clocks change": {
			values: map[string]any{"event_date": "2026-03-29", "event_time_zone": "Europe/Berlin", "event_time_end": "12:00"},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"2026-03-29","event_time_start":"",` +
				`"event_time_end":"12:00","event_date_end":"","event_time_zone":"Europe/Berlin","start":"2026-03-29","end":"2026-03-30","all_day":true,"deadline":null,"location":"",` +
				`"max_attendees":null,"access":"","fields":{},AFTER}`,
			linked: `{LINKED,"startDate":"2026-03-29","eventStatus":"https://schema.org/EventScheduled"}`,
		},
		"with what would end a script": {
			values: map[string]any{"location": "</script>\u2028<!--", "speaker": `<b>"&`},
			public: `{ALWAYS,"description":"","url":"https://example.com/gates/","feature_image":"","event_date":"","event_time_start":"","event_time_end":"",` +
				`"event_date_end":"","event_time_zone":"","start":null,"end":null,"all_day":false,"deadline":null,"location":"</script>\u2028<!--","max_attendees":null,"access":"",` +
				`"fields":{"speaker":"<b>\"&"},"labels":{"speaker":"Speaker"},AFTER}`,
			linked: `{LINKED,"eventStatus":"https://schema.org/EventScheduled","eventAttendanceMode":"https://schema.org/OfflineEventAttendanceMode",` +
				`"location":[{"@type":"Place","name":"\u003c/script\u003e\u2028\u003c!--","address":"\u003c/script\u003e\u2028\u003c!--"}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEvent(maps.Clone(test.values))
			if test.change != nil {
				test.change(e)
			}
			public := strings.NewReplacer("ALWAYS", strings.Replace(always, "published", string(e.Status), 1), "AFTER", after).Replace(test.public)
			if diff := cmp.Diff(public, e.publicJSON()); diff != "" {
				t.Errorf("for scripts (-want +got): %s", diff)
			}
			scripts := scriptsOf(t, e.head(sitePage{}, ""))
			if diff := cmp.Diff(strings.Replace(test.linked, "LINKED", linked, 1), scripts[`type="application/ld+json"`]); diff != "" {
				t.Errorf("for search engines (-want +got): %s", diff)
			}

			// The page has the same as the response, apart from where it is.
			var inPage, inAnswer map[string]any
			if err := json.Unmarshal([]byte(scripts[`type="application/json" id="lychgate-event"`]), &inPage); err != nil {
				t.Fatalf("json.Unmarshal: %v", err)
			}
			if err := json.Unmarshal([]byte(public), &inAnswer); err != nil {
				t.Fatalf("json.Unmarshal: %v", err)
			}
			delete(inAnswer, "slug")
			delete(inAnswer, "url")
			if diff := cmp.Diff(inAnswer, inPage); diff != "" {
				t.Errorf("in the page (-want +got): %s", diff)
			}
		})
	}
}

// The keys are the attributes of the two scripts. The test fails if the scripts contain other
// markup.
func scriptsOf(t *testing.T, head string) map[string]string {
	t.Helper()
	lines := strings.Split(head, "\n")
	if len(lines) != 4 || lines[0] != headStart || lines[3] != headEnd {
		t.Fatalf("the head is\n%s\nwant two scripts between %q and %q", head, headStart, headEnd)
	}
	scripts := make(map[string]string)
	for _, line := range lines[1:3] {
		attributes, content, _ := strings.Cut(strings.TrimPrefix(line, "<script "), ">")
		content, isClosed := strings.CutSuffix(content, "</script>")
		if !isClosed || strings.ContainsAny(content, "<>&\u2028\u2029") {
			t.Errorf("%q, want one script without markup in it", line)
		}
		scripts[attributes] = content
	}
	return scripts
}

// A page that readers get loads the script that shows the event, behind what that reads.
func TestHeadWithScript(t *testing.T) {
	e := newEvent(map[string]any{})
	for _, test := range []struct{ name, path, language, want string }{
		{"a language that has no messages", "/ghost/lychgate/event.js", "", `<script src=/ghost/lychgate/event.js async blocking="render"></script>` + "\n"},
		{"the usual path", "/ghost/lychgate/event.js", "de", `<script src=/ghost/lychgate/event.js?de async blocking="render"></script>` + "\n"},
		{"a path with markup", `/"'><b>&=` + "` /event.js", "de", `<script src=/%22%27%3E%3Cb%3E%26%3D%60%20/event.js?de async blocking="render"></script>` + "\n"},
		{"none", "", "de", ""},
	} {
		want := strings.TrimSuffix(e.head(sitePage{}, ""), headEnd) + test.want + headEnd
		if diff := cmp.Diff(want, e.head(sitePage{script: test.path, scriptLanguage: test.language}, "")); diff != "" {
			t.Errorf("%s: the head (-want +got): %s", test.name, diff)
		}
	}
}

// What staff write into the head around an event's part stays as it is.
func TestWithHead(t *testing.T) {
	part, other := headStart+"\nold\n"+headEnd, headStart+"\nnew\n"+headEnd
	tests := []struct{ name, html, part, want string }{
		{"nothing into nothing", "", "", ""},
		{"into nothing", "", other, other},
		{"nothing in place of it", "a\n" + part + "\nb", "", "a\nb"},
		{"nothing beside staff's", "a\n", "", "a\n"},
		{"beside staff's", "a\n\n", other, "a\n" + other},
		{"in its place", "a\n" + part + "b", other, "a\n" + other + "b"},
		{"in place of one that was cut off", "a\n" + strings.TrimSuffix(part, headEnd), other, "a\n" + other},
		{"away with one that was cut off", headStart + "\nold", "", ""},
		{"before what follows one without its end", "a\n" + strings.TrimSuffix(new(Event).head(sitePage{}, ""), headEnd) + "<meta>\n<script>x</script>", other, "a\n" + other + "\n<meta>\n<script>x</script>"},
		{
			"before what follows one with a script and without its end",
			"a\n" + strings.TrimSuffix(new(Event).head(sitePage{script: "/event.js"}, ""), headEnd) + `<script src="/event.js"></script>`,
			other, "a\n" + other + "\n" + `<script src="/event.js"></script>`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := withHead(test.html, test.part)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the head (-want +got): %s", diff)
			}
			if again := withHead(got, test.part); again != got {
				t.Errorf("a second time it is %q, want %q", again, got)
			}
		})
	}
}

// Whatever staff write there, it stays, an event has one part of it, and that can be taken away.
func FuzzWithHead(f *testing.F) {
	part := newEvent(map[string]any{}).head(sitePage{script: "/ghost/lychgate/event.js"}, "")
	for _, html := range []string{"", "<meta>", part, "a" + part + "b", headEnd + headStart, headStart + headID + "</script>", "\n" + part + "\n\n"} {
		f.Add(html)
	}
	f.Fuzz(func(t *testing.T, html string) {
		with := withHead(html, part)
		if strings.Count(with, part) != 1 && strings.Count(html, headStart) < 2 {
			t.Errorf("%q is %q, want one part of the event in it", html, with)
		}
		if again := withHead(with, part); again != with {
			t.Errorf("%q is %q the second time, want %q", html, again, with)
		}
		if strings.Contains(html, headStart) {
			return
		}
		without := strings.Trim(withHead(with, ""), "\n")
		if diff := cmp.Diff(strings.Trim(html, "\n"), without); diff != "" {
			t.Errorf("without its part, %q (-want +got): %s", html, diff)
		}
	})
}

// A page asks for its event by its ID, also after its slug has changed. Who gives another event that slug, in Ghost too,
// does not take its page, or its button would register readers for theirs.
func TestBodyByID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		r := newBench(t, db)
		e := r.published(map[string]any{"name": "Party", "event_date": "2031-05-01", "access": "free"})
		other := r.published(map[string]any{"name": "Another", "event_date": "2031-05-01", "access": "paid"})
		r.ghost.EditPost(other.Post.ID, func(p *platform.EventPost) { p.Slug = e.ID })
		want[[]Event](t)(r.Refresh(t.Context(), "daily", []Event{other}))
		r.sync(other.ID)
		if other = want[Event](t)(r.Find(t.Context(), "daily", other.ID)); other.Post.Slug != e.ID {
			t.Fatalf("the other event has the slug %q, want %q", other.Post.Slug, e.ID)
		}
		for _, one := range []Event{e, other} {
			if body := want[string](t)(r.store.Body(t.Context(), "daily", one.ID)); body != one.body {
				t.Errorf("the event by its ID: %s, want %s", body, one.body)
			}
		}
		edit := Edit{"solo", "webinar", map[string]any{"name": "Another", "event_date": "2031-05-01", "slug": newID()}}
		_, err := r.Save(t.Context(), "daily", other.ID, 0, edit, typeOf(t, "webinar"))
		if invalid, ok := errors.AsType[*InvalidError](err); !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != "slug" {
			t.Errorf("a slug that may be an ID: %v, want one problem of the slug", err)
		}
		want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0))
		if _, err := r.store.Body(t.Context(), "daily", e.Post.Slug); !errors.Is(err, ErrNotFound) {
			t.Errorf("a draft: %v, want %v", err, ErrNotFound)
		}
	})
}
