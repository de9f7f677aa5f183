package pages

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events"
)

// maxEditor bounds how high the editor of an event is on a wide page, in CSS pixels. One with the theme's own fields is higher.
const maxEditor = 1600

// On a wide page the editor has two columns, and on others one. The Tab key goes through them as they are read.
func TestColumnsOfEditor(t *testing.T) {
	r := open(t).withParties()
	r.SendMails()
	e := r.create(t, map[string]any{
		"name": "Harvest supper", "event_date": "2100-09-19", "event_time_start": "19:00", "event_time_end": "01:00", "access": "free", "rsvp_labels": []any{"Guests"},
		"feature_image": r.url + "/content/images/a.png",
	})
	for width, columns := range map[int64]int{390: 1, 1024: 1, 1100: 2, 1440: 2} {
		v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: width, Height: 900})
		v.Until("$('.drop')")
		diff(t, fmt.Sprint("columns at ", width), columns, js[int](v, "getComputedStyle($('.columns')).gridTemplateColumns.split(' ').length"))
		diff(t, "in the order of the page", []string{"What", "When", "Where", "Who", "Picture", "More"}, js[[]string](v, "[...document.querySelectorAll('legend')].map(text)"))
		diff(t, "a positive tabindex", 0, js[int](v, "document.querySelectorAll('[tabindex]:not([tabindex^=\"-\"], [tabindex=\"0\"])').length"))
		if columns == 1 {
			continue
		}
		top := func(key string) string { return "$('[data-key=" + key + "]').getBoundingClientRect().top" }
		diff(t, fmt.Sprint("date and times in one line at ", width), true, js[bool](v, top("event_date")+" === "+top("event_time_start")+" && "+top("event_date")+" === "+top("event_time_end")))
		v.Do("document.querySelectorAll('.both .beside:not(:has([data-key=slug]))').forEach(own => own.remove())")
		if high := js[int](v, "Math.ceil(document.documentElement.scrollHeight)"); width == 1440 && high > maxEditor {
			t.Errorf("the editor of an event without fields of the theme's own is %d px high, want %d at most", high, maxEditor)
		}
	}
}

// Reminders are chosen for an event that takes registrations. What was chosen stays while Access is empty.
func TestRemindersAreChosen(t *testing.T) {
	r := open(t).withParties()
	r.SendMails()
	e := r.create(t, map[string]any{"name": "Harvest supper", "event_date": "2100-09-19"})
	for _, width := range []int64{320, 1440} {
		v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: width, Height: 900})
		isShown := func() bool { t.Helper(); return js[bool](v, field("reminders")+".checkVisibility()") }
		choose := func(key, value string) {
			t.Helper()
			v.Do(field(key) + fmt.Sprintf(".value = %q; ", value) + field(key) + ".dispatchEvent(new Event('change', {bubbles: true}))")
		}
		choose("access", "")
		diff(t, "without Access", false, isShown())
		choose("access", "free")
		diff(t, "with Access", true, isShown())
		choose("reminders", "hour")
		v.fits(fmt.Sprint("the editor at ", width))
		if os.Getenv("LYCHGATE_TEST_PICTURES") != "" {
			v.Do(field("reminders") + ".scrollIntoView({block: 'center'})")
			v.Picture(fmt.Sprint("desk-reminders-", width))
		}
		choose("access", "")
		v.press("Save draft")
		v.says("The event was saved.")
		diff(t, "kept", any("hour"), r.only(t).Values["reminders"])
	}
}

// A time zone is found by a city, an abbreviation or an offset, with the keyboard or a pointer.
func TestZoneIsFound(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate night", "event_date": "2031-07-01"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1024, Height: 900})
	const options = "[...document.querySelectorAll('.zones:not([hidden]) li')].map(text)"
	value := func(what, want string) {
		t.Helper()
		diff(t, what, want, js[string](v, field("event_time_zone")+".value"))
	}
	find := func(words string) []string {
		t.Helper()
		v.Do(field("event_time_zone") + ".value = ''")
		v.typed("event_time_zone", words)
		v.Until(options + ".length")
		return js[[]string](v, options)
	}
	diff(t, "a city of two words", "New York UTC−4 · America/New_York", find("new yo")[0])
	v.Must(v.Press("\r"))
	value("Enter takes the first", "America/New_York")
	diff(t, "the event is still open", "true", js[string](v, "String(!!$('#event-type') && !$('.notice'))"))
	diff(t, "an abbreviation", []string{"Los Angeles UTC−7 · America/Los_Angeles", "Vancouver UTC−7 · America/Vancouver"}, find("pst"))
	diff(t, "what Enter would take", "Los Angeles", js[string](v, "text($('.zones [aria-selected=true] b'))"))
	v.Must(v.Press(browser.ArrowDown))
	diff(t, "what is read out", "Vancouver", js[string](v, "text(document.getElementById("+field("event_time_zone")+".getAttribute('aria-activedescendant')).querySelector('b'))"))
	v.Must(v.Press("\t"))
	value("Tab takes what is chosen", "America/Vancouver")
	diff(t, "what is read out after it", nil, js[any](v, field("event_time_zone")+".getAttribute('aria-activedescendant')"))
	diff(t, "an offset of the event's day", "Berlin UTC+2 · Europe/Berlin", find("utc+2")[0])
	v.Do("$('.zones li').click()")
	value("a click", "Europe/Berlin")
	diff(t, "closed", []string{}, js[[]string](v, options))
	for words, want := range map[string]string{"gmt": "UTC", "india": "Asia/Kolkata", "calcutta": "Asia/Kolkata", "kiev": "Europe/Kyiv"} {
		found := find(words)
		diff(t, words+" is first", true, strings.HasSuffix(found[0], "· "+want))
		v.Must(v.Press("\r"))
		value(words, want)
	}
	for words, want := range map[string]string{
		"kolkata": "Asia/Kolkata", "kyiv": "Europe/Kyiv", "katmandu": "Asia/Kathmandu", "kathmandu": "Asia/Kathmandu", "saigon": "Asia/Ho_Chi_Minh",
		"yangon": "Asia/Yangon", "nuuk": "America/Nuuk", "godthab": "America/Nuuk", "jujuy": "America/Argentina/Jujuy",
	} {
		found := find(words)
		diff(t, words+" is there once", 1, len(found))
		diff(t, words+" has the new name", true, strings.HasSuffix(found[0], "· "+want))
	}
	find("america")
	v.Until("/^The first 50 of \\d{3} time zones$/.test(text($('#said')))")
	find("são p")
	v.Do(field("event_time_zone") + ".blur()")
	value("the only one that was found", "America/Sao_Paulo")
	v.Do(field("event_time_zone") + ".value = ''")
	v.typed("event_time_zone", "Atlantis")
	v.Until("text($('#said')) === 'No time zone has this name.'")
	v.Do(field("event_time_zone") + ".blur()")
	value("what is none stays", "Atlantis")
}

// Who passes a time zone with the Tab key leaves it as it is. Enter belongs to an input method first, and sends the form where
// no list is open.
func TestZoneStays(t *testing.T) {
	r := open(t).withParties()
	for _, zone := range []string{"Etc/GMT+6", "Asia/Calcutta", "America/Indianapolis"} {
		e := r.create(t, map[string]any{"name": "Lychgate night", "event_date": "2031-07-01", "event_time_zone": zone})
		v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1024, Height: 900})
		zoneField := field("event_time_zone")
		v.Do("const names = Intl.supportedValuesOf('timeZone'); Intl.supportedValuesOf = () => ['Etc/GMT-6', 'Etc/GMT+6', ...names]") // as newer browsers have
		v.Do(zoneField + ".focus()")
		v.Must(v.Press("\t"))
		diff(t, "after the Tab key", []any{zone, false}, js[[]any](v, "["+zoneField+".value, document.activeElement === "+zoneField+"]"))
		v.typed("location", "The harbour")
		v.state("Saved at ")
		saved, err := r.Events.Find(t.Context(), "daily", e.ID)
		diff(t, "once it is saved", []any{zone, "The harbour", nil}, []any{saved.Values["event_time_zone"], saved.Values["location"], err})
	}
	e := r.create(t, map[string]any{"name": "Lychgate night", "event_date": "2031-07-01"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1024, Height: 900})
	v.typed("event_time_zone", "tok")
	v.Until("!$('.zones').hidden")
	v.Do(field("event_time_zone") + ".dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true, isComposing: true}))")
	diff(t, "while a word is composed", "tok", js[string](v, field("event_time_zone")+".value"))
	v.Must(v.Press("\r"))
	diff(t, "after Enter", "Asia/Tokyo", js[string](v, field("event_time_zone")+".value"))
	v.state("Saved at ")
	diff(t, "the form is not sent", nil, js[any](v, "$('.notice')"))
	v.Must(v.Press("\r"))
	v.says("The event was saved.")
}

// A picture is dropped onto its zone, or pasted. The address is behind a button.
func TestPictureIsDropped(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1280, Height: 900})
	v.Until("$('.drop')")
	v.Do(`
		const canvas = new OffscreenCanvas(1600, 1200);
		canvas.getContext('2d').fillRect(0, 0, 400, 300);
		window.carried = new DataTransfer();
		carried.items.add(new File([await canvas.convertToBlob()], 'sky.png', {type: 'image/png'}));
		window.drop = to => ['dragover', 'drop'].map(type => {
			const event = new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: carried});
			to.dispatchEvent(event);
			return event.defaultPrevented;
		});
	`)
	use := func(key string) {
		t.Helper()
		v.Until("$('dialog.crop')?.open")
		v.press("Use this part")
		v.Until("!$('dialog.crop') && text($('[data-key=" + key + "] .said')) === 'The picture was uploaded.'")
	}
	diff(t, "beside the zone nothing is opened", []bool{true, true}, js[[]bool](v, "drop($('legend'))"))
	diff(t, "beside the zone", nil, js[any](v, "$('dialog.crop')"))
	diff(t, "onto the zone", []bool{true, true}, js[[]bool](v, "drop($('[data-key=badge] .drop'))"))
	use("badge")
	v.state("Saved at ")
	paste := func(at string) {
		v.Do(at + ".dispatchEvent(Object.assign(new Event('paste', {bubbles: true, cancelable: true}), {clipboardData: carried}))") // Firefox's ClipboardEvent takes no files
	}
	paste(field("name"))
	diff(t, "pasted into a text", nil, js[any](v, "$('dialog.crop')"))
	paste("document.body")
	use("feature_image")
	v.Do("$('[data-key=feature_image] summary').click()")
	diff(t, "the address", r.url+"/content/images/sky.png", js[string](v, field("feature_image")+".value"))
	diff(t, "what a click on the label leads to", "file", js[string](v, "$('[data-key=feature_image] > label').control.type"))
}

// An address is shown where no picture stands for it, and where it is wrong. What the button is called is what is written on it.
func TestAddressOfPictureIsShown(t *testing.T) {
	r := open(t).withParties()
	const isOpen = "$('[data-key=feature_image] details').open"
	for address, want := range map[string]bool{"": false, r.url + "/content/images/a.png": false, "https://elsewhere.example/a.png": true} {
		v := r.visit("Editor", "events?event="+r.create(t, map[string]any{"name": "Lychgate day", "feature_image": address}).ID, browser.Look{Width: 1280, Height: 900})
		v.Until("$('.drop')")
		diff(t, "the address is shown: "+address, want, js[bool](v, isOpen))
	}
	v := r.visit("Editor", "events?event="+r.create(t, map[string]any{"name": "Lychgate day"}).ID, browser.Look{Width: 1280, Height: 900})
	v.Until("$('.drop')")
	diff(t, "what the button is called", "Featured image Choose a picture",
		js[string](v, "$('[data-key=feature_image] [type=file]').getAttribute('aria-labelledby').split(' ').map(id => text(document.getElementById(id))).join(' ').replace(' *', '')"))
	v.Do(field("feature_image") + ".value = 'a'")
	v.press("Publish")
	v.Until("$('#problems')")
	diff(t, "a wrong one", true, js[bool](v, isOpen))
	v.Do(field("feature_image") + ".value = 'https://elsewhere.example/b.png'; " + field("feature_image") + ".dispatchEvent(new Event('input', {bubbles: true}))")
	diff(t, "wrong after it was changed", 0, js[int](v, "document.querySelectorAll('[data-key=feature_image] [aria-invalid]').length"))
}

// What is missing goes from the list once it is filled in, and the list with the last of it. What is emptied again comes back.
func TestMissingFieldsGo(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1280, Height: 900})
	const missing = "[...document.querySelectorAll('[data-missing]:not([hidden]) li:not([hidden])')].map(text)"
	set := func(key, value string) {
		t.Helper()
		v.Do(field(key) + fmt.Sprintf(".value = %q; ", value) + field(key) + ".dispatchEvent(new Event('input', {bubbles: true}))")
	}
	v.press("Publish")
	v.Until("$('#problems')")
	diff(t, "after a refusal", []string{"Date is required.", "Menu is required."}, js[[]string](v, missing))
	set("menu", "Cake")
	v.Until(missing + ".join() === 'Date is required.'")
	set("event_date", "2100-05-01")
	v.Until("!" + missing + ".length && text($('#said')) === 'Nothing is missing any more.'")
	set("menu", "")
	v.Until(missing + ".join() === 'Menu is required.'")
	set("name", "") // which was there when the page came
	set("menu", "Cake")
	v.Until(missing + ".join() === 'Name is required.'")
	set("name", "Lychgate night")
	v.Until("!" + missing + ".length")

	// Of a published event, which is not saved by itself, too.
	v.press("Publish")
	v.says("The event is published.")
	set("menu", "")
	v.press("Update")
	v.Until(missing + ".join() === 'Menu is required.'")
	set("menu", "Tea")
	diff(t, "of a published event", []string{}, js[[]string](v, missing))
	set("feature_image", "a")
	v.press("Update")
	v.Until("$('[data-key=feature_image] .wrong-text')")
	wrong := js[[]string](v, missing)
	set("feature_image", "b")
	diff(t, "a wrong value that was changed", wrong, js[[]string](v, missing))
	diff(t, "what readers have", []any{events.Published, "Cake"}, []any{r.only(t).Status, r.only(t).Values["menu"]})
}

// What readers see of a message is shown while it is typed, also where our own words come first.
func TestMessageIsSeenWhileTyped(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "event-settings", browser.Look{})
	seen := func(state string) []string {
		t.Helper()
		return js[[]string](v, "[..."+"$('[name=%s]').closest('desk-message').querySelectorAll('.seen-text')].map(text)", state)
	}
	without := seen("registered")
	v.Keys("[name=registered]", "See you <b>there</b>")
	v.Keys("[name=registration_closed]", "Next time!")
	diff(t, "registered", []string{"See you <b>there</b>"}, seen("registered"))
	diff(t, "closed", []string{"Next time!", "Alle Plätze sind vergeben. Next time!", "Next time!", "Du warst angemeldet. Next time!"}, seen("registration_closed"))
	v.Do("$('[name=registered]').value = ' '; $('[name=registered]').dispatchEvent(new Event('input', {bubbles: true}))")
	diff(t, "without a text", without, seen("registered"))
}
