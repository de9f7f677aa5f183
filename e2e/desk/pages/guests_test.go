package pages

import (
	"fmt"
	"image"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// phone is how the check-in page is looked at.
var phone = browser.Look{Width: 390, Height: 844, Phone: true}

// withEvent publishes an event that takes registrations, of most guests or of any number if that
// is 0, and returns its ID.
func (r *room) withEvent(t *testing.T, most int) string {
	t.Helper()
	party, err := r.Site.Events.Type(t.Context(), "nightly", "party")
	if err != nil {
		t.Fatalf("r.Site.Events.Type: %v", err)
	}
	values := map[string]any{"name": "Summer party", "event_date": "2100-06-19", "menu": "Cake", "access": "free"}
	if most > 0 {
		values["max_attendees"] = float64(most)
	}
	e := r.create(t, values)
	if _, err := r.Events.Publish(t.Context(), "daily", e.ID, 0, party); err != nil {
		t.Fatalf("r.Events.Publish: %v", err)
	}
	return e.ID
}

// withGuest adds somebody to an event, and returns the UUID.
func (r *room) withGuest(t *testing.T, event, email, name string) string {
	t.Helper()
	added, _, err := r.Guests.Add(t.Context(), r.Ghost, "daily", event, registration.Addition{Email: email, Name: name, By: "Ed Itor", OverLimit: true})
	if err != nil {
		t.Fatalf("r.Guests.Add: %v", err)
	}
	return added.Member
}

// insertGuests puts n registrations into the store.
func (r *room) insertGuests(t *testing.T, event string, n int) {
	t.Helper()
	for _, insert := range []string{
		`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
			INSERT INTO registrations (site, event, member, email, name, search, registered_at, changed)
			SELECT 'daily', $1, 'uuid-' || n, 'reader' || n || '@example.com', 'Reader ' || n, 'reader' || n || '@example.com reader ' || n, 1000 + n, n FROM numbers`,
		`INSERT INTO registrations_taken (site, event, taken, version) VALUES ('daily', $1, $2, $2)`,
	} {
		if _, err := r.DB.Write.ExecContext(t.Context(), insert, event, n); err != nil {
			t.Fatalf("inserting registrations: %v", err)
		}
	}
}

// door checks somebody in at another door, or takes that back.
func (r *room) door(t *testing.T, event, member string, isIn bool) {
	t.Helper()
	if _, err := r.Guests.CheckIn(t.Context(), "daily", event, member, isIn, time.Time{}); err != nil {
		t.Fatalf("r.Guests.CheckIn: %v", err)
	}
}

// tally counts the guests of an event in the store.
func (r *room) tally(t *testing.T, event string) registration.Tally {
	t.Helper()
	of, err := r.Guests.Tally(t.Context(), "daily", event)
	if err != nil {
		t.Fatalf("r.Guests.Tally: %v", err)
	}
	return of
}

// cutNetwork has what the script asks about registrations get no response, until the function that
// it returns is called.
func (r *room) cutNetwork() (restore func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.before
	r.before = func(request *http.Request) {
		if strings.Contains(request.URL.Path, "/registrations") {
			panic(http.ErrAbortHandler)
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.before = before
	}
}

// tap touches the first button that has a text.
func (v tab) tap(label string) {
	v.T.Helper()
	v.Until(fmt.Sprintf("button(%q)", label))
	if browser.Name() == "webkit" { // whose driver has no finger
		v.press(label)
		return
	}
	at := js[[]float64](v, `(() => {
		const box = (button(%q).scrollIntoView({block: 'center'}), button(%q)).getBoundingClientRect();
		return [box.left + box.width / 2, box.top + box.height / 2];
	})()`, label, label)
	v.Must(v.Tap(image.Pt(int(at[0]), int(at[1]))))
}

// shows waits until an element has a text.
func (v tab) shows(selector, wanted string) {
	v.T.Helper()
	v.Until(fmt.Sprintf("text($(%q)) === %q", selector, wanted))
}

// An editor adds a member, and one more over the limit once that is confirmed, removes somebody
// and takes that back.
func TestGuestList(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 2)
	r.withGuest(t, id, "jane@example.com", "Jane Doe")
	v := r.visit("Editor", "events", browser.Look{})
	v.Until("button('New event')")
	diff(t, "the list of events", "1 of 2 for Summer party", js[string](v, "text($('.events a[href^=guest-list]'))"))
	v.goTo("events?event=" + id)
	v.press("Guest list: 1 of 2")
	v.Until("$('.tally')")
	diff(t, "the counts", "Registered 1 of 2 Checked in 0 Cancelled 0", js[string](v, "[...$('.tally').querySelectorAll('dt, dd')].map(text).join(' ')"))
	add := func(email string) {
		t.Helper()
		v.Do("$('#email').value = %q; $('#name').value = 'Joe'", email)
		v.press("Add")
	}
	add("joe")
	v.says("The email is not a valid address.")
	diff(t, "what was typed", []string{"joe", "Joe"}, js[[]string](v, "[$('#email').value, $('#name').value]"))
	add("joe@example.com")
	v.says("Joe was added.")
	diff(t, "ready for the next one", []string{"email", "", ""}, js[[]string](v, "[document.activeElement.id, $('#email').value, $('#name').value]"))
	add("joe@example.com")
	v.says("Joe is registered already.")
	add("max@example.com")
	v.Until("button('Add over the limit')")
	diff(t, "the question", "Add Joe over the limit? All 2 places are taken. The places of others stay as they are.", js[string](v, "text($('.panel h2')) + ' ' + text($('.panel p'))"))
	diff(t, "before it is confirmed", 2, r.tally(t, id).Registered)
	v.press("Add over the limit")
	v.says("Joe was added.")
	diff(t, "the limit", "More are registered than there are places: 3 of 2. Everybody who is registered stays so. Readers can register again when there are free places.", js[string](v, "text($('.over'))"))
	v.press("Remove Jane Doe")
	v.says("Jane Doe was removed. Undo")
	diff(t, "after removing", registration.Tally{Registered: 2, Cancelled: 1, Most: 2}, r.tally(t, id))
	diff(t, "who cancelled", true, js[bool](v, "text($('.guests td:nth-child(3)')).endsWith(' by Edda')"))
	v.press("Undo")
	v.Until("button('Add over the limit')")
	v.press("Add over the limit")
	v.says("Jane Doe is registered again.")
	diff(t, "after it was taken back", registration.Tally{Registered: 3, Most: 2}, r.tally(t, id))
	v.Do("$('#q').value = 'JANE'")
	v.press("Search")
	v.Until("document.readyState === 'complete' && button('Show all')")
	diff(t, "who is found", []string{"Jane Doe"}, js[[]string](v, "[...document.querySelectorAll('.guests th bdi')].filter(e => !e.closest('small, thead')).map(text)"))
	diff(t, "added by", true, js[bool](v, "text($('.guests td')).endsWith('added by Ed Itor')"))
	file := js[[]string](v, `fetch(button('Download CSV').href).then(async r => [r.headers.get('Content-Type'), String((await r.text()).split('\r\n').length)])`)
	diff(t, "the CSV", []string{"text/csv; charset=utf-8", "5"}, file)
	v.goTo("events?event=" + id + "&confirm=delete")
	v.Until("button('Delete the event')")
	diff(t, "what is deleted", "3 registered and 0 cancelled. Their registrations are deleted too, with who was checked in. Download the guest list first if you need it. Nobody gets a mail: tell them. Guest list", js[string](v, "text($('.panel p:has(b)'))"))
}

// An editor pastes a list, and chooses a file: the page shows who is found, one press adds them, and what is wrong stays.
func TestSeveralGuests(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 3)
	v := r.visit("Editor", "guest-list?event="+id, phone)
	v.press("Add several")
	v.Do("$('#lines').value = 'Jane Doe <jane@example.com>\\nnobody\\nJoe\\tjoe@example.com'")
	v.press("Check the list")
	v.Until("button('Add 2 guests')")
	diff(t, "the focus", "Add 2 guests?", js[string](v, "focused()"))
	diff(t, "who is found", []string{"Jane Doe jane@example.com", "Joe joe@example.com"}, js[[]string](v, "[...document.querySelectorAll('.batch li')].map(text)"))
	diff(t, "what is wrong", "nobody There is no email address.", js[string](v, "text($('.findings'))"))
	v.fits("the question")
	v.press("Add 2 guests")
	v.says("2 guests were added.")
	diff(t, "what stays", "nobody", js[string](v, "$('#lines').value"))

	v.Do("$('#lines').value = ''")
	v.Do(`const files = new DataTransfer();
		files.items.add(new File([new Uint8Array([...'Name;E-Mail\r\nJ', 0xf6, ...'rg;joerg@example.com\r\nMax;max@example.com'].map(c => c.charCodeAt?.(0) ?? c))], 'guests.csv', {type: 'text/csv'}));
		$('#file').files = files.files`)
	v.press("Check the list")
	v.Until("button('Add 2 guests')")
	diff(t, "who is in the file", []string{"Jörg joerg@example.com", "Max max@example.com"}, js[[]string](v, "[...document.querySelectorAll('.batch li')].map(text)"))
	v.press("Add 2 guests")
	v.Until("button('Add 1 guest over the limit')")
	diff(t, "before it is confirmed", 3, r.tally(t, id).Registered)
	v.press("Add 1 guest over the limit")
	v.says("1 guest was added.")
	diff(t, "in the end", registration.Tally{Registered: 4, Most: 3}, r.tally(t, id))
}

// What guests call themselves is text, and names of 191 characters fit on a phone.
func TestHostileGuests(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	names := []string{`=HYPERLINK("https://example.com")`, strings.Repeat("🎩", 191), hostile, strings.Repeat("Unbroken", 23)}
	for i, name := range names {
		r.withGuest(t, id, fmt.Sprintf("guest%d@example.com", i), name)
	}
	v := r.visit("Editor", "guest-list?event="+id, phone)
	v.Until("$('.guests')")
	v.fits("the guest list")
	v.goTo("check-in?event=" + id)
	v.Until("document.querySelectorAll('.door-list button[data-member]').length === 4")
	v.fits("check-in")
	diff(t, "scripts that ran", false, js[bool](v, "!!document.querySelector('.door-list :is(script, img)')"))
}

// At the door, on a phone: a guest is found while somebody types, is checked in by one touch, and
// that is taken back. Each target has 44 pixels.
func TestCheckInByTouch(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	for i, name := range []string{"Jane Doe", "Joe Quay", "Özlem Ångström"} {
		r.withGuest(t, id, fmt.Sprintf("guest%d@example.com", i), name)
	}
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.Until("$('.door-list button[data-member]')")
	v.shows(".counter", "0 of 3 checked in")
	diff(t, "small targets", []string{}, js[[]string](v, `[...document.querySelectorAll('desk-door button, desk-door input')].filter(e => e.checkVisibility())
		.filter(e => e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44).map(text)`))
	v.Keys("#q", "özl")
	v.Until("document.querySelectorAll('.door-list li').length === 1")
	v.tap("Check in Özlem Ångström")
	v.shows(".counter", "1 of 3 checked in")
	wait.Until(t, func() string {
		if of := r.tally(t, id); of.CheckedIn != 1 {
			return fmt.Sprintf("%+v, want one who is checked in", of)
		}
		return ""
	})
	v.Until("text($('.door-list li'))?.match(/Checked in \\d\\d:\\d\\d/)")
	diff(t, "what is read out", "Özlem Ångström: checked in", js[string](v, "text($('#said'))"))
	v.tap("Undo: Özlem Ångström")
	v.shows(".counter", "0 of 3 checked in")
	wait.Until(t, func() string {
		if of := r.tally(t, id); of.CheckedIn != 0 {
			return fmt.Sprintf("%+v, want nobody who is checked in", of)
		}
		return ""
	})
	v.Do("$('#q').focus()")
	v.Until("document.activeElement.selectionEnd === 3") // the next name takes the place of this one
	v.Do("$('#q').blur(); $('#q').value = ''; $('#q').focus(); $('#q').value = 'K'; await new Promise(done => setTimeout(done))")
	diff(t, "what the second letter would take the place of", "", js[string](v, "$('#q').value.slice($('#q').selectionStart, $('#q').selectionEnd)"))
	v.Do("$('#q').value = 'nobody'; $('#q').dispatchEvent(new Event('input', {bubbles: true}))")
	v.shows(".rest", "Nobody is found.")
}

// At the door somebody who is on no list is added and checked in. Without a network what was typed stays, and a response that was
// lost makes nobody two guests.
func TestWalkIn(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 2)
	r.withGuest(t, id, "jane@example.com", "Jane")
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.Until("$('.door-list button[data-member]')")
	v.Keys("#q", "Kim")
	v.shows(".rest", "Nobody is found.")
	restore := r.cutNetwork()
	v.tap("Walk-in")
	v.Until("document.activeElement.id === 'name'")
	diff(t, "the name", "Kim", js[string](v, "$('#name').value"))
	diff(t, "regions that screen readers watch", []bool{true, true}, js[[]bool](v, "['.said', '.net'].map(region => $(region).checkVisibility())"))
	v.tap("Add and check in")
	v.shows(".said", "No network. Whether the guest was added is not known. Press again: nobody is added twice.")
	diff(t, "what was typed", "Kim", js[string](v, "$('#name').value"))
	restore()
	v.Do(`window.real = fetch; window.fetch = async (...args) => {
		const response = await window.real(...args);
		if (args[1]?.method !== 'POST') return response;
		window.fetch = window.real;
		throw new TypeError('lost');
	}`)
	v.tap("Add and check in")
	v.Until("window.fetch === window.real && text($('.said')).startsWith('No network.')")
	v.tap("Add and check in")
	v.shows(".counter", "1 of 2 checked in")
	v.Until("!$('.walk-in').open && text($('.door-list'))?.startsWith('KimChecked in ')")
	wait.Until(t, func() string {
		if of := r.tally(t, id); of != (registration.Tally{Registered: 2, CheckedIn: 1, Most: 2}) {
			return fmt.Sprintf("%+v, want Jane, and Kim who is in", of)
		}
		return ""
	})

	v.tap("Walk-in")
	v.Do("$('#name').value = ''; $('#email').value = 'max@example.com'")
	v.tap("Add and check in")
	v.shows(".said", "All 2 places are taken.")
	v.Picture("check-in-over")
	v.tap("Add over the limit")
	v.shows(".counter", "2 of 3 checked in")
	v.fits("check-in")
	diff(t, "small targets", []string{}, js[[]string](v, `[...document.querySelectorAll('desk-door button, desk-door summary, desk-door input:not([type])')].filter(e => e.checkVisibility())
		.filter(e => e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44).map(text)`))
}

// Most of a phone shows names.
func TestRoomForNames(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	r.insertGuests(t, id, 40)
	for _, size := range []struct {
		width, height int64
		want          int
	}{{320, 568, 8}, {390, 844, 13}} {
		v := r.visit("Editor", "check-in?event="+id, browser.Look{Width: size.width, Height: size.height, Phone: true})
		v.Until("$('.door-list button[data-member]')")
		if got := js[int](v, "[...document.querySelectorAll('.door-list li')].filter(inSight).length"); got < size.want {
			t.Errorf("%d by %d: %d names are in sight, want %d at least", size.width, size.height, got, size.want)
		}
	}
}

// Two doors agree within seconds: a check-in, an undo, a guest who cancels and one who is added at
// the other are seen here, and the row under a finger stays where it is.
func TestTwoDoorsAgree(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	jane, joe := r.withGuest(t, id, "jane@example.com", "Jane"), r.withGuest(t, id, "joe@example.com", "Joe")
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.shows(".counter", "0 of 2 checked in")
	v.Until("$('.door-list button[data-member]')")
	v.Do("window.row = button('Check in Joe')")
	r.door(t, id, jane, true)
	v.shows(".counter", "1 of 2 checked in")
	diff(t, "the row of another is the same", true, js[bool](v, "window.row === button('Check in Joe')"))
	r.door(t, id, jane, false)
	v.shows(".counter", "0 of 2 checked in")
	if _, err := r.Guests.Remove(t.Context(), "daily", id, joe, "Ed"); err != nil {
		t.Fatalf("r.Guests.Remove: %v", err)
	}
	v.shows(".counter", "0 of 1 checked in")
	r.withGuest(t, id, "max@example.com", "Max")
	v.shows(".counter", "0 of 2 checked in")
	v.tap("Check in Max")
	wait.Until(t, func() string {
		if of := r.tally(t, id); of != (registration.Tally{Registered: 2, Cancelled: 1, CheckedIn: 1}) {
			return fmt.Sprintf("%+v, want 1 of 2 who is checked in", of)
		}
		return ""
	})
}

// Presses while the network is away are kept, also when the page is opened anew, and are sent once
// it is back. What another door did later counts.
func TestCheckInWithoutNetwork(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	jane := r.withGuest(t, id, "jane@example.com", "Jane")
	r.withGuest(t, id, "joe@example.com", "Joe")
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.Until("$('.door-list button[data-member]')")
	top := "button('Check in Jane').getBoundingClientRect().top"
	before := js[float64](v, top)
	restore := r.cutNetwork()
	v.shows(".net", "No network. The list is as it was.")
	diff(t, "where the button is, below a finger", before, js[float64](v, top))
	v.tap("Check in Jane")
	v.shows(".net", "No network. The list is as it was. One press is kept on this phone and sent later.")
	v.tap("Check in Joe")
	v.shows(".counter", "2 of 2 checked in")
	v.shows(".net", "No network. The list is as it was. 2 presses are kept on this phone and sent later.")
	v.Keys("#q", "joe")
	v.Until("document.querySelectorAll('.door-list li').length === 1 && text($('.door-list small:last-child'))?.endsWith(', not sent yet')")
	diff(t, "on the server", 0, r.tally(t, id).CheckedIn)
	// Another door checks Jane in and out meanwhile.
	r.door(t, id, jane, true)
	r.door(t, id, jane, false)
	restore()
	v.goTo("check-in?event=" + id)
	v.Until("!localStorage['lychgate-door-" + id + "']")
	v.shows(".counter", "1 of 2 checked in")
	diff(t, "on the server then", registration.Tally{Registered: 2, CheckedIn: 1}, r.tally(t, id))

	// The session ends: nothing is lost.
	v.Until("button('Undo: Joe')")
	v.as("")
	v.tap("Undo: Joe")
	v.shows(".net", "Your session has ended. Sign in to the site's admin again, in another tab. One press is kept on this phone and sent later.")
	v.as("Editor")
	v.shows(".net", "All is sent, and the list is up to date.")
	diff(t, "after the session", 0, r.tally(t, id).CheckedIn)
}

// The network of a hall may answer with a page of its own until somebody signs in to it. A press is
// kept then, too.
func TestCheckInBehindAPortal(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	r.withGuest(t, id, "jane@example.com", "Jane")
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.Until("$('.door-list button[data-member]')")
	v.Do(`window.real = fetch; window.fetch = async () => new Response('<h1>Welcome to our Wi-Fi</h1>', {headers: {'Content-Type': 'text/html'}})`)
	v.tap("Check in Jane")
	v.shows(".net", "The server does not answer as it should. One press is kept on this phone and sent later.")
	v.Do("window.fetch = window.real")
	v.Until("!localStorage['lychgate-door-" + id + "']")
	diff(t, "on the server", 1, r.tally(t, id).CheckedIn)
}

// The clock of a phone may be slow. A press that it kept, and sends once the page is opened anew, counts
// for when it was made all the same.
func TestCheckInBySlowClock(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	jane := r.withGuest(t, id, "jane@example.com", "Jane")
	r.door(t, id, jane, true)
	r.door(t, id, jane, false)
	v := r.visit("Editor", "check-in?event="+id, phone)
	v.shows(".counter", "0 of 1 checked in")
	v.Do(fmt.Sprintf(`const now = Date.now, door = $('desk-door');
		Date.now = () => now() - 600000;
		localStorage['lychgate-door-%s'] = JSON.stringify({%q: {isIn: true, at: Date.now() + 2000, id: 'kept', isLate: true}});
		door.replaceWith(door.cloneNode(true))`, id, jane)) // 2 s, since the server says its time in whole seconds
	v.Until("!localStorage['lychgate-door-" + id + "']")
	diff(t, "on the server", 1, r.tally(t, id).CheckedIn)
}

// A list of 5,000 is quick: the page, a search while somebody types, and a press.
func TestLongGuestList(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 0)
	r.insertGuests(t, id, 5000)
	v := r.visit("Editor", "guest-list?event="+id, browser.Look{})
	v.Until("$('.guests')")
	diff(t, "rows of a page", 100, js[int](v, "document.querySelectorAll('.guests tbody tr').length"))
	v.press("Next page")
	v.Until("document.readyState === 'complete' && text($('.guests th[scope=row] bdi')) === 'Reader 101'")
	v.goTo("check-in?event=" + id)
	v.shows(".counter", "0 of 5000 checked in")
	v.Until("$('.door-list button[data-member]')")
	// A search looks at each of them once: it takes less than to draw a tenth of them.
	times := js[struct{ Search, Draw float64 }](v, `(() => {
		const least = what => Math.min(...[1, 2, 3, 4, 4999].map(number => {
			const began = performance.now();
			what(number);
			document.body.getBoundingClientRect();
			return performance.now() - began;
		}));
		const list = $('.door-list'), row = list.querySelector('button[data-member]').closest('.door-list > *'), drawn = document.createElement('div');
		document.body.append(drawn);
		const draw = least(() => drawn.replaceChildren(...Array.from({length: 500}, () => row.cloneNode(true))));
		drawn.remove();
		return {draw, search: least(number => {
			$('#q').value = 'reader ' + number;
			$('#q').dispatchEvent(new Event('input', {bubbles: true}));
		})};
	})()`)
	t.Logf("a search took %.1f ms, drawing 500 rows %.1f ms", times.Search, times.Draw)
	if times.Search > times.Draw {
		t.Errorf("a search took %.1f ms, want less than the %.1f ms that drawing 500 rows takes", times.Search, times.Draw)
	}
	diff(t, "who is found", "Reader 4999", js[string](v, "text($('.door-list .who'))"))
}

// With plain forms alone, guests are added, checked in and removed.
func TestGuestsWithoutJavaScript(t *testing.T) {
	r := open(t).withParties()
	id := r.withEvent(t, 1)
	r.noScript = true
	v := r.visit("Editor", "guest-list?event="+id, browser.Look{})
	v.Until("$('#email')")
	v.Do("$('#email').value = 'jane@example.com'")
	v.press("Add")
	v.Until("document.readyState === 'complete' && said() === 'jane@example.com was added.'")
	v.Do("$('#email').value = 'joe@example.com'")
	v.press("Add")
	v.Until("document.readyState === 'complete' && button('Add over the limit')")
	v.press("Add over the limit")
	v.Until("document.readyState === 'complete' && said() === 'joe@example.com was added.'")
	v.Do("$('#lines').value = 'max@example.com'")
	v.press("Check the list")
	v.Until("document.readyState === 'complete' && button('Add 1 guest')")
	v.press("Add 1 guest")
	v.Until("document.readyState === 'complete' && button('Add 1 guest over the limit')")
	v.press("Check-in")
	v.Until("document.readyState === 'complete' && button('Check in jane@example.com')")
	v.press("Check in jane@example.com")
	v.Until("document.readyState === 'complete' && button('Undo: jane@example.com')")
	diff(t, "checked in", registration.Tally{Registered: 2, CheckedIn: 1, Most: 1}, r.tally(t, id))
	v.press("Undo: jane@example.com")
	v.Until("document.readyState === 'complete' && button('Check in jane@example.com')")
	v.goTo("guest-list?event=" + id)
	v.Until("button('Remove jane@example.com')")
	v.press("Remove jane@example.com")
	v.Until("document.readyState === 'complete' && button('Undo')")
	diff(t, "removed", registration.Tally{Registered: 1, Cancelled: 1, Most: 1}, r.tally(t, id))

	v.goTo("guest-list?event=" + id)
	v.Do("$('#name').value = 'Kim'")
	v.press("Add") // as Enter does
	diff(t, "a name alone", false, js[bool](v, "$('#email').checkValidity()"))
	v.press("Add without email")
	v.Until("document.readyState === 'complete' && button('Add over the limit')")
	v.press("Add over the limit")
	v.Until("document.readyState === 'complete' && said() === 'Kim was added.'")
	v.press("Remove Kim")
	v.Until("document.readyState === 'complete' && button('Erase name: Kim')")
	v.press("Erase name: Kim")
	v.Until("document.readyState === 'complete' && said() === 'The name was erased.'")
}
