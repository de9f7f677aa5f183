package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// White space around who may register means nothing, everywhere: an event that is published
// as one for anyone is for anyone on its page, in calendars and to search engines. The values
// are as a store may have them from before.
func TestAccessIsOneThingEverywhere(t *testing.T) {
	type places struct {
		Saved    any // by an editor now
		Problem  string
		Readers  string
		Link     bool // readers have the link
		Calendar bool // calendars have it
		Free     any  // schema.org's
	}
	anyone := places{Saved: "anyone", Readers: "anyone", Link: true, Calendar: true, Free: true}
	paid := places{Saved: "paid", Readers: "paid", Free: false}
	const refusal = "Access must be anyone, free or paid."
	for name, test := range map[string]struct {
		value any
		want  places
	}{
		"anyone":             {"anyone", anyone},
		"a space behind":     {"anyone ", anyone},
		"a line break":       {"\nanyone\r\n", anyone},
		"a no-break space":   {"\u00a0anyone", anyone},
		"paid":               {" paid\t", paid},
		"free":               {"free ", places{Saved: "free", Readers: "free", Free: true}},
		"nothing":            {nil, places{}},
		"blank":              {"  ", places{}},
		"another case":       {"Anyone", places{Saved: "Anyone", Problem: refusal}},
		"a zero-width space": {"anyone\u200b", places{Saved: "anyone\u200b", Problem: refusal}},
		"a list":             {[]any{"anyone"}, places{Saved: []any{"anyone"}, Problem: "Access must be text."}},
		"a truth":            {true, places{Saved: true, Problem: "Access must be text."}},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"event_date": "2026-12-01", "platform_url": "https://meet.example.com/secret", "access": test.value}
			var got places
			edit, err := Edit{Theme: "solo", Type: "webinar", Values: values}.checked()
			if err != nil {
				t.Fatalf("Edit{Theme: \"solo\", Type: \"webinar\", Values: values}.checked: %v", err)
			}
			got.Saved = edit["access"]
			for _, p := range typeOf(t, "webinar").Problems(values, platform.PostLimits{}) {
				if p.Field == "access" {
					got.Problem = p.Message
				}
			}
			e := newEvent(values)
			e.Shape.Fields = manifest.StandardFields()
			public := e.public(e.Post).values()
			got.Readers, got.Link = textOf(public, "access"), public["platform_url"] != nil
			entry, err := calendarEntry(e.publicJSON())
			if err != nil {
				t.Fatalf("calendarEntry: %v", err)
			}
			got.Calendar = strings.Contains(entry, "meet.example.com")
			got.Free = (linkedEvent{public: public}).object().values()["isAccessibleForFree"]
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("access %#v (-want +got): %s", test.value, diff)
			}
		})
	}
}
