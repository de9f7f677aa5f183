package desk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/checkout"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
)

// markup is what internal/web/desk/admin.js looks for in Ghost's admin under a name.
func markup(t testing.TB, name string) string {
	t.Helper()
	script, err := os.ReadFile(checkout.Path("internal/web/desk/admin.js"))
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	found := regexp.MustCompile(`(?m)^\t\t` + name + `: '(.*)',`).FindSubmatch(script)
	if found == nil {
		t.Fatalf("internal/web/desk/admin.js looks for no %s", name)
	}
	return string(found[1])
}

// hasMarkup waits for what internal/web/desk/admin.js looks for, and fails with what Ghost's admin has not any more.
func hasMarkup(p *browser.Page, names ...string) {
	p.T.Helper()
	for _, name := range names {
		p.Until(fmt.Sprintf("document.querySelector(%q) /* what internal/web/desk/admin.js takes for %s */", markup(p.T, name), name))
	}
}

const underPosts = ".gh-nav-list-posts .gh-nav-view-list a, #posts-submenu a"

// hasEntry waits for what is under Posts in Ghost's own navigation to be as it should, with
// ours, as nothing but that: Ghost makes the list anew now and then.
func hasEntry(t testing.TB, p *browser.Page, want ...string) {
	t.Helper()
	p.Until(entriesAre(t, want...))
}

// entriesAre is an expression that says whether those are under Posts, after the admin's own.
func entriesAre(t testing.TB, want ...string) string {
	t.Helper()
	list, err := json.Marshal(append([]string{"Drafts", "Scheduled", "Published"}, want...))
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	return fmt.Sprintf("JSON.stringify([...document.querySelectorAll('%s')].map(text)) === JSON.stringify(%s)", underPosts, list)
}

const curationEntry = "Homepage Curation"

// ourEntries are there while the active theme has slots and event types, as cleanManifest says.
var ourEntries = []string{curationEntry, "Events"}

const themesScreen = "#/settings/design/change-theme"

// openScreen goes to a screen of Ghost's admin until something is so there.
func openScreen(p *browser.Page, hash, until string) {
	p.Until(fmt.Sprintf("location.hash.startsWith(%[1]q) ? %[2]s : void (location.hash = %[1]q)", hash, until))
}

// openInstalled opens the list of installed themes.
func openInstalled(p *browser.Page) {
	openScreen(p, themesScreen, "find('button, [role=tab]', 'Installed')")
	click(p, "button, [role=tab]", "Installed")
	p.Until("!!find('[data-testid=theme-list-item]')")
}

// statuses are what stands below each theme that has it, by name.
func statuses(p *browser.Page) map[string]string {
	return browser.JS[map[string]string](p, `Object.fromEntries([...document.querySelectorAll('[data-testid=theme-list-item] [id^=theme-]')]
		.map(place => [place.id.slice(6), text(place.querySelector('.lychgate-theme'))]).filter(([, status]) => status))`)
}

// status is a JavaScript expression, true once want is shown below a theme.
func status(theme, want string) string {
	return fmt.Sprintf("text(document.querySelector('#theme-%s .lychgate-theme')) === %q", theme, want)
}

// An editor who has never heard of Lychgate finds it in Ghost's own admin: what is wrong
// with a theme where themes are, and the homepage's slots under Posts.
func TestGhostAdmin(t *testing.T) {
	git := gittest.New(t)
	git.Init("nightly.git")
	git.Commit("nightly.git", map[string]string{"lychgate-manifest.yaml": cleanManifest})
	repositories := git.Start()
	repository := func(theme string) string {
		return "theme " + theme + " {\nrepository " + repositories + "/" + theme + ".git {\ntoken " + gittest.Token + "\n}\n}\n"
	}
	withRepositories := options{site: repository("nightly") + repository("daily")}
	s := newSite(t, "", withRepositories)

	p := s.signInByForm(owner)
	hasMarkup(p, "list", "expander", "posts")
	hasEntry(t, p) // while the theme has no manifest
	upload(p, "nightly", themeZip(t, cleanManifest), false)
	confirm(p, "Activate")
	upload(p, "weekly", themeZip(t, hostileManifest), false)
	confirm(p, "Close")
	upload(p, "daily", themeZip(t, ""), false)
	confirm(p, "Close")

	hasMarkup(p, "theme")
	s.readManifests(p, git)
	s.findEntries(p)

	// Another theme has no slots.
	p.Must(p.Navigate(s.base + "/ghost/#/posts"))
	hasEntry(t, p, ourEntries...)
	openInstalled(p)
	p.Do("[...document.querySelector('#theme-casper').closest('[data-testid]').querySelectorAll('button')].find(b => /^Activate( theme)?$/.test(text(b))).click()")
	p.Until("/Active/.test(text(document.querySelector('#theme-casper')))")
	openScreen(p, "#/posts", entriesAre(t))
	if code, body := api(p, "PUT", "/themes/nightly/activate/", ""); code != http.StatusOK {
		t.Fatalf("activating the theme nightly: got status %d, %s, want 200", code, body)
	}
	hasEntry(t, p, ourEntries...) // without another page

	// Each role sees what it may.
	for role, want := range map[string][]string{"Editor": ourEntries, "Author": nil, "Contributor": nil} {
		email := s.addStaff(role)
		p := s.signInAt(email, "#/posts")
		p.Until("performance.getEntriesByType('resource').some(entry => /admin.json$/.test(entry.name) && entry.responseEnd)")
		p.Do("for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame)")
		p.Until(fmt.Sprintf("document.querySelectorAll('[data-lychgate]').length === %d", len(want)))
		got := browser.JS[struct {
			Status  int
			Nothing bool
		}](p, `fetch('/ghost/lychgate/desk/admin.json').then(async response => ({Status: response.status, Nothing: await response.text() === '{"curation":"","events":"","themes":[]}'}))`)
		diff(t, role, fmt.Sprint(200, want == nil), fmt.Sprint(got.Status, got.Nothing))
	}

	// Switched off, Ghost's admin is Ghost's.
	withRepositories.staffDesk = "ghost_admin off"
	s.startEdge(withRepositories)
	p = s.signInAt(owner, themesScreen)
	if _, body := api(p, "GET", "/config/", ""); !strings.Contains(body, `"clientExtensions":{}`) {
		t.Errorf("when it is off: %s", body)
	}
	openInstalled(p)
	diff(t, "when it is off", map[string]string{}, statuses(p))
	diff(t, "scripts of ours", 0, browser.JS[int](p, "document.querySelectorAll('script[src*=lychgate]').length"))
}

// findingsList is what stands below the theme weekly, behind an icon.
type findingsList struct {
	Expanded, Controls string
	Seen               bool
	Items              []string
	HasMarkup          bool
}

func weeklyFindings(p *browser.Page) findingsList {
	return browser.JS[findingsList](p, `(() => {
		const button = document.querySelector('#theme-weekly [data-lychgate=findings]'), list = document.querySelector('#theme-weekly ul');
		return {Expanded: button.getAttribute('aria-expanded'), Controls: button.getAttribute('aria-controls') === list.id ? 'the list' : '',
			Seen: seen(list), Items: seen(list) ? [...list.children].map(item => text(item).split('; use ')[0]) : [],
			HasMarkup: !!list.querySelector('script, img, b') || 'hostile' in window};
	})()`)
}

// readManifests is about what the list of themes says of each theme, without being opened again.
func (s *site) readManifests(p *browser.Page, git *gittest.Server) {
	const refresh = " Refresh the manifest of "
	p.Until(status("weekly", "Manifest Status: 3 warnings : findings in the manifest of weekly"))
	p.Until(status("daily", "Manifest Status: No manifest"+refresh+"daily"))
	shown := statuses(p)
	diff(s.t, "Manifest Status", map[string]string{
		"nightly": "Manifest Status: Valid" + refresh + "nightly", "weekly": shown["weekly"], "daily": shown["daily"],
	}, shown)

	// By keyboard alone: the findings are behind the icon, and are text.
	p.Keys("#theme-weekly [data-lychgate=findings]", "\r")
	diff(s.t, "opened", findingsList{"true", "the list", true, []string{
		"Warning events.types.webinar.supported_fields[1] <script>window.hostile = 1</script> is not a standard field, so it is dropped",
		"Warning events.types.webinar.supported_fields[2] <img src=x onerror='window.hostile = 2'> is not a standard field, so it is dropped",
		"Warning events.types.webinar.supported_fields[3] <b>bold</b> is not a standard field, so it is dropped",
	}, false}, weeklyFindings(p))
	p.Picture("ghost-admin-themes")

	// What the repository has now is said where it was asked for; the focus stays there.
	git.Commit("nightly.git", map[string]string{"lychgate-manifest.yaml": hostileManifest})
	p.Keys("#theme-nightly [data-lychgate=refresh]", "\r")
	p.Until(status("nightly", "Manifest Status: 3 warnings : findings in the manifest of nightly"+refresh+"nightly Refreshed: 3 warnings"))
	diff(s.t, "the focus", "refresh", browser.JS[string](p, "document.activeElement.dataset.lychgate"))
	diff(s.t, "still open", true, weeklyFindings(p).Seen)
	p.Keys("#theme-weekly [data-lychgate=findings]", "\r")
	diff(s.t, "closed", findingsList{"false", "the list", false, []string{}, false}, weeklyFindings(p))
	p.Do("document.querySelector('#theme-daily [data-lychgate=refresh]').click()")
	p.Until("/Not refreshed\\. .*repository/.test(text(document.querySelector('#theme-daily [role=status]')))")
}

// findEntries is about the entries, which are there on the last known-good copy, through all that Ghost's
// admin does to its navigation, and never twice.
func (s *site) findEntries(p *browser.Page) {
	p.Must(p.Navigate(s.base + "/ghost/?again#/posts"))
	p.Until("!!find('a', 'Homepage Curation')")
	hasEntry(s.t, p, ourEntries...)
	// toggle presses the expander until something is so. The admin keeps what is expanded with
	// its user, and a user who comes after a click takes that back; so it is pressed again.
	toggle := func(until string) {
		s.t.Helper()
		p.Until(fmt.Sprintf(`(() => {
			if (%s) return true;
			if (Date.now() - (window.pressed ?? 0) > 5000) {
				window.pressed = Date.now();
				document.querySelector(%q)?.click();
			}
		})()`, until, markup(s.t, "expander")))
		p.Do("delete window.pressed")
	}
	// opened waits for something that is so while the list is open, and opens it only if it stays
	// closed.
	opened := func(until string) {
		s.t.Helper()
		p.Do("window.pressed = Date.now()")
		toggle(until)
	}
	const isShown = "!!find('a', 'Homepage Curation') && !document.querySelector('#posts-submenu.grid-rows-\\\\[0fr\\\\]')"
	for range 2 {
		toggle("!(" + isShown + ")")
		toggle(isShown + " && " + entriesAre(s.t, ourEntries...))
	}
	for _, page := range []string{"#/tags", "#/posts?type=draft", "#/settings", "#/posts"} {
		p.Do("location.hash = %q", page)
		opened("location.hash.startsWith('#/settings') ? !!find('[data-testid=theme]') : !find('[data-testid=theme]') && !!find('a', 'Homepage Curation')")
	}
	opened(entriesAre(s.t, ourEntries...))
	diff(s.t, "where the entries begin, beside the admin's own", true, browser.JS[bool](p, `(() => {
		const left = [...document.querySelectorAll('`+underPosts+`')].map(link => link.querySelector('span').getBoundingClientRect().left);
		return left.every(x => Math.abs(x - left[0]) < 1);
	})()`))
	p.Picture("ghost-admin-posts")

	// A Ghost that calls its list otherwise has the entries where Posts is.
	p.Do("const query = document.querySelector.bind(document); document.querySelector = what => %s.includes(what) ? null : query(what)", "["+quote(markup(s.t, "list"))+","+quote(markup(s.t, "expander"))+"]")
	p.Do("document.body.append(document.createElement('i'))")
	p.Until(fmt.Sprintf("JSON.stringify([...document.querySelector(%q).closest('ul').children].slice(-2).map(text)) === JSON.stringify(%s)", markup(s.t, "posts"), `["Homepage Curation", "Events"]`))
	p.Do("delete document.querySelector; document.body.append(document.createElement('i'))")
	hasEntry(s.t, p, ourEntries...)
	click(p, "a", curationEntry)
	p.Until("location.pathname === '/ghost/lychgate/desk/curation' && text(document.querySelector('h1')) === 'Homepage Curation'")
}

// An extension that the operator has set in Ghost goes on working beside ours: its script
// runs, from its own address, with its container. Ghost is in a subdirectory.
func TestOperatorsExtension(t *testing.T) {
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Write([]byte(`window.runs = (window.runs ?? []).concat(document.currentScript.src);
			document.querySelector('#theirs').textContent = 'at work';`))
	}))
	t.Cleanup(theirs.Close)
	script := theirs.URL + `/extension.js?a=b+c&d=%20"#e`
	t.Setenv("clientExtensions__script__src", script)
	t.Setenv("clientExtensions__script__container", `<div id="theirs"></div>`)
	s := newSite(t, "/blog", options{})
	p := s.signInAt(owner, themesScreen)
	p.Until("text(document.querySelector('#theirs')) === 'at work'")
	diff(t, "their script", []string{strings.ReplaceAll(script, `"`, "%22")}, browser.JS[[]string](p, "runs"))
	upload(p, "nightly", themeZip(t, cleanManifest), false)
	confirm(p, "Activate")
	openScreen(p, "#/posts", "find('a', 'Homepage Curation')")
	hasEntry(t, p, ourEntries...)
	click(p, "a", curationEntry)
	p.Until("location.pathname === '/blog/ghost/lychgate/desk/curation' && text(document.querySelector('h1')) === 'Homepage Curation'")
}
