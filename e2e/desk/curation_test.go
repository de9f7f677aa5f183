package desk

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// slotsManifest declares the slots that slotsTheme renders, and a type of events.
const slotsManifest = `manifest_version: 1
events:
  types:
    party: {post_template: custom-party}
homepage_curation:
  sections:
    - key: top
      name: Top stories
      picker: {default_view: search}
      slots:
        - {key: lead, label: Lead, tag: "#lead"}
        - {key: second, label: Second, tag: "#second"}
`

// slotsTheme is Ghost's own theme Source with a homepage that renders slots.
func slotsTheme(t *testing.T) []byte {
	t.Helper()
	slot := func(name string) string {
		return `{{#get "posts" filter="tag:hash-` + name + `" limit="1"}}{{#foreach posts}}<h2 class="` + name + `">{{title}}</h2>{{/foreach}}{{/get}}` + "\n"
	}
	return sourceWith(t, map[string]string{"lychgate-manifest.yaml": slotsManifest, "home.hbs": "{{!< default}}\n" + slot("lead") + slot("second")})
}

// sourceWith zips Ghost's own theme Source. files are added, or replace those of Source.
func sourceWith(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	source := os.DirFS(ghosttest.Folder(t) + "/content/themes/source/.")
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if _, ours := files[path]; err == nil && !d.IsDir() && !ours {
			var text []byte
			text, err = fs.ReadFile(source, path)
			files[path] = string(text)
		}
		return err
	})
	for path, text := range files {
		file, createErr := w.Create(path)
		if err == nil && createErr == nil {
			_, err = io.WriteString(file, text)
		}
	}
	if err != nil || w.Close() != nil {
		t.Fatalf("zipping the theme: %v", err)
	}
	return out.Bytes()
}

// caller is one of the staff, without a browser.
type caller struct {
	site   *site
	client *http.Client
}

// caller signs one of the staff in.
func (s *site) caller(email string) *caller {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatalf("cookiejar.New: %v", err)
	}
	c := &caller{s, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
	c.json("POST", "/session/", map[string]string{"username": email, "password": password})
	wait.Until(s.t, func() string { // Ghost keeps a session a moment after it has said so
		if status, body := c.ask("GET", "/ghost/api/admin/users/me/", "", nil); status != http.StatusOK {
			return body
		}
		return ""
	})
	return c
}

// ask sends a request, and returns the status and the text of the response.
func (c *caller) ask(method, path, contentType string, body io.Reader) (int, string) {
	c.site.t.Helper()
	request, err := http.NewRequestWithContext(c.site.t.Context(), method, c.site.base+path, body)
	if err != nil {
		c.site.t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Header.Set("Origin", c.site.base)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.site.t.Fatalf("c.client.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.site.t.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// json sends a request to Ghost's Admin API, which has to succeed.
func (c *caller) json(method, path string, body any) string {
	c.site.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.site.t.Fatalf("json.Marshal: %v", err)
	}
	status, response := ghosttest.Settled(func() (int, string) {
		return c.ask(method, "/ghost/api/admin"+path, "application/json", bytes.NewReader(text))
	})
	if status >= 300 {
		c.site.t.Fatalf("%s %s: got status %d, %s, want less than 300", method, path, status, response)
	}
	return response
}

// publish publishes a post with a tag, and returns its ID.
func (c *caller) publish(title string) (id string) {
	c.site.t.Helper()
	response := c.json("POST", "/posts/", map[string]any{"posts": []any{map[string]any{"title": title, "status": "published", "tags": []string{"Kept"}}}})
	var posts struct{ Posts []struct{ ID string } }
	if err := json.Unmarshal([]byte(response), &posts); err != nil {
		c.site.t.Fatalf("json.Unmarshal: %v", err)
	}
	return posts.Posts[0].ID
}

// tagsOf has the names of a post's tags, sorted.
func (c *caller) tagsOf(id string) (names []string) {
	c.site.t.Helper()
	_, body := c.ask("GET", "/ghost/api/admin/posts/"+id+"/?include=tags", "", nil)
	var posts struct {
		Posts []struct{ Tags []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(body), &posts); err != nil {
		c.site.t.Fatalf("the post is %s: %v", body, err)
	}
	for _, tag := range posts.Posts[0].Tags {
		names = append(names, tag.Name)
	}
	slices.Sort(names)
	return names
}

var headings = regexp.MustCompile(`<h2 class="(lead|second)">([^<]*)</h2>`)

// homepage has what readers see in each slot.
func (c *caller) homepage() map[string]string {
	c.site.t.Helper()
	status, page := c.ask("GET", "/", "", nil)
	if status != http.StatusOK {
		c.site.t.Fatalf("the homepage: %d", status)
	}
	shown := make(map[string]string)
	for _, match := range headings.FindAllStringSubmatch(page, -1) {
		shown[match[1]] = match[2]
	}
	return shown
}

// curators fill the slots of a homepage: an editor in a browser, and the owner without one.
type curators struct {
	*site
	p      *browser.Page
	editor string
	owner  *caller
	ids    map[string]string // of posts, by title
}

func newCurators(t *testing.T) *curators {
	t.Helper()
	s := newSite(t, "", options{})
	p := s.signIn(owner)
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/themes"))
	p.Until(`document.querySelector('desk-upload.ready')`)
	p.Choose("desk-upload input", "slots.zip", slotsTheme(t))
	p.Until(`text(document.querySelector('.notice'))?.startsWith('slots was uploaded.')`)
	p.Do("document.querySelector('desk-activate[theme=slots] button').click()")
	p.Until(`text(document.querySelector('.notice')) === 'slots is active now.' && text(document.querySelector('.badge').closest('th')) === 'slots Active'`)

	c := &curators{site: s, editor: s.addStaff("Editor"), owner: s.caller(owner), ids: make(map[string]string)}
	for _, title := range []string{"Bridges of the north", "Bridges of the south", "A choir", "The council"} {
		c.ids[title] = c.owner.publish(title)
	}
	c.p = s.signIn(c.editor)
	return c
}

// choose fills a slot with a post that words find.
func (c *curators) choose(slot, words, title string) {
	c.t.Helper()
	c.p.Until(`find('.slot')`)
	c.p.Do("[...document.querySelectorAll('.slot')].find(e => text(e.querySelector('h3')) === %q).querySelector('a.choose').click()", slot)
	c.p.Until(`document.activeElement?.id === 'q'`)
	c.p.Keys("#q", words)
	untilFound(c.p, fmt.Sprintf(`[...document.querySelectorAll('.posts > li')].some(e => text(e.querySelector('.title')) === %q)`, title))
	c.p.Do("[...document.querySelectorAll('.posts > li')].find(e => text(e.querySelector('.title')) === %q).querySelector('button').click()", title)
	c.chosen(c.p, c.owner, slot)
}

// fillLead is a choice of the owner's.
func (c *curators) fillLead(title string) (int, string) {
	return c.owner.ask("POST", "/ghost/lychgate/desk/curation", "application/x-www-form-urlencoded",
		strings.NewReader(url.Values{"theme": {"slots"}, "slot": {"top/lead"}, "post": {c.ids[title]}}.Encode()))
}

func (c *curators) untilLeadShows(title string) {
	c.t.Helper()
	c.p.Until(`(text([...document.querySelectorAll('.slot')].find(e => text(e.querySelector('h3')) === 'Lead')?.querySelector('.title')) ?? 'nothing') === ` + quote(title))
}

func (c *curators) untilReadersSee(what string, want map[string]string) {
	c.t.Helper()
	wait.Until(c.t, func() string {
		if diff := cmp.Diff(want, c.owner.homepage()); diff != "" {
			return what + ": " + diff
		}
		return ""
	})
}

// An owner uploads a theme on the desk and activates it. An editor who is signed in to Ghost
// finds the slots, searches for a post and chooses it, and readers see it on the homepage.
// Another editor works there at the same time, and a session ends in the middle. Then there are many
// posts, and events.
func TestHomepageCuration(t *testing.T) {
	c := newCurators(t)
	c.choosePosts()
	c.chooseAtTheSameTime()
	c.goOnAfterSignIn()
	c.pickAmongMany(c.editor, c.owner)
	c.untilReadersSee("found among many", map[string]string{"lead": "Naïve walks down Garden Straße", "second": "Bridges of the north"})
	if problems, err := c.p.Problems(); err != nil || slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "Content-Security-Policy") }) {
		t.Errorf("Problems: got %q, %v, want none with the Content-Security-Policy", problems, err)
	}
}

func (c *curators) choosePosts() {
	c.p.Must(c.p.Navigate(c.base + "/ghost/lychgate/desk/"))
	c.p.Until(`find('h1', 'Themes')`)
	c.p.Do("find('a, button', 'Homepage Curation').click()")
	c.p.Until(`find('h1', 'Homepage Curation')`)
	c.untilLeadShows("nothing")
	c.choose("Lead", "bridges no", "Bridges of the north")
	c.untilLeadShows("Bridges of the north")
	c.untilReadersSee("chosen", map[string]string{"lead": "Bridges of the north"})
	if diff := cmp.Diff([]string{"#lead", "Kept"}, c.owner.tagsOf(c.ids["Bridges of the north"])); diff != "" {
		c.t.Errorf("tags: %s", diff)
	}
	c.choose("Second", "choir", "A choir")
	c.untilReadersSee("chosen", map[string]string{"lead": "Bridges of the north", "second": "A choir"})
	c.choose("Lead", "south", "Bridges of the south")
	c.untilReadersSee("chosen anew", map[string]string{"lead": "Bridges of the south", "second": "A choir"})
	if !browser.JS[bool](c.p, `!!find('button', 'Undo')`) { // as after a choice that was kept
		c.p.Do("location.href = %q", "curation?"+url.Values{"done": {"top/lead"}, "was": {c.ids["Bridges of the north"]}, "now": {c.ids["Bridges of the south"]}}.Encode())
		c.p.Until(`find('button', 'Undo') && document.readyState === 'complete'`)
	}
	c.p.Do("document.querySelector('.notice').className = 'notice before'")
	c.p.Do("find('a, button', 'Undo').click()")
	c.chosen(c.p, c.owner, "Lead")
	c.untilLeadShows("Bridges of the north")
	c.untilReadersSee("taken back", map[string]string{"lead": "Bridges of the north", "second": "A choir"})
}

// chooseAtTheSameTime begins with a choice of somebody else's while the page is open, which shows that as soon as it
// is asked.
func (c *curators) chooseAtTheSameTime() {
	if status, page := c.fillLead("The council"); status != http.StatusOK {
		c.t.Fatalf("filling the slot lead: got status %d, %s, want 200", status, page)
	}
	c.owner.untilCurated()
	c.choose("Second", "north", "Bridges of the north")
	c.untilLeadShows("The council")
	c.untilReadersSee("two editors", map[string]string{"lead": "The council", "second": "Bridges of the north"})
	if diff := cmp.Diff([]string{"#second", "Kept"}, c.owner.tagsOf(c.ids["Bridges of the north"])); diff != "" {
		c.t.Errorf("tags: %s", diff)
	}
	// Both at once: one of the two is on the homepage, and nothing else is.
	c.p.Do("find('a, button', 'Change for Lead').click()")
	c.p.Until(`document.activeElement?.id === 'q'`)
	c.p.Keys("#q", "choir")
	untilFound(c.p, `document.querySelectorAll('.posts > li').length === 1`)
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		c.fillLead("Bridges of the south")
	}()
	c.p.Do("document.querySelector('.posts button').click()")
	c.p.Until(`find('.notice, .message.kept')`)
	<-filled
	c.owner.untilCurated()
	wait.Until(c.t, func() string {
		shown := c.owner.homepage()
		if shown["lead"] != "A choir" && shown["lead"] != "Bridges of the south" || shown["second"] != "Bridges of the north" {
			return fmt.Sprint("the homepage has ", shown)
		}
		carriers := 0
		for _, id := range c.ids {
			if slices.Contains(c.owner.tagsOf(id), "#lead") {
				carriers++
			}
		}
		if carriers != 1 {
			return fmt.Sprint(carriers, " posts carry the tag")
		}
		return ""
	})
}

// goOnAfterSignIn is about a session that ends while the picker is open. The page leads to Ghost's sign-in; what was
// typed stays, and then it goes on.
func (c *curators) goOnAfterSignIn() {
	c.p.Must(c.p.Navigate(c.base + "/ghost/lychgate/desk/curation?slot=top/lead"))
	c.p.Until(`document.activeElement?.id === 'q'`)
	c.p.Do("await fetch('/ghost/api/admin/session/', {method: 'DELETE'})")
	c.p.Keys("#q", "council")
	c.p.Until(`(() => {
		` + searchAgain + `
		return text(document.querySelector('.found'))?.startsWith("Sign in to Ghost's admin on this site first.") &&
			document.querySelector('.found .sign-in')?.getAttribute('href') === '/ghost/' && q.value === 'council';
	})()`)
	c.p.Do(`await fetch('/ghost/api/admin/session/', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({username: %q, password: %q})})`, c.editor, password)
	c.p.Until(`(await fetch('/ghost/api/admin/users/me/')).ok`) // Ghost keeps a session a moment after it has said so
	// A search that was under way meanwhile may still say that nobody is signed in.
	c.p.Until(`await (async () => {
		if (text(find('.notice')) === 'Lead was filled. It is live now. View site (in another tab) Undo' || ` + isKept("Lead") + `) return true;
		const buttons = document.querySelectorAll('.posts button');
		if (buttons.length === 1) buttons[0].click();
		else ` + searchAgain + `
		await new Promise(done => setTimeout(done, 500));
		return false;
	})()`)
	c.untilReadersSee("after another sign-in", map[string]string{"lead": "The council", "second": "Bridges of the north"})
}

// searchAgain makes a search of the picker's once more, every few seconds: a Ghost that is slow may not have
// answered it. Each search ends the one before, which may take a while.
const searchAgain = `if (Date.now() - (window.asked ??= Date.now()) > 7000) {
	window.asked = Date.now();
	document.querySelector('#q')?.dispatchEvent(new Event('input', {bubbles: true}));
}`

// untilFound waits until the picker shows what was searched for.
func untilFound(p *browser.Page, condition string) {
	p.Until(`(() => {
		if (` + condition + `) return true;
		` + searchAgain + `
		return false;
	})()`)
}

// isKept is whether a page says that the choice for a slot is kept for a Ghost that is slow.
func isKept(slot string) string {
	return fmt.Sprintf(`[%q, %q].some(said => text(find('.notice, .message.kept'))?.startsWith(said))`,
		slot+": your choice is kept, and sent to Ghost as soon as it responds.", slot+" is kept, and sent to Ghost as soon as it responds.")
}

// chosen waits until a page says that a slot was filled. If Ghost is slow, the page says that the
// choice is kept, and chosen opens the page of all slots once Ghost has it.
func (s *site) chosen(p *browser.Page, staff *caller, slot string) {
	s.t.Helper()
	p.Until(fmt.Sprintf(`text(find('.notice.done'))?.startsWith(%q) || `, slot+" was filled. It is live now.") + isKept(slot))
	if !browser.JS[bool](p, isKept(slot)) {
		return
	}
	staff.untilCurated()
	p.Must(p.Navigate(s.base + "/ghost/lychgate/desk/curation"))
	p.Until(`find('.slot')`)
}

// untilCurated waits until Ghost has what was chosen for all slots.
func (c *caller) untilCurated() {
	c.site.t.Helper()
	wait.Until(c.site.t, func() string {
		if status, body := c.ask("GET", "/ghost/lychgate/curation", "", nil); status != http.StatusOK || strings.Contains(body, `"pending":{`) {
			return fmt.Sprintf("Ghost does not have what was chosen: %d %s", status, body)
		}
		return ""
	})
}
