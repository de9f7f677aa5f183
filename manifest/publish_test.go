package manifest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What stops an event from being published, and what does not.
func TestInvalidValuesStopPublishing(t *testing.T) {
	text5 := CustomField{Key: "f", Label: "F", Type: "text", Constraints: Constraints{MaxLength: 5, Pattern: "^x$"}}
	area5 := CustomField{Key: "f", Label: "F", Type: "textarea", Constraints: Constraints{MaxLength: 5}}
	number := CustomField{Key: "f", Label: "F", Type: "number", Constraints: Constraints{Min: new(-1.5), Max: new(10.0)}}
	level := CustomField{Key: "f", Label: "F", Type: "select", Options: []string{"Beginner", "Expert"}}
	of := func(kind string) CustomField { return CustomField{Key: "f", Label: "F", Type: kind} }
	required := func(c CustomField) CustomField { c.Required = true; return c }
	const (
		tooLong  = "F must have 5 characters at most; it has 6."
		noNumber = "F must be a number."
		noOption = "F must be one of its options."
		noURL    = "F must be a URL such as https://example.com/page."
		missing  = "F is required."
	)
	for _, test := range []struct {
		name  string
		field CustomField
		value any
		want  string
	}{
		{"text as long as allowed", text5, "12345", ""},
		{"text too long", text5, "123456", tooLong},
		{"code points count, not bytes", text5, "äöüß€", ""},
		{"code points, not what is seen as one", text5, "e\u0301e\u0301e\u0301", tooLong},
		{"one emoji is one", text5, "🎉🎉🎉🎉🎉", ""},
		{"a pattern is not enforced", text5, "abc", ""},
		{"text left out", text5, nil, ""},
		{"spaces count", text5, "      ", tooLong},
		{"no text", text5, 5.0, "F must be text."},
		{"without a length, nothing is checked", of("text"), strings.Repeat("x", 100_000), ""},
		{"textarea as long as allowed", area5, "1\n345", ""},
		{"textarea too long", area5, "1\n3456", tooLong},

		{"number at its least", number, -1.5, ""},
		{"number below", number, -1.51, "F must be -1.5 or more."},
		{"number at its most", number, 10.0, ""},
		{"number above", number, 10.01, "F must be 10 or less."},
		{"number between", number, json.Number("3"), ""},
		{"whole number", number, 11, "F must be 10 or less."},
		{"number as text", number, " 4.5 ", ""},
		{"number as text, above", number, "1e2", "F must be 10 or less."},
		{"no number", number, "four", noNumber},
		{"not a number", number, "NaN", noNumber},
		{"infinity", number, "-Inf", noNumber},
		{"hexadecimal", number, "0x1", noNumber},
		{"boolean", number, true, noNumber},
		{"number left empty", number, "", ""},
		{"number without bounds", of("number"), -1e300, ""},
		{"too large to be a number", of("number"), "1e999", noNumber},

		{"an option", level, "Expert", ""},
		{"no option", level, "expert", noOption},
		{"several options", level, []any{"Expert"}, noOption},
		{"option left empty", level, "", ""},

		{"a URL", of("url"), "https://example.com/a?b=c#d", ""},
		{"a URL with a port", of("url"), "http://localhost:2368", ""},
		{"a URL with an umlaut", of("url"), "https://münchen.example/ä", ""},
		{"no scheme", of("url"), "example.com", noURL},
		{"a path", of("url"), "/a", noURL},
		{"no host", of("url"), "https://", noURL},
		{"only a port", of("url"), "https://:80", noURL},
		{"a script", of("url"), "javascript:alert(1)", noURL},
		{"a space", of("url"), "https://example.com/a b", noURL},
		{"a wrong escape", of("url"), "https://example.com/%zz", noURL},
		{"a number", of("url"), 5.0, noURL},
		{"URL left empty", of("url"), "", ""},

		{"a date is not checked", of("date"), "tomorrow", ""},
		{"a toggle is not checked", of("toggle"), "maybe", ""},
		{"an image is not checked", CustomField{Key: "f", Label: "F", Type: "image", Constraints: Constraints{MinWidth: 5, AspectRatio: "1:1", MaxFileSizeKB: 1}}, "x", ""},

		{"required and there", required(of("text")), "x", ""},
		{"required and null", required(of("text")), nil, missing},
		{"required and empty", required(of("date")), "", missing},
		{"required and blank", required(text5), "       ", missing},
		{"required and an empty list", required(of("image")), []any{}, missing},
		{"required and on", required(of("toggle")), true, ""},
		{"required and off", required(of("toggle")), false, "F must be ticked."},
		{"a required toggle that was never touched", required(of("toggle")), nil, "F must be ticked."},
		{"a required toggle with a text", required(of("toggle")), "true", "F must be ticked."},
		{"required and 0", required(of("number")), 0.0, ""},
		{"required and wrong", required(of("url")), "x", noURL},
	} {
		t.Run(test.name, func(t *testing.T) {
			event := EventType{CustomFields: []CustomField{test.field}}
			want := []Problem{}
			if test.want != "" {
				want = append(want, Problem{"f", test.want})
			}
			if diff := cmp.Diff(want, event.Publish(map[string]any{"f": test.value})); diff != "" {
				t.Errorf("%v (-want +got):\n%s", test.value, diff)
			}
		})
	}
}

// Of the standard fields only those that are required are looked at; hints are
// no rules.
func TestPublishStandardFields(t *testing.T) {
	webinar := full.Events.Types[0]
	values := map[string]any{
		"name": strings.Repeat("x", 200), "platform_url": "not a URL", "max_attendees": 1e6, "event_date": " ",
		"speaker": "Ada", "unknown": "x",
	}
	if diff := cmp.Diff([]Problem{{"event_date", "Event date is required."}}, webinar.Publish(values)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := webinar.Publish(nil)
	want := []Problem{
		{"name", "Name is required."},
		{"event_date", "Event date is required."},
		{"platform_url", "Platform url is required."},
		{"speaker", "Speaker is required."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nothing filled (-want +got):\n%s", diff)
	}
	lists := EventType{RequiredFields: []string{"rsvp_labels", "tags"}}
	got = lists.Publish(map[string]any{"rsvp_labels": []any{" "}, "tags": []string{""}})
	if len(got) != 2 {
		t.Errorf("lists of nothing are filled: %v", got)
	}
}

// The phrase under the Featured Image field.
func TestImagePhrase(t *testing.T) {
	for _, test := range []struct{ constraints, site, want string }{
		{"{min_width: 1200, min_height: 675, aspect_ratio: 16:9}", "800 x 600 px", "1200px wide, 675px tall, 16:9 aspect ratio"},
		{"{aspect_ratio: '1.91:1', min_width: 1}", "", "1px wide, 1.91:1 aspect ratio"},
		{"{min_height: 675}", "", "675px tall"},
		{"{aspect_ratio: 1:1}", "", "1:1 aspect ratio"},
		{"{}", "800 x 600 px", "800 x 600 px"},
		{"{}", " ", "1200 x 630 px"},
		{"{min_width: 0, min_height: -1, aspect_ratio: 0:9}", "", "1200 x 630 px"},
		{"{min_width: wide, aspect_ratio: 16/9}", "", "1200 x 630 px"},
		{"{min_width: 0, min_height: 1}", "", "1px tall"},
	} {
		m := Parse([]byte(inType("field_constraints: {name: {max_length: 5}, feature_image: " + test.constraints + "}"))).Manifest
		if got := m.Events.Types[0].ImagePhrase(test.site); got != test.want {
			t.Errorf("feature_image: %s, site %q: %q, want %q", test.constraints, test.site, got, test.want)
		}
	}
}

// Only the ratio shapes the frame.
func TestCropRatio(t *testing.T) {
	for _, test := range []struct{ constraints, want string }{
		{"{min_width: 1200, min_height: 630, aspect_ratio: 16:9}", "16:9"},
		{"{min_width: 1200, min_height: 630}", ""},
		{"{min_height: 300}", ""},
		{"{aspect_ratio: 1:1}", "1:1"},
		{"{}", ""},
	} {
		e := Parse([]byte(inType("field_constraints: {feature_image: " + test.constraints + "}"))).Manifest.Events.Types[0]
		if got := e.FieldConstraints.Of("feature_image").AspectRatio; got != test.want {
			t.Errorf("%s: %q, want %q", test.constraints, got, test.want)
		}
	}
}
