package pages

import (
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// A picture of an event is cut again, of the whole file that was chosen and also another day, and
// is removed.
func TestPictureIsCutAgain(t *testing.T) {
	r := open(t).withParties()
	e := r.create(t, map[string]any{"name": "Lychgate day"})
	v := r.visit("Editor", "events?event="+e.ID, browser.Look{Width: 1280, Height: 900})
	v.Until(field("name") + " === document.activeElement")
	const again, remove = "Crop again the picture of Featured image", "Remove the picture of Featured image"
	const offered = "[button('" + again + "'), button('" + remove + "')].map(b => b.checkVisibility())"
	diff(t, "offered without a picture", []bool{false, false}, js[[]bool](v, offered))
	use := func() {
		t.Helper()
		v.Until("$('dialog.crop')?.open")
		v.press("Use this part")
		v.Until("!$('dialog.crop') && text($('[data-key=feature_image] .said')) === 'The picture was uploaded.'")
	}
	v.choose("feature_image", "sky.png", asPNG(t, landscape(1600, 1200)))
	use()
	diff(t, "offered with a picture", []bool{true, true}, js[[]bool](v, offered))
	v.state("Saved at ")
	v.Do("$('[data-key=feature_image] .said').textContent = $('.state').textContent = ''")
	v.press(again)
	v.Until("$('dialog.crop')?.open")
	diff(t, "the whole file", "1600 × 900 px", js[string](v, "text($('.size'))"))
	use()
	v.state("Saved at ")

	v.goTo("events?event=" + e.ID)
	v.Until("button('" + again + "')?.checkVisibility()")
	v.press(again)
	v.Until("$('dialog.crop')?.open")
	v.press("Cancel")
	v.Until("!$('dialog.crop')")
	v.press(remove)
	v.Until("text($('[data-key=feature_image] .said')) === 'The picture was removed.' && !$('[data-key=feature_image] img')")
	diff(t, "the focus", true, js[bool](v, "document.activeElement?.type === 'file'"))
	v.state("Saved at ")
	diff(t, "on the server", nil, r.only(t).Values["feature_image"])
}

// A user who comes from the platform's admin is led back to where they were there.
func TestWayBack(t *testing.T) {
	r := open(t)
	v := r.visit("Editor", "themes", browser.Look{})
	const back = "(a => a.pathname + a.hash)($('header .back'))"
	diff(t, "at first", "/ghost/", js[string](v, back))
	for place, want := range map[string]string{"#/posts?type=draft": "/ghost/#/posts?type=draft", "#/signin": "/ghost/", "javascript:alert(1)": "/ghost/"} {
		v.Do("sessionStorage.setItem('lychgate-admin', %q)", place)
		v.goTo("themes")
		v.Until("$('header .back')")
		diff(t, place, want, js[string](v, back))
	}
}
