package events

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
)

// listHelper is for tests of lists.
const listHelper = `
	const list = document.querySelector('lychgate-events');
	const links = list => [...list.shadowRoot.querySelectorAll('a')].map(a => a.href);
	const isSeen = element => seen(element) && element.getClientRects().length > 0;
`

func (s *stage) openList(look browser.Look) *browser.Page {
	s.t.Helper()
	return browser.Open(s.t, harness.Engine, s.URL+"/page", look, partsHelper+listHelper)
}

// listed is an event as lists have it.
func listed(name string, more map[string]any) map[string]any {
	event := party(map[string]any{"name": name, "url": "https://news.example.com/" + strings.ToLower(name) + "/", "feature_image": ""})
	maps.Copy(event, more)
	return event
}

func listOf(next any, events ...map[string]any) response {
	return response{200, map[string]any{"events": append([]map[string]any{}, events...), "total": len(events), "next": next, "messages": map[string]any{}}, nil}
}

const (
	listScript  = `<script src="/ghost/lychgate/events.js" async blocking="render"></script>`
	eventScript = `<script src="/ghost/lychgate/event.js" async blocking="render"></script>`
)

// Readers of any page see what is to come, when and where, and get to each event. What editors wrote is text.
func TestListOfEvents(t *testing.T) {
	for name, c := range map[string]struct {
		lang, html string
		answer     response
		want       [][]string
		asked      string
	}{
		"usual": {"en", "<lychgate-events></lychgate-events>", listOf(nil,
			listed("Party", nil), listed("<b>Gates</b>", map[string]any{"status": "cancelled", "location": ""}),
			listed("Here", map[string]any{"event_time_zone": "America/New_York", "start": "2031-05-01T13:00:00-04:00"}),
			listed("Day", map[string]any{"all_day": true, "start": "2031-05-01", "end": "2031-05-02", "location": "https://example.com/room"}),
			listed("Days", map[string]any{"start": "2031-05-01T19:00:00+02:00", "end": "2031-05-03T12:00:00+02:00", "event_time_end": "12:00"}),
			listed("Later", map[string]any{"start": nil, "end": nil}), listed("Mars", map[string]any{"event_time_zone": "Mars/Base"})), [][]string{
			{"Party", "Thu, May 1, 2031, 7:00 PM GMT+2", "The Pier"},
			{"<b>Gates</b>", "Cancelled Thu, May 1, 2031, 7:00 PM GMT+2"},
			{"Here", "Thu, May 1, 2031, 1:00 PM", "The Pier"},
			{"Day", "Thu, May 1, 2031"},
			{"Days", "Thu, May 1 – Sat, May 3, 2031", "The Pier"},
			{"Later", "The Pier"},
			{"Mars", "Thu, May 1, 2031, 1:00 PM EDT", "The Pier"},
		}, "list limit=5&from=0"},
		"chosen": {"de_DE", `<lychgate-events type="webinar & more" limit="3" past></lychgate-events>`, listOf(nil, listed("Party", nil)), [][]string{
			{"Party", "Do., 1. Mai 2031, 19:00 MESZ", "The Pier"},
		}, "list limit=3&from=0&type=webinar+%26+more&past="},
		"a limit that is none": {"en", `<lychgate-events limit="many"></lychgate-events>`, listOf(nil, listed("Party", nil)), [][]string{{"Party", "Thu, May 1, 2031, 7:00 PM GMT+2", "The Pier"}}, "list limit=5&from=0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, response{500, nil, nil})
			s.lists = []response{c.answer}
			s.home(c.lang, "", listScript, c.html)
			p := s.openList(browser.Look{Width: 800, Height: 600})
			p.Until("shownIn(list).length")
			diff(t, "events", c.want, browser.JS[[][]string](p, "shownIn(list)"))
			diff(t, "asked", []string{c.asked}, s.requests())
			diff(t, "the first link", "https://news.example.com/party/", browser.JS[[]string](p, "links(list)")[0])
			problems, err := p.Problems()
			if err != nil || len(problems) > 0 && !strings.Contains(strings.Join(problems, ""), "favicon") {
				t.Errorf("the console has %q, %v; want nothing", problems, err)
			}
		})
	}
}

// Where nothing is to come, the page says so, or what its author has written for that. Past events are not said to be missing.
func TestListOfNone(t *testing.T) {
	for html, want := range map[string]string{
		"<lychgate-events></lychgate-events>":                                                     "No upcoming events.",
		`<lychgate-events><p slot="none">We are on holiday.</p></lychgate-events>`:                "We are on holiday.",
		`<lychgate-events past></lychgate-events>`:                                                "",
		`<lychgate-events><ul><li>Yesterday's event, as Ghost has it</li></ul></lychgate-events>`: "No upcoming events.",
	} {
		s := newStage(t, true, response{500, nil, nil})
		s.lists = []response{listOf(nil)}
		s.home("en", "", listScript, html)
		p := s.openList(browser.Look{Width: 800, Height: 600})
		p.Until("list.shadowRoot.querySelector('slot').hidden") // it was drawn
		diff(t, html, want, browser.JS[string](p, `[...list.shadowRoot.querySelectorAll('li')].map(li => text(li.querySelector('slot').assignedElements()[0] ?? li)).join()`))
		diff(t, html+": what Ghost has", false, browser.JS[bool](p, "isSeen(document.querySelector('lychgate-events > ul'))"))
	}
}

// A list goes on where it ended, for the keyboard too. Without a response, what the page has stays, and the edge is asked again.
func TestListGoesOn(t *testing.T) {
	s := newStage(t, true, response{500, nil, nil})
	s.lists = []response{{503, nil, nil}, listOf(2, listed("One", nil), listed("Two", nil)), listOf(nil, listed("Three", nil))}
	s.home("en", "", listScript, `<lychgate-events limit="2" more><p id="theirs">As Ghost has it</p></lychgate-events>`)
	p := s.openList(browser.Look{Width: 800, Height: 600})
	p.Until("isSeen(document.getElementById('theirs')) && !shownIn(list).length")
	p.Until("shownIn(list).length === 2")
	diff(t, "what Ghost has", false, browser.JS[bool](p, "isSeen(document.getElementById('theirs'))"))
	p.Do("list.shadowRoot.querySelector('[part=more]').focus()")
	p.Must(p.Press("\r"))
	p.Until("shownIn(list).length === 3")
	diff(t, "focus", "Three", browser.JS[string](p, "text(list.shadowRoot.activeElement)"))
	diff(t, "more", false, browser.JS[bool](p, "isSeen(list.shadowRoot.querySelector('[part=more]'))"))
	diff(t, "asked", []string{"list limit=2&from=0", "list limit=2&from=0", "list limit=2&from=2"}, s.requests())
	p.Do("list.setAttribute('type', 'talk')")
	p.Until("shownIn(list).length === 1")
	diff(t, "asked after a change", []string{"list limit=2&from=0&type=talk"}, s.requests())
}

// A list looks right on any device and in any direction, shuts nobody out, and moves nothing when it comes.
func TestListLooks(t *testing.T) {
	long := strings.Repeat("A-name-that-nobody-breaks", 8)
	events := []map[string]any{
		listed("Party", nil), listed(long, map[string]any{"location": long}), listed("Two words", map[string]any{"status": "cancelled"}),
	}
	for name, c := range map[string]struct {
		lang, css string
		look      browser.Look
	}{
		"wide":   {"en", "body { font: 17px Georgia, serif; max-width: 720px; margin: 2em auto }", browser.Look{Width: 1440, Height: 900}},
		"narrow": {"de", "body { font: 16px sans-serif; margin: 12px }", browser.Look{Width: 320, Height: 640}},
		"dark":   {"fr", "body { font: 16px sans-serif; background: #15171a; color: #fff; margin: 12px }", browser.Look{Width: 390, Height: 844, Media: map[string]string{"prefers-color-scheme": "dark"}}},
		"rtl":    {"ar", "body { font: 16px sans-serif; margin: 12px }", browser.Look{Width: 390, Height: 844}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, response{500, nil, nil})
			events[0]["feature_image"] = s.URL + "/content/images/2031/small.png"
			events[1]["feature_image"] = s.URL + "/content/images/2031/large.png" // of which there is no small one
			events[2]["feature_image"] = s.URL + "/content/images/2031/gone.png"
			s.lists = []response{listOf(3, events...)}
			// The page's own list is shorter, longer, or none.
			for _, theirs := range []string{"", "<ul><li>One</li></ul>", "<ul>" + strings.Repeat("<li>One of many</li>", 30) + "</ul>"} {
				s.home(c.lang, c.css, listScript, `<main><h1>Events</h1><lychgate-events limit="3" more>`+theirs+`</lychgate-events><p>What is below.</p></main>`)
				p := s.openList(c.look)
				p.Until("shownIn(list).length === 3")
				if c.look.Width > 1000 { // narrow ones have no pictures
					const pictures = "[...list.shadowRoot.querySelectorAll('img')].filter(isSeen).map(image => new URL(image.src).pathname)"
					p.Until(pictures + ".length === 2")
					diff(t, "pictures", []string{"/content/images/size/w600/2031/small.png", "/content/images/2031/large.png"}, browser.JS[[]string](p, pictures))
				}
				diff(t, "overflow", false, browser.JS[bool](p, "document.documentElement.scrollWidth > innerWidth"))
				p.Do("await import('/axe.js')")
				diff(t, "barriers", []string{}, browser.JS[[]string](p, "axe.run(document, {rules: {region: {enabled: false}}}).then(found => found.violations.flatMap(v => v.nodes.map(node => v.id + ': ' + node.html)))"))
				p.Picture("list-" + name)
				if browser.Name() == "chromium" { // others measure no layout shifts
					if shift := (visitor{p}).shift(); shift > 0.001 {
						t.Errorf("%q: the layout shifts by %.4f, want nothing to move", theirs, shift)
					}
				}
			}
		})
	}
}

// Place that is left over is given up where nobody sees it, and where there will be no list.
func TestListGivesPlaceUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer response
		above  string
		want   bool
	}{
		"in view":              {listOf(nil, listed("One", nil)), "", false},
		"below what is seen":   {listOf(nil, listed("One", nil)), `<div id="above"></div>`, true},
		"there is no such URL": {response{404, map[string]any{"message": "x"}, nil}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, response{500, nil, nil})
			s.lists = []response{c.answer}
			s.home("en", "#above { height: 3000px }", listScript, c.above+"<lychgate-events></lychgate-events>")
			p := s.openList(browser.Look{Width: 800, Height: 600})
			p.Until("performance.getEntriesByType('resource').some(entry => entry.name.includes('events?'))")
			p.Until("!list.ariaBusy")
			if c.want {
				p.Until("list.offsetHeight < 200")
			}
			diff(t, "gives up", c.want, browser.JS[bool](p, "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(list.offsetHeight < 200))))"))
		})
	}
}

// An event stands on any page, with its name and a link, and readers register there. Events of one page are apart.
func TestElementOfAnEvent(t *testing.T) {
	s := newStage(t, true, told(200, "can_register", "Come in.", nil))
	const id = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
	s.events = map[string]map[string]any{"harbour day": listed("Harbour", map[string]any{
		"id": id, "fields": map[string]any{"speaker": "Ada <i>Gate</i>", "price": 1200.5, "captions": true, "doors": "2031-05-01", "talk": "https://example.com/talk", "other": "x"},
		"labels": json.RawMessage(`{"talk": "Talk", "speaker": "Speaker", "price": "Price", "captions": "Captions", "doors": "Doors"}`), // in this order
	})}
	s.home("en", "", eventScript, `<lychgate-event id="first" event="harbour day"><p>Until then</p></lychgate-event><lychgate-event id="second" event="harbour day"></lychgate-event>
		<lychgate-event id="none" event="nothing"><p id="stays">There is no such event any more.</p></lychgate-event>`)
	p := s.openList(browser.Look{Width: 800, Height: 600})
	p.Until("element.state.message === 'Come in.' && document.getElementById('second').state.message === 'Come in.'")
	diff(t, "name", []string{"Harbour", "https://news.example.com/harbour/"}, browser.JS[[]string](p, "[text(part('name')), part('name').href]"))
	diff(t, "fields", "Talk: example.com/talk, Speaker: Ada <i>Gate</i>, Price: 1200.5, Captions: ✓, Doors: Thursday, May 1, 2031",
		browser.JS[string](p, "[...part('fields').children].map(field => [...field.children].map(text).join(': ')).join(', ')"))
	diff(t, "what stays", true, browser.JS[bool](p, "isSeen(document.getElementById('stays'))"))
	s.requests()
	s.responses = []response{told(200, "registered", "See you.", nil)}
	p.Do("part('register').click()")
	p.Until("element.state.message === 'See you.' && document.getElementById('second').state.message === 'See you.'")
	diff(t, "asked", []string{"PUT " + id + " lang=en"}, s.requests())

	// What cannot be read now is read later.
	s.events["harbour day"], s.away = nil, true
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("isSeen(document.querySelector('#first > p'))")
	s.mu.Lock()
	s.events["harbour day"], s.away = listed("Harbour", map[string]any{"id": id}), false
	s.mu.Unlock()
	p.Do("dispatchEvent(new Event('online'))")
	p.Until("element.state.message")

	// The page of another event has its own block too, whose state is its own.
	s.responses = []response{told(200, "can_register", "Come in.", nil)}
	s.page("en", party(nil), "", plainTheme+`<lychgate-event id="other" event="harbour day"></lychgate-event>`)
	p.Must(p.Navigate(s.URL + "/page"))
	p.Until("element.state?.message === 'Come in.' && document.getElementById('other').state?.message === 'Come in.'")
	diff(t, "events", []string{"aaaaaaaaaaaaaaaaaaaaaaaaaa", id}, browser.JS[[]string](p, "[...document.querySelectorAll('lychgate-event:not(script)')].map(element => element.state.event.id)"))
	s.responses = []response{told(http.StatusOK, "registered", "See you.", nil)}
	p.Do("part('register').click()")
	p.Until("element.state.message === 'See you.'")
	diff(t, "the other", "Come in.", browser.JS[string](p, "document.getElementById('other').state.message"))
}
