package pages

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// views are the pages, and what is done there before they are looked at.
var views = []struct{ name, role, address, do, until string }{
	{"curation", "Editor", "curation", "document.querySelectorAll('details').forEach(d => d.open = true)", "$('.slots')"},
	{"filled", "Editor", "curation?slot=culture/culture1&view=recent", "$('.posts button').click()", "$('.notice.done')"},
	{"recent", "Editor", "curation?slot=culture/culture1&view=recent", "", "$('.posts li')"},
	{"search", "Editor", "curation?slot=news/news&view=search&q=o", "", "$('.posts li')"},
	{"move", "Editor", "curation?slot=top/top0&move=", "", "$('.posts li')"},
	{"events", "Editor", "events", "", "$('table')"},
	{"narrowed", "Editor", "events?view=all&type=party&q=o", "", "$('.lists')"},
	{"month", "Editor", "events?view=month&month=2100-06", "", "$('.month li')"},
	{"past", "Editor", "events?view=past&q=x", "", "$('.search')"},
	{"editor", "Editor", "events?event=draft", "document.querySelectorAll('details').forEach(d => d.open = true)", "$('.chips li')"},
	{"problems", "Editor", "events?event=draft", "button('Publish').click()", "$('#problems')"},
	{"conflict", "Editor", "events?event=draft", "$('[name=revision]').value = 1; $('[data-key=slug] [name]').value = 'hall'; button('Save draft').click()", "$('.notice dl')"},
	{"typed", "Editor", "events?event=draft", "sessionStorage['lychgate-event-' + $('[name=event]').value] = JSON.stringify({'f.location': 'Hall'}); window.old = true; location.reload()", "!window.old && button('Restore it')"},
	{"gone", "Editor", "events?event=gone", "", "$('.values')"},
	{"crop", "Editor", "events?new=", pickPicture, "$('.crop .size')?.textContent"},
	{"delete", "Editor", "events?event=draft&confirm=delete", "", "button('Delete the event')"},
	{"guest-list", "Editor", "guest-list?event=guests", "", "$('.guests')"},
	{"guest-removed", "Editor", "guest-list?event=guests", "$('.guests button[value=remove]').click()", "button('Undo')"},
	{"guest-over", "Editor", "guest-list?event=guests", "$('#email').value = 'over@example.com'; button('Add').click()", "button('Add over the limit')"},
	{"guest-waiting", "Editor", "guest-list?event=guests", "$('button[value=move-up]').click()", "button('Give a place over the limit')"},
	{"guest-several", "Editor", "guest-list?event=guests", "$('#lines').value = 'Ann <ann@example.com>\\nnobody'; button('Check the list').click()", "button('Add 1 guest')"},
	{"guest-message", "Editor", "guest-message?event=guests", "", "button('Preview')"},
	{"guest-message-shown", "Editor", "guest-message?event=guests", "$('#subject').value = `Where to park ${'x'.repeat(130)}`; $('#text').value = 'Use the north gate.\\n\\nSee https://example.com/' + 'x'.repeat(300); button('Preview').click()", "$('iframe.mail')"},
	{"walk-in", "Editor", "check-in?event=guests", "$('.walk-in').open = true", "$('.walk-in').open"},
	{"check-in", "Editor", "check-in?event=guests", "while (!$('.door-list [data-member]')) await new Promise(done => setTimeout(done, 20)); $('.door-list [value=in]')?.click()", "$('.door-list .in')"},
	{"delete-guests", "Editor", "events?event=guests&confirm=delete", "", "button('Delete the event')"},
	{"zones", "Editor", "events?new=", "const zone = $('[role=combobox]'); zone.value = 'new'; for (let i = 0; i < 2; i++) zone.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))", "$('.zones:not([hidden]) [aria-selected=true]')"},
	{"event-settings", "Editor", "event-settings", "", "button('Save settings')"},
	{"themes", "Owner", "themes", "document.querySelectorAll('details').forEach(d => d.open = true)", "$('.upload.ready')"},
	{"refreshed", "Editor", "themes", "$('button[value=nightly]').click()", "$('.notice.problem')"},
	{"integrations", "Owner", "integrations", "document.querySelectorAll('details').forEach(d => d.open = true)", "$('#name')"},
	{"key", "Owner", "integrations", "$('#name').value = 'look' + Date.now(); button('Add').click()", "$('#api-key') && $('desk-copy button')"},
	{"revoke", "Owner", "integrations?revoke=crm", "", "button('Revoke the key')"},
	{"sync", "Owner", "sync", "", "$('table')"},
	{"not-allowed", "Author", "sync", "", "$('.message')"},
	{"signed-out", "", "curation", "", "$('.sign-in')"},
}

// look is how a page is looked at.
type look struct {
	width, height int64
	colours       string
}

// looks are all in Chromium, and those of the others in which they may differ from it.
func looks() []look {
	switch browser.Name() {
	case "webkit": // whose driver sets no colours
		return []look{{320, 780, "light"}, {1600, 1000, "light"}}
	case "firefox":
		return []look{{320, 780, "light"}, {1600, 1000, "dark"}}
	}
	return []look{{320, 780, "dark"}, {1600, 1000, "light"}}
}

func (l look) as() browser.Look {
	how := browser.Look{Width: l.width, Height: l.height}
	if browser.Name() != "webkit" {
		how.Media = map[string]string{"prefers-color-scheme": l.colours}
	}
	return how
}

// The pages shut nobody out: axe-core finds nothing, in light and dark, on a phone and on a
// wide screen, and nothing is cut off at the side, also where the text is twice as large.
func TestNobodyIsShutOut(t *testing.T) {
	script := axe(t)
	r := open(t).withParties()
	r.SendMails()
	named := r.withHostileEvents(t)
	refused := "550 5.1.1 " + strings.Repeat("x", 200)
	if _, err := r.DB.Write.ExecContext(t.Context(), `INSERT INTO mails (site, event, member, reason, sent_at, told, refusal)
		SELECT site, event, member, 'moved 1', 9000000000000, '', $1 FROM registrations`, refused); err != nil {
		t.Fatalf("inserting mails: %v", err)
	}
	for i, l := range looks() {
		t.Run(fmt.Sprintf("%d %s", l.width, l.colours), func(t *testing.T) {
			r.t = t
			v := r.visit("Owner", "themes", l.as())
			for _, view := range views {
				v.as(view.role)
				v.goTo(named(view.address))
				v.Do("%s", view.do)
				v.Until(view.until)
				v.audit(view.name, script)
				v.fits(view.name)
				if i == 0 { // the narrowest
					v.Do("document.documentElement.style.fontSize = '125%%'")
					v.fits(view.name + ", with text twice as large")
				}
				if os.Getenv("LYCHGATE_TEST_PICTURES") == "" {
					continue
				}
				v.Picture(fmt.Sprintf("desk-%s-%d-%s", view.name, l.width, l.colours))
			}
		})
	}
}

// as has the page be somebody's from now on, nobody's if the role is "".
func (v tab) as(role string) {
	v.T.Helper()
	address := "/sign-in?as=" + role
	if role == "" {
		address = "/sign-out"
	}
	v.Do("await fetch(%q)", address)
}

// audit lets axe-core look for what shuts people out.
func (v tab) audit(name, script string) {
	v.T.Helper()
	v.Do("await Promise.all(document.getAnimations().map(a => a.finished)); if (!window.axe) {%s}", script)
	type node struct{ HTML, FailureSummary string }
	type finding struct {
		ID, Help string
		Nodes    []node
	}
	result := js[struct {
		Passes                 int
		Violations, Incomplete []finding
	}](v, "axe.run().then(r => ({Passes: r.passes.length, Violations: r.violations, Incomplete: r.incomplete}))")
	for _, f := range append(result.Violations, result.Incomplete...) {
		// Of text that is clipped axe-core cannot tell what is behind it, nor of one letter. The same colours are
		// seen where nothing is clipped. Into a frame without scripts, which has a mail, it does not get.
		f.Nodes = slices.DeleteFunc(f.Nodes, func(n node) bool {
			return strings.Contains(n.FailureSummary, "overlap") || strings.Contains(n.FailureSummary, "Element has no value") || strings.Contains(n.FailureSummary, "too short") ||
				f.ID == "frame-tested"
		})
		if len(f.Nodes) == 0 {
			continue
		}
		text, _ := json.MarshalIndent(f, "", "\t")
		v.T.Errorf("%s: got %s, want nothing that axe-core finds", name, text)
	}
	if result.Passes < 10 {
		v.T.Errorf("%s: only %d rules passed", name, result.Passes)
	}
}

// fits checks that nobody has to scroll sideways, and that nothing is cut off there.
func (v tab) fits(name string) {
	v.T.Helper()
	diff(v.T, name+": wider than the window", []string{}, js[[]string](v, `(() => {
		const width = document.documentElement.clientWidth;
		const wide = [...document.querySelectorAll('body *')].filter(e => {
			const box = e.getBoundingClientRect();
			return (box.right > width + 1 || box.left < -1) && box.width > 1 && e.checkVisibility() && !e.closest('pre, .unseen, .skip, svg, progress') && getComputedStyle(e).position !== 'absolute';
		}).map(e => e.localName + '.' + e.className + ' ' + Math.round(e.getBoundingClientRect().right) + ' ' + text(e).slice(0, 40));
		if (document.documentElement.scrollWidth > width) wide.push('scrolls');
		return wide.slice(0, 5);
	})()`))
	diff(v.T, name+": cut through a line", []string{}, js[[]string](v, `[...document.querySelectorAll('body *')].filter(e => {
		const {overflowY, lineHeight} = getComputedStyle(e), lines = e.clientHeight / parseFloat(lineHeight);
		return overflowY === 'hidden' && e.scrollHeight > e.clientHeight + 1 && Math.abs(lines - Math.round(lines)) > .2 && e.checkVisibility() && !e.closest('.unseen, thead, svg, h1');
	}).map(e => [e.parentElement.localName, e.localName, text(e).slice(0, 40), lines].join(' '))`))
	diff(v.T, name+": names that are narrower than their row", []string{}, js[[]string](v, `[...document.querySelectorAll('.wide tbody th')]
		.filter(e => getComputedStyle(e).display === 'block' && e.offsetWidth < e.parentElement.clientWidth - 1).map(text)`))
}

// A page is one request each for script, style and itself, and small; and nothing moves
// for those who have asked for that.
func TestRequestsAndMotion(t *testing.T) {
	r := open(t).withParties()
	r.SendMails()
	named := r.withHostileEvents(t)
	for _, address := range []string{"curation", "events", "events?new=", "event-settings", "guest-list?event=guests", "guest-message?event=guests", "check-in?event=guests", "themes", "integrations", "sync", "curation?slot=top/top0&view=recent"} {
		v := r.visit("Owner", named(address), browser.Look{})
		got := js[struct {
			Scripts, Styles, Others, Bytes int
		}](v, `(() => {
			const all = performance.getEntriesByType('resource').filter(e => !/favicon|\/content\/|\/registrations/.test(e.name)), of = kind => all.filter(e => e.initiatorType === kind).length;
			return {Scripts: of('script'), Styles: of('link'), Others: all.length - of('script') - of('link'),
				Bytes: [...all, ...performance.getEntriesByType('navigation')].reduce((sum, e) => sum + e.encodedBodySize, 0)};
		})()`)
		most := 64 << 10                         // bytes, without compression
		if strings.HasPrefix(address, "event") { // whose script also crops pictures, finds time zones, and keeps what is not sent
			most = 112 << 10
		} else if strings.HasSuffix(address, "event=guests") { // whose script works without a network, and who also write to guests
			most = 84 << 10
		}
		if got.Scripts != 1 || got.Styles != 1 || got.Others != 0 || got.Bytes > most {
			v.T.Errorf("%s: got %+v, want 1 script, 1 style, nothing else, %d bytes at most", address, got, most)
		}
	}
	if browser.Name() == "webkit" {
		return // whose driver sets no prefers-reduced-motion
	}
	moving := `[...document.querySelectorAll('*')].filter(e => !/^(0s(, )?)+$/.test(getComputedStyle(e).transitionDuration)).length`
	for _, test := range []struct {
		media map[string]string
		moves bool
	}{{nil, true}, {map[string]string{"prefers-reduced-motion": "reduce"}, false}} {
		v := r.visit("Owner", "curation", browser.Look{Media: test.media})
		diff(t, fmt.Sprint("moves with ", test.media), test.moves, js[int](v, moving) > 0)
	}
}
