package button

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// portals is the address of the button in Portal's own pop-up, null without one.
const portals = `(document.querySelector('iframe[title="portal-popup"]')?.contentDocument?.querySelector('.gh-portal-btn-inbox-link')?.href ?? null)`

// docs/inbox_button.md says what readers see where Portal has a button of its own, as it
// has with Ghost 6: Portal's in its pop-up, and ours below the forms of the theme.
func TestBesideThatOfPortal(t *testing.T) {
	ghost, _ := ghosttest.Real(t)
	harness.NeedBrowser(t)
	hasOwn := strings.HasPrefix(os.Getenv("LYCHGATE_GHOST_VERSION"), "6.")
	site := front(t, ghost, asset(t, "portal.min.js"))
	address := fmt.Sprintf("jane%d@gmail.com", time.Now().UnixNano())
	asOwner(t, ghost)("POST", "members/", map[string]any{"members": []any{map[string]any{"email": address}}})
	const form = `<form id="%s" data-members-form="signin" %s><input type="email" data-members-email><button>Go</button></form>`
	put := func(forms string) {
		inject(t, ghost, `<script src="`+edge+`/ghost/lychgate/inbox-button.js" `+forms+` data-sender="noreply@127.0.0.1" defer></script>`+
			fmt.Sprintf(form, "link", "")+fmt.Sprintf(form, "code", `data-members-otc="true"`))
	}
	put("data-forms")
	signIn := func(id string) *page {
		p := open(t, site+"/", phoneOrDesktop(1280, 800, false))
		p.Until("listening.size > 0 && [...document.querySelectorAll('form[data-members-form]')].every(form => listening.has(form))")
		p.Keys("#"+id+" [data-members-email]", address+"\r")
		p.Until("!!document.querySelector('#" + id + ".success')")
		return p
	}
	ours := func(p *page) {
		t.Helper()
		if href := p.shown().Href; !strings.HasPrefix(href, "https://mail.google.com/") {
			t.Errorf("our button leads to %s", href)
		}
	}

	p := signIn("link")
	ours(p)
	if href := js[*string](p, portals); href != nil {
		t.Errorf("Portal has a button for a form that asks for a link: %s", *href)
	}

	p = signIn("code")
	ours(p)
	if hasOwn {
		p.Until(portals + `?.startsWith('https://mail.google.com/')`)
		p.Picture("portal-code")
	}

	// Another query has a browser load the page anew.
	p = open(t, site+"/?another#/portal/signin", phoneOrDesktop(1280, 800, false))
	p.Until(`!!document.querySelector('iframe[title="portal-popup"]')?.contentDocument?.querySelector('input[type=email]')`)
	p.Do(`
		const popup = document.querySelector('iframe[title="portal-popup"]').contentWindow;
		const field = popup.document.querySelector('input[type=email]');
		Object.getOwnPropertyDescriptor(popup.HTMLInputElement.prototype, 'value').set.call(field, '%s');
		field.dispatchEvent(new popup.Event('input', {bubbles: true}));
		popup.document.querySelector('.gh-portal-signin-footer button, button.gh-portal-btn-main').click();`, address)
	p.Until(`!!document.querySelector('iframe[title="portal-popup"]')?.contentDocument?.querySelector('.gh-portal-inbox-notification')`)
	if href := js[*string](p, portals); (href != nil) != hasOwn {
		t.Errorf("in Portal's pop-up there is the button %v, with Ghost %s", href, os.Getenv("LYCHGATE_GHOST_VERSION"))
	}
	if p.button() != nil {
		t.Error("got our button for a form of Portal's, want none")
	}

	put(`data-forms="form[data-members-form]:not([data-members-otc])"`)
	p = signIn("code")
	if hasOwn {
		p.Until(portals + ` !== null`)
	}
	if p.button() != nil {
		t.Error("got our button for a form that is left out, want none")
	}
	ours(signIn("link"))
}
