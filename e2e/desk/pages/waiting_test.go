package pages

import (
	"fmt"
	"os"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// insertWaiters puts n readers on the waiting list of an event. The first of them has an offer.
func (r *room) insertWaiters(t *testing.T, event string, n int) {
	t.Helper()
	for _, change := range []string{
		`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
			INSERT INTO registrations_waiting (site, event, member, email, name, language, since, offered_until)
			SELECT 'daily', $1, 'uuid-w' || n, 'waiter' || n || '@example.com', 'Waiter ' || n, '', 1900000000000 + n, CASE WHEN n = 1 THEN 4102444800000 END FROM numbers`,
		`UPDATE registrations_taken SET taken = taken + 1 WHERE event = $1 AND $2 > 0`,
	} {
		if _, err := r.DB.Write.ExecContext(t.Context(), change, event, n); err != nil {
			t.Fatalf("inserting who waits: %v", err)
		}
	}
}

// withWaiters publishes an event that invites who waits, with two guests and three who wait.
func (r *room) withWaiters(t *testing.T) (id string) {
	t.Helper()
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	e := r.create(t, map[string]any{"name": "Summer party", "event_date": "2100-06-19", "menu": "Cake", "access": "free", "max_attendees": 3.0, "waiting_list": "invite"})
	if _, err := r.Events.Publish(t.Context(), "daily", e.ID, 0, party); err != nil {
		t.Fatalf("r.Events.Publish: %v", err)
	}
	r.withGuest(t, e.ID, "jane@example.com", "Jane Doe")
	r.withGuest(t, e.ID, "joe@example.com", "Joe")
	r.insertWaiters(t, e.ID, 3)
	return e.ID
}

// An editor gives somebody who waits a place, past the limit only once they are asked, and takes somebody off the list, with the script
// and without it.
func TestWaitingList(t *testing.T) {
	for _, noScript := range []bool{false, true} {
		t.Run(fmt.Sprintf("without JavaScript %t", noScript), func(t *testing.T) {
			r := open(t).withParties()
			id := r.withWaiters(t)
			r.noScript = noScript
			v := r.visit("Editor", "events", browser.Look{})
			v.Until("document.readyState === 'complete' && $('.events a[href^=guest-list]')")
			diff(t, "the list of events", "2 of 3, 3 wait for Summer party", js[string](v, "text($('.events a[href^=guest-list]'))"))
			v.goTo("guest-list?event=" + id)
			v.Until("document.readyState === 'complete' && $('#waiting')")
			diff(t, "the counts", "Registered 2 of 3 Checked in 0 Cancelled 0 Waiting 3", js[string](v, "[...$('.tally').querySelectorAll('dt, dd')].map(text).join(' ')"))
			v.press("Give a place to Waiter 2")
			v.Until("document.readyState === 'complete' && button('Give a place over the limit')")
			diff(t, "the question", "Give Waiter 2 a place over the limit? All 3 places are taken. The places of others stay as they are.", js[string](v, "text($('.panel h2')) + ' ' + text($('.panel p'))"))
			v.press("Give a place over the limit")
			v.Until("document.readyState === 'complete' && said() === 'Waiter 2 has a place now.'")
			v.press("Give a place to Waiter 1")
			v.Until("document.readyState === 'complete' && said() === 'Waiter 1 has a place now.'")
			v.press("Remove Waiter 3 from the waiting list")
			v.Until("document.readyState === 'complete' && said() === 'The guest was removed from the waiting list.'")
			diff(t, "once nobody waits", false, js[bool](v, "Boolean($('#waiting'))"))
			diff(t, "the tally", registration.Tally{Registered: 4, Most: 3}, r.tally(t, id))
		})
	}
}

// The waiting list is looked at as in docs/registration.md, in LYCHGATE_TEST_PICTURES.
func TestWaitingListIsSeen(t *testing.T) {
	if os.Getenv("LYCHGATE_TEST_PICTURES") == "" {
		t.Skip("LYCHGATE_TEST_PICTURES names no folder for pictures")
	}
	for _, l := range []look{{390, 1800, "light"}, {390, 1800, "dark"}, {1440, 1200, "light"}, {1440, 1200, "dark"}} {
		r := open(t).withParties()
		id := r.withWaiters(t)
		v := r.visit("Editor", "guest-list?event="+id, l.as())
		v.Until("$('#waiting')")
		v.fits("waiting")
		v.Picture(fmt.Sprintf("waiting-%d-%s", l.width, l.colours))
		v.press("Give a place to Waiter 2")
		v.Until("button('Give a place over the limit')")
		v.Picture(fmt.Sprintf("waiting-question-%d-%s", l.width, l.colours))
	}
}
