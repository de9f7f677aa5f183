package desk_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// withParty publishes a party for two, and adds a guest.
func withParty(t *testing.T) (h *harness, e events.Event, member string) {
	t.Helper()
	h = newHarness(t)
	h.declareEvents()
	e = h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-05-01", "access": "free", "max_attendees": 2.0})
	h.addGuest(e.ID, "jane@example.com", "Jane")
	return h, e, "uuid-p-1"
}

func (h *harness) addGuest(event, email, name string) {
	h.T.Helper()
	if _, _, err := h.Guests.Add(h.T.Context(), h.Ghost, "daily", event, registration.Addition{Email: email, Name: name, By: "Ed"}); err != nil {
		h.T.Fatalf("h.Guests.Add: %v", err)
	}
}

func (h *harness) tally(event string) registration.Tally {
	h.T.Helper()
	of, err := h.Guests.Tally(h.T.Context(), "daily", event)
	if err != nil {
		h.T.Fatalf("h.Guests.Tally: %v", err)
	}
	return of
}

// Only those who may edit events see who comes, and change it.
func TestWhoSeesGuests(t *testing.T) {
	h, e, member := withParty(t)
	for _, page := range []string{"guest-list", "check-in"} {
		for role, want := range map[string]int{"Owner": 200, "Administrator": 200, "Editor": 200, "Super Editor": 200, "Author": 403, "Contributor": 403, "": 401, "Stranger": 401} {
			got := h.get(page+"?event="+e.ID, role)
			if got.Status != want || strings.Contains(got.Text, "jane@example.com") != (want == 200) {
				t.Errorf("%s as %q: %d %s, want %d", page, role, got.Status, got.Text, want)
			}
			if want == 200 {
				continue
			}
			for _, do := range []string{"remove", "in"} {
				if got := h.post(page, role, "do", do, "event", e.ID, "member", member); got.Status != want {
					t.Errorf("%s of %s as %q: %d, want %d", do, page, role, got.Status, want)
				}
			}
		}
	}
	if diff := cmp.Diff(registration.Tally{Registered: 1, Most: 2}, h.tally(e.ID)); diff != "" {
		t.Errorf("after all that, want -, got +: %s", diff)
	}
}

// What is done with a guest is said, and so is why it was not done; what was typed stays.
func TestGuestForms(t *testing.T) {
	h, e, member := withParty(t)
	for _, step := range []struct {
		name, page string
		fields     []string
		status     int
		says       string
	}{
		{"no email", "guest-list", []string{"do", "add", "email", "joe"}, 200, "The email is not a valid address."},
		{"somebody", "guest-list", []string{"do", "add", "email", "joe@example.com", "name", "Joe"}, 200, "Joe was added."},
		{"again", "guest-list", []string{"do", "add", "email", "joe@example.com"}, 200, "Joe is registered already."},
		{"over the limit", "guest-list", []string{"do", "add", "email", "max@example.com", "name", "Max"}, 200, "Add Max over the limit? All 2 places are taken."},
		{"over the limit, meant so", "guest-list", []string{"do", "add", "email", "max@example.com", "name", "Max", "over", "1"}, 200, "More are registered than there are places: 3 of 2."},
		{"in", "check-in", []string{"do", "in", "member", member}, 200, "1 of 3 checked in"},
		{"out", "check-in", []string{"do", "out", "member", member}, 200, "0 of 3 checked in"},
		{"removed", "guest-list", []string{"do", "remove", "member", member}, 200, "Jane was removed. Undo"},
		{"in, though removed", "check-in", []string{"do", "in", "member", member}, 200, "This member has cancelled. Add them again first."},
		{"taken back, over the limit", "guest-list", []string{"do", "restore", "member", member}, 200, "Add Jane over the limit?"},
		{"nobody is removed", "guest-list", []string{"do", "remove", "member", "none"}, 200, "This member has not registered for the event."},
		{"nothing is done", "guest-list", []string{"do", "rename"}, 400, "The form could not be read."},
		{"nothing is checked", "check-in", []string{"do", "rename"}, 400, "The form could not be read."},
		{"no event", "guest-list", []string{"do", "remove", "event", "none"}, 404, "There is no such event any more."},
	} {
		fields := step.fields
		if step.name != "no event" {
			fields = append([]string{"event", e.ID}, fields...)
		}
		if got := h.post(step.page, "Editor", fields...); got.Status != step.status || !strings.Contains(got.Text, step.says) {
			t.Errorf("%s: %d %s, want %d with %s", step.name, got.Status, got.Text, step.status, step.says)
		}
	}
	h.Ghost.BreakCalls(errors.New("no answer"), "find")
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "add", "email", "ann@example.com"); !strings.Contains(got.Text, "Ghost does not answer as it should.") {
		t.Errorf("while Ghost is away: %s, want that it does not answer", got.Text)
	}
	h.Ghost.Fix()
	h.Ghost.BreakCalls(&platform.Refusal{Reason: "Not her."}, "create")
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "add", "email", "ann@example.com", "over", "1"); !strings.Contains(got.Text, "Ghost refuses the member: Not her.") {
		t.Errorf("Ghost refuses: %s, want why", got.Text)
	}
	h.Ghost.Fix()
	if got := h.read(h.ask("GET", path+"guest-list?event="+e.ID+"&done=remove&member="+member, "Editor", "", "Sec-Fetch-Site", "none")); strings.Contains(got.Text, "was removed") {
		t.Errorf("a link that says that somebody was removed is believed: %s", got.Text)
	}
	logged := 0
	for _, entry := range h.Log.TakeAll() {
		logged++
		if line := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(line, "example.com") || strings.Contains(line, "Jane") {
			t.Errorf("the log names somebody: %s", line)
		}
	}
	if logged == 0 {
		t.Error("the log is empty, want a line that Ghost did not answer")
	}
	h.CloseStore()
	for _, page := range []string{"guest-list", "check-in"} {
		if got := h.get(page+"?event="+e.ID, "Editor"); got.Status != 503 {
			t.Errorf("%s while the store is away: %d, want 503", page, got.Status)
		}
	}
}

// An editor fulfils a walk-in's request for erasure: the name is on no page, and in no file any more.
func TestNameIsErased(t *testing.T) {
	h, e, jane := withParty(t)
	post := func(do, member string) shown {
		return h.post("guest-list", "Editor", "event", e.ID, "do", do, "member", member)
	}
	h.addGuest(e.ID, "", "Max Mustermann")
	found, err := h.Guests.Registrants(t.Context(), "daily", e.ID, registration.RegistrantQuery{Text: "Max", Most: 1})
	if err != nil || len(found.Registrants) != 1 {
		t.Fatalf("h.Guests.Registrants: %v, %v", found, err)
	}
	walkIn := found.Registrants[0].Member
	for _, step := range []struct{ do, member, says string }{
		{"erase", walkIn, "Only the name of a guest without an email who was removed can be erased."},
		{"remove", jane, "Jane was removed."},
		{"remove", walkIn, "Erase name : Max Mustermann"},
		{"erase", jane, "Only the name of a guest without an email who was removed can be erased."},
		{"erase", walkIn, "The name was erased."},
	} {
		if got := post(step.do, step.member); got.Status != 200 || !strings.Contains(got.Text, step.says) || strings.Contains(got.Text, "Erase name : Jane") {
			t.Errorf("%s: %d %s, want %s", step.do, got.Status, got.Text, step.says)
		}
	}
	if got := h.get("guest-list?event="+e.ID, "Editor"); strings.Contains(got.Text, "Max") || strings.Contains(got.Text, "Register again : An erased guest") || !strings.Contains(got.Text, "An erased guest") {
		t.Errorf("then: %s, want a guest without a name", got.Text)
	}
	if diff := cmp.Diff(registration.Tally{Cancelled: 2, Most: 2}, h.tally(e.ID)); diff != "" {
		t.Errorf("the counts, want -, got +: %s", diff)
	}
}

// An event says how many come, and before it is deleted how many registrations go with it.
func TestEventsSayHowManyCome(t *testing.T) {
	h, e, member := withParty(t)
	h.addGuest(e.ID, "joe@example.com", "Joe")
	if _, err := h.Guests.Remove(t.Context(), "daily", e.ID, member, "Ed"); err != nil {
		t.Fatalf("h.Guests.Remove: %v", err)
	}
	none := h.publish(map[string]any{"name": "Talk", "menu": "Cake", "event_date": "2100-06-01"})
	for _, test := range []struct {
		page, says string
		want       bool
	}{
		{"events", "Guests 1 of 2 for Party", true},
		{"events", "for Talk", false},
		{"events?event=" + e.ID, "Guest list: 1 of 2", true},
		{"events?event=" + none.ID, "Guest list", false},
		{"events?event=" + e.ID + "&confirm=delete", "1 registered and 1 cancelled. Their registrations are deleted too", true},
		{"events?event=" + none.ID + "&confirm=delete", "registrations", false},
		{"events?event=" + e.ID + "&confirm=cancel", "registrations are deleted", false},
	} {
		if got := h.get(test.page, "Editor"); strings.Contains(got.Text, test.says) != test.want || got.Status != 200 {
			t.Errorf("%s: %d %s, says %q: want %t", test.page, got.Status, got.Text, test.says, test.want)
		}
	}
}

// The guests on the list when the event is cancelled are shown, and nobody is added.
func TestGuestsOfCancelledEvent(t *testing.T) {
	h, e, _ := withParty(t)
	if _, err := h.Events.Cancel(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Cancel: %v", err)
	}
	const says = "The event is cancelled, so nobody can be added."
	if got := h.get("guest-list?event="+e.ID, "Editor"); !strings.Contains(got.Text, says) || !strings.Contains(got.Text, "jane@example.com") {
		t.Errorf("the page: %s, want Jane, and %s", got.Text, says)
	}
	if got := h.post("guest-list", "Editor", "event", e.ID, "do", "add", "email", "joe@example.com"); !strings.Contains(got.Text, says) || h.tally(e.ID).Registered != 1 {
		t.Errorf("adding: %s, want %s", got.Text, says)
	}
	if text := h.ask("GET", path+"guest-list?event="+url.QueryEscape(desktest.Now.String()), "Editor", "").Code; text != 404 {
		t.Errorf("no event: %d, want 404", text)
	}
}

// Guests whom an event's label names are in Ghost's own list of members, from where staff write to them. All are on the guest list.
func TestMembersOfAnEvent(t *testing.T) {
	for label, want := range map[string]string{"Guests": "/ghost/#/members?filter=label%3A%5Bguests%5D", "Never given": path + "guest-list?event=", "": path + "guest-list?event="} {
		h, e, _ := withParty(t)
		if label != "" {
			e.Values["rsvp_labels"] = []any{label}
			dbtest.Exec(t, h.DB, `UPDATE events SET content = $1`, `{"name":"Party","access":"free","menu":"Cake","rsvp_labels":["`+label+`"]}`)
		}
		question := h.get("events?confirm=cancel&event="+e.ID, "Editor").text(t)
		if strings.Contains(question, "Members in Ghost") != (label != "") {
			t.Errorf("%q: %s, want a link to members: %t", label, question, label != "")
		}
		if got := h.ask("GET", path+"events?members=&event="+e.ID, "Editor", ""); got.Code != 303 || !strings.HasPrefix(got.Header().Get("Location"), want) {
			t.Errorf("%q: %d %s, want 303 to %s", label, got.Code, got.Header().Get("Location"), want)
		}
	}
}

// Before and after something is done to an event that some are registered for, an editor reads how many, and what they learn.
func TestEditorReadsWhatGuestsLearn(t *testing.T) {
	const mail = "1 is registered. Nobody gets a mail"
	for do, want := range map[string][2]string{
		"unpublish": {mail + ", and the event's page is gone.", "The event is not published any more. Its post is a draft in Ghost, with its text. " + mail},
		"cancel":    {mail + ". Only the event's page and subscribed calendars say so.", "The event is cancelled. Its page stays, and says so. " + mail},
		"delete":    {"1 registered and 0 cancelled. Their registrations are deleted too, with who was checked in. Download the guest list first if you need it. Nobody gets a mail: tell them. Guest list", "The event was deleted. Its post, if it had one, stays in Ghost as a draft. 1 was registered, and got no mail. "},
	} {
		h, e, _ := withParty(t)
		if got := h.get("events?confirm="+do+"&event="+e.ID, "Editor").text(t); !strings.Contains(got, want[0]) {
			t.Errorf("before %s: got %q, want %q in it", do, got, want[0])
		}
		if got := h.post("events", "Editor", "do", do, "event", e.ID, "revision", "0").text(t); !strings.HasPrefix(got, want[1]) {
			t.Errorf("after %s: got %q, want %q at its start", do, got, want[1])
		}
	}
	h, e, _ := withParty(t)
	form := func(do, date, name string) []string {
		return []string{
			"do", do, "event", e.ID, "revision", "0", "type", "party", "was", "party", "kept", "{}", "f.name", name, "f.menu", "Cake", "f.event_date", date, "f.access", "free",
		}
	}
	save := func(date, name string) string {
		t.Helper()
		return h.post("events", "Editor", form("save", date, name)...).text(t)
	}
	if got, want := save("2100-05-01", "Ball"), "The event was saved. "; !strings.HasPrefix(got, want) || strings.Contains(got, mail) {
		t.Errorf("another name: got %q, want %q alone", got, want)
	}
	if got, want := save("2100-05-02", "Ball"), "The event was saved, with another date or place. "+mail+". The event's page and subscribed calendars have the new date and place. Tell them. Guest list "; !strings.HasPrefix(got, want) {
		t.Errorf("another date: got %q, want %q at its start", got, want)
	}
	h.post("events", "Editor", "do", "cancel", "event", e.ID, "revision", "0")
	got := h.post("events", "Editor", form("publish", "2100-05-03", "Ball")...).text(t)
	if want := "The event is published again, with another date or place. " + mail; !strings.HasPrefix(got, want) {
		t.Errorf("published again on another date: got %q, want %q at its start", got, want)
	}
	dbtest.Exec(t, h.DB, "ALTER TABLE registrations RENAME TO gone")
	if got := h.ask("POST", path+"events", "Editor", formOf(form("save", "2100-05-04", "Ball")...)); got.Code != http.StatusSeeOther {
		t.Errorf("saved while nobody can count guests: %v %s, want the event", got.Code, got.Body)
	}
}

// Where the site sends mails, the desk says before and after what registrants are told, and when, and who has no email.
func TestEditorReadsWhoIsTold(t *testing.T) {
	const told = "2 are registered. 1 is told by mail, five minutes later. 1 has no email: tell them."
	for name, test := range map[string]struct {
		do, date string
		want     string // before, and after
	}{
		"cancelled":                {"cancel", "2100-05-01", told + " The event's page and subscribed calendars say so too."},
		"cancelled after its end":  {"cancel", "2020-05-01", "2 are registered. Nobody gets a mail."},
		"unpublished":              {"unpublish", "2100-05-01", "2 are registered. Nobody gets a mail, and the event's page is gone."},
		"unpublished, and instead": {"unpublish", "2100-05-01", "Tell them. They stay registered if it is published again."},
	} {
		h := newHarness(t)
		h.declareEvents()
		h.Site.Events.SendsMail = true
		e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": test.date, "access": "free"})
		h.addGuest(e.ID, "jane@example.com", "Jane")
		h.addGuest(e.ID, "", "Joe")
		if got := h.get("events?confirm="+test.do+"&event="+e.ID, "Editor").text(t); !strings.Contains(got, test.want) {
			t.Errorf("before it is %s: got %q, want %q in it", name, got, test.want)
		}
		if got := h.post("events", "Editor", "do", test.do, "event", e.ID, "revision", "0").text(t); !strings.Contains(got, test.want) {
			t.Errorf("after it is %s: got %q, want %q in it", name, got, test.want)
		}
	}
	h, e, _ := withParty(t)
	h.Site.Events.SendsMail = true
	for _, do := range []string{"unpublish", "delete"} {
		if got, want := h.get("events?confirm="+do+"&event="+e.ID, "Editor").text(t), "Cancel the event first, and they are told by mail."; !strings.Contains(got, want) {
			t.Errorf("before %s: got %q, want %q in it", do, got, want)
		}
	}
	moved := h.post("events", "Editor", "do", "save", "event", e.ID, "revision", "0", "type", "party", "was", "party", "kept", "{}",
		"f.name", "Party", "f.menu", "Cake", "f.event_date", "2100-05-02", "f.access", "free").text(t)
	if want := "1 is registered. 1 is told by mail, five minutes later. The event's page and subscribed calendars have the new date and place. Guest list"; !strings.Contains(moved, want) {
		t.Errorf("moved: got %q, want %q in it", moved, want)
	}
	for _, test := range []struct{ page, want string }{
		{h.get("guest-list?event="+e.ID, "Editor").Text, "Each guest with an email gets a confirmation by mail."},
		{h.post("guest-list", "Editor", "event", e.ID, "do", "read", "lines", "joe@example.com").Text, "The guest gets a confirmation by mail."},
	} {
		if !strings.Contains(test.page, test.want) {
			t.Errorf("the guest list: got %q, want %q in it", test.page, test.want)
		}
	}
}

// A guest whose last mail the server refused is marked with what it said, where the site sends mails.
func TestGuestsWhoseMailsAreRefused(t *testing.T) {
	h, e, member := withParty(t)
	dbtest.Exec(t, h.DB, `INSERT INTO mails (site, event, member, reason, sent_at, told, refusal) VALUES ('daily', $1, $2, 'moved 2', 1, '', '550 <b>no such user</b>')`, e.ID, member)
	const mark = "Mail refused New date or place: 550 <b>no such user</b>"
	for sends := range map[bool]bool{true: true, false: true} {
		h.Site.Events.SendsMail = sends
		if got := h.get("guest-list?event="+e.ID, "Editor").text(t); strings.Contains(got, mark) != sends {
			t.Errorf("the site sends mails: %t: %s, want %q in it: %t", sends, got, mark, sends)
		}
	}
}
