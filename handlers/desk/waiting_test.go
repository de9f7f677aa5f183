package desk_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// wait puts n readers on the waiting list of an event: uuid-w1, uuid-w2, and so on.
func (h *harness) wait(event string, n int) {
	h.T.Helper()
	dbtest.Exec(h.T, h.DB, `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
		INSERT INTO registrations_waiting (site, event, member, email, name, language, since)
		SELECT 'daily', $1, 'uuid-w' || n, 'waiter' || n || '@example.com', 'Waiter ' || n, '', 1000 + n FROM numbers`, event, n)
}

// Staff see who waits below the guests, give somebody a place, past the limit only if they mean it, and take somebody off the list.
func TestWaitingListOnTheDesk(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-05-01", "access": "free", "max_attendees": 2.0, "waiting_list": "invite"})
	h.addGuest(e.ID, "jane@example.com", "Jane")
	const jane = "uuid-p-1"
	if got := h.get("guest-list?event="+e.ID, "Editor").Text; strings.Contains(strings.ToLower(got), "wait") {
		t.Errorf("while nobody waits: %s, want nothing of it", got)
	}
	h.addGuest(e.ID, "joe@example.com", "Joe")
	h.wait(e.ID, 4)
	dbtest.Exec(t, h.DB, `UPDATE registrations_waiting SET offered_until = 4102444800000 WHERE member = 'uuid-w1'`) // an offer of a third place
	dbtest.Exec(t, h.DB, `UPDATE registrations_taken SET taken = taken + 1`)
	var logged []string
	h.Site.Staff.Audit = func(c audit.Change) { logged = append(logged, c.ID+" "+c.Action) }
	for _, step := range []struct{ name, says string }{
		{"guest-list?event=", "Registered 2 of 2 Checked in 0 Cancelled 0 Waiting 4"},
		{"guest-list?event=", "Waiting list Guest Waiting since Status Actions Waiter 1 waiter1@example.com Waiting since 1 Jan 1970, 00:00 UTC Status Invited A place is kept until 1 Jan 2100, 00:00 UTC"},
		{"guest-list?event=", "Waiter 2 waiter2@example.com Waiting since 1 Jan 1970, 00:00 UTC Status Waits Give a place to Waiter 2 Remove Waiter 2 from the waiting list"},
		{"guest-list?q=WAITER3&event=", "Nobody here has all these words in the name or the email. Waiting list Guest Waiting since Status Actions Waiter 3"},
		{"guest-list?q=Jane&event=", "Waiting list Nobody who waits has all these words in the name or the email."},
		{"events?event=", "Guest list: 2 of 2, 4 wait"},
		{"events?confirm=delete&event=", "4 guests wait for a place."},
	} {
		if got := h.get(step.name+e.ID, "Editor").Text; !strings.Contains(got, step.says) {
			t.Errorf("%s: %s, want %s", step.name, got, step.says)
		}
	}
	if got := h.get("events", "Editor").Text; !strings.Contains(got, "2 of 2, 4 wait for Party") {
		t.Errorf("the list of events: %s, want how many wait", got)
	}
	for _, step := range []struct{ do, member, over, says string }{
		{"move-up", "uuid-w3", "", "Give Waiter 3 a place over the limit? All 2 places are taken. The places of others stay as they are. Give a place over the limit Leave on the waiting list"},
		{"move-up", "uuid-w3", "1", "Waiter 3 has a place now."},
		{"move-up", "uuid-w3", "", "Waiter 3 is registered already."},
		{"leave", "uuid-w4", "", "The guest was removed from the waiting list."},
		{"leave", "uuid-w4", "", "This guest is not on the waiting list."},
		{"move-up", "uuid-w4", "1", "This guest is not on the waiting list."},
		{"move-up", "uuid-w1", "", "Waiter 1 has a place now."},
		{"remove", jane, "", "Jane was removed."},
	} {
		if got := h.post("guest-list", "Editor", "event", e.ID, "do", step.do, "member", step.member, "over", step.over); got.Status != 200 || !strings.Contains(got.Text, step.says) {
			t.Errorf("%s of %s: %d %s, want %s", step.do, step.member, got.Status, got.Text, step.says)
		}
	}
	if diff := cmp.Diff(registration.Tally{Registered: 3, Cancelled: 1, Waiting: 1, Most: 2}, h.tally(e.ID)); diff != "" {
		t.Errorf("after all that, want -, got +: %s", diff)
	}
	of := e.ID + "/"
	if diff := cmp.Diff([]string{of + "uuid-w3 moved up", of + "uuid-w4 removed from the waiting list", of + "uuid-w1 moved up", of + jane + " removed"}, logged); diff != "" {
		t.Errorf("the audit log, want -, got +: %s", diff)
	}
}

// Staff see why somebody who waits gets no place that is free.
func TestWhoIsPassedOver(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	values := map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-05-01", "access": "paid", "max_attendees": 1.0}
	e := h.publish(values)
	h.addGuest(e.ID, "jane@example.com", "Jane")
	h.wait(e.ID, 2)
	dbtest.Exec(t, h.DB, `UPDATE registrations_waiting SET is_paid = TRUE WHERE member = 'uuid-w2'`)
	const passedOver = "Waits Does not pay, so gets a place from you alone"
	text := h.get("guest-list?event="+e.ID, "Editor").Text
	if strings.Count(text, passedOver) != 1 || !strings.Contains(text, "Waiter 1 waiter1@example.com Waiting since 1 Jan 1970, 00:00 UTC Status "+passedOver) {
		t.Errorf("%s, want the first alone to be passed over", text)
	}
}

// A long waiting list has pages of its own, on which a change leaves the editor where they are.
func TestLongWaitingList(t *testing.T) {
	h, e, _ := withParty(t)
	h.addGuest(e.ID, "joe@example.com", "Joe")
	h.wait(e.ID, 150)
	page := h.get("guest-list?event="+e.ID, "Editor")
	next := ""
	for n := range page.body.Descendants() {
		if n.Data == "a" && textOf(n) == "Next page of who waits" {
			next = attribute(n, "href")
		}
	}
	if strings.Count(page.Text, "Give a place") != 100 || next == "" {
		t.Fatalf("the first page: %s, want 100 who wait and another page", page.Text)
	}
	next, _, _ = strings.Cut(next, "#")
	second := h.get(next, "Editor")
	if strings.Count(second.Text, "Give a place") != 50 || !strings.Contains(second.Text, "Waiter 150 ") || !strings.Contains(second.Text, "First page of who waits") {
		t.Errorf("the second page: %s, want the other 50", second.Text)
	}
	_, cursor, _ := strings.Cut(next, "waiting=")
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "leave", "member", "uuid-w149", "waiting", cursor); strings.Count(got.Text, "Give a place") != 49 {
		t.Errorf("after one was removed: %s, want the other 49", got.Text)
	}
}

// Nobody can be moved up once the event is cancelled; the list is still there to read.
func TestWaitingListOfACancelledEvent(t *testing.T) {
	h, e, _ := withParty(t)
	h.wait(e.ID, 1)
	h.post("events", "Administrator", "do", "cancel", "event", e.ID, "revision", "0")
	got := h.get("guest-list?event="+e.ID, "Editor").Text
	if strings.Contains(got, "Give a place") || !strings.Contains(got, "Remove Waiter 1 from the waiting list") {
		t.Errorf("of a cancelled event: %s, want who waits, and nobody to be moved up", got)
	}
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "move-up", "member", "uuid-w1"); !strings.Contains(got.Text, "The event is cancelled, so nobody can be added.") {
		t.Errorf("a form of before: %s, want why not", got.Text)
	}
}

// Who is told how many places are left is not offered those that are kept for others.
func TestPlacesThatAreKept(t *testing.T) {
	h, e, _ := withParty(t)
	h.wait(e.ID, 1)
	dbtest.Exec(t, h.DB, `UPDATE registrations_waiting SET offered_until = 4102444800000`)
	dbtest.Exec(t, h.DB, `UPDATE registrations_taken SET taken = 2`)
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "read", "lines", "joe@example.com"); !strings.Contains(got.Text, "There is no place left.") {
		t.Errorf("%s, want that no place is left", got.Text)
	}
}

// A guest list's file that is loaded again registers nobody who waits, or has cancelled.
func TestFileWithWhoWaits(t *testing.T) {
	h, e, _ := withParty(t)
	file := "Email,Name,Registered (UTC),Added by,Cancelled (UTC),Cancelled by,Checked in (UTC),Waiting since (UTC)\n" +
		"ann@example.com,Ann,2031-03-02 10:11:12,,,,,\nbob@example.com,Bob,2031-03-02 10:11:12,,2031-03-03 10:11:12,,,\ncem@example.com,Cem,,,,,,2031-03-02 10:11:12\n"
	got := h.post("guest-list", "Editor", "event", e.ID, "do", "read", "lines", file)
	for _, says := range []string{"Add 1 guest?", "1 guest cancelled, as the list says, and is left out.", "1 guest waits for a place, as the list says, and is left out."} {
		if !strings.Contains(got.Text, says) {
			t.Errorf("%s, want %s", got.Text, says)
		}
	}
}
