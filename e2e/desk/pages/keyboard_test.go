package pages

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// An editor fills a slot without a mouse: opens it, searches, chooses, and takes that back.
// The focus is somewhere all the time, and never far from what was done.
func TestSlotsAreFilledWithoutAMouse(t *testing.T) {
	r := open(t)
	v := r.visit("Editor", "curation", browser.Look{Width: 1024, Height: 768})
	tabTo := func(label string) {
		t.Helper()
		for range 60 {
			if js[*string](v, "focused()") != nil && js[string](v, "focused()") == label {
				return
			}
			v.Must(v.Press("\t"))
		}
		t.Fatalf("the Tab key does not lead to %q", label)
	}
	v.Do("$('.skip').focus()")
	tabTo("Choose a post for Second story")
	v.Must(v.Press("\r"))
	v.Until("document.activeElement?.id === 'q'")
	v.Must(v.Press("bridges"))
	v.Until("text($('.found')) === '2 posts'")
	tabTo("Choose Bridges of the north")
	v.Must(v.Press("\r"))
	v.says("Second story was filled. It is live now. View site (in another tab) Undo")
	diff(t, "the slot", "Bridges of the north", js[string](v, "slot('top/top1')"))
	diff(t, "the focus after a choice", "Change for Second story", js[string](v, "focused()"))
	diff(t, "the focus is seen", "solid", js[string](v, "getComputedStyle(document.activeElement).outlineStyle"))
	diff(t, "what was done is seen", true, js[bool](v, "inSight($('.notice.done')) && inSight(document.activeElement) && !covered(document.activeElement)"))
	diff(t, "what is read out", "Second story was filled. It is live now.", js[string](v, "text($('#said'))"))
	v.Do("button('Undo').focus()")
	v.Must(v.Press("\r"))
	v.says("Second story is empty now. It is live now. View site (in another tab) Undo")
	diff(t, "the focus after it was taken back", "Choose a post for Second story", js[string](v, "focused()"))
	tabTo("Clear Third story")
	v.Must(v.Press("\r"))
	v.says("Third story is empty now. It is live now. View site (in another tab) Undo")
	diff(t, "the focus after a slot was cleared", "Choose a post for Third story", js[string](v, "focused()"))

	v.Do("button('Move the post of Lead story').focus()")
	v.Must(v.Press("\r"))
	v.Until("document.activeElement === $('h2') && text($('h2'))?.startsWith('Move the post')")
	tabTo("Move here to Third story")
	v.Must(v.Press("\r"))
	v.says("Lead story and Third story were swapped. It is live now. View site (in another tab) Undo")
	diff(t, "the slots", []any{nil, "The old lychgate is painted"}, js[[]any](v, "[slot('top/top0'), slot('top/top2')]"))
}

// A search is answered while somebody types. What another search has found cannot be chosen
// meanwhile, and a search whose words have changed is given up.
func TestSearchWhileTyping(t *testing.T) {
	r := open(t)
	first, givenUp, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	r.before = func(request *http.Request) {
		switch request.URL.Query().Get("q") {
		case "council":
			close(first)
			<-request.Context().Done()
			close(givenUp)
		case "bridges":
			<-release
		}
	}
	v := r.visit("Editor", "curation?slot=top/top1&view=search&q=lychgate", browser.Look{})
	titles := `[...document.querySelectorAll('.posts .title')].map(text)`
	isOffered := `(e => ({inert: e.inert, dimmed: getComputedStyle(e).opacity < 1}))($('.posts'))`
	diff(t, "offered at first", map[string]bool{"inert": false, "dimmed": false}, js[map[string]bool](v, isOffered))
	retype := func(words string) {
		v.Do("$('#q').value = %q; $('#q').dispatchEvent(new Event('input', {bubbles: true}))", words)
	}
	retype("council")
	<-first
	diff(t, "offered while it is looked for", map[string]bool{"inert": true, "dimmed": true}, js[map[string]bool](v, isOffered))
	diff(t, "what is dimmed", []string{"The old lychgate is painted"}, js[[]string](v, titles))
	v.Until("text($('#working')) === 'Working…'")
	retype("bridges")
	<-givenUp
	diff(t, "offered while the next is looked for", map[string]bool{"inert": true, "dimmed": true}, js[map[string]bool](v, isOffered))
	end()
	v.Until("text($('.found')) === '2 posts' && !$('.posts').inert")
	diff(t, "offered in the end", map[string]bool{"inert": false, "dimmed": false}, js[map[string]bool](v, isOffered))
	diff(t, "what is offered", []string{"Bridges of the south", "Bridges of the north"}, js[[]string](v, titles))
	diff(t, "nothing is under way", "", js[string](v, "text($('#working'))"))
	diff(t, "the address", "?slot=top%2Ftop1&view=search&q=bridges", js[string](v, "location.search"))
	retype("nowhere")
	v.Until("text($('.found')) === 'No published post has all these words in its title.'")
}

// What was typed before the page's script was there is looked for once it is.
func TestSearchTypedEarly(t *testing.T) {
	v := open(t).visit("Editor", "curation?slot=top/top1&view=search&q=lychgate", browser.Look{})
	v.Do("$('#q').value = 'bridges'")
	v.Do("(e => { const next = e.nextSibling, parent = e.parentNode; e.remove(); parent.insertBefore(e, next); })($('desk-search'))") // as if the script came now
	v.Until("text($('.found')) === '2 posts' && !$('.posts').inert")
}

// A change that the platform takes long for is seen and read out to be under way.
func TestSlowChange(t *testing.T) {
	r := open(t)
	release := make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	r.before = func(request *http.Request) {
		if request.Method == http.MethodPost {
			<-release
		}
	}
	v := r.visit("Editor", "curation", browser.Look{})
	says := "(e => e.getAttribute('role') === 'status' && e.checkVisibility() ? text(e) : null)($('#working'))"
	diff(t, "before", "", js[string](v, says))
	v.press("Clear Third story")
	v.Until(says + " === 'Working…'")
	diff(t, "it is seen", true, js[bool](v, "inSight($('#working'))"))
	end()
	v.says("Third story is empty now. It is live now. View site (in another tab) Undo")
	diff(t, "afterwards", "", js[string](v, says))
}

// Somebody drags a post onto another slot. Each step is read out.
func TestStepsOfDraggingAreReadOut(t *testing.T) {
	r := open(t)
	v := r.visit("Editor", "curation", browser.Look{})
	v.Do(`
		window.drag = (from, ...steps) => { // returns what is read out after each step
			const carried = new DataTransfer();
			return [['dragstart', from], ...steps].map(([type, slot]) => {
				const to = document.querySelector('[data-slot="top/' + slot + '"]' + (slot === from ? ' > .post' : ''));
				to.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: carried}));
				return text($('#said'));
			});
		};
	`)
	steps := func(name, of string, want ...string) {
		t.Helper()
		diff(t, name, want, js[[]string](v, "drag('top0', %s)", of))
	}
	const (
		begun     = "The post of Lead story is dragged."
		cancelled = "Dragging was cancelled. Nothing has changed."
	)
	steps("cancelled", "['dragover', 'top1'], ['dragend', 'top0']", begun, "Over Second story.", cancelled)
	steps("back where it was", "['dragover', 'top1'], ['dragover', 'top0'], ['drop', 'top0'], ['dragend', 'top0']",
		begun, "Over Second story.", "Over Lead story.", "Dropped on Lead story, where it was. Nothing has changed.", "Dropped on Lead story, where it was. Nothing has changed.")
	diff(t, "nothing is marked", 0, js[int](v, "document.querySelectorAll('.slot.over').length"))
	steps("dropped", "['dragover', 'top2'], ['dragover', 'top1'], ['dragover', 'top1'], ['drop', 'top1'], ['dragend', 'top0']",
		begun, "Over Third story.", "Over Second story.", "Over Second story.", "Dropped on Second story.", "Dropped on Second story.")
	v.says("Lead story and Second story were swapped. It is live now. View site (in another tab) Undo")
	diff(t, "the slots", []any{nil, "The old lychgate is painted"}, js[[]any](v, "[slot('top/top0'), slot('top/top1')]"))
	v.press("Undo")
	v.Until("slot('top/top0') === 'The old lychgate is painted'")
	diff(t, "the focus", true, js[bool](v, "focused() !== null"))
}

// The session ends in the middle: what was typed stays, Ghost's sign-in is a link away, and
// then it goes on.
func TestSessionEnds(t *testing.T) {
	r := open(t)
	v := r.visit("Owner", "integrations", browser.Look{})
	signedOut := func() { v.Do("await fetch('/sign-out')") }
	signedIn := func() { v.Do("await fetch('/sign-in?as=Owner')") }
	v.Keys("#name", "newsletter")
	signedOut()
	v.press("Add")
	v.says("Sign in to Ghost's admin on this site first.Sign in to Ghost (in another tab)")
	diff(t, "the link", []string{"/ghost/", "_blank"}, js[[]string](v, "[$('.notice .sign-in').getAttribute('href'), $('.notice .sign-in').target]"))
	diff(t, "what was typed", "newsletter", js[string](v, "$('#name').value"))
	diff(t, "the focus", true, js[bool](v, "focused() !== null"))
	signedIn()
	v.press("Add")
	v.Until("text($('#key-title')) === 'The key of newsletter'")

	v.goTo("curation?slot=top/top1")
	signedOut()
	v.Keys("#q", "bridges")
	v.Until("text($('.found'))?.startsWith(\"Sign in to Ghost's admin on this site first.\")")
	signedIn()
	v.Keys("#q", " ")
	v.Until("text($('.found')) === '2 posts'")

	r.noScript = true
	signedOut()
	v.goTo("curation?slot=top/top1&view=search&q=bridges")
	v.Until("text($('h1')) === 'Sign in first'")
	signedIn()
	v.Do("button('Go on').click()")
	v.Until("text($('.found')) === '2 posts' && $('#q').value === 'bridges'")
}

// With plain forms alone, slots are filled, cleared and moved, themes are refreshed, and
// integrations are added, rotated and revoked.
func TestWithoutJavaScript(t *testing.T) {
	r := open(t)
	r.noScript = true
	v := r.visit("Owner", "curation", browser.Look{})
	notice := func(want string) {
		t.Helper()
		v.Until(fmt.Sprintf("document.readyState === 'complete' && said() === %q", want))
		diff(t, "script runs", false, js[bool](v, "!!customElements.get('desk-page')"))
	}
	v.press("Choose a post for Second story")
	v.Until("document.readyState === 'complete' && $('#q')")
	v.Do("$('#q').value = 'bridges'")
	v.press("Search")
	v.Until("document.readyState === 'complete' && text($('.found')) === '2 posts'")
	v.press("Choose Bridges of the south")
	notice("Second story was filled. It is live now. View site (in another tab) Undo")
	diff(t, "filled", "Bridges of the south", js[string](v, "slot('top/top1')"))
	v.press("Undo")
	notice("Second story is empty now. It is live now. View site (in another tab) Undo")
	v.press("Move the post of Lead story")
	v.Until("document.readyState === 'complete' && button('Move here to Second story')")
	v.press("Move here to Second story")
	notice("Lead story and Second story were swapped. It is live now. View site (in another tab) Undo")
	diff(t, "moved", "The old lychgate is painted", js[string](v, "slot('top/top1')"))
	v.Do("$('details:has([name=from_all])').open = true; $('[name=from_all]').checked = true")
	v.press("Keep the newest alone")
	notice("News was filled. It is live now. View site (in another tab) Undo")
	v.press("Clear News")
	notice("News is empty now. It is live now. View site (in another tab) Undo")

	v.goTo("themes")
	v.press("Refresh source")
	notice("source was refreshed. Its manifest is valid, and in use now.")
	diff(t, "the way to upload", "/ghost/#/settings/design/change-theme", js[string](v, "$('desk-upload a').getAttribute('href')"))

	v.goTo("integrations")
	v.Do("$('#name').value = 'plain'")
	v.press("Add")
	v.Until("text($('#key-title')) === 'The key of plain'")
	first := js[string](v, "text($('#api-key'))")
	v.press("Rotate plain")
	v.Until("document.readyState === 'complete' && button('Rotate the key')")
	v.press("Rotate the key")
	v.Until("text($('#key-title')) === 'Another key for plain'")
	if second := js[string](v, "text($('#api-key'))"); second == first || !strings.HasPrefix(second, "lg_plain_") {
		t.Errorf("rotated to %s", second)
	}
	v.press("Revoke plain")
	v.Until("document.readyState === 'complete' && button('Revoke the key')")
	v.press("Revoke the key")
	notice("plain is revoked. Its key is refused from now on.")
	v.goTo("sync")
	v.press("Try now")
	notice("Being tried now: 2 members. Reload the page to see what became of it.")
}

// Themes are uploaded and activated on the page, and what Ghost and the manifest's findings
// say is text.
func TestThemesAreUploadedOnThePage(t *testing.T) {
	r := open(t)
	v := r.visit("Owner", "themes", browser.Look{})
	v.Choose("desk-upload input", "notes.txt", []byte("no zip"))
	v.says("Choose one theme, as a zip.")
	v.Choose("desk-upload input", "broken.zip", []byte("zip"))
	v.says("broken.zip: Theme is not compatible or contains errors. index.hbsindex.hbs Templates must exist")
	v.Choose("desk-upload input", "weekly.zip", []byte("zip"))
	v.says("weekly was uploaded.Findings in its manifest:events.types.<i>x</i> " + hostile + "Ghost says:style.css Use one font")
	diff(t, "the focus", true, js[bool](v, "$('.notice') === document.activeElement"))
	v.press("Activate weekly")
	v.says("weekly is active now.")
	diff(t, "the active theme", "weekly Active", js[string](v, "text($('.badge').closest('th'))"))
	v.press("Refresh nightly")
	v.says("nightly could not be refreshed, so nothing has changed: reading the repository failed: " + hostile)
}
