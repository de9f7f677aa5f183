package desk

import (
	"fmt"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The desk is at home in Ghost Admin: it is called as the publication is, has its colours, leads back
// to where somebody was, and the first field of an event waits for what is typed.
func TestAtHome(t *testing.T) {
	s := newSite(t, "", options{})
	s.declare(withSlot)
	p := s.signIn(owner)
	p.Must(p.Show(browser.Look{Width: 1280, Height: 900, Media: map[string]string{"prefers-color-scheme": "light"}}))
	title := browser.JS[string](p, "(async () => (await (await fetch('/ghost/api/admin/site/')).json()).site.title)()")

	p.Do("location.hash = '#/posts'")
	p.Until("location.hash === '#/posts' && document.querySelector('[data-lychgate=Events] a')")
	p.Do("document.querySelector('[data-lychgate=Events] a').click()")
	p.Until("text(document.querySelector('h1')) === 'Events'")
	if got := browser.JS[string](p, "text(document.querySelector('header .site'))"); got != title {
		t.Errorf("the desk is called %q, want %q as the publication is", got, title)
	}
	if got := browser.JS[string](p, "(() => { const a = document.querySelector('header .back'); return a.pathname + a.hash; })()"); got != "/ghost/#/posts" {
		t.Errorf("the way back leads to %q, want /ghost/#/posts", got)
	}
	if calendar := browser.JS[string](p, "(async () => (await (await fetch('/ghost/lychgate/events.ics')).text()).match(/X-WR-CALNAME:(.*)/)?.[1].trim() ?? '')()"); calendar != "" && calendar != title {
		t.Errorf("the calendar is called %q, want %q", calendar, title)
	}

	const ground = "getComputedStyle(document.body).backgroundColor"
	for _, night := range []struct{ on, scheme, colour string }{{"true", "dark", "rgb(21, 23, 25)"}, {"false", "light", "rgb(255, 255, 255)"}} {
		status := browser.JS[int](p, `(async () => {
			const {users: [user]} = await (await fetch('/ghost/api/admin/users/me/')).json();
			return (await fetch('/ghost/api/admin/users/' + user.id + '/', {method: 'PUT', headers: {'Content-Type': 'application/json'},
				body: JSON.stringify({users: [{name: user.name, email: user.email, accessibility: JSON.stringify({nightShift: %s})}]})})).status;
		})()`, night.on)
		if status != 200 {
			t.Fatalf("choosing a scheme in Ghost: got %d, want 200", status)
		}
		wait.Until(t, func() string { // what Ghost says of somebody counts for 15 seconds
			p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/events?new="))
			p.Until("document.activeElement?.name === 'f.name'")
			if got := browser.JS[string](p, ground); got != night.colour {
				return fmt.Sprintf("with nightShift %s the desk is on %s, want %s", night.on, got, night.colour)
			}
			return ""
		})
		if browser.Name() != "webkit" {
			p.Picture("desk_at_home_" + night.scheme)
		}
	}
}
