package desk

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The desk is at home in Ghost Admin: it is called as the publication is, has its colours, leads back
// to where somebody was, and the first field of an event waits for what is typed.
func TestAtHome(t *testing.T) {
	s := newSite(t, "", options{more: "events_api"})
	s.declare(withSlot)
	p := s.signInAt(owner, "#/posts")
	p.Must(p.Show(browser.Look{Width: 1280, Height: 900, Media: map[string]string{"prefers-color-scheme": "light"}}))
	const title = "The Lantern" // which nothing here but Ghost says
	if status, body := api(p, "PUT", "/settings/", `{"settings": [{"key": "title", "value": "`+title+`"}]}`); status != http.StatusOK {
		t.Fatalf("naming the publication: got %d %s, want 200", status, body)
	}

	openScreen(p, "#/posts", "document.querySelector('[data-lychgate=Events] a')")
	p.Do("document.querySelector('[data-lychgate=Events] a').click()")
	p.Until("text(document.querySelector('h1')) === 'Events' && document.readyState === 'complete'") // with its script
	if got := browser.JS[string](p, "text(document.querySelector('header .site'))"); got != title {
		t.Errorf("the desk is called %q, want %q as the publication is", got, title)
	}
	if got := browser.JS[string](p, "(() => { const a = document.querySelector('header .back'); return a.pathname + a.hash; })()"); got != "/ghost/#/posts" {
		t.Errorf("the way back leads to %q, want /ghost/#/posts", got)
	}
	calendar := browser.JS[[]string](p, "fetch('/ghost/lychgate/events.ics').then(response => response.text()).then(text => text.split('\\r\\n').filter(line => /^(X-WR-CAL)?NAME:/.test(line)))")
	diff(t, "what the calendar is called", []string{"NAME:" + title, "X-WR-CALNAME:" + title}, calendar)

	const ground = "getComputedStyle(document.body).backgroundColor"
	for _, night := range []struct{ scheme, colour string }{{"dark", "rgb(21, 23, 25)"}, {"light", "rgb(255, 255, 255)"}} {
		status := browser.JS[int](p, `(async () => {
			const {users: [user]} = await (await fetch('/ghost/api/admin/users/me/')).json(), scheme = %q;
			const nightShift = typeof JSON.parse(user.accessibility ?? '{}').nightShift === 'string' ? scheme : scheme === 'dark'; // by version
			return (await fetch('/ghost/api/admin/users/' + user.id + '/', {method: 'PUT', headers: {'Content-Type': 'application/json'},
				body: JSON.stringify({users: [{name: user.name, email: user.email, accessibility: JSON.stringify({nightShift})}]})})).status;
		})()`, night.scheme)
		if status != 200 {
			t.Fatalf("choosing a scheme in Ghost: got %d, want 200", status)
		}
		wait.Until(t, func() string { // what Ghost says of somebody counts for 15 seconds
			p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?new="))
			p.Until("document.activeElement?.name === 'f.name'")
			if got := browser.JS[string](p, ground); got != night.colour {
				return fmt.Sprintf("with Ghost Admin in %s the desk is on %s, want %s", night.scheme, got, night.colour)
			}
			return ""
		})
		if browser.Name() != "webkit" {
			p.Picture("desk_at_home_" + night.scheme)
		}
	}
}
