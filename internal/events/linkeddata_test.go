package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

const (
	pageAddress = "https://news.example.com/gates/"
	hiddenLink  = "https://meet.example.com/secret"
)

// dailyPage is what the pages of events of The Daily have.
var dailyPage = sitePage{
	publication: platform.Publication{Title: "The Daily", URL: "https://news.example.com/"}, takesRegistrations: true,
}

func linkedOf(t *testing.T, e *Event, page sitePage, address string) map[string]any {
	t.Helper()
	content := scriptsOf(t, e.head(page, address))[`type="application/ld+json"`]
	var linked map[string]any
	if err := json.Unmarshal([]byte(content), &linked); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	if strings.Contains(content, hiddenLink) {
		t.Errorf("%s has the link, which is not for everybody", content)
	}
	for _, problem := range unfit(linked) {
		t.Errorf("%s: %s, want no problem", content, problem)
	}
	return linked
}

// linkedCases are events with what search engines get of them beside name, organizer and url.
var linkedCases = map[string]struct {
	values  map[string]any
	change  func(*Event)
	page    sitePage
	address string
	want    map[string]any
}{
	"at a place": {
		values: map[string]any{"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "location": "The Pier"},
		want: map[string]any{
			"startDate": "2031-05-01T19:00:00+02:00", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
			"location": []any{thePier},
		},
	},
	"online for members": {
		values: map[string]any{"event_date": "2031-05-01", "platform_url": hiddenLink, "access": "paid", "registration_deadline": "2031-04-30"},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OnlineEventAttendanceMode",
			"location": []any{virtual(pageAddress)}, "isAccessibleForFree": false,
			"offers": map[string]any{"@type": "Offer", "url": pageAddress, "availability": schemaOrg + "InStock", "validThrough": "2031-05-01T00:00:00Z"},
		},
	},
	"online for members, and at a place": {
		values: map[string]any{"event_date": "2031-05-01", "platform_url": hiddenLink, "access": "free", "location": "The Pier", "max_attendees": 5.0},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "MixedEventAttendanceMode",
			"location": []any{thePier, virtual(pageAddress)}, "isAccessibleForFree": true, "maximumAttendeeCapacity": 5.0,
			"offers": map[string]any{"@type": "Offer", "url": pageAddress},
		},
	},
	"online for anyone": {
		values: map[string]any{"event_date": "2031-05-01", "platform_url": "https://meet.example.com/open", "access": "anyone"},
		page:   sitePage{publication: dailyPage.publication},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OnlineEventAttendanceMode",
			"location": []any{virtual("https://meet.example.com/open")}, "isAccessibleForFree": true,
		},
	},
	"at a place that is a link": {
		values: map[string]any{"event_date": "2031-05-01", "location": "https://meet.example.com/open"},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OnlineEventAttendanceMode",
			"location": []any{virtual("https://meet.example.com/open")},
		},
	},
	"for a price": {
		values: map[string]any{"event_date": "2031-05-01", "location": "The Pier", "access": "anyone", "price": 12.5, "currency": "EUR"},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
			"location": []any{thePier},
			"offers":   map[string]any{"@type": "Offer", "url": pageAddress, "price": 12.5, "priceCurrency": "EUR", "availability": schemaOrg + "InStock"},
		},
	},
	"for a price without a currency": {
		values: map[string]any{"event_date": "2031-05-01", "location": "The Pier", "access": "anyone", "price": 12.5, "currency": "euros"},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
			"location": []any{thePier}, "offers": map[string]any{"@type": "Offer", "url": pageAddress, "availability": schemaOrg + "InStock"},
		},
	},
	"of days, with a picture": {
		values: map[string]any{
			"event_date": "2031-05-01", "event_date_end": "2031-05-03", "location": "The Pier", "description": "Wine.",
			"feature_image": "https://news.example.com/content/images/size/w600/format/webp/2031/05/gates.jpg",
		},
		want: map[string]any{
			"startDate": "2031-05-01", "endDate": "2031-05-03", "eventStatus": schemaOrg + "EventScheduled",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier}, "description": "Wine.",
			"image": []any{"https://news.example.com/content/images/2031/05/gates.jpg"},
		},
	},
	"with a picture that its server cuts": {
		values: map[string]any{"event_date": "2031-05-01", "location": "The Pier", "feature_image": "https://images.unsplash.com/photo-1?fit=max&fm=jpg&w=2000"},
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventScheduled", "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
			"location": []any{thePier}, "image": []any{
				"https://images.unsplash.com/photo-1?fit=crop&fm=jpg&h=1080&w=1920", "https://images.unsplash.com/photo-1?fit=crop&fm=jpg&h=1440&w=1920",
				"https://images.unsplash.com/photo-1?fit=crop&fm=jpg&h=1920&w=1920",
			},
		},
	},
	"moved": {
		values: map[string]any{"event_date": "2031-05-08", "location": "The Pier"},
		change: func(e *Event) { e.Post.Start = "2031-05-01" },
		want: map[string]any{
			"startDate": "2031-05-08", "previousStartDate": "2031-05-01", "eventStatus": schemaOrg + "EventRescheduled",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier},
		},
	},
	"moved, and published by an earlier version": {
		values: map[string]any{"event_date": "2031-05-08", "event_time_start": "19:00", "location": "The Pier"},
		change: func(e *Event) { e.body = `{"id":"x","start":"2031-05-08T18:00:00Z"}` },
		want: map[string]any{
			"startDate": "2031-05-08T19:00:00Z", "previousStartDate": "2031-05-08T18:00:00Z", "eventStatus": schemaOrg + "EventRescheduled",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier},
		},
	},
	"at the same time by another zone": {
		values: map[string]any{"event_date": "2031-05-08", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "location": "The Pier"},
		change: func(e *Event) { e.Post.Start = "2031-05-08T17:00:00Z" },
		want: map[string]any{
			"startDate": "2031-05-08T19:00:00+02:00", "eventStatus": schemaOrg + "EventScheduled",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier},
		},
	},
	"with a time of day since": {
		values: map[string]any{"event_date": "2031-05-08", "event_time_start": "19:00", "location": "The Pier"},
		change: func(e *Event) { e.Post.Start = "2031-05-08" },
		want: map[string]any{
			"startDate": "2031-05-08T19:00:00Z", "eventStatus": schemaOrg + "EventScheduled",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier},
		},
	},
	"without its date": {
		values: map[string]any{"location": "The Pier"},
		change: func(e *Event) { e.Post.Start = "2031-05-01" },
		want: map[string]any{
			"startDate": "2031-05-01", "eventStatus": schemaOrg + "EventPostponed",
			"eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode", "location": []any{thePier},
		},
	},
	"cancelled after it was moved": {
		values: map[string]any{"event_date": "2031-05-08", "location": "The Pier", "access": "free"},
		change: func(e *Event) { e.Status, e.Post.Start = Cancelled, "2031-05-01" },
		want: map[string]any{
			"startDate": "2031-05-08", "eventStatus": schemaOrg + "EventCancelled", "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
			"location": []any{thePier}, "isAccessibleForFree": true,
		},
	},
}

var thePier = map[string]any{"@type": "Place", "name": "The Pier", "address": "The Pier"}

func virtual(address string) map[string]any {
	return map[string]any{"@type": "VirtualLocation", "url": address}
}

func TestLinkedData(t *testing.T) {
	for name, test := range linkedCases {
		t.Run(name, func(t *testing.T) {
			e := newEvent(maps.Clone(test.values))
			e.Shape.Fields = append(slices.Clone(e.Shape.Fields), "currency")
			if test.change != nil {
				test.change(e)
			}
			page := dailyPage
			if test.page.publication.Title != "" {
				page = test.page
			}
			want := map[string]any{
				"@context": "https://schema.org", "@type": "Event", "name": "Gates", "url": pageAddress,
				"organizer": map[string]any{"@type": "Organization", "name": "The Daily", "url": "https://news.example.com/"},
			}
			maps.Copy(want, test.want)
			if diff := cmp.Diff(want, linkedOf(t, e, page, pageAddress)); diff != "" {
				t.Errorf("for search engines (-want +got): %s", diff)
			}
		})
	}
}

// rules are what Google demands of an event, and asks for, by the properties of
// https://developers.google.com/search/docs/appearance/structured-data/event. fits says what is
// wrong with a value, "" for nothing.
var rules = []struct {
	property   string
	isRequired bool
	fits       func(value any, of map[string]any) string
}{
	{"name", true, isFilledText},
	{"startDate", true, isDate},
	{"location", true, isLocation},
	{"description", false, isFilledText},
	{"endDate", false, func(value any, of map[string]any) string {
		if start, end := fmt.Sprint(of["startDate"]), fmt.Sprint(value); len(start) == len(end) && end < start {
			return "is before the start" // in one time zone, but for a change of the clocks
		}
		return isDate(value, of)
	}},
	{"eventStatus", false, isOneOf("EventScheduled", "EventCancelled", "EventPostponed", "EventRescheduled", "EventMovedOnline")},
	{"eventAttendanceMode", false, isOneOf("OfflineEventAttendanceMode", "OnlineEventAttendanceMode", "MixedEventAttendanceMode")},
	{"previousStartDate", false, func(value any, of map[string]any) string {
		if of["eventStatus"] != schemaOrg+"EventRescheduled" {
			return "is there, and the event is not rescheduled"
		}
		return isDate(value, of)
	}},
	{"image", false, func(value any, of map[string]any) string {
		list, _ := value.([]any)
		for _, image := range list {
			if wrong := isAddress(image, of); wrong != "" {
				return wrong
			}
		}
		return needs(len(list) > 0, "is no list of pictures")
	}},
	{"organizer", false, all("Organization", map[string]check{"name": isFilledText, "url": isAddress})},
	{"url", false, isAddress},
	{"offers", false, func(value any, of map[string]any) string {
		offer, _ := value.(map[string]any)
		price, hasPrice := offer["price"]
		_, isFree := of["isAccessibleForFree"]
		if amount, isNumber := price.(float64); hasPrice && (!isNumber || amount < 0 || offer["priceCurrency"] == nil || isFree) {
			return fmt.Sprintf("has the price %v, want a number with its currency, and isAccessibleForFree not beside it", price)
		}
		return all("Offer", map[string]check{
			"url": isAddress, "availability": isOneOf("InStock", "SoldOut", "PreOrder"), "validThrough": isDate, "priceCurrency": isCurrency,
		})(value, of)
	}},
}

type check = func(value any, of map[string]any) string

func needs(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

func isFilledText(value any, _ map[string]any) string {
	text, _ := value.(string)
	return needs(strings.TrimSpace(text) != "", fmt.Sprintf("is %v, want text", value))
}

func isDate(value any, _ map[string]any) string {
	text, _ := value.(string)
	_, err := time.Parse(time.RFC3339, text)
	_, errDate := time.Parse(time.DateOnly, text)
	return needs(err == nil || errDate == nil, fmt.Sprintf("is %v, want ISO 8601 with an offset, or a date", value))
}

func isAddress(value any, _ map[string]any) string {
	u, err := url.Parse(fmt.Sprint(value))
	return needs(err == nil && u.Host != "" && strings.HasPrefix(u.Scheme, "http"), fmt.Sprintf("is %v, want an absolute address", value))
}

func isCurrency(value any, _ map[string]any) string {
	return needs(regexp.MustCompile(`^[A-Z]{3}$`).MatchString(fmt.Sprint(value)), fmt.Sprintf("is %v, want a code of ISO 4217", value))
}

func isOneOf(names ...string) check {
	return func(value any, _ map[string]any) string {
		return needs(slices.Contains(names, strings.TrimPrefix(fmt.Sprint(value), schemaOrg)), fmt.Sprintf("is %v, want one of %v", value, names))
	}
}

// all checks the properties that an object of a type has.
func all(kind string, checks map[string]check) check {
	return func(value any, of map[string]any) string {
		o, _ := value.(map[string]any)
		if o["@type"] != kind {
			return fmt.Sprintf("is of the type %v, want %s", o["@type"], kind)
		}
		for name, fits := range checks {
			if v, ok := o[name]; ok && fits(v, of) != "" {
				return name + " " + fits(v, of)
			}
		}
		return ""
	}
}

// isLocation demands an address of a place, and a link of an event that is online, and that they
// fit the attendance mode.
func isLocation(value any, of map[string]any) string {
	list, _ := value.([]any)
	kinds := ""
	for _, entry := range list {
		place, _ := entry.(map[string]any)
		switch place["@type"] {
		case "Place":
			if wrong := isFilledText(place["address"], of); wrong != "" {
				return "address " + wrong
			}
			kinds += "Offline"
		case "VirtualLocation":
			if wrong := isAddress(place["url"], of); wrong != "" {
				return "url " + wrong
			}
			kinds += "Online"
		}
	}
	if kinds == "OfflineOnline" {
		kinds = "Mixed"
	}
	mode := schemaOrg + kinds + "EventAttendanceMode"
	return needs(kinds != "" && of["eventAttendanceMode"] == mode, fmt.Sprintf("is %v, and the mode %v", value, of["eventAttendanceMode"]))
}

// unfit applies rules, which are Google's.
func unfit(linked map[string]any) (problems []string) {
	for _, rule := range rules {
		value, ok := linked[rule.property]
		switch {
		case !ok && rule.isRequired:
			problems = append(problems, rule.property+" is missing")
		case ok && rule.fits(value, linked) != "":
			problems = append(problems, rule.property+" "+rule.fits(value, linked))
		}
	}
	return problems
}

// The rules find what is wrong.
func TestLinkedRules(t *testing.T) {
	right := map[string]any{
		"name": "Gates", "startDate": "2031-05-01", "location": []any{thePier}, "eventAttendanceMode": schemaOrg + "OfflineEventAttendanceMode",
		"offers": map[string]any{"@type": "Offer", "price": 1.0, "priceCurrency": "EUR"},
	}
	if problems := unfit(right); problems != nil {
		t.Fatalf("%v, want no problem", problems)
	}
	for name, change := range map[string]map[string]any{
		"no name": {"name": " "}, "no date": {"startDate": "1 May"}, "no place": {"location": []any{}}, "another mode": {"eventAttendanceMode": schemaOrg + "OnlineEventAttendanceMode"},
		"an unknown status": {"eventStatus": schemaOrg + "EventGone"}, "a relative picture": {"image": []any{"/a.jpg"}}, "an end before the start": {"endDate": "2031-04-30"},
		"a price that is free": {"isAccessibleForFree": true}, "a price without a currency": {"offers": map[string]any{"@type": "Offer", "price": 1.0}},
		"moved, as scheduled": {"previousStartDate": "2031-04-30", "eventStatus": schemaOrg + "EventScheduled"},
	} {
		wrong := maps.Clone(right)
		maps.Copy(wrong, change)
		if problems := unfit(wrong); len(problems) != 1 {
			t.Errorf("%s: the problems are %q, want one", name, problems)
		}
	}
}

// The address of a page is in its head once the post is published, also under another slug than
// it was to have, and what was announced first stays until the event is unpublished.
func TestLinkedPost(t *testing.T) {
	r := newBench(t, dbtest.SQLite(t))
	r.published(map[string]any{"name": "Taken", "event_date": "2031-05-01", "slug": "gates"})
	e := r.published(map[string]any{"name": "Gates", "event_date": "2031-05-01", "slug": "gates", "platform_url": hiddenLink, "access": "free"})
	linked := func() map[string]any {
		t.Helper()
		for _, p := range r.ghost.EventsPostsInOrder() {
			if p.ID == e.Post.ID {
				_, rest, _ := strings.Cut(p.Head, `<script type="application/ld+json">`)
				content, _, _ := strings.Cut(rest, "</script>")
				var found map[string]any
				if err := json.Unmarshal([]byte(content), &found); err != nil {
					t.Fatalf("json.Unmarshal: %v", err)
				}
				return found
			}
		}
		t.Fatalf("there is no post %s", e.Post.ID)
		return nil
	}
	has := func(what string, want map[string]any) {
		t.Helper()
		got := make(map[string]any)
		for name := range want {
			got[name] = linked()[name]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got): %s", what, diff)
		}
		if problems := unfit(linked()); problems != nil {
			t.Errorf("%s: got problems %q, want none", what, problems)
		}
	}
	address := "https://news.example.com/gates-2/"
	has("published", map[string]any{
		"url": address, "location": []any{virtual(address)}, "eventStatus": schemaOrg + "EventScheduled",
		"organizer": map[string]any{"@type": "Organization", "name": "The Daily", "url": "https://news.example.com/"},
	})
	save := func(date, slug string) {
		t.Helper()
		values := maps.Clone(e.Values)
		values["event_date"], values["slug"] = date, slug
		e = want[Event](t)(r.Save(t.Context(), "daily", e.ID, 0, Edit{e.Theme, e.Type, values}, typeOf(t, "webinar")))
	}
	save("2031-05-08", "doors")
	address = "https://news.example.com/doors/"
	has("moved, under another slug", map[string]any{
		"url": address, "location": []any{virtual(address)}, "eventStatus": schemaOrg + "EventRescheduled", "startDate": "2031-05-08", "previousStartDate": "2031-05-01",
	})
	save("2031-05-15", "doors")
	has("moved again", map[string]any{"eventStatus": schemaOrg + "EventRescheduled", "startDate": "2031-05-15", "previousStartDate": "2031-05-01"})
	r.ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Title = "Doors" })
	want[[]Event](t)(r.Refresh(t.Context(), "daily", []Event{e}))
	r.sync(e.ID)
	has("changed by staff", map[string]any{"name": "Doors", "previousStartDate": "2031-05-01"})
	save("2031-05-01", "doors")
	has("moved back", map[string]any{"eventStatus": schemaOrg + "EventScheduled", "previousStartDate": nil})
	want[Event](t)(r.Unpublish(t.Context(), "daily", e.ID, 0))
	save("2031-06-01", "doors")
	e = want[Event](t)(r.Publish(t.Context(), "daily", e.ID, 0, typeOf(t, "webinar")))
	has("published anew", map[string]any{"eventStatus": schemaOrg + "EventScheduled", "startDate": "2031-06-01", "previousStartDate": nil})
}
