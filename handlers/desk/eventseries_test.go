package desk_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// The days of a month that are offered go by the date of the event, each with the first date that it would have.
func TestRulesOfCopies(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for date, want := range map[string][]string{
		"":           {"week  Every week", "two_weeks  Every second week"},
		"2031-05-06": {"week 2031-05-13 Every week", "two_weeks 2031-05-20 Every second week", "month 2031-06-03 Every first Tuesday of a month"},
		"2031-05-27": {"week 2031-06-03 Every week", "two_weeks 2031-06-10 Every second week", "month 2031-06-24 Every fourth Tuesday of a month", "month_last 2031-06-24 Every last Tuesday of a month"},
		"2031-10-31": {"week 2031-11-07 Every week", "two_weeks 2031-11-14 Every second week", "month 2032-01-30 Every fifth Friday of a month", "month_last 2031-11-28 Every last Friday of a month"},
	} {
		e := h.create(map[string]any{"name": "Choir", "event_date": date, "event_time_start": "00:30", "event_time_zone": "Asia/Tokyo"})
		page := h.get("events?confirm=duplicate&event="+e.ID, "Editor")
		var got []string
		for option := range elements(page.body, "option") {
			got = append(got, attribute(option, "value")+" "+attribute(option, "data-first")+" "+textOf(option))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %q (-want +got): %s", date, diff)
		}
		if got, want := strings.Contains(page.Text, "With every fifth Friday, a month that has none gets no copy."), date == "2031-10-31"; got != want {
			t.Errorf("of %q: says of months without a copy: %t, want %t", date, got, want)
		}
	}
}

// An editor makes a series, and publishes with one press what is ready of it. The rest says why it is not.
func TestSeries(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Choir", "menu": "Cake", "event_date": "2100-10-29"})
	got := h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", "1", "date", "2100-10-30", "every", "month", "until", "2101-08-01").text(t)
	if want := "3 drafts were made. 6 months have no such day, and no draft. New event Event Settings These are the events of the series Choir . Publish 3 drafts… All events "; !strings.HasPrefix(got, want) {
		t.Errorf("made: got %q, want %q at its start", got, want)
	}
	page, err := h.Events.List(t.Context(), "daily", events.Query{View: events.Drafts, Series: e.ID, Most: 10})
	if err != nil || len(page.Events) != 3 {
		t.Fatalf("got %+v, %v, want 3 drafts", page, err)
	}
	second := page.Events[1]
	if _, err := h.Events.Save(t.Context(), "daily", second.ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"event_date": "2100-12-31"}}, nil); err != nil {
		t.Fatalf("h.Events.Save: %v", err)
	}
	const rest = "31 Dec 2100 : Without a name . Name is required. And 1 more."
	asks := h.get("events?confirm=publish-series&event="+e.ID, "Editor").text(t)
	if want := "Back to the series Publish the drafts of Choir ? Readers find these as soon as Ghost has their posts: "; !strings.HasPrefix(asks, want) || !strings.Contains(asks, rest+" Publish 2 events Leave them as they are") {
		t.Errorf("asks %q, want %q and %q", asks, want, rest)
	}
	const done = "2 events are published. Readers find each of them as soon as Ghost has its post. 1 draft is not ready. Back to the series Drafts of Choir These are not ready, and stay drafts: " + rest + " Back to the series"
	form := h.seriesForm(e.ID)
	if got := h.post("events", "Editor", form...).text(t); got != done {
		t.Errorf("published: got %q, want %q", got, done)
	}
	if got, want := h.post("events", "Editor", form...).text(t), "No event was published. 1 draft is not ready. "; !strings.HasPrefix(got, want) {
		t.Errorf("again: got %q, want %q at its start", got, want)
	}
	if err := h.Events.Delete(t.Context(), "daily", second.ID, 0); err != nil {
		t.Fatalf("h.Events.Delete: %v", err)
	}
	if got, want := h.post("events", "Editor", "do", "publish-series", "event", e.ID).text(t), "No event was published. New event Event Settings These are the events of the series Choir . All events "; !strings.HasPrefix(got, want) {
		t.Errorf("with no draft left: got %q, want %q at its start", got, want)
	}
	if got := h.get("events?event="+e.ID, "Editor").text(t); !strings.Contains(got, "Series: 3 events") {
		t.Errorf("the editor says %q, want how many events the series has", got)
	}
	for a := range elements(h.get("events?view=all&q=none&type=party&series="+e.ID, "Editor").body, "a") {
		if want := "events?series=" + e.ID + "&view=all"; textOf(a) == "Show all" && attribute(a, "href") != want {
			t.Errorf("Show all leads to %q, want %q", attribute(a, "href"), want)
		}
	}
}

// A mistake in the form for copies shows it again, with what was typed and what is wrong at its field.
func TestCopiesAreCorrected(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Choir", "event_date": "2100-01-01"})
	for _, test := range []struct{ date, every, until, wrong, kind, says string }{
		{"2100-02-30", "two_weeks", "", "date", "text", "The date of the copy must be a date that exists, such as 2031-05-08."},
		{"2100-01-08", "two_weeks", "2100-01-02", "until", "date", "The last date of the copies must not be before the first one."},
		{"2100-01-08", "week", "2102-01-02", "until", "date", "Until 2102-01-02 there are more than 52 such days. Choose an earlier date."},
		{"2100-01-08", "day", "2100-01-09", "every", "", "The copies are made every week, two_weeks, month or month_last."},
		{"", "week", "never", "date", "date", "The date of the copy must be a date that exists, such as 2031-05-08."},
	} {
		got := h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", "1", "date", test.date, "every", test.every, "until", test.until)
		var wrong []string
		chosen := ""
		for _, name := range []string{"input", "select"} {
			for field := range elements(got.body, name) {
				if attribute(field, "aria-invalid") != "" {
					wrong = append(wrong, attribute(field, "name")+" "+attribute(field, "type"))
				}
			}
		}
		for option := range elements(got.body, "option") {
			if slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
				chosen = attribute(option, "value")
			}
		}
		if test.every == "day" {
			test.every = ""
		}
		typed := []string{got.field("date"), chosen, got.field("until"), got.field("once")}
		if diff := cmp.Diff([]string{test.date, test.every, test.until, "1"}, typed); diff != "" {
			t.Errorf("%v: what was typed (-want +got): %s", test, diff)
		}
		if diff := cmp.Diff([]string{test.wrong + " " + test.kind}, wrong); diff != "" || !strings.Contains(got.Text, test.says) {
			t.Errorf("%v: %s, what is wrong (-want +got): %s", test, got.Text, diff)
		}
	}
	if page, err := h.Events.List(t.Context(), "daily", events.Query{Most: 10}); err != nil || page.Total != 1 {
		t.Errorf("%d events, %v, want 1: nothing was made", page.Total, err)
	}
}

// An editor publishes the drafts that the page lists, as they were then. What is beyond the list is for another press.
func TestSeriesIsPublishedAsListed(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Choir", "menu": "Cake", "event_date": "2100-01-01"})
	copies := func(date, until string) []events.Event {
		t.Helper()
		made, _, err := h.Events.Copy(t.Context(), "daily", e.ID, events.Copies{Date: date, Until: until})
		if err != nil {
			t.Fatalf("h.Events.Copy: %v", err)
		}
		return made
	}
	made := copies("2100-01-08", "2100-12-30")
	copies("2101-01-01", "2101-03-31")
	form := h.seriesForm(e.ID)
	if got := h.get("events?confirm=publish-series&event="+e.ID, "Editor").text(t); !strings.Contains(got, "Another press is for 5 more. Publish 60 events ") {
		t.Errorf("of 65 drafts, got %q, want 60, and 5 for another press", got)
	}
	if _, err := h.Events.Save(t.Context(), "daily", made[0].ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Ball", "menu": "Tea", "event_date": "2100-01-08"}}, nil); err != nil {
		t.Fatalf("h.Events.Save: %v", err)
	}
	const want = "59 events are published. Readers find each of them as soon as Ghost has its post. 1 draft is not ready. 5 were not reached. Press again. Back to the series "
	got := h.post("events", "Editor", form...).text(t)
	if !strings.HasPrefix(got, want) || !strings.Contains(got, " Publish 6 events ") || !strings.Contains(got, "8 Jan 2100 : Ball") {
		t.Errorf("got %q, want %q at its start, and the others listed as they are now", got, want)
	}
	if got := h.ask("POST", path+"events", "Editor", formOf("do", "publish-series", "event", e.ID, "draft", e.ID)).Code; got != http.StatusBadRequest {
		t.Errorf("a draft without a revision: status %d, want 400", got)
	}
}

// seriesForm has the fields of the form that publishes the drafts of a series.
func (h *harness) seriesForm(id string) []string {
	h.T.Helper()
	form := []string{"do", "publish-series"}
	for input := range elements(h.get("events?confirm=publish-series&event="+id, "Editor").body, "input") {
		if name := attribute(input, "name"); name == "event" || name == "draft" {
			form = append(form, name, attribute(input, "value"))
		}
	}
	return form
}

// While Ghost does not say whose the session is, a series is kept published, and sent later.
func TestSeriesWhileGhostIsAway(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Choir", "menu": "Cake", "event_date": "2100-06-01"})
	h.post("events", "Editor", "do", "duplicate", "event", e.ID, "revision", "0", "once", "1", "date", "2100-06-08", "until", "2100-06-20")
	lacking, _, err := h.Events.Copy(t.Context(), "daily", e.ID, events.Copies{Date: "2100-07-01", Until: "2100-07-02"})
	if err != nil {
		t.Fatalf("h.Events.Copy: %v", err)
	}
	if _, err := h.Events.Save(t.Context(), "daily", lacking[0].ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Secret"}}, nil); err != nil {
		t.Fatalf("h.Events.Save: %v", err)
	}
	form := h.seriesForm(e.ID)
	h.Ghost.Break(desktest.ErrGone)
	got := h.post("events", "Editor", form...).text(t)
	if want := "2 events are published. Readers find each of them as soon as Ghost has its post. 1 draft is not ready. Ghost does not answer now. Back to the series"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	page, err := h.Events.List(t.Context(), "daily", events.Query{Series: e.ID, Most: 10})
	statuses := []string{}
	for _, e := range page.Events {
		statuses = append(statuses, fmt.Sprint(e.Status, " ", e.Pending != nil))
	}
	if diff := cmp.Diff([]string{"published false", "published true", "published true", "draft false"}, statuses); err != nil || diff != "" {
		t.Errorf("%v, the events, and whether they are pending (-want +got): %s", err, diff)
	}
}
