package events

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// A publication on a theme that knows nothing of events has them all the same: an editor chooses the type of the operator's,
// readers meet the event on its page, and on a page with a list.
func TestEventsWithThemesOfGhost(t *testing.T) {
	s := newSite(t, "")
	html, err := os.ReadFile(filepath.Join(anyTheme, "list.html"))
	s.send("POST", "/ghost/api/admin/pages/?source=html", map[string]any{"pages": []any{map[string]string{
		"title": "What is on", "slug": "what-is-on", "status": "published", "html": "<!--kg-card-begin: html-->" + string(must(t, html, err)) + "<!--kg-card-end: html--><p>What is below.</p>",
	}}}, nil)
	for _, theme := range []string{"source", "casper"} {
		t.Run(theme, func(t *testing.T) {
			s.activate(theme)
			if offered := s.get("/ghost/lychgate/themes/" + theme + "/event-types"); !strings.Contains(offered, `{"key":"event",`) {
				t.Errorf("the event types are %s, want the operator's", offered)
			}
			s.publishOf(theme, "event", map[string]any{
				"name": "Party on " + theme, "slug": "on-" + theme, "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin",
				"location": "The Pier", "speaker": "Ada & Ben", "step_free": true, "access": "free",
			})
			p := s.visitor("/on-" + theme + "/")
			diff(t, "a guest", "login_required_free", p.state())
			diff(t, "fields", []string{"Speaker", "Ada & Ben", "Step-free access", "✓"}, browser.JS[[]string](p.Page, "[...part('fields').querySelectorAll('dt, dd')].map(text)"))

			p = s.visitor("/what-is-on/")
			p.Until("find('lychgate-events') && shownIn(find('lychgate-events')).length")
			diff(t, "the list", true, browser.JS[bool](p.Page, "shownIn(find('lychgate-events')).some(lines => lines.join('|') === %q)", "Party on "+theme+"|Thu, May 1, 2031, 7:00 PM GMT+2|The Pier"))
			diff(t, "overflow", false, browser.JS[bool](p.Page, "document.documentElement.scrollWidth > innerWidth"))
			if browser.Name() == "chromium" { // others measure no layout shifts
				shift := p.shift()
				t.Logf("the layout shifts by %.4f", shift)
				if shift > 0.01 {
					t.Errorf("the layout shifts by %.4f, want nothing to move", shift)
				}
			}
			p.Picture("events-" + theme)
		})
	}
}
