package pages

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
)

// cutEvents has the network be away for what the editor of an event sends.
func (r *room) cutEvents() (restore func()) { return r.cut(http.MethodPut) }

// cut has the network be away for requests of a method.
func (r *room) cut(method string) (restore func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.before
	r.before = func(request *http.Request) {
		if request.Method == method {
			panic(http.ErrAbortHandler)
		}
		before(request)
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.before = before
	}
}

// What an editor types while the network is away is sent by itself once it is back: when the
// browser says so, and when it says nothing.
func TestTypedOffline(t *testing.T) {
	for _, test := range []struct{ name, told string }{{"the browser says so", "dispatchEvent(new Event('online'))"}, {"the browser says nothing", ""}} {
		t.Run(test.name, func(t *testing.T) {
			r := open(t).withParties()
			e := r.create(t, map[string]any{"name": "Lychgate day"})
			v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
			v.Until(field("location"))
			restore := r.cutEvents()
			v.typed("location", "The parish hall")
			v.state("Not saved: the server cannot be reached. What you typed is kept in this browser.")
			diff(t, "on the server", nil, r.only(t).Values["location"])
			restore()
			v.Do("%s", test.told)
			v.state("Saved at ")
			diff(t, "on the server then", any("The parish hall"), r.only(t).Values["location"])
		})
	}
}

// isKept is what the browser keeps of events that are not saved.
const isKept = "Object.keys(localStorage).filter(name => name.startsWith('lychgate-event:')).length"

// asks is whether the browser asks before it closes the tab.
const asks = "!dispatchEvent(new Event('beforeunload', {cancelable: true}))"

// What is typed into a published event waits for Update. Until then the browser asks before the tab
// is closed, and offers it again later, to who typed it and to nobody else.
func TestUnsentChanges(t *testing.T) {
	other := platformtest.Staff["administrator"]
	t.Cleanup(func() { platformtest.Staff["administrator"] = other })
	another := other
	another.ID = "another"
	platformtest.Staff["administrator"] = another

	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day", "event_date": "2100-06-01", "menu": "Cake"})
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	if _, err := r.Events.Publish(t.Context(), "daily", e.ID, 0, party); err != nil {
		t.Fatalf("r.Events.Publish: %v", err)
	}
	address := "events?event=" + e.ID
	v := r.visit("Editor", address, browser.Look{})
	v.Until(field("location"))
	diff(t, "asks when nothing is typed", false, js[bool](v, asks))
	v.typed("location", "The parish hall")
	v.state("Not updated yet")
	diff(t, "asks before it closes the tab", true, js[bool](v, asks))
	v.Do("sessionStorage.clear()") // as in another tab
	const offered = "text($('desk-event > .notice'))?.startsWith('Something was typed here earlier that was not saved.')"

	v.as("Administrator")
	v.goTo(address)
	v.Until(field("location"))
	diff(t, "offered to somebody else", nil, js[any](v, "text($('desk-event > .notice'))"))
	v.as("Editor")
	v.goTo(address)
	v.Until(offered)
	v.press("Restore it")
	diff(t, "asks when it is restored", true, js[bool](v, asks))
	v.press("Update")
	v.says("The event was saved, with another date or place.")
	diff(t, "on the server", any("The parish hall"), r.only(t).Values["location"])
	diff(t, "asks when it is saved", false, js[bool](v, asks))
	diff(t, "kept when it is saved", 0, js[int](v, isKept))

	v.typed("location", ", left door")
	v.goTo(address)
	v.Until(offered)
	v.press("Discard it")
	diff(t, "kept when it is discarded", 0, js[int](v, isKept))
	v.goTo(address)
	v.Until(field("location"))
	diff(t, "offered when it is discarded", nil, js[any](v, "text($('desk-event > .notice'))"))
}

// What is offered stays until it is restored or discarded, also if something else is typed and saved
// before that.
func TestOfferedUntilDecided(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day", "event_date": "2100-06-01", "menu": "Cake"})
	address := "events?event=" + e.ID
	v := r.visit("Editor", address, browser.Look{})
	v.Until(field("location"))
	const offered = "text($('desk-event > .notice'))?.startsWith('Something was typed here earlier that was not saved.')"
	restore := r.cutEvents()
	v.typed("location", "The parish hall")
	v.state("Not saved: the server cannot be reached.")
	v.goTo(address)
	v.Until(offered)
	restore()
	v.typed("menu", "Tea and ")
	v.state("Saved at ")
	diff(t, "saved", []any{"Tea and Cake", nil}, []any{r.only(t).Values["menu"], r.only(t).Values["location"]})
	v.goTo(address)
	v.Until(offered)
	v.press("Restore it")
	v.state("Saved at ")
	diff(t, "restored", []any{"Tea and Cake", "The parish hall"}, []any{r.only(t).Values["menu"], r.only(t).Values["location"]})
	diff(t, "kept when it is saved", 0, js[int](v, isKept))
}

// A browser keeps 20 events at most, and none for longer than 30 days.
func TestKeptIsBounded(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
	v.Until(field("location"))
	v.Do(`for (let i = 0; i < 30; i++) localStorage.setItem('lychgate-event:x:' + i, JSON.stringify({at: Date.now() - (i ? i * 1000 : 31 * 864e5), typed: {'f.name': 'x'}}))`)
	v.typed("location", "The parish hall")
	v.Until(isKept + " <= 20")
	diff(t, "the old one", nil, js[any](v, "localStorage['lychgate-event:x:0'] ?? null"))
	diff(t, "the newest", true, js[bool](v, "'lychgate-event:x:1' in localStorage"))

	v.Do(`localStorage.setItem('lychgate-event:x:old', JSON.stringify({at: Date.now() - 31 * 864e5, typed: {'f.name': 'x'}}))`)
	v.goTo("themes")
	diff(t, "an old one when another page is opened", nil, js[any](v, "localStorage['lychgate-event:x:old'] ?? null"))
	diff(t, "a new one then", true, js[bool](v, "'lychgate-event:x:1' in localStorage"))
}

// What is too long to be kept, or more than the browser has room for, is said to be that. What was kept
// before stays, and the browser asks before the tab is closed.
func TestTooLongToBeKept(t *testing.T) {
	const cannot = "This browser cannot keep what you typed, such as because it is too long: do not close the page before it is saved."
	for _, test := range []struct{ name, fill, text string }{
		{"too long", "", "x"},
		{"no room", "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := open(t).withParties()
			e := r.create(t, map[string]any{"name": "Lychgate day"})
			v := r.visit("Editor", "events?event="+e.ID, browser.Look{})
			v.Until(field("menu"))
			restore := r.cutEvents()
			v.typed("location", "The parish hall")
			v.state("Not saved: the server cannot be reached. What you typed is kept in this browser.")
			diff(t, "asks before it closes the tab while it is kept", false, js[bool](v, asks))
			v.Do("%s", test.fill)
			v.Do(fmt.Sprintf("%[1]s.value = 'Cake' + %[2]q.repeat(200000); %[1]s.dispatchEvent(new Event('input', {bubbles: true}))", field("menu"), test.text))
			v.state("Not saved: the server cannot be reached. " + cannot)
			diff(t, "asks before it closes the tab", true, js[bool](v, asks))
			diff(t, "kept", any("The parish hall"), js[any](v, "JSON.parse(Object.entries(localStorage).find(([name]) => name.startsWith('lychgate-event:'))[1]).typed['f.location']"))
			restore()
			if test.text == "" {
				v.Until("!(" + asks + ")") // once all of it is saved
				diff(t, "the menu", any("Cake"), r.only(t).Values["menu"])
				return
			}
			v.state("Not saved: The values have ")
			diff(t, "said when it is refused", true, js[bool](v, "text($('.state')).includes(%q)", cannot))
		})
	}
}
