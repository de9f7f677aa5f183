package events

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

// A reader sees when the event is, where, and what they can do, in each of these.
func TestElementShowsWhenAndWhere(t *testing.T) {
	usual := browser.Look{Width: 1280, Height: 900}
	full := map[string]string{
		"reader-time": "Thursday, May 1, 2031, 1:00 – 3:00 PM\nEastern Daylight Time", "event-time": "Thursday, May 1, 2031, 7:00 – 9:00 PM · Central European Summer Time",
		"map": "The Pier", "calendar-title": "Add to calendar",
	}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(full)
		maps.Copy(all, more)
		return all
	}
	for name, c := range map[string]struct {
		event    map[string]any
		response response
		want     map[string]string
	}{
		"can register": {party(nil), told(200, "can_register", "Come in.", nil), with(map[string]string{"message": "Come in.", "button register": "Register"})},
		"few places": {
			party(nil), told(200, "can_register", "Come in.", map[string]any{"places_left": 3}),
			with(map[string]string{"message": "Come in.", "button register": "Register", "places": "Places left: 3"}),
		},
		"many places": {party(nil), told(200, "can_register", "Come in.", map[string]any{"places_left": 300}), with(map[string]string{"message": "Come in.", "button register": "Register"})},
		"registered": {
			party(nil), told(200, "registered", "See you.", map[string]any{"platform_url": "https://example.com/room"}),
			with(map[string]string{"message": "See you.", "button register": "Join online", "button cancel": "Cancel registration"}),
		},
		"moved": {
			party(nil), told(200, "registered", "See you.", map[string]any{"moved_from": map[string]any{"start": "2031-04-30T19:00:00+02:00", "end": "", "all_day": false, "event_time_end": "", "location": "The Hall"}}),
			with(map[string]string{"message": "See you.", "moved": "Moved from: Wednesday, April 30, 2031, 1:00 PM · The Hall", "button cancel": "Cancel registration"}),
		},
		"moved to another place": {
			party(nil), told(200, "registered", "See you.", map[string]any{"moved_from": map[string]any{"start": party(nil)["start"], "end": party(nil)["end"], "all_day": false, "event_time_end": party(nil)["event_time_end"], "location": "The Hall"}}),
			with(map[string]string{"message": "See you.", "moved": "Moved from: The Hall", "button cancel": "Cancel registration"}),
		},
		"a guest":          {party(nil), told(200, "login_required_free", "For members.", nil), with(map[string]string{"message": "For members.", "label": "Email address", "button register": "Register"})},
		"a guest who pays": {party(nil), told(200, "login_required_paid", "For payers.", nil), with(map[string]string{"message": "For payers.", "label": "Email address", "button register": "Sign in"})},
		"upgrade":          {party(nil), told(200, "upgrade_required", "Upgrade.", nil), with(map[string]string{"message": "Upgrade.", "button plans": "See membership options"})},
		"full":             {party(nil), told(200, "registration_closed", "Full.", map[string]any{"reason": "full", "places_left": 0}), with(map[string]string{"message": "Full."})},
		"over":             {party(nil), told(200, "event_passed", "Over.", nil), with(map[string]string{"message": "Over."})},
		"cancelled": {party(map[string]any{"status": "cancelled"}), told(200, "registration_closed", "It is cancelled.", map[string]any{"reason": "cancelled"}), map[string]string{
			"cancelled": "This event is cancelled.", "reader-time": full["reader-time"], "event-time": full["event-time"], "map": "The Pier",
		}},
		"cancelled, and they were registered": {party(map[string]any{"status": "cancelled", "platform_url": "https://example.com/room"}), told(200, "registration_closed", "You were registered.", map[string]any{"reason": "cancelled", "registered_at": "2031-03-02T10:11:12Z"}), map[string]string{
			"cancelled": "This event is cancelled.", "reader-time": full["reader-time"], "event-time": full["event-time"], "map": "The Pier", "message": "You were registered.",
		}},
		"none takes part":        {party(map[string]any{"access": ""}), told(500, "", "", nil), full},
		"registration off since": {party(nil), response{404, map[string]any{"message": "x"}, nil}, full},
		"a link for a place": {
			party(map[string]any{"location": "https://example.com/hall", "platform_url": "https://example.com/room"}), told(200, "can_register", "Come in.", nil),
			with(map[string]string{"map": "https://example.com/hall", "online-link": "Join online", "message": "Come in.", "button register": "Register"}),
		},
		"a link that is none": {
			party(map[string]any{"location": "javascript:hostile=1", "platform_url": "javascript:hostile=1"}), told(200, "registered", "<img src=x onerror=hostile=1>", map[string]any{"platform_url": "javascript:hostile=1"}),
			with(map[string]string{"map": "javascript:hostile=1", "message": "<img src=x onerror=hostile=1>", "button cancel": "Cancel registration"}),
		},
		"a whole day": {party(map[string]any{"start": "2031-05-01", "end": "2031-05-02", "all_day": true, "event_time_start": ""}), told(200, "event_passed", "Over.", nil), map[string]string{
			"reader-time": "Thursday, May 1, 2031", "map": "The Pier", "calendar-title": "Add to calendar", "message": "Over.",
		}},
		"no date": {party(map[string]any{"start": nil, "end": nil, "event_date": ""}), told(200, "can_register", "Come in.", nil), map[string]string{
			"map": "The Pier", "message": "Come in.", "button register": "Register",
		}},
		"in the reader's zone": {party(map[string]any{"event_time_zone": "America/New_York", "start": "2031-05-01T13:00:00-04:00", "end": nil}), told(200, "event_passed", "Over.", nil), map[string]string{
			"reader-time": "Thursday, May 1, 2031, 1:00 PM", "map": "The Pier", "calendar-title": "Add to calendar", "message": "Over.",
		}},
		"a zone that nobody knows": {party(map[string]any{"event_time_zone": "Mars/Base"}), told(200, "event_passed", "Over.", nil), map[string]string{
			"reader-time": full["reader-time"], "map": "The Pier", "calendar-title": "Add to calendar", "message": "Over.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, c.response)
			s.page("en", c.event, "body { font: 16px sans-serif }", plainTheme)
			p := s.open(usual)
			p.Until(fmt.Sprintf("element.state.state === '' || !element.state.event.access || element.state.message === %q", c.response.body["message"]))
			diff(t, "parts", c.want, browser.JS[map[string]string](p, "parts()"))
			diff(t, "hostile", any(nil), browser.JS[any](p, "window.hostile ?? null"))
			diff(t, "links of scripts", 0, browser.JS[int](p, "[...element.shadowRoot.querySelectorAll('a')].filter(a => a.protocol === 'javascript:').length"))
			problems, err := p.Problems()
			problems = slices.DeleteFunc(problems, func(text string) bool { return strings.Contains(text, "404") || strings.Contains(text, "favicon") })
			if err != nil || len(problems) > 0 {
				t.Errorf("the console has %q, %v; want nothing", problems, err)
			}
		})
	}
}

// Slow phones load the script beside everything else, in their language. Caddy compresses it with zstd for most browsers.
func TestElementIsSmall(t *testing.T) {
	compressor, err := zstd.NewWriter(nil)
	must(t, compressor, err)
	sizes := map[string]int{}
	for language := range strings.FieldsSeq("ar cs da de en es fi fr he it ja ko nb nl no pl pt ru sv tr uk zh") {
		options := web.EventOptions{Events: "/ghost/lychgate/events", Registration: true, Fields: true, Button: "/ghost/lychgate/inbox-button.js", Language: language}
		sizes[language] = len(compressor.EncodeAll(web.EventScript(options), nil))
		if sizes[language] >= 8192 {
			t.Errorf("%s: %d bytes, want less than 8,192", language, sizes[language])
		}
	}
	t.Logf("bytes: %v", sizes)
}

// Where the reader is shown in any language and on any device, nothing is cut off, and nobody is
// shut out.
func TestElementLooks(t *testing.T) {
	dark := map[string]string{"prefers-color-scheme": "dark", "prefers-reduced-motion": "reduce"}
	for name, c := range map[string]struct {
		lang, css string
		look      browser.Look
	}{
		"wide":   {"en", "body { font: 17px Georgia, serif; max-width: 720px; margin: 2em auto }", browser.Look{Width: 1280, Height: 900}},
		"narrow": {"de", "body { font: 16px sans-serif; margin: 12px }", browser.Look{Width: 320, Height: 640}},
		"dark":   {"fr", "body { font: 16px sans-serif; background: #15171a; color: #fff; margin: 12px; --ghost-accent-color: #ffd400 }", browser.Look{Width: 390, Height: 844, Media: dark}},
		"rtl":    {"ar", "body { font: 16px sans-serif; margin: 12px }", browser.Look{Width: 320, Height: 640}},
		"long":   {"ru", "body { font: 16px sans-serif; margin: 12px; --ghost-accent-color: #00a }", browser.Look{Width: 320, Height: 640}},
	} {
		responses := map[string]response{"may_join": mayJoin, "guest_may_join": guestMayJoin, "waits": waits, "is_offered": isOffered}
		for _, state := range []string{"can_register", "login_required_free", "registered", "upgrade_required"} {
			responses[state] = told(200, state, "This event is for members. Sign in or sign up to register.", map[string]any{"places_left": 3, "newsletters": true, "platform_url": "https://example.com/room"})
		}
		for state, said := range responses {
			t.Run(name+", "+state, func(t *testing.T) {
				s := newStage(t, true, inLanguage(said, c.lang))
				long := strings.Repeat("Donaudampfschifffahrt", 4)
				s.page(c.lang, party(map[string]any{"location": "A-place-with-a-very-long-name-that-nobody-breaks, " + long, "labels": map[string]any{"hall": long}, "fields": map[string]any{"hall": long}}), c.css, plainTheme)
				p := s.open(c.look)
				p.Until("element.state.message")
				p.Do("part('calendar').open = true; part('email')?.focus()")
				diff(t, "overflow", false, browser.JS[bool](p, "document.documentElement.scrollWidth > innerWidth"))
				diff(t, "beyond the block", []string{}, browser.JS[[]string](p, `[...element.shadowRoot.querySelectorAll('[part=event] *')].filter(e => {
					const {left, right, width} = e.getBoundingClientRect(), block = part('event').getBoundingClientRect();
					return width && (left < block.left || right > block.right);
				}).map(e => e.outerHTML)`))
				diff(t, "small targets", []string{}, browser.JS[[]string](p, `[...element.shadowRoot.querySelectorAll('button, input:not([type=checkbox]), [part=news], [part~=button]')].filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML)`))
				p.Do("await import('/axe.js')")
				diff(t, "barriers", []string{}, browser.JS[[]string](p, "axe.run(document, {rules: {region: {enabled: false}}}).then(found => found.violations.flatMap(v => v.nodes.map(node => v.id + ': ' + node.html)))"))
				p.Picture("element-" + name + "-" + state)
			})
		}
	}
}

// What a reader presses is asked for once, and its response shown. While the edge cannot answer,
// they are told so, and it is asked again.
func TestElementFlow(t *testing.T) {
	away := response{503, map[string]any{"message": "Ghost could not be asked who you are."}, http.Header{"Retry-After": {"60"}}}
	s := newStage(t, true, away, told(200, "can_register", "Come in.", nil), told(200, "registered", "See you.", nil), told(200, "can_register", "Come in.", nil),
		told(200, "login_required_free", "For members.", nil), response{422, map[string]any{"message": "Nobody.", "reason": "unknown_email"}, nil}, told(202, "login_required_free", "For members.", nil))
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	p.Until("text(part('message')) === 'No response yet. Trying again…'")
	p.Do("dispatchEvent(new Event('online'))") // which does not wait for the minute
	p.Until("text(part('message')) === 'Come in.'")
	id := "aaaaaaaaaaaaaaaaaaaaaaaaaa lang=en"
	diff(t, "asked", []string{"GET " + id, "GET " + id}, s.requests())
	p.Do("part('register').click(); part('register').click()")
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "focus", "message", browser.JS[string](p, "element.shadowRoot.activeElement.part.value"))
	for _, pressed := range []string{"cancel", "keep", "cancel"} { // which asks once more
		p.Do("part('" + pressed + "').focus()")
		p.Must(p.Press("\r"))
	}
	p.Until("text(part('message')) === 'Cancel your registration?'")
	diff(t, "focus", "button keep", browser.JS[string](p, "element.shadowRoot.activeElement.part.value"))
	p.Do("part('cancel').click()")
	p.Until("text(part('message')) === 'Come in.'")
	p.Do("part('register').click()")
	p.Until("text(part('message')) === 'For members.'")
	diff(t, "asked", []string{"PUT " + id, "DELETE " + id, "PUT " + id}, s.requests())
	p.Do("part('email').focus()")
	p.Must(p.Press("jane@example.com\r"))
	p.Until("text(part('message')) === 'Nobody.'")
	diff(t, "typed", "jane@example.com", browser.JS[string](p, "part('email').value"))
	p.Do("part('email').focus()")
	p.Must(p.Press("\r"))
	p.Until("text(part('message')) === 'Sent to jane@example.com.'")
	diff(t, "asked", []string{"POST " + id + ` {"email":"jane@example.com"}`, "POST " + id + ` {"email":"jane@example.com"}`}, s.requests())
	diff(t, "while the mail is on its way", map[string]string{"message": "Sent to jane@example.com.", "button another": "Use another address"},
		browser.JS[map[string]string](p, "Object.fromEntries(Object.entries(parts()).filter(([part]) => /message|button|label|email/.test(part)))"))
	p.Do("part('another').focus()")
	p.Must(p.Press("\r"))
	diff(t, "another address", []string{"email", "jane@example.com", "For members."}, browser.JS[[]string](p, "[element.shadowRoot.activeElement.part.value, part('email').value, text(part('message'))]"))
	p.Must(p.Press("\r"))
	p.Until("text(part('message')) === 'Sent to jane@example.com.'")
	s.requests()

	// The link of the mail is opened in another tab.
	p.Do("new BroadcastChannel('lychgate-registration').postMessage('bbbbbbbbbbbbbbbbbbbbbbbbbb')") // of another event
	s.mu.Lock()
	s.responses = []response{told(200, "registered", "See you.", nil)}
	s.mu.Unlock()
	p.Do("new BroadcastChannel('lychgate-registration').postMessage('aaaaaaaaaaaaaaaaaaaaaaaaaa')")
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "asked", []string{"GET " + id}, s.requests())

	// A guest who comes back by the mail's link is registered, and the page's address has it no more.
	s.responses = []response{told(200, "registered", "See you.", nil)}
	p.Must(p.Navigate(s.URL + "/page?a=b&lychgate-registration=TOKEN&action=signup#c"))
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "asked", []string{"PUT " + id + `&link {"token":"TOKEN"}`}, s.requests())
	diff(t, "address", "?a=b&action=signup#c", browser.JS[string](p, "location.search + location.hash"))
}

// Programs that check mails open their links and run the page. None registers anybody: where the browser has not asked
// for the link, the last step is a press. A link that does not sign in any more says so.
func TestElementOfALinkOpenedElsewhere(t *testing.T) {
	const id, link = "aaaaaaaaaaaaaaaaaaaaaaaaaa lang=en", "/page?a=b&lychgate-registration=TOKEN#c"
	can, is, out := told(200, "can_register", "Press once more.", nil), told(200, "registered", "See you.", nil), told(200, "login_required_free", "Ask for a new link.", map[string]any{"newsletters": true})
	s := newStage(t, true, can, is)
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	opens := func(message string, asked string, responses ...response) {
		t.Helper()
		s.requests()
		s.responses = responses
		p.Must(p.Navigate(s.URL + link))
		p.Until("text(part('message')) === '" + message + "'")
		diff(t, message+": asked", []string{asked}, s.requests())
		diff(t, message+": the address", "?a=b#c", browser.JS[string](p, "location.search + location.hash"))
	}
	opens("Press once more.", "GET "+id+"&link", can, is)
	p.Do("part('register').click()")
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "asked", []string{"PUT " + id + `&link {"token":"TOKEN","pressed":true}`}, s.requests())
	opens("See you.", "GET "+id+"&link", is)

	opens("Ask for a new link.", "GET "+id+"&link", out, told(202, "login_required_free", "For members.", map[string]any{"newsletters": true}), can, is)
	diff(t, "before the form is touched", false, browser.JS[bool](p, "seen(part('news'))"))
	p.Do("part('form').querySelector('button').focus()")
	diff(t, "when the button alone is", false, browser.JS[bool](p, "seen(part('news'))"))
	p.Do("part('email').focus(); part('news').click(); part('email').value = 'jane@example.com'; part('email').form.requestSubmit()")
	p.Until("text(part('message')) === 'Sent to jane@example.com.'")
	diff(t, "asked", []string{"POST " + id + `&link {"email":"jane@example.com","newsletters":false}`}, s.requests())
	p.Do("part('another').click()")
	diff(t, "the choice stays", []bool{true, false}, browser.JS[[]bool](p, "[seen(part('news')), part('news').firstChild.checked]"))

	// It was asked for in this browser now, once.
	opens("Press once more.", "PUT "+id+`&link {"token":"TOKEN"}`, can) // somebody else is signed in
	opens("Press once more.", "GET "+id+"&link", can)
	p.Do("localStorage['lychgate-registrationaaaaaaaaaaaaaaaaaaaaaaaaaa'] = Date.now() - 864e5")
	opens("Press once more.", "GET "+id+"&link", can) // a day later

	// Ghost sends a mail before it responds, so one can arrive whose response is late or lost.
	opens("Ask for a new link.", "GET "+id+"&link", out, response{503, map[string]any{"message": "Ghost did not respond."}, nil})
	p.Do("part('email').value = 'jane@example.com'; part('email').form.requestSubmit()")
	p.Until("text(part('message')) === 'No response yet. Trying again…'")
	opens("See you.", "PUT "+id+`&link {"token":"TOKEN"}`, is)
}

// A page has the script twice where an editor has pasted two cards. Both elements are in the language of the page.
func TestScriptTwiceInAnotherLanguage(t *testing.T) {
	s := newStage(t, true, told(200, "event_passed", "Over.", nil))
	s.page("de", party(nil), "", plainTheme+`<script src="/ghost/lychgate/event.js" async></script><script src="/ghost/lychgate/event.js?fr" async></script>`)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	p.Until("text(part('calendar-title')) === 'In den Kalender'")
}

// A reader whose press has no response yet goes on with other things meanwhile, and no press is lost.
func TestElementRetries(t *testing.T) {
	away := func(seconds string) response {
		return response{503, map[string]any{"message": "Away."}, http.Header{"Retry-After": {seconds}}}
	}
	can, is := told(200, "can_register", "Come in.", nil), told(200, "registered", "See you.", nil)
	const id = "aaaaaaaaaaaaaaaaaaaaaaaaaa lang=en"
	s := newStage(t, true, can, away("60"), is)
	s.page("en", party(nil), "", plainTheme+`<input id="comment">`)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	press := func() {
		p.Until("text(part('message')) === 'Come in.'")
		p.Do("part('register').click()")
	}
	again := func(page string, responses ...response) {
		s.requests()
		s.responses = responses
		p.Must(p.Navigate(s.URL + page))
	}
	waits := "text(part('message')) === 'No response yet. Trying again…'"

	press()
	p.Until(waits)
	p.Do("document.getElementById('comment').focus(); dispatchEvent(new Event('online'))")
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "focus after a retry", "comment", browser.JS[string](p, "document.activeElement.id"))

	again("/page", can, away("60"), is)
	press()
	p.Until(waits)
	p.Do("dispatchEvent(new Event('online'))")
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "asked with a network", []string{"GET " + id, "PUT " + id, "PUT " + id}, s.requests())

	p.Do("localStorage['lychgate-registration" + strings.TrimSuffix(id, " lang=en") + "'] = Date.now()")
	again("/page?lychgate-registration=TOKEN", response{429, map[string]any{"message": "Too many."}, http.Header{"Retry-After": {"1"}}}, is)
	p.Until("text(part('message')) === 'See you.'")
	diff(t, "asked with a link", []string{"PUT " + id + `&link {"token":"TOKEN"}`, "PUT " + id + `&link {"token":"TOKEN"}`}, s.requests())
	diff(t, "address", "", browser.JS[string](p, "location.search"))

	again("/page?lychgate-registration="+strings.Repeat("x", 5000), can)
	p.Until("text(part('message')) === 'Come in.'")
	diff(t, "asked with a link that is none", []string{"GET " + id}, s.requests())

	again("/page", can, away("1"))
	p.Until("text(part('message')) === 'Come in.'")
	diff(t, "done", false, browser.JS[bool](p, `(async () => {
		const done = element.register();
		element.remove();
		const is = await done;
		await new Promise(end => setTimeout(end, 1500)); // longer than until a retry
		return is;
	})()`))
	diff(t, "asked by an element that is removed", []string{"GET " + id, "PUT " + id}, s.requests())

	guest := told(200, "login_required_free", "For members.", nil)
	again("/page", guest, told(202, "login_required_free", "For members.", nil), response{404, map[string]any{"message": "x"}, nil})
	p.Until("text(part('message')) === 'For members.'")
	s.mu.Lock()
	s.responses = []response{told(202, "login_required_free", "For members.", nil), {404, map[string]any{"message": "x"}, nil}}
	s.mu.Unlock()
	diff(t, "a mail, and none since the event is gone", []bool{true, false}, browser.JS[[]bool](p, "element.sendLink('jane@example.com').then(async is => [is, await element.sendLink('jane@example.com')])"))
	diff(t, "state", "", browser.JS[string](p, "element.state.state + element.state.message"))
}

// A page may write its language in a way that no standard knows, and a browser may not know where
// it is.
func TestElementInOddPages(t *testing.T) {
	soon := party(map[string]any{"start": time.Now().Add(3*time.Hour - time.Second).UTC().Format(time.RFC3339), "end": nil})
	for lang, want := range map[string]string{
		"": "in 3 hours", "en-US.UTF-8": "in 3 hours", "de_DE": "in 3 Stunden", "de_": "in 3 Stunden",
		"{{@site.locale}}": "in 3 hours", "en-x": "in 3 hours", "no": "om 3 timer",
	} {
		s := newStage(t, true, told(200, "can_register", "Come in.", nil))
		s.page(lang, soon, "", plainTheme)
		p := s.open(browser.Look{Width: 800, Height: 600})
		p.Until("text(part('message')) === 'Come in.'")
		diff(t, lang+": countdown", want, browser.JS[string](p, "parts().countdown ?? ''"))
		diff(t, lang+": has a date", true, browser.JS[bool](p, "!!parts()['reader-time']"))
	}
	s := newStage(t, false, response{500, nil, nil})
	s.page("en", party(nil), "", `<script src="/nowhere.js"></script>`+plainTheme)
	p := s.open(browser.Look{Width: 800, Height: 600})
	p.Until("element?.shadowRoot.querySelector('[part=when]')")
	diff(t, "nowhere", "Thursday, May 1, 2031, 7:00 – 9:00 PM · Central European Summer Time", browser.JS[string](p, "parts()['event-time'] ?? ''"))
}

// The last day counts down, and the calendars have the event.
func TestElementTimes(t *testing.T) {
	for name, c := range map[string]struct {
		start  time.Duration
		status string
		want   string
	}{
		"in a day and more": {25 * time.Hour, "published", ""},
		"in hours":          {3*time.Hour - time.Second, "published", "in 3 hours"},
		"in minutes":        {20*time.Minute - time.Second, "published", "in 20 minutes"},
		"cancelled":         {20 * time.Minute, "cancelled", ""},
		"begun":             {-time.Minute, "published", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, false, response{500, nil, nil})
			s.page("en", party(map[string]any{"start": time.Now().Add(c.start).UTC().Format(time.RFC3339), "end": nil, "status": c.status}), "", plainTheme)
			p := s.open(browser.Look{Width: 800, Height: 600})
			p.Until("element?.shadowRoot.querySelector('[part=when]')")
			diff(t, "countdown", c.want, browser.JS[string](p, "parts().countdown ?? ''"))
			diff(t, "asked", []string(nil), s.requests())
		})
	}
	s := newStage(t, false, response{500, nil, nil})
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 800, Height: 600})
	p.Until("element?.state.calendars")
	diff(t, "calendars", map[string]string{
		"ics":     "/ghost/lychgate/events/aaaaaaaaaaaaaaaaaaaaaaaaaa.ics",
		"google":  "https://calendar.google.com/calendar/render?action=TEMPLATE&text=Party+%26+%3Cb%3Emore%3C%2Fb%3E&dates=20310501T170000Z%2F20310501T190000Z&location=The+Pier&details=An+evening",
		"outlook": "https://outlook.live.com/calendar/0/action/compose?rru=addevent&subject=Party+%26+%3Cb%3Emore%3C%2Fb%3E&startdt=2031-05-01T17%3A00%3A00Z&enddt=2031-05-01T19%3A00%3A00Z&allday=false&location=The+Pier&body=An+evening",
		"yahoo":   "https://calendar.yahoo.com/?v=60&title=Party+%26+%3Cb%3Emore%3C%2Fb%3E&st=20310501T170000Z&et=20310501T190000Z&in_loc=The+Pier&desc=An+evening",
	}, browser.JS[map[string]string](p, "element.state.calendars"))
	s.page("en", party(map[string]any{"start": "2031-05-01", "end": "2031-05-02", "all_day": true}), "", plainTheme)
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("element?.state.calendars")
	diff(t, "a day", "https://calendar.google.com/calendar/render?action=TEMPLATE&text=Party+%26+%3Cb%3Emore%3C%2Fb%3E&dates=20310501%2F20310502&location=The+Pier&details=An+evening",
		browser.JS[string](p, "element.state.calendars.google"))
}

// A reader sees on which day an event ends, in their zone and in the event's, also in the night in
// which the clocks change. Calendars get an hour where nothing says when it ends.
func TestElementEnds(t *testing.T) {
	type ends struct{ Here, There, Dates string }
	s := newStage(t, false, response{500, nil, nil})
	for name, c := range map[string]struct {
		event map[string]any
		want  ends
	}{
		"past midnight, as the clocks go back": {
			map[string]any{"start": "2031-10-25T22:00:00+02:00", "end": "2031-10-26T04:00:00+01:00", "event_time_end": "04:00"},
			ends{
				"Saturday, October 25, 2031, 4:00 – 11:00 PM", "Saturday, October 25, 2031, 10:00 PM – Sunday, October 26, 2031, 4:00 AM",
				"20311025T200000Z/20311026T030000Z",
			},
		},
		"days later": {
			map[string]any{"start": "2031-05-01T19:00:00+02:00", "end": "2031-05-03T12:00:00+02:00", "event_time_end": "12:00", "event_date_end": "2031-05-03"},
			ends{
				"Thursday, May 1, 2031, 1:00 PM – Saturday, May 3, 2031, 6:00 AM", "Thursday, May 1, 2031, 7:00 PM – Saturday, May 3, 2031, 12:00 PM",
				"20310501T170000Z/20310503T100000Z",
			},
		},
		"with its last day": {
			map[string]any{"start": "2031-05-01T19:00:00+02:00", "end": "2031-05-04T00:00:00+02:00", "event_time_end": "", "event_date_end": "2031-05-03"},
			ends{
				"Thursday, May 1, 2031, 1:00 PM – Saturday, May 3, 2031, 5:59 PM", "Thursday, May 1, 2031, 7:00 PM – Saturday, May 3, 2031, 11:59 PM",
				"20310501T170000Z/20310503T215900Z",
			},
		},
		"whole days": {
			map[string]any{"start": "2031-05-01", "end": "2031-05-04", "all_day": true, "event_time_start": "", "event_time_end": "", "event_date_end": "2031-05-03"},
			ends{"Thursday, May 1 – Saturday, May 3, 2031", "", "20310501/20310504"},
		},
		"no end": {
			map[string]any{"end": nil, "event_time_end": ""},
			ends{"Thursday, May 1, 2031, 1:00 PM", "Thursday, May 1, 2031, 7:00 PM", "20310501T170000Z/20310501T180000Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.page("en", party(c.event), "", plainTheme)
			p := s.open(browser.Look{Width: 800, Height: 600})
			p.Until("element?.shadowRoot.querySelector('[part=when]')")
			diff(t, "when", c.want, browser.JS[ends](p, `({
				Here: (parts()['reader-time'] ?? '').split('\n')[0], There: (parts()['event-time'] ?? '').split(' · ')[0],
				Dates: new URL(element.state.calendars.google).searchParams.get('dates'),
			})`))
		})
	}
}

// A reader who is registered has calendar links with the online link, and the file of their own.
func TestElementCalendarsOfRegistrants(t *testing.T) {
	const link, own = "https://meet.example.com/room", "/ghost/lychgate/events/aaaaaaaaaaaaaaaaaaaaaaaaaa/registration.ics"
	s := newStage(t, true, told(200, "registered", "You are in.", map[string]any{"platform_url": link, "calendars": map[string]string{"ics": own}}))
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 800, Height: 600})
	p.Until("element?.state.state === 'registered'")
	diff(t, "the file", own, browser.JS[string](p, "element.state.calendars.ics"))
	diff(t, "place and text for Google", "The Pier|An evening\n\n"+link,
		browser.JS[string](p, "['location', 'details'].map(name => new URL(element.state.calendars.google).searchParams.get(name)).join('|')"))
	diff(t, "links in the page", []string{own, "calendar.google.com", "outlook.live.com", "calendar.yahoo.com"},
		browser.JS[[]string](p, "[...element.shadowRoot.querySelectorAll('[part=calendar-link]')].map(a => a.origin === location.origin ? a.pathname : a.host)"))
}

// A theme has its own place for the element, styles it, fills its slots, or draws it itself.
func TestElementInThemes(t *testing.T) {
	s := newStage(t, true, told(200, "can_register", "Come in.", nil))
	s.page("en", party(nil), "lychgate-event::part(button) { background: rgb(1, 2, 3) }", `<h1>Party</h1><section class="gh-content"><p>Text</p></section><aside><lychgate-event><b slot="before">Before</b><i slot="place">My place</i></lychgate-event></aside>`)
	p := s.open(browser.Look{Width: 800, Height: 600})
	p.Until("element.state.message")
	diff(t, "elements", []string{"ASIDE"}, browser.JS[[]string](p, "[...document.querySelectorAll('lychgate-event:not(script)')].map(e => e.parentElement.tagName)"))
	diff(t, "style", "rgb(1, 2, 3)", browser.JS[string](p, "getComputedStyle(part('register')).backgroundColor"))
	diff(t, "slots", []bool{true, true, false}, browser.JS[[]bool](p, "[seen(element.querySelector('b')), seen(element.querySelector('i')), seen(part('place'))]"))

	s.page("en", party(nil), "", `<h1>Party</h1><lychgate-event display="none"></lychgate-event><section class="gh-content"><p>Text</p></section>`)
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("element.state.message")
	diff(t, "an own drawing", []any{false, "can_register", "Party & <b>more</b>"}, browser.JS[[]any](p, "[seen(element), element.state.state, element.state.event.name]"))
	s.responses = []response{told(200, "registered", "See you.", nil)}
	diff(t, "after a change", "registered", browser.JS[string](p, `new Promise(done => {
		document.addEventListener('statechange', () => element.state.loading || done(element.state.state));
		element.register();
	})`))
	s.responses = []response{told(200, "can_register", "Come in.", nil)}

	s.page("en", party(nil), "", `<main><h1>Party</h1><div>A theme without known classes</div></main>`)
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("element?.state.message")
	diff(t, "after the title", "H1", browser.JS[string](p, "element.previousElementSibling.tagName"))
}

// The card in the text of a post is where the element is drawn, instead of what the card says. Where the theme has a place
// of its own, the card is not seen.
func TestElementInTheCardOfAText(t *testing.T) {
	const card = `<section class="gh-content"><p>Text</p><lychgate-event data-sum="0123456789abcdef"><p>2031-05-01</p></lychgate-event></section>`
	s := newStage(t, true, told(200, "can_register", "Come in.", nil))
	elements := "[...document.querySelectorAll('lychgate-event:not(script)')].map(e => [e.parentElement.tagName, String(seen(e)), text(e.shadowRoot.querySelector('[part=message]')) ?? '', String(!!e.querySelector('p') && seen(e.querySelector('p')))])"
	for name, c := range map[string]struct {
		body string
		want [][]string
	}{
		"a theme without a place":  {"<h1>Party</h1>" + card, [][]string{{"SECTION", "true", "Come in.", "false"}}},
		"with one before the text": {"<aside><lychgate-event></lychgate-event></aside>" + card, [][]string{{"ASIDE", "true", "Come in.", "false"}, {"SECTION", "false", "", "false"}}},
		"with one behind the text": {card + "<aside><lychgate-event></lychgate-event></aside>", [][]string{{"SECTION", "false", "", "false"}, {"ASIDE", "true", "Come in.", "false"}}},
		"that draws it by itself":  {`<aside><lychgate-event display="none"></lychgate-event></aside>` + card, [][]string{{"ASIDE", "false", "", "false"}, {"SECTION", "false", "", "false"}}},
	} {
		s.page("en", party(nil), "", c.body)
		p := s.open(browser.Look{Width: 800, Height: 600})
		p.Until("[...document.querySelectorAll('lychgate-event:not(script)')].some(e => e.state.message)")
		diff(t, name, c.want, browser.JS[[][]string](p, elements))
	}
}

// A card that an editor has copied into the post of another event is drawn as its own event, also on a page of none. It keeps its text
// if that event is gone.
func TestElementInACopiedCard(t *testing.T) {
	const other, gone = "bbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccccccccccccccccccccc"
	card := func(id string) string {
		return `<lychgate-event data-sum="0123456789abcdef" data-id="` + id + `"><p>Card</p></lychgate-event>`
	}
	s := newStage(t, true, told(200, "can_register", "Come in.", nil))
	s.events = map[string]map[string]any{other: party(map[string]any{"id": other, "name": "Other", "slug": "other", "url": s.URL + "/other/"})}
	cards := `<section class="gh-content">` + card(other) + card(gone) + card("aaaaaaaaaaaaaaaaaaaaaaaaaa") + `</section>`
	const elements = "[...document.querySelectorAll('lychgate-event:not(script)')].map(e => [e.state.event.id ?? '', text(e.shadowRoot.querySelector('[part=name]')) ?? '', String(seen(e.querySelector('p')))])"
	for name, c := range map[string]struct {
		page func(*stage)
		want [][]string
	}{
		"another event's post": {func(s *stage) { s.page("en", party(nil), "", "<h1>Party</h1>"+cards) }, [][]string{{other, "Other", "false"}, {"", "", "true"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaa", "", "false"}}},
		"a theme with a place": {
			func(s *stage) {
				s.page("en", party(nil), "", "<h1>Party</h1><lychgate-event><p></p></lychgate-event>"+cards)
			},
			[][]string{{"aaaaaaaaaaaaaaaaaaaaaaaaaa", "", "false"}, {other, "Other", "false"}, {"", "", "true"}, {"", "", "false"}},
		},
		"a page of none": {
			func(s *stage) { s.home("en", "", `<script src="/ghost/lychgate/event.js?en" async></script>`, cards) },
			[][]string{{other, "Other", "false"}, {"", "", "true"}, {"", "", "true"}},
		},
	} {
		c.page(s)
		p := s.open(browser.Look{Width: 800, Height: 600})
		p.Until("[...document.querySelectorAll('lychgate-event:not(script)')].some(e => e.state?.event.id === '" + other + "' && e.state.message)")
		p.Until("!document.getElementById('lychgate-event') || [...document.querySelectorAll('lychgate-event:not(script)')].some(e => e.state.event.id === 'aaaaaaaaaaaaaaaaaaaaaaaaaa' && e.state.message)")
		diff(t, name, c.want, browser.JS[[][]string](p, elements))
	}
}

// A theme may have several elements, add its own late, or in a shadow tree. All of them say the same.
func TestElementsOfAPage(t *testing.T) {
	s := newStage(t, true, told(200, "can_register", "Come in.", nil), told(200, "can_register", "Come in.", nil), told(200, "registered", "See you.", nil))
	s.page("en", party(nil), "", `<h1>Party</h1><lychgate-event></lychgate-event><section class="gh-content"><p>Text</p></section><lychgate-event></lychgate-event>`)
	p := s.open(browser.Look{Width: 800, Height: 600})
	messages := "[...document.querySelectorAll('lychgate-event')].map(e => text(e.shadowRoot.querySelector('[part=message]'))).join()"
	p.Until(messages + " === 'Come in.,Come in.'")
	p.Do("part('register').click()")
	p.Until(messages + " === 'See you.,See you.'")

	s.responses = []response{told(200, "can_register", "Come in.", nil)}
	s.page("en", party(nil), "", `<div id="host"></div>`+plainTheme)
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("element?.state.message")
	p.Do("document.getElementById('host').attachShadow({mode: 'open'}).append(document.createElement('lychgate-event'))")
	inside := "document.getElementById('host').shadowRoot.firstChild"
	p.Until(inside + ".state.message === 'Come in.'")
	diff(t, "others", 0, browser.JS[int](p, "document.querySelectorAll('lychgate-event').length"))
	p.Do("globalThis.moved = " + inside + "; moved.remove(); document.body.append(moved)")
	p.Until("element.state.message === 'Come in.' && !element.state.loading")
	diff(t, "elements after a move", 1, browser.JS[int](p, "document.querySelectorAll('lychgate-event').length"))
}

// shift waits until a page has come to rest, and returns by how much its layout has shifted
// (Layout Instability).
func (v visitor) shift() float64 {
	v.T.Helper()
	v.Until("performance.getEntriesByName('first-contentful-paint').length > 0")
	return browser.JS[float64](v.Page, `new Promise(done => {
		let sum = 0;
		new PerformanceObserver(list => { for (const entry of list.getEntries()) sum += entry.value; }).observe({type: 'layout-shift', buffered: true});
		requestAnimationFrame(() => setTimeout(() => done(sum), 100));
	})`)
}

// What comes above the text moves it by nearly nothing.
func TestElementShifts(t *testing.T) {
	if browser.Name() != "chromium" {
		t.Skip("needs Chromium: others measure no layout shifts")
	}
	for _, state := range []string{"can_register", "login_required_free", "registered", "registration_closed"} {
		s := newStage(t, true, told(200, state, "This event is for members. Sign in or sign up to register.", nil))
		s.page("en", party(nil), "body { font: 17px Georgia, serif; max-width: 720px; margin: 2em auto }", strings.Replace(plainTheme, "</p>", strings.Repeat(" The text goes on.", 200)+"</p>", 1))
		p := visitor{s.open(browser.Look{Width: 1280, Height: 900})}
		p.Until("element.state.message")
		shift := p.shift()
		t.Logf("%s: the layout shifts by %.4f", state, shift)
		if shift >= 0.05 {
			t.Errorf("%s: the layout shifts by %.3f, want less than 0.05", state, shift)
		}
	}
}

// The block is drawn before the script that adds it goes on: it waits for nothing.
func TestElementIsDrawnAtOnce(t *testing.T) {
	s := newStage(t, true, told(200, "can_register", "Come in.", nil))
	s.page("en", party(nil), "", plainTheme)
	p := s.open(browser.Look{Width: 1280, Height: 900})
	p.Until("element.state.message")
	height := browser.JS[float64](p, `(() => {
		const another = document.createElement('lychgate-event');
		document.body.append(another);
		return another.getBoundingClientRect().height;
	})()`)
	if height < 50 {
		t.Errorf("drawn %.0f pixels high, want the whole block", height)
	}
}
