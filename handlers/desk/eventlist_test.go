package desk_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// listShown is what a list of events shows.
type listShown struct {
	Tabs   []string // the chosen one in brackets
	Said   string
	Names  []string
	Types  []string
	Months []string
}

func (h *harness) listShown(target string) (s listShown) {
	page := h.get(target, "Editor")
	chosen := func(n *html.Node, attr string) string {
		if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == attr }) {
			return "[" + textOf(n) + "]"
		}
		return textOf(n)
	}
	for n := range page.body.Descendants() {
		switch {
		case n.Data == "a" && n.Parent.Parent != nil && attribute(n.Parent.Parent, "class") == "tabs":
			s.Tabs = append(s.Tabs, chosen(n, "aria-current"))
		case strings.HasPrefix(attribute(n, "class"), "found"):
			s.Said = strings.ReplaceAll(textOf(n), " .", ".")
		case n.Data == "th" && attribute(n, "scope") == "row":
			s.Names = append(s.Names, textOf(n))
		case n.Data == "option" && attribute(n.Parent, "id") == "type":
			s.Types = append(s.Types, chosen(n, "selected"))
		case n.Data == "option" && attribute(n.Parent, "id") == "month":
			s.Months = append(s.Months, chosen(n, "selected"))
		}
	}
	return s
}

// An editor with many events narrows the list, and sees how many each choice has. Words are looked
// for on all tabs, until one is chosen.
func TestNarrowedListOfEvents(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	h.publish(map[string]any{"name": "Old party", "menu": "Cake", "event_date": "2020-06-01"})
	h.publish(map[string]any{"name": "New party", "menu": "Cake", "event_date": "2100-06-01"})
	h.publish(map[string]any{"name": "Night of the party", "menu": "Cake", "event_date": "2100-05-31", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin"})
	h.create(map[string]any{"name": "Supper", "event_date": "2100-06-19"})
	const zone = " Times are in Europe/Berlin, the time zone of the site."
	all, june := []string{"All types", "Meetup (0)", "Summer party (4)"}, []string{"All months", "June 2100 (2)", "May 2100 (1)", "June 2020 (1)"}
	for target, want := range map[string]listShown{
		"events": {
			[]string{"[Upcoming 2]", "Past 1", "Drafts 1", "All 4", "Month"},
			"2 events." + zone,
			[]string{"Night of the party", "New party"},
			[]string{"All types", "Meetup (0)", "Summer party (2)"},
			[]string{"All months", "June 2100 (1)", "May 2100 (1)"},
		},
		"events?view=all": {
			[]string{"Upcoming 2", "Past 1", "Drafts 1", "[All 4]", "Month"}, "4 events." + zone, []string{"Supper", "New party", "Night of the party", "Old party"}, all, june,
		},
		"events?from=drafts&q=PARTY&type=&month=": {
			[]string{"Upcoming 2", "Past 1", "Drafts 0", "[All 3]", "Month"}, "3 events." + zone, []string{"New party", "Night of the party", "Old party"}, nil, nil,
		},
		"events?from=drafts&q=": {
			[]string{"Upcoming 2", "Past 1", "[Drafts 1]", "All 4", "Month"}, "1 event." + zone, []string{"Supper"}, nil, nil,
		},
		"events?view=past&q=party": {
			[]string{"Upcoming 2", "[Past 1]", "Drafts 0", "All 3", "Month"}, "1 event." + zone, []string{"Old party"}, nil, nil,
		},
		"events?view=all&month=2100-06": {
			[]string{"Upcoming 2", "Past 0", "Drafts 1", "[All 3]", "Month"},
			"3 events." + zone,
			[]string{"Supper", "New party", "Night of the party"},
			nil,
			[]string{"All months", "[June 2100 (2)]", "May 2100 (1)", "June 2020 (1)"},
		},
		"events?view=all&type=concert": {
			[]string{"Upcoming 0", "Past 0", "Drafts 0", "[All 0]", "Month"}, "", nil, []string{"All types", "Meetup (0)", "Summer party (4)", "[concert (0)]"}, []string{"All months"},
		},
		"events?from=month&month=2100-06&q=old": {
			[]string{"Upcoming 0", "Past 1", "Drafts 0", "[All 1]", "Month"}, "1 event." + zone, []string{"Old party"}, nil, nil,
		},
	} {
		got := h.listShown(target)
		if len(want.Types) == 0 {
			got.Types, want.Types = nil, nil
		}
		if want.Months == nil {
			got.Months = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// What the list is narrowed by goes along to the next page, and to the other tabs.
func TestNarrowedPages(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for i := range 30 {
		h.create(map[string]any{"name": fmt.Sprintf("Party %02d", i), "event_date": "2100-06-19"})
	}
	h.create(map[string]any{"name": "Party in July", "event_date": "2100-07-01"})
	links := make(map[string]url.Values)
	for a := range elements(h.get("events?view=all&q=party&type=party&month=2100-06", "Editor").body, "a") {
		if to, err := url.Parse(attribute(a, "href")); err == nil && to.Path == "events" && to.Query().Has("q") {
			query := to.Query()
			if query.Get("after") != "" {
				query.Set("after", "…")
			}
			links[textOf(a)] = query
		}
	}
	narrowed := func(view string, more ...string) url.Values {
		v := url.Values{"view": {view}, "q": {"party"}, "type": {"party"}, "month": {"2100-06"}}
		if len(more) > 0 {
			v.Set("after", "…")
		}
		return v
	}
	want := map[string]url.Values{
		"Upcoming 0": narrowed("upcoming"), "Past 0": narrowed("past"), "Drafts 30": narrowed("drafts"), "All 30": narrowed("all"), "Month": narrowed("month"),
		"Next page": narrowed("all", "after"),
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// A month is shown as a calendar, with each event on all of its days.
func TestMonthOfEvents(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	h.publish(map[string]any{"name": "Festival", "menu": "Cake", "event_date": "2100-05-30", "event_date_end": "2100-06-02"})
	h.publish(map[string]any{"name": "Night", "menu": "Cake", "event_date": "2100-06-04", "event_time_start": "22:00", "event_time_end": "02:00", "event_time_zone": "Europe/Berlin"})
	h.create(map[string]any{"name": "Supper", "event_date": "2100-06-05", "event_time_start": "18:00", "event_time_zone": "Europe/Berlin"})
	h.create(map[string]any{"name": "Some day"})
	h.create(map[string]any{"name": "Fair", "event_date": "2100-07-01", "event_time_zone": "Asia/Tokyo"}) // begins in June elsewhere
	days := func(target string) (list []string) {
		for td := range elements(h.get(target, "Editor").body, "td") {
			if attribute(td, "class") == "" {
				list = append(list, textOf(td))
			}
		}
		return list
	}
	want := []string{
		"1 Tuesday, 1 June Festival", "2 Wednesday, 2 June Festival", "4 Friday, 4 June 22:00 Night", "5 Saturday, 5 June Night 18:00 Supper Draft",
	}
	if diff := cmp.Diff(want, days("events?view=month&month=2100-06")); diff != "" {
		t.Errorf("June (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"30 Sunday, 30 May Festival", "31 Monday, 31 May Festival"}, days("events?view=month&month=2100-05")); diff != "" {
		t.Errorf("May (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1 Thursday, 1 July Fair Draft"}, days("events?view=month&month=2100-07")); diff != "" {
		t.Errorf("July (-want +got):\n%s", diff)
	}
	got := h.listShown("events?view=month&month=2100-06")
	if diff := cmp.Diff([]string{"July 2100 (1)", "[June 2100 (2)]", "May 2100 (1)"}, got.Months); diff != "" {
		t.Errorf("months to jump to (-want +got):\n%s", diff)
	}
	for _, target := range []string{"events?view=month", "events?view=month&month=never"} {
		if text := h.get(target, "Editor").text(t); !strings.Contains(text, " Mon Tue Wed Thu Fri Sat Sun ") {
			t.Errorf("%s: got %q, want this month", target, text)
		}
	}
}
