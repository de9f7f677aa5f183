package events

import (
	"maps"
	"strconv"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
)

// labels are what the server calls buttons where there is a waiting list.
func labels(more map[string]any) map[string]any {
	all := maps.Clone(english)
	maps.Copy(all, map[string]any{"register": "Join the waiting list", "sent": "Sent to *. Open its link to join."})
	maps.Copy(all, more)
	return all
}

// These are how an event that is full stands for readers, with a waiting list.
var (
	mayJoin = told(200, "registration_closed", "All places are taken.", map[string]any{
		"reason": "full", "places_left": 0, "labels": labels(nil), "waiting": map[string]any{"since": nil, "ahead": 2, "join_as": "can_register"},
	})
	guestMayJoin = told(200, "registration_closed", "All places are taken.", map[string]any{
		"reason": "full", "places_left": 0, "labels": labels(nil), "newsletters": true, "ask_name": "optional",
		"waiting": map[string]any{"since": nil, "ahead": 2, "join_as": "login_required_free"},
	})
	mayNotJoin = told(200, "registration_closed", "All places are taken.", map[string]any{
		"reason": "full", "places_left": 0, "labels": labels(nil), "waiting": map[string]any{"since": nil, "ahead": 2},
	})
	waits = told(200, "registration_closed", "You are on the waiting list. Ahead of you: 2\nIf a place becomes free, you will get an email.", map[string]any{
		"reason": "full", "places_left": 0, "labels": labels(map[string]any{"cancel": "Leave the waiting list", "ask": "Leave it?", "keep": "Stay on the waiting list"}),
		"waiting": map[string]any{"since": "2031-03-02T10:11:12Z", "ahead": 2},
	})
	isOffered = told(200, "can_register", "A place is kept for you until Saturday, March 8, 2031, 12:00 PM CET.", map[string]any{
		"places_left": 0, "labels": labels(map[string]any{"register": "Take the place", "cancel": "Leave the waiting list", "ask": "Leave it?", "keep": "Stay on the waiting list"}),
		"waiting": map[string]any{"since": "2031-03-02T10:11:12Z", "ahead": 0, "offered_until": "2031-03-08T11:00:00Z"},
	})
)

// inLanguage is a response with the labels and the message of the waiting list in another language.
func inLanguage(r response, language string) response {
	w, ok := r.body["waiting"].(map[string]any)
	if !ok {
		return r
	}
	words, in := messaging.WaitingWordsIn(language), maps.Clone(labels(nil))
	r.body = maps.Clone(r.body)
	in["register"], in["cancel"], in["ask"], in["keep"] = words.Join, words.Leave, words.Ask, words.Stay
	switch {
	case w["offered_until"] != nil:
		in["register"], r.body["message"] = words.Accept, words.Offered
	case w["since"] != nil:
		r.body["message"] = words.Waiting + " " + words.Ahead + "\n" + words.NoMail
	}
	r.body["labels"] = in
	return r
}

// Of an event that is full, readers see whether they can wait for a place, whether they do, and that one is kept for them.
func TestElementOfAWaitingList(t *testing.T) {
	const full = "All places are taken."
	for name, c := range map[string]struct {
		response response
		want     map[string]string
	}{
		"may join":           {mayJoin, map[string]string{"message": full, "button register": "Join the waiting list"}},
		"a guest may":        {guestMayJoin, map[string]string{"message": full, "label": "Email address", "button register": "Join the waiting list"}},
		"may not":            {mayNotJoin, map[string]string{"message": full}},
		"waits":              {waits, map[string]string{"message": "You are on the waiting list. Ahead of you: 2\nIf a place becomes free, you will get an email.", "button cancel": "Leave the waiting list"}},
		"a place is offered": {isOffered, map[string]string{"message": "A place is kept for you until Saturday, March 8, 2031, 12:00 PM CET.", "button register": "Take the place", "button cancel": "Leave the waiting list"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, c.response)
			s.page("en", party(map[string]any{"start": nil, "end": nil, "location": ""}), "", plainTheme)
			p := s.open(browser.Look{Width: 1280, Height: 900})
			p.Until("element.state.message")
			diff(t, "parts", c.want, browser.JS[map[string]string](p, "({...parts(), message: part('message').textContent})")) // the innerText of WebKit has no line breaks
		})
	}
}

// What a reader presses is about the waiting list, and so is what a theme calls. Who leaves is asked once more.
func TestElementJoinsAndLeaves(t *testing.T) {
	const id, waiting = "aaaaaaaaaaaaaaaaaaaaaaaaaa lang=en", ` {"waiting":true}`
	is := told(200, "registered", "See you.", nil)
	s := newStage(t, true, mayJoin, waits, isOffered, is)
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	says := func(r response) {
		t.Helper()
		message, _ := r.body["message"].(string)
		p.Until("!element.state.loading && element.state.message === " + strconv.Quote(message) + " && part('message').textContent === " + strconv.Quote(message))
	}
	press := func(part string) {
		t.Helper()
		p.Do("part('" + part + "').focus()")
		p.Must(p.Press("\r"))
	}
	says(mayJoin)
	press("register")
	says(waits)
	diff(t, "focus", "message", browser.JS[string](p, "element.shadowRoot.activeElement.part.value"))
	press("cancel")
	diff(t, "asks once more", []string{"Leave it?", "Stay on the waiting list", "Leave the waiting list", "button keep"},
		browser.JS[[]string](p, "[text(part('message')), text(part('keep')), text(part('cancel')), element.shadowRoot.activeElement.part.value]"))
	press("keep")
	says(waits)
	diff(t, "asked", []string{"GET " + id, "PUT " + id + waiting}, s.requests())
	p.Do("new BroadcastChannel('lychgate-registration').postMessage('aaaaaaaaaaaaaaaaaaaaaaaaaa')")
	says(isOffered)
	press("cancel")
	diff(t, "asks once more", "Leave it?", browser.JS[string](p, "text(part('message'))"))
	press("keep")
	press("register")
	says(is)
	diff(t, "asked", []string{"GET " + id, "PUT " + id + waiting}, s.requests())

	s.answer(waits, mayJoin)
	p.Must(p.Navigate(s.URL + "/page"))
	says(waits)
	press("cancel")
	press("cancel")
	says(mayJoin)
	diff(t, "asked", []string{"GET " + id, "DELETE " + id + waiting}, s.requests())
	s.answer(waits, mayJoin, is, mayJoin)
	diff(t, "done", []bool{true, true, true, true}, browser.JS[[]bool](p, `(async () => {
		const done = [await element.register(), await element.cancel(), await element.register()];
		return [...done, await element.cancel()];
	})()`))
	diff(t, "asked by a theme", []string{"PUT " + id + waiting, "DELETE " + id + waiting, "PUT " + id + waiting, "DELETE " + id}, s.requests())
}

// A guest joins by the link of a mail, in the browser that asked for it at once, and elsewhere by a press.
func TestElementOfAGuestWhoJoins(t *testing.T) {
	const id, link = "aaaaaaaaaaaaaaaaaaaaaaaaaa lang=en", "/page?lychgate-registration=TOKEN"
	sent := guestMayJoin
	sent.status = 202
	fewer := told(200, "registration_closed", "All places are taken.", maps.Clone(guestMayJoin.body))
	fewer.body["waiting"] = map[string]any{"since": nil, "ahead": 1, "join_as": "login_required_free"}
	s := newStage(t, true, guestMayJoin, sent, fewer)
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	p.Until("part('email')")
	p.Do("part('email').focus()")
	p.Must(p.Press("jane@example.com\r"))
	const isSent = "text(part('message')) === 'Sent to jane@example.com. Open its link to join.'"
	p.Until(isSent)
	p.Do("new BroadcastChannel('lychgate-registration').postMessage('aaaaaaaaaaaaaaaaaaaaaaaaaa')")
	p.Until("element.state.waiting.ahead === 1 && " + isSent)
	diff(t, "asked", []string{"GET " + id, "POST " + id + ` {"email":"jane@example.com","name":"","newsletters":true,"waiting":true}`, "GET " + id}, s.requests())
	s.answer(waits)
	p.Must(p.Navigate(s.URL + link))
	p.Until("part('cancel')")
	diff(t, "asked with a link", []string{"PUT " + id + `&link {"token":"TOKEN"}`}, s.requests())
	s.answer(mayJoin, waits)
	p.Must(p.Navigate(s.URL + link))
	p.Until("part('register')")
	p.Do("part('register').click()")
	p.Until("part('cancel')")
	diff(t, "asked elsewhere", []string{"GET " + id + "&link", "PUT " + id + `&link {"token":"TOKEN","pressed":true,"waiting":true}`}, s.requests())
}
