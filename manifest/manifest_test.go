package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	return text
}

// full is what testdata/full.yaml declares.
var full = &Manifest{
	Version: 1,
	Events: &Events{
		DefaultTags: []string{"Events", "#event"},
		Types: Types{
			{
				Key: "webinar", PostTemplate: "custom-webinar", Label: "Online talk", Tags: []string{"Webinars", "hash-event"},
				SupportedFields: []string{
					"name", "slug", "description", "event_date", "event_time_start", "platform_url", "max_attendees",
					"feature_image", "access",
				},
				RequiredFields: []string{"name", "event_date", "platform_url"},
				FieldConstraints: FieldConstraints{
					{"name", Constraints{MaxLength: 80, Pattern: "^[A-Z]"}},
					{"feature_image", Constraints{AspectRatio: "16:9", MinWidth: 1200, MinHeight: 675}},
					{"max_attendees", Constraints{Min: new(1.0), Max: new(500.0)}},
				},
				CustomFields: []CustomField{
					{
						Key: "speaker", Label: "Speaker", Type: "text", Required: true, HelpText: "Who speaks",
						Constraints: Constraints{MaxLength: 60, Pattern: `^\S`},
					},
					{Key: "about_the_speaker", Label: "About the speaker", Type: "textarea", Constraints: Constraints{MaxLength: 500}},
					{Key: "price", Label: "Price", Type: "number", Constraints: Constraints{Min: new(0.0), Max: new(99.5)}},
					{Key: "level", Label: "Level", Type: "select", Options: []string{"Beginner", "Expert"}},
					{Key: "slides", Label: "Slides", Type: "url"},
					{Key: "rehearsal", Label: "Rehearsal", Type: "date"},
					{Key: "recorded", Label: "Recorded", Type: "toggle"},
					{
						Key: "portrait", Label: "Portrait", Type: "image",
						Constraints: Constraints{AspectRatio: "1:1", MinWidth: 400, MaxFileSizeKB: 2048},
					},
				},
				MessagingStates: []string{"can_register", "event_passed"},
				Default:         true,
			},
			{
				Key: "house_concert", PostTemplate: "custom-concert", Label: "House concert", Tags: []string{},
				SupportedFields: []string{
					"name", "slug", "description", "event_date", "event_time_start", "event_time_end", "event_time_zone",
					"location", "platform_url", "max_attendees", "feature_image", "access", "rsvp_labels",
					"registration_deadline", "deadline_time_end",
				},
				RequiredFields: []string{}, FieldConstraints: FieldConstraints{}, CustomFields: []CustomField{},
				MessagingStates: []string{},
			},
		},
	},
	Curation: &Curation{Sections: []Section{
		{
			Key: "hero", Name: "Hero", Description: "The large picture on top",
			Picker: Picker{DefaultView: "search", RecentLimit: 10, RecentFilter: &RecentFilter{"news"}},
			Slots:  []Slot{{"main", "Main story", "hash-hero"}, {"side", "Side story", "#hero-side"}},
		},
		{
			Key: "footer", Name: "Footer", Picker: Picker{DefaultView: "recent", RecentLimit: 20},
			Slots: []Slot{{"main", "Last word", "hash-footer"}},
		},
	}},
}

func TestParseKeepsEverythingInOrder(t *testing.T) {
	want := Result{Manifest: full, Findings: []Finding{}}
	if diff := cmp.Diff(want, Parse(fixture(t, "full.yaml"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = Result{Manifest: &Manifest{Version: 1}, Findings: []Finding{}}
	if diff := cmp.Diff(want, Parse([]byte(clean))); diff != "" {
		t.Errorf("neither events nor curation (-want +got):\n%s", diff)
	}
}

// Anyone who answers an upload sends what is documented, and no more.
func TestFindingJSON(t *testing.T) {
	text, err := json.Marshal(Parse([]byte(inEvents("default_tags: a"))).Findings)
	if err != nil {
		t.Fatalf("error %v, want none", err)
	}
	want := "[{\"field\":\"events.default_tags\",\"message\":\"`default_tags` is `a`, so it is ignored; make it a list\",\"severity\":\"warning\"}]"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A problem further up in the file is told first, wherever it is looked for.
func TestFindingsInOrder(t *testing.T) {
	got := asText(Parse(fixture(t, "wrong.yaml")).Findings)
	want := []string{
		"7:13 error homepage_curation.sections[0].name: the `name` of the section is no text, so it is dropped; put `1` in quotes",
		"9:31 error homepage_curation.sections[0].slots[1].tag: the `tag` `#A` is used before, so the slot is dropped; choose another",
		"11:7 warning homepage_curation.sections[0].picker.x: `x` is not a key of a picker, so it is dropped; use `default_view`, `recent_limit` or `recent_filter`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Both sides of each limit on a picker.
func TestRecentLimit(t *testing.T) {
	for _, test := range []struct {
		in       string
		want     int
		findings int
	}{
		{"-1", 20, 1},
		{"0", 20, 1},
		{"1", 1, 0},
		{"49", 49, 0},
		{"50", 50, 0},
		{"51", 50, 0},
		{"99999999999999999999", 50, 0}, // more than 64 bits
		{"9223372036854775808", 50, 0},  // more than 63
		{"-99999999999999999999", 20, 1},
		{"+7", 7, 0},
		{"08", 8, 0},
		{"010", 10, 0}, // YAML 1.2: octal is 0o10
		{"0o10", 8, 0},
		{"!!float 7", 20, 1},
		{"00", 20, 1},
		{"0x10", 16, 0},
		{"1_0", 20, 1}, // YAML 1.1
		{"0b11", 20, 1},
		{"20.0", 20, 1},
		{"1e1", 20, 1},
		{"!!int 7", 7, 0},
		{"!!int x", 20, 1},
		{"true", 20, 1},
		{"[7]", 20, 1},
	} {
		got := Parse([]byte(inPicker("recent_limit: " + test.in)))
		if limit := got.Manifest.Curation.Sections[0].Picker.RecentLimit; limit != test.want || len(got.Findings) != test.findings {
			t.Errorf("recent_limit: %s is %d with findings %q; want %d and %d", test.in, limit, asText(got.Findings), test.want, test.findings)
		}
	}
}

// Homepage Curation stays off however many problems there are, also if not all
// of them are listed.
func TestFindingsAreBounded(t *testing.T) {
	for _, n := range []int{maxFindings - 1, maxFindings, maxFindings + 1} {
		text := inType("supported_fields: [" + strings.Repeat("~,", n) + "]")
		if got := len(Parse([]byte(text)).Findings); got != min(n, maxFindings) {
			t.Errorf("%d findings of %d problems", got, n)
		}
	}
}

func TestLabelOf(t *testing.T) {
	for key, want := range map[string]string{
		"webinar": "Webinar", "house_concert": "House concert", "éclair": "Éclair", "2026_talk": "2026 talk", "_x": " x", "A_b": "A b",
	} {
		if got := labelOf(key); got != want {
			t.Errorf("labelOf(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestEventTags(t *testing.T) {
	for _, test := range []struct{ defaults, own, want []string }{
		{nil, nil, []string{}},
		{[]string{"Events"}, nil, []string{"Events"}},
		{[]string{"Events", "b"}, []string{"a", "Events"}, []string{"Events", "b", "a"}},
		{[]string{"#event"}, []string{"hash-event", "events", "EVENTS"}, []string{"#event", "events"}},
		{[]string{"a", "a"}, []string{"#a"}, []string{"a", "#a"}},
	} {
		e := Events{DefaultTags: test.defaults}
		if diff := cmp.Diff(test.want, e.EventTags(EventType{Tags: test.own})); diff != "" {
			t.Errorf("%v and %v (-want +got):\n%s", test.defaults, test.own, diff)
		}
	}
}

func TestEventTypesAreFoundByKey(t *testing.T) {
	got, ok := full.Events.Type("house_concert")
	if diff := cmp.Diff(full.Events.Types[1], got); diff != "" || !ok {
		t.Errorf("found %t (-want +got):\n%s", ok, diff)
	}
	if _, ok := full.Events.Type("gig"); ok {
		t.Error(`Type("gig"): got one, want none`)
	}
	if _, ok := (*Events)(nil).Type("gig"); ok {
		t.Error(`Type("gig") of no events: got one, want none`)
	}
}

func TestMistypedFieldsGetTheNearestName(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"locaton", "location"},
		{"feature_imgae", "feature_image"},
		{"featured_image", "feature_image"},
		{"EVENT_DATE", "event_date"},
		{"maxattendees", "max_attendees"},
		{"x", ""},
		{"", ""},
		{"speaker", ""},
		{fmt.Sprint(standardFields), ""},
	} {
		if got := nearest(test.in, standardFields); got != test.want {
			t.Errorf("nearest(%q) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestTagIdentity(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"#x", "hash-x", true},
		{"hash-x", "#X", true},
		{"x", "X ", true},
		{"x", "#x", false},
		{"#x", "##x", true},
		{"hash", "#", false},
		{"#top news", "hash-top-news", true},
		{"Top  News!", "top-news", true},
		{"reader's", "readers", true},
		{"a_b", "a-b", false},
		{"héro", "hero", false}, // only Ghost knows
		{"#", "hash-", true},
	} {
		if got := TagIdentity(test.a) == TagIdentity(test.b); got != test.want {
			t.Errorf("%q and %q are one tag: %t, want %t", test.a, test.b, got, test.want)
		}
	}
}
