package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// partyManifest has a type with every kind of field, and another one.
const partyManifest = `
manifest_version: 1
events:
  default_tags: [Events]
  types:
    meetup:
      post_template: custom-meetup
      supported_fields: [name, event_date, location]
    party:
      post_template: custom-party
      label: Summer party
      default: true
      required_fields: [name, event_date]
      field_constraints:
        name: {max_length: 60}
        feature_image: {aspect_ratio: "16:9", min_width: 1600, min_height: 900}
      custom_fields:
        - {key: motto, type: text, max_length: 20, help_text: "One line."}
        - {key: menu, type: textarea, max_length: 200, required: true}
        - {key: seats, type: number, min: 1, max: 10}
        - {key: dress, type: select, options: [casual, formal]}
        - {key: page, type: url}
        - {key: doors, type: date}
        - {key: outdoors, type: toggle}
        - {key: badge, type: image, aspect_ratio: "1:1", min_width: 300, max_file_size_kb: 100}
`

// withParties has the active theme declare event types, and the slots that it has.
func (r *room) withParties() *room {
	r.t.Helper()
	kept, err := r.Themes.Find(r.t.Context(), "nightly")
	if err != nil {
		r.t.Fatalf("r.Themes.Find: %v", err)
	}
	declared := manifest.Parse([]byte(partyManifest)).Manifest
	declared.Curation = kept.Curation()
	r.Manifest("nightly", declared)
	return r
}

// withHostileEvents keeps a draft and an event without a type, and returns a function that
// puts their IDs into an address.
func (r *room) withHostileEvents(t *testing.T) func(address string) string {
	long := strings.Repeat("Donaudampfschifffahrt", 20)
	values := map[string]any{
		"name": hostile + long, "description": strings.Repeat(hostile, 10), "location": long, "rsvp_labels": []any{"Guests", hostile, long}, "motto": long,
		"feature_image": r.url + "/content/images/a.png", "menu": hostile, "event_date": "2100-06-01", "access": hostile, "seats": hostile,
	}
	draft := r.create(t, values)
	gone, err := r.Events.Create(t.Context(), "daily", events.Edit{Theme: hostile, Type: hostile, Values: values})
	if err != nil {
		t.Fatalf("r.Events.Create: %v", err)
	}
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	for i := range 3 {
		e := r.create(t, map[string]any{"name": fmt.Sprint(hostile, long[:150], i), "menu": "Cake", "event_date": "2100-06-01", "event_time_start": "19:30", "event_time_zone": "America/Argentina/ComodRivadavia"})
		if _, err := r.Events.Publish(t.Context(), "daily", e.ID, e.Revision, party); err != nil {
			t.Fatalf("r.Events.Publish: %v", err)
		}
	}
	guests := r.withEvent(t, 1)
	for i, name := range []string{hostile, long[:180], strings.Repeat("🎩", 191), "", "Jane", "Joe"} {
		r.withGuest(t, guests, fmt.Sprintf("guest%d-%s@example.com", i, strings.Repeat("x", 20*i)), name)
	}
	if _, err := r.Guests.Remove(t.Context(), "daily", guests, r.withGuest(t, guests, "", long[:180]), long[:180]); err != nil { // whose name can be erased
		t.Fatalf("r.Guests.Remove: %v", err)
	}
	r.insertWaiters(t, guests, 2)
	if _, err := r.DB.Write.ExecContext(t.Context(), `UPDATE registrations_waiting SET name = $1, email = $1 WHERE event = $2`, long[:180], guests); err != nil {
		t.Fatalf("naming who waits: %v", err)
	}
	return strings.NewReplacer("=draft", "="+draft.ID, "=gone", "="+gone.ID, "=guests", "="+guests).Replace
}

// pickPicture chooses a picture to be cut.
const pickPicture = `
	const input = $('[data-key=feature_image] input[type=file]'), chosen = new DataTransfer(), canvas = new OffscreenCanvas(800, 600);
	canvas.getContext('2d').fillRect(0, 0, 400, 300);
	chosen.items.add(new File([await canvas.convertToBlob()], 'sky.png'));
	input.files = chosen.files;
	input.dispatchEvent(new Event('change', {bubbles: true}));
`

// uploadImage takes a picture as Ghost does.
func (r *room) uploadImage(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if cookie, err := request.Cookie("session"); err != nil || cookie.Value == "" {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"errors":[{"message":"Authorization failed"}]}`)
		return
	}
	file, header, err := request.FormFile("file")
	if err != nil || request.FormValue("purpose") != "image" {
		http.Error(w, `{"errors":[{"message":"no picture"}]}`, http.StatusUnprocessableEntity)
		return
	}
	text, _ := io.ReadAll(file)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images = append(r.images, text)
	json.NewEncoder(w).Encode(map[string]any{"images": []any{map[string]string{"url": r.url + "/content/images/" + header.Filename}}})
}

// field is a JavaScript expression.
func field(key string) string {
	return fmt.Sprintf(`$('[data-key="%s"] [name]')`, key)
}

// typed types into a field.
func (v tab) typed(key, text string) {
	v.T.Helper()
	v.Keys(fmt.Sprintf(`[data-key="%s"] [name]`, key), text)
}

// state waits for what the editor says of saving.
func (v tab) state(begins string) {
	v.T.Helper()
	v.Until(fmt.Sprintf("text($('.state'))?.startsWith(%q)", begins))
}

// The test ends unless there is exactly one event.
func (r *room) only(t *testing.T) events.Event {
	t.Helper()
	page, err := r.Events.List(t.Context(), "daily", events.Query{Most: 10})
	if err != nil || len(page.Events) != 1 {
		t.Fatalf("List: got %+v, %v, want 1 event", page.Events, err)
	}
	return page.Events[0]
}

// create keeps a draft.
func (r *room) create(t *testing.T, values map[string]any) events.Event {
	t.Helper()
	e, err := r.Events.Create(t.Context(), "daily", events.Edit{Theme: "nightly", Type: "party", Values: values})
	if err != nil {
		t.Fatalf("r.Events.Create: %v", err)
	}
	return e
}

// somebodySaves changes an event as another editor would.
func (r *room) somebodySaves(t *testing.T, e events.Event, values map[string]any) {
	t.Helper()
	if _, err := r.Events.Save(t.Context(), "daily", e.ID, 0, events.Edit{Theme: e.Theme, Type: e.Type, Values: values}, nil); err != nil {
		t.Fatalf("r.Events.Save: %v", err)
	}
}

// An editor types a new event, which is saved meanwhile, is told what is missing, and
// publishes it.
func TestEventIsTyped(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "events?new=", browser.Look{})
	diff(t, "the type", "party", js[string](v, "$('#event-type').value"))
	diff(t, "the time zone", "Europe/Berlin", js[string](v, field("event_time_zone")+".value"))
	v.typed("name", "Lychgate day")
	v.state("Saved at ")
	var e events.Event
	wait.Until(t, func() string { // a part of the name may be saved while it is typed
		e = r.only(t)
		return cmp.Diff(map[string]any{"name": "Lychgate day", "event_time_zone": "Europe/Berlin", "outdoors": false}, e.Values)
	})
	diff(t, "the address", "?event="+e.ID, js[string](v, "location.search"))
	v.Until("text($('.event-head h2')) === 'Lychgate day' && button('Delete…')")
	diff(t, "the buttons of an event that is kept", []any{"Draft", "Duplicate… Delete…", "Lychgate day"}, js[[]any](v, "[text($('.event-head .badge')), text($('.more-actions')), "+field("name")+".value]"))
	v.state("Saved at ")
	v.typed("motto", "A motto that is too long for it")
	v.Until(`text($('[data-key=motto] .count')) === '31 of 20 characters' && $('[data-key=motto] .count').matches('.over')`)
	diff(t, "far from what is recommended", []any{"255 characters at most.", true}, js[[]any](v, `(e => [text(e), e.matches('.unseen')])($('[data-key=name] .count'))`))
	diff(t, "the number of characters", []string{"48 of 60 characters, as recommended", "70 of 255 characters, more than the 60 recommended"}, js[[]string](v, `(() => {
		const input = `+field("name")+`, name = input.value, show = value => {
			input.value = value;
			input.dispatchEvent(new Event('input'));
			return text($('[data-key=name] .count:not(.unseen)'));
		}, said = [show('x'.repeat(48)), show('x'.repeat(70))];
		show(name);
		return said;
	})()`))
	v.press("Publish")
	v.Until(`$('#problems')`)
	diff(t, "the summary", []string{"Date is required.", "Motto must have 20 characters at most; it has 31.", "Menu is required."}, js[[]string](v, "[...$('#problems').querySelectorAll('li')].map(text)"))
	diff(t, "the focus", true, js[bool](v, "document.activeElement.id === 'problems'"))
	diff(t, "what is wrong", []any{"true", "Menu is required."}, js[[]any](v, `[`+field("menu")+`.getAttribute('aria-invalid'), text(document.getElementById(`+field("menu")+`.getAttribute('aria-describedby').split(' ').at(-1)))]`))
	v.Do("$('#problems li:last-child a').click()")
	v.Until("document.activeElement === " + field("menu"))
	diff(t, "the address after problems", "?event="+e.ID, js[string](v, "location.search"))
	v.typed("menu", "Cake")
	diff(t, "what is wrong once it is typed", []any{nil, nil}, js[[]any](v, `[`+field("menu")+`.getAttribute('aria-invalid'), text($('[data-key=menu] .wrong-text'))]`))
	v.Do(field("motto") + ".value = ''; " + field("event_date") + ".value = '2026-08-01'; " + field("outdoors") + ".checked = true; " + field("outdoors") + ".dispatchEvent(new Event('input', {bubbles: true}))")
	v.press("Publish")
	v.says("The event is published.")
	e = r.only(t)
	diff(t, "published", []any{events.Published, map[string]any{
		"name": "Lychgate day", "event_time_zone": "Europe/Berlin", "outdoors": true, "menu": "Cake", "event_date": "2026-08-01", "slug": e.Values["slug"],
	}}, []any{e.Status, e.Values})
	diff(t, "nothing is offered", nil, js[any](v, "text($('desk-event > .notice'))"))
}

// The editor says on which day an event ends while somebody types, and takes a last day and a time
// zone in any case.
func TestEndIsTyped(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate night", "menu": "Cake"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	set := func(key, value string) {
		t.Helper()
		v.Do(field(key) + fmt.Sprintf(".value = %q; ", value) + field(key) + ".dispatchEvent(new Event('input', {bubbles: true}))")
	}
	ends := func(what, want string) {
		t.Helper()
		diff(t, what, want, js[string](v, "text($('.ends')) ?? ''"))
	}
	set("event_date", "2100-05-01")
	set("event_time_start", "22:00")
	set("event_time_end", "23:00")
	ends("on the same day", "")
	set("event_time_end", "02:00")
	ends("after midnight", "Ends on Sunday, 2 May 2100.")
	diff(t, "the end date is shown", false, js[bool](v, "$('[data-key=event_date_end] details').open"))
	v.Do("$('[data-key=event_date_end] summary').click()")
	set("event_date_end", "2100-05-04")
	ends("days later", "Ends on Tuesday, 4 May 2100.")
	v.Do(field("event_time_zone") + ".focus()")
	set("event_time_zone", "america/new_york")
	v.Do(field("event_time_zone") + ".blur()")
	diff(t, "the time zone", "America/New_York", js[string](v, field("event_time_zone")+".value"))
	v.press("Publish")
	v.says("The event is published.")
	diff(t, "kept", []any{"2100-05-04", "02:00", "America/New_York"}, func() []any {
		values := r.only(t).Values
		return []any{values["event_date_end"], values["event_time_end"], values["event_time_zone"]}
	}())
	ends("once it is published", "Ends on Tuesday, 4 May 2100.")
	diff(t, "the end date is shown then", true, js[bool](v, "$('[data-key=event_date_end] details').open"))

	// The list has it in the site's time zone, whatever that of the browser is.
	v.goTo("events")
	v.Until("$('table')")
	diff(t, "in the list", "2 May 2100, 04:00 – 4 May 2100, 08:00|1 May 2100, 22:00 – 4 May 2100, 02:00 America/New_York",
		js[string](v, "[...$('td:nth-child(2) div').querySelectorAll('bdi')].map(text).join('|')"))
}

// The address of the calendar is copied.
func TestCalendarIsCopied(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "event-settings", browser.Look{})
	v.Until("button('Copy the address of the calendar')")
	diff(t, "the address", "https://news.example.com/ghost/lychgate/events.ics", js[string](v, "text($('#calendar'))"))
	v.press("Copy the address of the calendar")
	v.Until("/Copied|Selected/.test(text($('desk-copy [role=status]')) ?? '')")
	diff(t, "what is selected", "https://news.example.com/ghost/lychgate/events.ics", js[string](v, "getSelection().toString()"))
}

// Changing the type reloads the form, and keeps what was typed, also in fields that the
// other type does not have.
func TestTypeIsChanged(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "events?new=meetup", browser.Look{})
	v.typed("name", "Lychgate day")
	v.Do("$('#event-type').value = 'party'; $('#event-type').dispatchEvent(new Event('change', {bubbles: true}))")
	v.Until(field("menu"))
	diff(t, "the name", "Lychgate day", js[string](v, field("name")+".value"))
	v.typed("menu", "Cake")
	v.Do("$('#event-type').value = 'meetup'; $('#event-type').dispatchEvent(new Event('change', {bubbles: true}))")
	v.Until("!" + field("menu"))
	v.press("Save draft")
	v.says("The event was saved.")
	e := r.only(t)
	diff(t, "kept", []any{"meetup", "Cake"}, []any{e.Type, e.Values["menu"]})
}

// The session ends while somebody types. What was typed stays in the tab, and is offered
// again when the page is opened anew.
func TestSessionEndsWhileTyping(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	v.Do("await fetch('/sign-out')")
	v.typed("location", "The parish hall")
	v.state("Not saved: your session has ended.")
	diff(t, "the way to sign in", "/ghost/", js[string](v, "$('.state a').pathname"))
	v.goTo("events?event=" + e.ID)
	v.Until("text($('h1')) === 'Sign in first'")
	v.Do("await fetch('/sign-in?as=Editor')")
	v.goTo("events?event=" + e.ID)
	v.Until("text($('desk-event > .notice'))?.startsWith('Something was typed here earlier')")
	diff(t, "before", "", js[string](v, field("location")+".value"))
	v.press("Restore it")
	v.state("Saved at ")
	diff(t, "kept", map[string]any{"name": "Lychgate day", "location": "The parish hall", "outdoors": false}, r.only(t).Values)
	v.goTo("events?event=" + e.ID)
	v.Until(field("location"))
	diff(t, "offered again", nil, js[any](v, "text($('desk-event > .notice'))"))

	// Of what somebody else has changed meanwhile, nothing is restored.
	v.Do("await fetch('/sign-out')")
	v.Do(field("location") + ".value = 'The church'; " + field("location") + ".dispatchEvent(new Event('input', {bubbles: true}))")
	v.state("Not saved: your session has ended.")
	v.Do("await fetch('/sign-in?as=Editor')")
	r.somebodySaves(t, e, map[string]any{"name": "Their day", "location": "The parish hall"})
	v.goTo("events?event=" + e.ID)
	v.Until("text($('desk-event > .notice'))?.includes('The event was changed since then.')")
	v.press("Restore it")
	v.state("Saved at ")
	diff(t, "both", map[string]any{"name": "Their day", "location": "The church", "outdoors": false}, r.only(t).Values)

	// The form itself says so too, and stays.
	v.Do("await fetch('/sign-out')")
	v.Do(field("menu") + ".value = 'Cake'")
	v.press("Save draft")
	v.says("Sign in to Ghost's admin on this site first.Sign in to Ghost (in another tab)")
	v.Do("await fetch('/sign-in?as=Editor')")
	v.press("Save draft")
	v.says("The event was saved.")
	diff(t, "the menu", "Cake", r.only(t).Values["menu"])
}

// Two editors have an event open. Neither overwrites what the other has saved without
// having been asked.
func TestTwoEditors(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	r.others = []string{"Jane", hostile}
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	v.Until(fmt.Sprintf("text($('.others')) === %q", "Also open at: Jane, "+hostile))
	r.somebodySaves(t, e, map[string]any{"name": "Their day"})
	v.typed("location", "The parish hall")
	v.state("Not saved: somebody else changed the event.")
	diff(t, "kept", "Their day", r.only(t).Values["name"])
	v.press("Keep mine")
	v.state("Saved at ")
	diff(t, "mine", []any{"Lychgate day", "The parish hall"}, []any{r.only(t).Values["name"], r.only(t).Values["location"]})

	r.somebodySaves(t, e, map[string]any{"name": "Their night"})
	v.Do(field("location") + ".value = 'The church'")
	v.press("Save draft")
	v.Until("text($('.notice'))?.startsWith('Somebody changed this event meanwhile.')")
	diff(t, "what differs", "NameTheir night Location(empty)", js[string](v, "text($('.notice dl'))"))
	diff(t, "what was typed", "The church", js[string](v, field("location")+".value"))
	diff(t, "still theirs", "Their night", r.only(t).Values["name"])
	v.press("Load theirs")
	v.Until("!$('.notice') && " + field("name") + "?.value === 'Their night'")
	diff(t, "nothing is offered", nil, js[any](v, "text($('desk-event > .notice'))"))
}

// party is the type of the events.
func (r *room) party(t *testing.T) *events.Type {
	t.Helper()
	party, ok := events.NewType(manifest.Parse([]byte(partyManifest)).Manifest.Events, "party")
	if !ok {
		t.Fatal("NewType: got false, want the type party")
	}
	return party
}

// What one editor has published meanwhile is not changed for readers by what another types.
func TestPublishedMeanwhile(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day", "event_date": "2031-05-01", "menu": "Cake", "seats": 5.0, "dress": "casual"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	v.Until(field("name") + "?.value === 'Lychgate day'")
	party := r.party(t)
	if problems := r.Events.Problems(e, party); len(problems) > 0 {
		t.Fatalf("Problems: got %v, want none", problems)
	}
	if _, err := r.Events.Publish(t.Context(), "daily", e.ID, 0, party); err != nil {
		t.Fatalf("r.Events.Publish: %v", err)
	}
	v.typed("location", "The parish hall")
	v.state("Not saved: somebody else changed the event.")
	v.press("Keep mine")
	v.state("The event was published meanwhile: saving it changes what readers see.")
	v.typed("location", "The church")
	v.state("Not updated yet")
	diff(t, "what readers see", nil, r.only(t).Values["location"])
}

// A label is typed and completed, and what is wrong with labels leads to where they are typed.
func TestLabelsAreTypedAndCompleted(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day", "rsvp_labels": []any{strings.Repeat("x", 200)}})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	chips := "[...document.querySelectorAll('.chips bdi')].map(text)"
	v.Keys("desk-labels input", "gue")
	v.Until("[...document.querySelectorAll('desk-labels option')].map(o => o.value).join() === 'Guests,Summer guests'")
	v.Do("$('desk-labels input').value = ''")
	v.Keys("desk-labels input", "Guests\r")
	diff(t, "labels", []string{strings.Repeat("x", 120) + "…", "Guests"}, js[[]string](v, chips))
	v.press("Publish")
	v.Until("$('#problems')")
	v.Do("[...$('#problems').querySelectorAll('a')].find(a => text(a).startsWith('Labels')).click()")
	v.Until("document.activeElement === $('desk-labels input')")
	v.Do("$('.chips button').click()")
	v.state("Saved at ")
	diff(t, "kept", []any{"Guests"}, r.only(t).Values["rsvp_labels"].([]any))
}

// With plain forms alone, an event is written, given another type, published, changed by two,
// and deleted.
func TestEventsWithoutJavaScript(t *testing.T) {
	r := open(t).withParties()
	r.noScript = true
	v := r.visit("Editor", "events", browser.Look{})
	v.press("New event")
	v.Until("document.readyState === 'complete' && button('Publish')")
	v.Do(field("name") + ".value = 'Lychgate day'; " + field("rsvp_labels") + ".value = 'Guests'; $('#event-type').value = 'meetup'")
	v.press("Change the type")
	v.Until("document.readyState === 'complete' && !" + field("menu"))
	diff(t, "script runs", false, js[bool](v, "!!customElements.get('desk-event')"))
	diff(t, "the name", "Lychgate day", js[string](v, field("name")+".value"))
	v.Do("$('#event-type').value = 'party'")
	v.press("Change the type")
	v.Until("document.readyState === 'complete' && " + field("menu"))
	v.press("Publish")
	v.Until("document.readyState === 'complete' && $('#problems')")
	e := r.only(t)
	diff(t, "saved", []any{"Lychgate day", []any{"Guests"}, events.Draft}, []any{e.Values["name"], e.Values["rsvp_labels"], e.Status})
	v.Do(field("menu") + ".value = 'Cake'; " + field("event_date") + ".value = '2100-06-01'")
	v.press("Publish")
	v.Until("document.readyState === 'complete' && said() === 'The event is published.'")
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	if _, err := r.Events.Save(t.Context(), "daily", e.ID, 0, events.Edit{Theme: "nightly", Type: "party", Values: map[string]any{"name": "Their day", "menu": "Tea", "event_date": "2100-06-01"}}, party); err != nil {
		t.Fatalf("r.Events.Save: %v", err)
	}
	v.press("Update")
	v.Until("document.readyState === 'complete' && button('Keep mine')")
	diff(t, "theirs", "Their day", r.only(t).Values["name"])
	v.press("Keep mine")
	v.Until("document.readyState === 'complete' && said() === 'The event was saved.'")
	diff(t, "mine", "Lychgate day", r.only(t).Values["name"])
	for _, step := range [][]string{
		{"Cancel event…", "Cancel the event", "The event is cancelled. Its page stays, and says so."},
		{"Duplicate…", "Duplicate the event", "This is the copy, a draft."},
		{"Delete…", "Delete the event", "The event was deleted. Its post, if it had one, stays in Ghost as a draft."},
	} {
		v.press(step[0])
		v.Until(fmt.Sprintf("document.readyState === 'complete' && button(%q)", step[1]))
		v.press(step[1])
		v.Until(fmt.Sprintf("document.readyState === 'complete' && said() === %q", step[2]))
	}
	diff(t, "what is left", events.Cancelled, r.only(t).Status)
	v.press("Event Settings")
	v.Until("document.readyState === 'complete' && button('Save settings')")
	v.Do("$('[name=registered]').value = 'See you there'")
	v.press("Save settings")
	v.Until("document.readyState === 'complete' && said() === 'The settings were saved.'")
	settings, err := r.Events.Settings(t.Context(), "daily")
	diff(t, "the settings", map[string]string{"registered": "See you there"}, settings.Messages)
	if err != nil {
		t.Errorf("r.Events.Settings: %v", err)
	}
}

// Words are looked for on all tabs while an editor types, and a type or a month is chosen without a
// button. What was typed stays, with the focus, and the address leads to what is shown.
func TestListOfEventsWhileTyping(t *testing.T) {
	r := open(t).withParties()
	r.create(t, map[string]any{"name": "Spring supper", "event_date": "2100-05-04"})
	r.create(t, map[string]any{"name": "Harvest supper", "event_date": "2100-09-19"})
	v := r.visit("Editor", "events?view=past", docsLook)
	v.Until("$('.lists')")
	names := func() []string {
		return js[[]string](v, "[...document.querySelectorAll('.events tbody th')].map(text)")
	}
	v.Do("$('#q').focus(); $('#q').value = 'SUPPER'; $('#q').dispatchEvent(new Event('input', {bubbles: true}))")
	v.Until("document.querySelectorAll('.events tbody tr').length === 2")
	diff(t, "words", []string{"Harvest supper", "Spring supper"}, names())
	diff(t, "the tabs", "Upcoming 0 Past 0 Drafts 2 All 2 Month", js[string](v, "text($('.tabs'))"))
	diff(t, "the focus", "q", js[string](v, "document.activeElement.id"))
	diff(t, "the type and the month", []string{"", ""}, js[[]string](v, "[$('#type').value, $('#month').value]"))
	v.Do("$('#month').value = '2100-05'; $('#month').dispatchEvent(new Event('input', {bubbles: true}))")
	v.Until("document.querySelectorAll('.events tbody tr').length === 1")
	diff(t, "a month", []string{"Spring supper"}, names())
	v.Do("window.old = true; location.reload()")
	v.Until("!window.old && $('.events tbody tr')")
	diff(t, "the same address again", []string{"Spring supper"}, names())
	diff(t, "what was typed", "SUPPER", js[string](v, "$('#q').value"))
}
