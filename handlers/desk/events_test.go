package desk_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// eventTypes has a type with every kind of field, and one with few.
const eventTypes = `
manifest_version: 1
events:
  types:
    meetup:
      post_template: custom-meetup
      supported_fields: [event_date, name]
      required_fields: [event_date]
    party:
      post_template: custom-party
      label: Summer party
      default: true
      required_fields: [name]
      field_constraints:
        name: {max_length: 60}
        max_attendees: {min: 2, max: 90}
        feature_image: {aspect_ratio: "16:9", min_width: 1600, min_height: 900}
      custom_fields:
        - {key: motto, type: text, max_length: 20, pattern: "[A-Z].*", help_text: "One line."}
        - {key: menu, type: textarea, max_length: 200, required: true}
        - {key: seats, type: number, min: 1, max: 10}
        - {key: dress, type: select, options: [casual, formal]}
        - {key: page, type: url}
        - {key: doors, type: date}
        - {key: outdoors, type: toggle}
        - {key: badge, type: image, aspect_ratio: "1:1", min_width: 300, max_file_size_kb: 100}
`

func (h *harness) declareEvents() { h.Manifest("nightly", eventTypes) }

// create keeps a draft of a party.
func (h *harness) create(values map[string]any) events.Event {
	h.T.Helper()
	e, err := h.Events.Create(h.T.Context(), "daily", events.Edit{Theme: "nightly", Type: "party", Values: values})
	if err != nil {
		h.T.Fatalf("h.Events.Create: %v", err)
	}
	return e
}

// publish publishes a party.
func (h *harness) publish(values map[string]any) events.Event {
	h.T.Helper()
	e := h.create(values)
	t, err := h.Site.Events.Type(h.T.Context(), "nightly", "party")
	if err == nil {
		e, err = h.Events.Publish(h.T.Context(), "daily", e.ID, e.Revision, t)
	}
	if err != nil || e.Pending != nil {
		h.T.Fatalf("publishing an event: got %v, pending %+v, want no error, nothing pending", err, e.Pending)
	}
	return e
}

func (h *harness) event(id string) events.Event {
	h.T.Helper()
	e, err := h.Events.Find(h.T.Context(), "daily", id)
	if err != nil {
		h.T.Fatalf("h.Events.Find: %v", err)
	}
	return e
}

// revision is one in a form.
func revision(of int64) string { return strconv.FormatInt(of, 10) }

// inputs are the fields of a form: each label with the element, and what it says.
func inputs(page shown) (list []string) {
	labels := make(map[string]string)
	for label := range elements(page.body, "label") {
		labels[attribute(label, "for")] = textOf(label)
	}
	texts := make(map[string]string)
	for n := range page.body.Descendants() {
		if id := attribute(n, "id"); n.Type == html.ElementNode && id != "" {
			texts[id] = textOf(n)
		}
	}
	for n := range page.body.Descendants() {
		label, ok := labels[attribute(n, "id")]
		if !ok || n.Type != html.ElementNode || !strings.HasPrefix(attribute(n, "id"), "field-") {
			continue
		}
		line := []string{label + ":", n.Data}
		for _, a := range n.Attr {
			switch a.Key {
			case "type", "min", "max", "list", "data-most", "data-advised", "aria-invalid", "checked":
				line = append(line, a.Key+"="+a.Val)
			case "name":
				line = append(line, a.Val)
			case "value":
				if a.Val != "" {
					line = append(line, "value="+a.Val)
				}
			}
		}
		if n.Data == "select" || n.Data == "textarea" && textOf(n) != "" {
			line = append(line, "["+textOf(n)+"]")
		}
		for id := range strings.FieldsSeq(attribute(n, "aria-describedby")) {
			line = append(line, "("+texts[id]+")")
		}
		list = append(list, strings.Join(line, " "))
	}
	return list
}

// The editor has the fields that a type supports, in the order of the standard ones and then
// of the manifest, each with the input of its type, with what is required and recommended.
func TestFieldsOfEditor(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	const (
		required = " * , required to publish:"
		end      = "End date: input type=date f.event_date_end (Leave it empty for an end after midnight: an end time before the start time is on the next day.)"
	)
	for target, want := range map[string][]string{
		"events?new=meetup": {"Name: input type=text f.name data-most=255 (255 characters at most.)", "Date" + required + " input type=date f.event_date", end},
		"events?new=": {
			"Name" + required + " input type=text f.name data-most=255 data-advised=60 (Recommended: 60 characters at most.) (255 characters at most.)",
			"Description: textarea f.description data-most=300 (Shown in lists of posts and in search results.) (300 characters at most.)",
			"Date: input type=date f.event_date",
			"Start time: input type=time f.event_time_start",
			"End time: input type=time f.event_time_end",
			end,
			"Time zone: input type=text f.event_time_zone value=Europe/Berlin (All times of the event are in this time zone, such as Europe/Berlin. Left empty, it is UTC.)",
			"Location: input type=text f.location",
			"Online event link: input type=url f.platform_url (Readers who are registered see it, and everybody if Access is Anyone.)",
			"Access: select f.access [Not chosen Anyone Members, free ones too Paid members] (Who may register.)",
			"Maximum attendees: input type=number f.max_attendees (Leave it empty for no limit.) (Recommended: from 2 to 90.)",
			"Waiting list: select f.waiting_list [Gives free places in order Offers free places in order No waiting list] (Once all places are taken.)",
			"Registration deadline: input type=date f.registration_deadline (The last day to register.)",
			"Deadline time: input type=time f.deadline_time_end (Without a time, registration ends with the day.)",
			"Labels for registrants: textarea f.rsvp_labels (For the members who register.)",
			"Featured image: input type=url f.feature_image (Recommended: 1600px wide, 900px tall, 16:9 aspect ratio.)",
			"Alt text of the image: input type=text f.feature_image_alt data-most=191 (What the picture shows, for readers who do not see it.) (191 characters at most.)",
			"URL slug: input type=text f.slug data-most=185 (The end of the page's address. Left empty, it is made from the name.) (185 characters at most.)",
			"Motto: input type=text f.motto data-most=20 (One line.) (Recommended: text of the form [A-Z].*.) (20 characters at most.)",
			"Menu" + required + " textarea f.menu data-most=200 (200 characters at most.)",
			"Seats: input type=number f.seats min=1 max=10 (A number from 1 to 10.)",
			"Dress: select f.dress [Not chosen casual formal]",
			"Page: input type=url f.page",
			"Doors: input type=date f.doors",
			"Outdoors: input type=checkbox f.outdoors",
			"Badge: input type=url f.badge (Recommended: 300px wide, 1:1 aspect ratio, 100 KB at most.)",
		},
	} {
		if diff := cmp.Diff(want, inputs(h.get(target, "Editor"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// What a form says is kept as the API would have it; what it leaves out is gone; and what
// its type has no field for stays.
func TestFormOfEditor(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Old", "location": "Gone", "surplus": "kept"})
	page := h.get("events?event="+e.ID, "Editor")
	kept := ""
	for input := range elements(page.body, "input") {
		if attribute(input, "name") == "kept" {
			kept = attribute(input, "value")
		}
	}
	form := []string{
		"do", "save", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", kept,
		"f.name", "New", "f.description", "One\r\ntwo", "f.location", " ", "f.max_attendees", "20", "f.rsvp_labels", "Guests\r\n\r\n Summer guests ",
		"f.seats", "many", "f.dress", "formal", "f.outdoors", "on", "f.lost", "typed",
	}
	if got := h.post("events", "Editor", form...); got.Status != 200 || !strings.HasPrefix(got.Text, "The event was saved. ") {
		t.Fatalf("got status %d, %s, want 200, that the event was saved", got.Status, got.Text)
	}
	want := map[string]any{
		"name": "New", "description": "One\ntwo", "max_attendees": 20.0, "rsvp_labels": []any{"Guests", "Summer guests"},
		"seats": "many", "dress": "formal", "outdoors": true, "surplus": "kept", "lost": "typed",
	}
	if diff := cmp.Diff(want, h.event(e.ID).Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var got []string
	for _, line := range inputs(h.get("events?event="+e.ID, "Editor")) {
		if strings.Contains(line, "value=") || strings.Contains(line, "checked") || strings.Contains(line, "textarea") && strings.Contains(line, "[") {
			got = append(got, line[:min(len(line), 60)])
		}
	}
	if diff := cmp.Diff([]string{
		"Name * , required to publish: input type=text f.name value=N",
		"Description: textarea f.description data-most=300 [One two] ",
		"Maximum attendees: input type=number f.max_attendees value=2",
		"Labels for registrants: textarea f.rsvp_labels [Guests Summe",
		"Seats: input type=text f.seats value=many (A number from 1 t",
		"Outdoors: input type=checkbox f.outdoors checked=",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Where the site sends mails, an event may have reminders of its own. What was chosen stays while it sends none.
func TestRemindersOfAnEvent(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Party", "reminders": "hour"})
	chosen := func() (line string) {
		for _, input := range inputs(h.get("events?event="+e.ID, "Editor")) {
			if strings.HasPrefix(input, "Reminders") {
				line = input
			}
		}
		return line
	}
	press := func(do string, fields ...string) shown {
		t.Helper()
		kept := hidden(h.get("events?event="+e.ID, "Editor"), "kept")
		form := []string{"do", do, "event", e.ID, "revision", revision(h.event(e.ID).Revision), "type", "party", "was", "party", "kept", kept, "f.name", "Party"}
		return h.post("events", "Editor", append(form, fields...)...)
	}
	press("save", "f.location", "Pier")
	if diff := cmp.Diff(map[string]any{"name": "Party", "reminders": "hour", "location": "Pier", "outdoors": false}, h.event(e.ID).Values); diff != "" || chosen() != "" {
		t.Errorf("without mails: %q, want no field and what was chosen (-want +got):\n%s", chosen(), diff)
	}
	h.SendMails()
	const want = "Reminders: select f.reminders [As Event Settings say A day before An hour before Both None] (By mail, to who is registered.)"
	if diff := cmp.Diff(want, chosen()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	press("save", "f.reminders", "none")
	if got := h.event(e.ID).Values["reminders"]; got != "none" {
		t.Errorf("kept %v, want none", got)
	}
	press("save")
	if got, isKept := h.event(e.ID).Values["reminders"]; isKept {
		t.Errorf("kept %v, want the site's", got)
	}
	if got := press("publish", "f.menu", "Cake", "f.reminders", "week"); !strings.Contains(got.Text, "Reminders must be one of the choices, or empty.") {
		t.Errorf("a choice that is none: %s, want that it is wrong", got.Text)
	}
}

// What is wrong is listed at the top with a link to its field, and said beside that. What
// was typed stays.
func TestProblemsInEditor(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	page := h.post("events", "Editor", "do", "publish", "event", "", "revision", "0", "type", "party", "was", "party", "kept", "{}", "f.seats", "11", "f.event_date", "2026-02-30", "f.dress", "none")
	var links []string
	for a := range elements(page.body, "a") {
		if strings.HasPrefix(attribute(a, "href"), "#field") {
			links = append(links, textOf(a))
		}
	}
	want := []string{"Name is required.", "Date must be a date that exists, such as 2026-05-31.", "Menu is required.", "Seats must be 10 or less.", "Dress must be one of its options."}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var wrong []string
	for _, line := range inputs(page) {
		if strings.Contains(line, "aria-invalid=true") {
			wrong = append(wrong, line)
		}
	}
	if diff := cmp.Diff([]string{
		"Name * , required to publish: input type=text f.name aria-invalid=true data-most=255 data-advised=60 (Recommended: 60 characters at most.) (255 characters at most.) (Name is required.)",
		"Date: input type=text f.event_date value=2026-02-30 aria-invalid=true (Date must be a date that exists, such as 2026-05-31.)",
		"Menu * , required to publish: textarea f.menu aria-invalid=true data-most=200 (200 characters at most.) (Menu is required.)",
		"Seats: input type=number f.seats value=11 min=1 max=10 aria-invalid=true (A number from 1 to 10.) (Seats must be 10 or less.)",
		"Dress: select f.dress aria-invalid=true [Not chosen casual formal none (not offered any more)] (Dress must be one of its options.)",
	}, wrong); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := "The event is saved, and not published:"; !strings.Contains(page.Text, want) {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
	// A published event is not saved with what nobody could publish.
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake"})
	page = h.post("events", "Editor", "do", "save", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Party")
	if want := "Nothing was saved yet: Menu is required."; !strings.Contains(page.Text, want) || h.event(e.ID).Values["menu"] != "Cake" {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
}

// Each step that takes something away is asked about, and says what becomes of the post.
func TestStepsOfEvent(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for do, test := range map[string]struct{ asks, says, status string }{
		"unpublish": {
			"Unpublish Party ? Readers do not find it any more. Its post becomes a draft in Ghost, and keeps its text. Unpublish the event Leave it as it is",
			"The event is not published any more. Its post is a draft in Ghost, with its text.", "draft",
		},
		"cancel": {
			"Cancel Party ? Its page stays where it is, and says that the event is cancelled. Nobody can register any more. Cancel the event Leave it as it is",
			"The event is cancelled. Its page stays, and says so.", "cancelled",
		},
		"duplicate": {
			"Duplicate Party ? A new draft gets what this event has, without its slug, on another date. This event stays as it is. The new one gets a post of its own. " +
				"Date of the copy How often Every week Every second week Until Leave it empty for one copy. Otherwise there is a draft for each such day up to this date, 52 at most. " +
				"They are a series with this event, and can be published together. Duplicate the event Leave it as it is",
			"This is the copy, a draft without slug and date.", "published",
		},
		"delete": {
			"Delete Party ? The event is removed here. Its post, if it has one, stays in Ghost as a draft, with its text and without the event's data. Delete the event Leave it as it is",
			"The event was deleted. Its post, if it had one, stays in Ghost as a draft.", "",
		},
	} {
		e := h.publish(map[string]any{"name": "Party", "menu": "Cake"})
		if got := h.get("events?confirm="+do+"&event="+e.ID, "Editor").text(t); got != "Back to the event "+test.asks {
			t.Errorf("confirming %s: got %s, want %s", do, got, "Back to the event "+test.asks)
		}
		stale := h.post("events", "Editor", "do", do, "event", e.ID, "revision", revision(e.Revision+1))
		if do != "duplicate" && !strings.HasPrefix(stale.Text, "Somebody changed this event meanwhile, so nothing was done.") {
			t.Errorf("%s of an old one: %s", do, stale.Text)
		}
		if got := h.post("events", "Editor", "do", do, "event", e.ID, "revision", revision(e.Revision)).text(t); !strings.HasPrefix(got, test.says+" ") {
			t.Errorf("%s: got %s, want it to begin with %s", do, got, test.says)
		}
		now, err := h.Events.Find(t.Context(), "daily", e.ID)
		if string(now.Status) != test.status || (err != nil) != (do == "delete") {
			t.Errorf("%s: got status %s, %v, want %s, an error only after delete", do, now.Status, err, test.status)
		}
	}
	draft := h.create(map[string]any{"name": "Draft"})
	if got, want := h.post("events", "Editor", "do", "unpublish", "event", draft.ID, "revision", revision(draft.Revision)).text(t), "The event is not published, so nothing was done. "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
}

// Where staff have written into the card in a post's text, or deleted it, the editor says so, and puts ours back.
func TestCardOfEvent(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for card, says := range map[string]string{
		"<lychgate-event>Come!</lychgate-event>": "Somebody has written into the card that says in the text of the post when and where the event is. It stays as it is, also if the event changes. Ours would replace what is written there. Put ours back",
		"":                                       "The card that says in the text of the post when and where the event is was deleted. So newsletters do not say it. Put ours back",
	} {
		e := h.publish(map[string]any{"name": "Party", "menu": "Cake"})
		if page := h.get("events?event="+e.ID, "Editor").text(t); strings.Contains(page, "Put ours back") {
			t.Errorf("with our card: %s, want nothing of it", page)
		}
		h.Ghost.EditPost(e.Post.ID, func(p *platform.EventPost) { p.Card = card })
		e = h.event(e.ID)
		h.post("events", "Editor", "do", "save", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Party", "f.menu", "Soup")
		if page := h.get("events?event="+e.ID, "Editor").text(t); !strings.Contains(page, says) {
			t.Errorf("with the card %q: %s, want %s", card, page, says)
		}
		const done = "The text of the post has date and place of the event again. "
		if got := h.post("events", "Editor", "do", "card", "event", e.ID, "revision", revision(h.event(e.ID).Revision)).text(t); !strings.HasPrefix(got, done) || strings.Contains(got, "Put ours back") {
			t.Errorf("put back: %s, want %s", got, done)
		}
	}
}

// The list has what is coming up first, then what is past, and drafts.
func TestListOfEvents(t *testing.T) {
	h := newHarness(t)
	if got, want := h.get("events", "Editor").text(t), "Lychgate has not seen the active theme nightly yet, so there can be no new events. Where it has a repository, refresh it at Themes ; else have an administrator upload it once more. Themes that come with Ghost have no event types, unless whoever runs Caddy has given them some. Event Settings "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
	if _, err := h.Themes.Take(t.Context(), "nightly", desktest.Source("", themes.ErrNoManifest)); err != nil {
		t.Fatalf("h.Themes.Take: %v", err)
	}
	if got, want := h.get("events", "Editor").text(t), "The active theme nightly has no event types, so there can be no new events. Activate a theme that has some, or add events to its manifest. Themes Event Settings "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
	h.Manifest("nightly", "manifest_version: 1\nevents: {types: {party: {label: Party}}}\nhomepage_curation: {}\n")
	if got, want := h.get("events", "Editor").text(t), "The active theme nightly has no event types, so there can be no new events. Correct what its manifest has findings for, or activate a theme that has some. Themes "+
		"error events.types.party.post_template the event type party has no post_template , so it is dropped; add one Event Settings "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
	h.declareEvents()
	h.publish(map[string]any{"name": "Old party", "menu": "Cake", "event_date": "2020-06-01"})
	h.publish(map[string]any{"name": "New party", "menu": "Cake", "event_date": "2100-06-01", "event_time_start": "19:30", "event_time_end": "22:00", "event_time_zone": "Europe/Berlin"})
	h.create(map[string]any{"name": "Some day"})
	for i := range 26 {
		h.create(map[string]any{"name": fmt.Sprintf("Draft %02d", i), "event_date": "2100-06-01"})
	}
	rows := func(page shown) (list []string) {
		for tr := range elements(page.body, "tr") {
			if row := textOf(tr); !strings.HasPrefix(row, "Event Date") {
				list = append(list, row)
			}
		}
		return list
	}
	for target, want := range map[string][]string{
		"events":                       {"New party Date 1 Jun 2100, 19:30–22:00 Type Summer party Status Published Edit text of New party View New party"},
		"events?view=past":             {"Old party Date 1 Jun 2020 Type Summer party Status Published Edit text of Old party View Old party"},
		"events?view=drafts&q=some+da": {"Some day Date No date Type Summer party Status Draft"},
		"events?view=past&q=new":       nil,
	} {
		if diff := cmp.Diff(want, rows(h.get(target, "Editor"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	first := h.get("events?view=drafts", "Editor")
	next := ""
	for a := range elements(first.body, "a") {
		if textOf(a) == "Next page" {
			next = attribute(a, "href")
		}
	}
	if got := rows(h.get(next, "Editor")); len(rows(first)) != 25 || len(got) != 2 || slices.Contains(rows(first), got[0]) {
		t.Errorf("%d on the first page, then at %s: %q", len(rows(first)), next, got)
	}
	h.Ghost.BreakCalls(desktest.ErrGone, "changepost")
	e := h.create(map[string]any{"name": "Kept party", "menu": "Cake", "event_date": "2100-06-01"})
	h.post("events", "Editor", "do", "publish", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Kept party", "f.menu", "Cake", "f.event_date", "2100-06-01")
	if got := rows(h.get("events?q=kept", "Editor")); len(got) != 1 || !strings.Contains(got[0], "Status Published Kept here, and sent to the site as soon as it responds, since ") {
		t.Errorf("pending: %q", got)
	}
}

// The editor says on which day an event ends, if it is another one, and shows the end date where
// there is one.
func TestEndsOnAnotherDay(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	for _, test := range []struct {
		name, start, end, date, want string
		isOpen                       bool
	}{
		{"the same day", "19:00", "21:00", "", "", false},
		{"after midnight", "22:00", "02:00", "", "Ends on Wednesday, 2 June 2100.", false},
		{"days later", "22:00", "21:00", "2100-06-04", "Ends on Friday, 4 June 2100.", true},
	} {
		e := h.create(map[string]any{"name": "Party", "event_date": "2100-06-01", "event_time_start": test.start, "event_time_end": test.end, "event_date_end": test.date})
		page := h.get("events?event="+e.ID, "Editor")
		var got string
		isOpen := false
		for n := range page.body.Descendants() {
			if attribute(n, "class") == "ends" {
				got = textOf(n)
			}
			if attribute(n, "class") == "more" {
				isOpen = slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "open" })
			}
		}
		if got != test.want || isOpen != test.isOpen {
			t.Errorf("%s: the editor says %q, and shows the end date: %v; want %q, %v", test.name, got, isOpen, test.want, test.isOpen)
		}
	}
}

// An event whose type is gone can still be read, and be given another type.
func TestEventWithoutType(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.publish(map[string]any{"name": "Party", "menu": "Cake", "event_date": "2100-06-01"})
	h.Manifest("nightly", "{manifest_version: 1, events: {types: {meetup: {post_template: custom-meetup}}}}")
	got := h.get("events?event="+e.ID, "Editor").text(t)
	for _, want := range []string{"The active theme nightly has no event type party . You can read the event here.", "Name Party", "Date 2100-06-01", "menu Cake", "Edit as this type", "Unpublish…"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q: %s", want, got)
		}
	}
	if got := inputs(h.get("events?type=meetup&event="+e.ID, "Editor")); len(got) != 18 || got[0] != "Name: input type=text f.name value=Party data-most=255 (255 characters at most.)" {
		t.Errorf("as another type: %q", got)
	}
	h.Ghost.Do(func() {
		h.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly"}, {Name: "source", IsActive: true}}
	})
	h.get("themes", "Editor") // as its script does
	if got, want := h.get("events?event="+e.ID, "Editor").text(t), "The active theme source has no event type party ; the event was made for the theme nightly ."; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	h.Manifest("source", eventTypes)
	if got, want := h.get("events?event="+e.ID, "Editor").text(t), "This event was made for the theme nightly . It has the fields of the active theme here. When you save it, it becomes one of source ."; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

// Nothing that another editor has saved is overwritten by an old form, until somebody says so.
func TestConflictInEditor(t *testing.T) {
	h := newHarness(t)
	h.declareEvents()
	e := h.create(map[string]any{"name": "Mine", "location": "Hall"})
	if _, err := h.Events.Save(t.Context(), "daily", e.ID, e.Revision, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Theirs", "menu": "Cake"}}, nil); err != nil {
		t.Fatalf("h.Events.Save: %v", err)
	}
	theirs := h.event(e.ID)
	form := []string{"do", "save", "event", e.ID, "revision", revision(e.Revision), "type", "party", "was", "party", "kept", "{}", "f.name", "Mine", "f.location", "Hall"}
	page := h.post("events", "Editor", form...)
	if want := "Somebody changed this event meanwhile. Nothing of it was overwritten, and what you typed is below. What differs from yours Name Theirs Location (empty) Menu Cake Load theirs Keep mine"; !strings.Contains(page.Text, want) {
		t.Errorf("got %q, want %q in it", page.Text, want)
	}
	h.post("events", "Editor", form...) // pressing the same button again changes nothing
	if diff := cmp.Diff(theirs.Values, h.event(e.ID).Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := h.post("events", "Editor", append(form[2:], "over", revision(theirs.Revision))...).text(t), "The event was saved. "; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q at its start", got, want)
	}
	if diff := cmp.Diff(map[string]any{"name": "Mine", "location": "Hall", "outdoors": false}, h.event(e.ID).Values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What the pages need fails: each says so, and shows no more than that.
func TestEventsAway(t *testing.T) {
	for name, test := range map[string]struct {
		given  func(h *harness)
		target string
		status int
	}{
		"the store":                 {func(h *harness) { h.Away = desktest.ErrGone }, "events", http.StatusServiceUnavailable},
		"the store, later":          {func(h *harness) { h.CloseStore() }, "events", http.StatusServiceUnavailable},
		"the settings":              {func(h *harness) { h.Away = desktest.ErrGone }, "event-settings", http.StatusServiceUnavailable},
		"Ghost's list of themes":    {func(h *harness) { h.Ghost.BreakCalls(desktest.ErrGone, "installed") }, "events", http.StatusBadGateway},
		"the time zone, not needed": {func(h *harness) { h.Ghost.BreakCalls(desktest.ErrGone, "publication") }, "events?new=", http.StatusOK},
		"an event":                  {func(*harness) {}, "events?event=nothing", http.StatusNotFound},
		"a question":                {func(*harness) {}, "events?event=nothing&confirm=nothing", http.StatusNotFound},
	} {
		h := newHarness(t)
		h.declareEvents()
		test.given(h)
		if got := h.get(test.target, "Editor"); got.Status != test.status {
			t.Errorf("%s: got status %d, %s, want %d", name, got.Status, got.Text, test.status)
		}
	}
	h := newHarness(t)
	h.declareEvents()
	for name, form := range map[string]url.Values{
		"nothing to do": {"do": {"other"}}, "no values": {"do": {"save"}, "type": {"party"}, "kept": {"["}}, "no revision": {"do": {"save"}, "type": {"party"}, "revision": {"x"}},
	} {
		if got := h.ask("POST", path+"events", "Editor", form.Encode()).Code; got != http.StatusBadRequest {
			t.Errorf("%s: got status %d, want 400", name, got)
		}
	}
	if got := h.post("events", "Editor", "do", "save", "type", "gone", "kept", "{}"); got.Status != http.StatusConflict {
		t.Errorf("a type that is gone: %d %s", got.Status, got.Text)
	}
}

// An event is being sent until that has failed, or Ghost is known not to respond: it may wait for others.
func TestEventOnItsWay(t *testing.T) {
	const sending, kept = "Being sent to the site.", "Kept here, and sent to the site as soon as it responds, since "
	for name, test := range map[string]struct {
		ago      time.Duration
		attempts int
		want     string
	}{
		"a moment ago":  {time.Second, 0, sending},
		"long ago":      {time.Minute, 0, sending},
		"it has failed": {time.Second, 1, kept},
	} {
		h := newHarness(t)
		h.declareEvents()
		e := h.publish(map[string]any{"name": "Party", "menu": "Cake"})
		dbtest.Exec(t, h.DB, `INSERT INTO work (site, kind, key, title, revision, since, due_at, attempts, reason, holder, leased_until) VALUES ('daily', 'events', $1, '', 1, $2, $3, $4, '', '', 0)`,
			e.ID, time.Now().Add(-test.ago).UnixMilli(), time.Now().Add(time.Hour).UnixMilli(), test.attempts)
		for _, page := range []string{"events", "events?event=" + e.ID} {
			if got := h.get(page, "Editor").Text; !strings.Contains(got, test.want) {
				t.Errorf("%s: %s says %q, want %q in it", name, page, got, test.want)
			}
		}
	}
}

// An editor of an event sees what is wrong with the manifest, and which size a picture should have
// where nobody says one.
func TestEditorSaysWhatTheManifestLacks(t *testing.T) {
	const banner, size = "The theme's manifest has findings. Parts of it that are wrong are left out here.", "Recommended: 1200 x 630 px"
	h := newHarness(t)
	h.declareEvents()
	if text := h.get("events?new=party", "Editor").text(t); strings.Contains(text, banner) || strings.Contains(text, size) {
		t.Errorf("got %s, want no findings and no built-in size", text)
	}
	h.Manifest("nightly", "manifest_version: 1\nevents:\n  types:\n    party: {post_template: custom-party, supported_fields: [feature_image, colour]}\n")
	text := h.get("events?new=party", "Editor").text(t)
	for _, want := range []string{banner, "colour", size} {
		if !strings.Contains(text, want) {
			t.Errorf("got %s, want %q in it", text, want)
		}
	}
}
