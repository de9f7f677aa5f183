package pages

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// An editor makes a series of an event on a fifth Friday. The date that is offered goes with how often there is a copy, until
// they choose one. Then one press publishes what is ready, and the page says what the rest lacks.
func TestSeriesOfAnEvent(t *testing.T) {
	script := axe(t)
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Choir of the harbour", "menu": "Cake", "event_date": "2100-10-29"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 320, Height: 900})
	looked := func(name string) {
		t.Helper()
		v.audit(name, script)
		v.fits(name)
		v.Picture("series-" + name)
	}
	v.press("Duplicate…")
	v.Until("document.readyState === 'complete' && button('Duplicate the event')")
	var offered []string
	for _, rule := range []string{"week", "two_weeks", "month", "month_last", "week"} {
		offered = append(offered, js[string](v, "(() => { const every = $('#copy-every'); every.value = %q; every.dispatchEvent(new Event('change', {bubbles: true})); return $('#copy-date').value; })()", rule))
	}
	diff(t, "dates that are offered", []string{"2100-11-05", "2100-11-12", "2100-12-31", "2100-11-26", "2100-11-05"}, offered)
	diff(t, "a date that was chosen", "2101-03-01", js[string](v, `(() => {
		const every = $('#copy-every');
		$('#copy-date').value = '2101-03-01';
		every.value = 'month_last';
		every.dispatchEvent(new Event('change', {bubbles: true}));
		return $('#copy-date').value;
	})()`))
	looked("question")
	v.Do("$('#copy-date').value = '2100-10-30'; $('#copy-every').value = 'month'; $('#copy-until').value = '2101-08-01'")
	v.press("Duplicate the event")
	v.says("3 drafts were made. 6 months have no such day, and no draft.")
	looked("list")

	page, err := r.Events.List(t.Context(), "daily", events.Query{Series: e.ID, Most: 10})
	if err != nil || len(page.Events) != 4 {
		t.Fatalf("r.Events.List: got %+v, %v, want 4 events", page, err)
	}
	if _, err := r.Events.Save(t.Context(), "daily", page.Events[1].ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Choir of the harbour", "event_date": "2100-12-31"}}, nil); err != nil {
		t.Fatalf("r.Events.Save: %v", err)
	}
	v.Do("location.href = button('Publish 4 drafts…').href")
	v.Until("document.readyState === 'complete' && button('Publish 3 events')")
	looked("drafts")
	v.press("Publish 3 events")
	v.says("3 events are published. Readers find each of them as soon as Ghost has its post. 1 draft is not ready.")
	diff(t, "what is not ready", "31 Dec 2100: Choir of the harbour. Menu is required.", js[string](v, "text($('.panel li'))"))
	looked("published")
	v.goTo("events?event=" + e.ID)
	diff(t, "the series", "Series: 4 events", js[string](v, "text([...document.querySelectorAll('.event-head a')].find(a => /^Series/.test(text(a))))"))
	for _, l := range []look{{390, 900, "dark"}, {1440, 900, "light"}, {1440, 900, "dark"}} {
		wide := r.visit("Editor", fmt.Sprintf("events?event=%s&confirm=duplicate", e.ID), l.as())
		wide.fits("question")
		wide.Picture(fmt.Sprintf("series-question-%d-%s", l.width, l.colours))
		wide.goTo(fmt.Sprintf("events?series=%s&view=all", e.ID))
		wide.fits("list")
		wide.Picture(fmt.Sprintf("series-list-%d-%s", l.width, l.colours))
		wide.goTo(fmt.Sprintf("events?event=%s&confirm=publish-series", e.ID))
		wide.fits("drafts")
		wide.Picture(fmt.Sprintf("series-drafts-%d-%s", l.width, l.colours))
	}
}

// A page that says that an event is kept here says by itself once the site has it. What was typed meanwhile stays, and what was
// not can be saved.
func TestPendingEventArrives(t *testing.T) {
	r := open(t).withParties()
	r.Outbox.Records = nil
	e := r.create(t, map[string]any{"name": "Lychgate day", "event_date": "2100-05-01", "menu": "Cake"})
	for _, test := range []struct{ page, shown, arrived, says string }{
		{"events?event=" + e.ID, ".older", ".arrived", "The site has it now."},
		{"events?view=all", ".older", ".arrived", "The site has it now."},
		{"sync", "desk-live .lead", "desk-live > p", "Nothing is pending: Ghost has all that was written here."},
	} {
		r.Ghost.BreakCalls(platformtest.ErrDown, "addpost", "changepost", "findpost")
		if _, err := r.Events.Publish(t.Context(), "daily", e.ID, 0, r.party(t)); err != nil {
			t.Fatalf("r.Events.Publish: %v", err)
		}
		v := r.visit("Owner", test.page, browser.Look{})
		v.Until(fmt.Sprintf("$(%q)", test.shown))
		r.Ghost.Fix()
		if _, err := r.Work.TryNow(t.Context(), "daily"); err != nil {
			t.Fatalf("r.Work.TryNow: %v", err)
		}
		v.Until(fmt.Sprintf("!$(%q) && text($(%q)) === %[3]q && text($('#said')) === %[3]q", test.shown, test.arrived, test.says))
		if test.page != "sync" {
			diff(t, "how it stands", "Published", js[string](v, "text($('.badge'))"))
		}
		if strings.Contains(test.page, "event=") {
			v.Until(field("slug") + "?.value")
			v.press("Update")
			v.says("The event was saved.")
		}
		if _, err := r.Events.Unpublish(t.Context(), "daily", e.ID, 0); err != nil {
			t.Fatalf("r.Events.Unpublish: %v", err)
		}
	}
}
