package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// The list has dates in the time zone of the site, and those of another zone in that too. The
// pages of an event have its own.
func TestDatesOfEvents(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	const berlin, newYork = "Europe/Berlin", "America/New_York"
	for _, test := range []struct {
		name, date, start, end, last, zone string
		list, zoneOf, guests               string
	}{
		{"no date", "", "", "", "", berlin, "No date", berlin, ""},
		{"no date that exists", "2100-02-30", "", "", "", berlin, "2100-02-30", berlin, "2100-02-30"},
		{"a day", "2100-06-01", "", "", "", newYork, "1 Jun 2100", newYork, "1 Jun 2100"},
		{"days", "2100-06-01", "", "", "2100-06-03", newYork, "1 Jun 2100 – 3 Jun 2100", newYork, "1 Jun 2100 – 3 Jun 2100"},
		{"in the site's zone", "2100-06-01", "19:30", "22:00", "", berlin, "1 Jun 2100, 19:30–22:00", berlin, "1 Jun 2100, 19:30–22:00 Europe/Berlin"},
		{
			"past midnight there", "2100-06-01", "19:30", "22:00", "", newYork,
			"2 Jun 2100, 01:30–04:00 1 Jun 2100, 19:30–22:00 America/New_York", newYork, "1 Jun 2100, 19:30–22:00 America/New_York",
		},
		{
			"past midnight", "2100-03-27", "22:00", "04:00", "", berlin,
			"27 Mar 2100, 22:00 – 28 Mar 2100, 04:00", berlin, "27 Mar 2100, 22:00 – 28 Mar 2100, 04:00 Europe/Berlin",
		},
		{
			"with its last day", "2100-06-01", "19:30", "", "2100-06-03", berlin,
			"1 Jun 2100, 19:30 – 3 Jun 2100, 23:59", berlin, "1 Jun 2100, 19:30 – 3 Jun 2100, 23:59 Europe/Berlin",
		},
		{"without a zone", "2100-12-01", "12:00", "", "", "", "1 Dec 2100, 13:00 1 Dec 2100, 12:00 UTC", "UTC", "1 Dec 2100, 12:00 UTC"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := h.create(map[string]any{
				"name": test.name, "event_date": test.date, "event_time_start": test.start, "event_time_end": test.end, "event_date_end": test.last,
				"event_time_zone": test.zone,
			})
			page := h.get("events?view=drafts&q="+strings.ReplaceAll(test.name, " ", "+"), "Editor")
			if got := page.text(t); !strings.Contains(got, "Date "+test.list+" Type") {
				t.Errorf("the list says %q, want the date %q in it", got, test.list)
			}
			zones := []string{zoneOf(page), zoneOf(h.get("events?event="+e.ID, "Editor")), zoneOf(h.get("guest-list?event="+e.ID, "Editor"))}
			if diff := cmp.Diff([]string{berlin, test.zoneOf, test.zoneOf}, zones); diff != "" {
				t.Errorf("time zones of the list, the editor and the guest list (-want +got): %s", diff)
			}
			if got := h.get("guest-list?event="+e.ID, "Editor").text(t); !strings.Contains(got, test.guests) {
				t.Errorf("the guest list says %q, want the date %q in it", got, test.guests)
			}
		})
	}
}

// Times on pages that are not about one event are in the time zone of the site; a new event's are too.
func TestTimesOfTheDesk(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for _, address := range []string{"curation", "themes", "sync", "integrations", "event-settings", "events?new="} {
		if got := zoneOf(h.get(address, "Owner")); got != "Europe/Berlin" {
			t.Errorf("%s: times are in %q, want Europe/Berlin", address, got)
		}
	}
}

// While the platform does not say its time zone, the list is in UTC, and says so.
func TestDatesWithoutTheZone(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	h.create(map[string]any{"name": "Party", "event_date": "2100-06-01", "event_time_start": "19:30", "event_time_zone": "Europe/Berlin"})
	h.Ghost.BreakCalls(desktest.ErrGone, "publication")
	got := h.get("events?view=drafts", "Editor").text(t)
	for _, want := range []string{"Times are in UTC.", "Date 1 Jun 2100, 17:30 1 Jun 2100, 19:30 Europe/Berlin Type"} {
		if !strings.Contains(got, want) {
			t.Errorf("the list says %q, want %q in it", got, want)
		}
	}
}

// zoneOf is the time zone in which a page's script shows times.
func zoneOf(page shown) string {
	for n := range elements(page.body, "desk-page") {
		return attribute(n, "zone")
	}
	return ""
}

// The deadline of an event stays when the event is moved: the editor reads what it is, and whether it fits.
func TestDeadlineOfAMovedEvent(t *testing.T) {
	const saved = "The event was saved, with another date or place."
	for _, test := range []struct{ name, date, start, deadline, clock, access, want string }{
		{"none", "2100-06-01", "19:30", "", "", "free", saved},
		{"of an event that takes no registrations", "2100-06-01", "19:30", "2100-05-30", "", "", saved},
		{"before the start", "2100-06-01", "19:30", "2100-05-30", "12:00", "free", saved + " Its deadline is 30 May 2100, 12:00 Europe/Berlin."},
		{"on the day of the start", "2100-06-01", "19:30", "2100-06-01", "", "free", saved + " Its deadline is 1 Jun 2100."},
		{"on a day of it", "2100-06-01", "19:30", "2100-06-02", "", "free", saved + " Its deadline, 2 Jun 2100, is after the start now. Change it if readers should register before that."},
		{
			"after its start", "2100-06-01", "19:30", "2100-06-01", "20:00", "free",
			saved + " Its deadline, 1 Jun 2100, 20:00 Europe/Berlin, is after the start now. Change it if readers should register before that.",
		},
		{"whole days", "2100-06-01", "", "2100-06-01", "", "free", saved + " Its deadline is 1 Jun 2100."},
		{"that is over", "2100-06-01", "19:30", "2020-06-01", "", "free", saved + " Its deadline was 1 Jun 2020, so nobody can register any more. Change it if they should."},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			h.declareEvents()
			e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-07-01", "event_time_zone": "Europe/Berlin"})
			got := h.post("events", "Editor", "do", "save", "event", e.ID, "revision", "0", "type", "party", "was", "party", "kept", "{}", "f.name", "Party", "f.menu", "Cake",
				"f.event_date", test.date, "f.event_date_end", "2100-06-03", "f.event_time_start", test.start, "f.event_time_zone", "Europe/Berlin",
				"f.registration_deadline", test.deadline, "f.deadline_time_end", test.clock, "f.access", test.access).text(t)
			if said, _, _ := strings.Cut(got, " All events"); said != test.want {
				t.Errorf("the page says %q, want %q", said, test.want)
			}
		})
	}
}
