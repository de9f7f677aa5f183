package desk

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// The owner that e2e/ghost/start makes. All of the staff have this password.
const (
	owner    = "owner@example.com"
	password = "four-words-on-a-lychgate"
)

// site is a publication of a test's own: a Ghost, and the edge in front of it at the
// address that Ghost is configured with.
type site struct {
	t     testing.TB
	ghost *ghosttest.Process
	mail  mailbox.Mailbox
	base  string // http://localhost:<port>, with the path of a Ghost in a subdirectory
	port  string
	store string
	edge  *caddytest.Edge
}

const caddyfile = `{
	{{global}}
	lychgate {
		store sqlite {{store}}
		site daily {
			hosts localhost
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
			{{site}}
		}
	}
}

http://localhost:{{port}} {
	theme_manifest {
		path {{path}}/ghost
		{{theme_manifest}}
	}
	staff_desk {
		path {{path}}/ghost
		{{staff_desk}}
	}
	{{more}}
	reverse_proxy {{upstream}}
}
`

// options are what a test's Caddyfile has more.
type options struct{ site, themeManifest, staffDesk, more string }

// newSite starts a Ghost below a path, empty for none, and an edge in front of it.
// Environment variables for Ghost are the test's.
func newSite(t testing.TB, path string, more options) *site {
	t.Helper()
	harness.NeedBrowser(t)
	s := &site{t: t, ghost: ghosttest.New(t), port: freeport.New(t), store: filepath.Join(t.TempDir(), "lychgate.db")}
	s.base = "http://localhost:" + s.port + path
	mail, smtp := mailbox.Start(t)
	s.mail = mail
	t.Setenv("LYCHGATE_GHOST_URL", s.base)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	s.ghost.Start()
	s.startEdge(more)
	return s
}

// startEdge starts the edge, or another in its place, which has the same store.
func (s *site) startEdge(more options) {
	s.t.Helper()
	if s.edge != nil {
		if err := s.edge.Stop(); err != nil {
			s.t.Fatalf("s.edge.Stop: %v", err)
		}
	}
	upstream, path, _ := strings.Cut(strings.TrimPrefix(s.ghost.URL, "http://"), "/")
	if path != "" {
		path = "/" + path
	}
	s.edge = caddytest.New(s.t, caddyfile, caddytest.Values{
		"port": s.port, "store": s.store, "ghost": s.ghost.URL, "key": s.ghost.Key, "upstream": upstream, "path": path,
		"site": more.site, "theme_manifest": more.themeManifest, "staff_desk": more.staffDesk, "more": more.more,
	})
}

// helpers are for all scripts of these tests: what is seen of an element, and elements
// by what they say.
const helpers = `
	const seen = element => !!element && element.checkVisibility({visibilityProperty: true, opacityProperty: true});
	const text = element => element?.innerText.replace(/\s+/g, ' ').trim() ?? null;
	const dialog = () => [...document.querySelectorAll('[data-testid=theme-installed-modal], [data-testid$=modal]')].find(e => seen(e) && /^(Upload successful|It's live)/.test(text(e)));
	const find = (selector, words) => [...document.querySelectorAll(selector)].find(e => seen(e) && (!words || text(e) === words));
`

// quote is valid in JavaScript too.
func quote(text string) string { return strconv.Quote(text) }

// open opens a page of the site.
func (s *site) open(path string) *browser.Page {
	s.t.Helper()
	return browser.Open(s.t, harness.Engine, s.base+path, browser.Look{Width: 1280, Height: 900}, helpers)
}

// signIn opens a page that shows next to nothing, and signs one of the staff in there: Ghost's admin takes some
// seconds of the CPU's time each time.
func (s *site) signIn(email string) *browser.Page {
	s.t.Helper()
	p := s.open("/ghost/api/admin/site/")
	p.Do("await fetch('../session/', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({username: %q, password: %q})})", email, password)
	p.Until("(await fetch('../users/me/')).ok")
	return p
}

// signInAt signs one of the staff in, and opens a screen of Ghost's admin.
func (s *site) signInAt(email, screen string) *browser.Page {
	s.t.Helper()
	p := s.signIn(email)
	p.Must(p.Navigate(s.base + "/ghost/" + screen))
	return p
}

// signInByForm signs one of the staff in on Ghost's own page, and returns when the admin has gone to the first screen that
// it shows them. Until then it would leave any other screen again.
func (s *site) signInByForm(email string) *browser.Page {
	s.t.Helper()
	p := s.open("/ghost/")
	p.Until("seen(document.querySelector('input[name=identification]'))")
	p.Keys("input[name=identification]", email)
	p.Keys("input[name=password]", password+"\r")
	p.Until("/^#\\/(dashboard|analytics|site|posts)/.test(location.hash) && find('a[href^=\"#/posts\"]') && performance.getEntriesByType('resource').some(entry => /\\/admin\\/config\\/$/.test(entry.name))")
	return p
}
