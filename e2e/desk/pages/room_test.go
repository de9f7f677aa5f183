package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// room is a desk at an address, and around it as much of a Ghost as its pages meet.
type room struct {
	*desktest.Harness

	t   *testing.T
	url string

	noScript bool // pages come without their script

	mu      sync.Mutex
	reports []string // of violations of the Content-Security-Policy
	before  func(r *http.Request)
	others  []string // who else has an event open
	lost    int      // how many responses about events are to be lost
	images  [][]byte // that were uploaded
}

// The active theme has three sections, most of whose slots are filled.
func open(t *testing.T) *room {
	t.Helper()
	harness.NeedBrowser(t)
	r := &room{Harness: desktest.New(t), t: t, before: func(*http.Request) {}}
	mux := http.NewServeMux()
	mux.HandleFunc("/ghost/lychgate/desk/", r.desk)
	mux.HandleFunc("/csp", func(_ http.ResponseWriter, request *http.Request) {
		text, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, string(text))
	})
	mux.HandleFunc("/sign-in", func(w http.ResponseWriter, request *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: request.FormValue("as"), Path: "/", HttpOnly: true})
		page(w, "Signed in")
	})
	mux.HandleFunc("/sign-out", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Path: "/", MaxAge: -1})
		page(w, "Signed out")
	})
	mux.HandleFunc("/ghost/{$}", func(w http.ResponseWriter, _ *http.Request) { page(w, "Sign in to Ghost") })
	mux.HandleFunc("POST /ghost/api/admin/themes/upload/{$}", r.upload)
	mux.HandleFunc("PUT /ghost/api/admin/themes/{theme}/activate/{$}", r.activate)
	mux.HandleFunc("POST /ghost/api/admin/images/upload/{$}", r.uploadImage)
	mux.HandleFunc("/content/", picture)
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { page(w, "No icon") })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.url = server.URL
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		diff(t, "violations of the Content-Security-Policy", []string(nil), r.reports)
	})
	r.furnish()
	return r
}

func page(w http.ResponseWriter, title string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>%[1]s</title><h1>%[1]s</h1>", title)
}

var scriptOf = regexp.MustCompile(`<script [^>]*></script>`)

// desk answers with a page, whose violations of its policy are reported.
func (r *room) desk(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	before := r.before
	r.mu.Unlock()
	before(request)
	if r.answersEvents(w, request) {
		return
	}
	response := httptest.NewRecorder()
	r.Desk.Serve(response, request, r.Site, netip.MustParseAddr("192.0.2.1"))
	maps.Copy(w.Header(), response.Header())
	policy := response.Header().Get("Content-Security-Policy") + "; report-uri /csp"
	if browser.Name() == "webkit" { // where a narrow page is in a frame
		policy = strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1)
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Del("Content-Length")
	w.WriteHeader(response.Code)
	body := response.Body.Bytes()
	if r.noScript {
		body = scriptOf.ReplaceAll(body, nil)
	}
	w.Write(body)
}

// upload takes a theme as Ghost and theme_manifest do.
func (r *room) upload(w http.ResponseWriter, request *http.Request) {
	_, header, err := request.FormFile("file")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := strings.TrimSuffix(header.Filename, ".zip")
	w.Header().Set("Content-Type", "application/json")
	if name == "broken" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"errors":[{"message":"Theme is not compatible or contains errors.","context":"<b>index.hbs</b>","details":{"errors":[{"rule":"Templates must <code>exist</code>","failures":[{"ref":"index.hbs"}]}]}}]}`)
		return
	}
	r.Ghost.Mu.Lock()
	r.Ghost.Themes = append(r.Ghost.Themes, platform.InstalledTheme{Name: name})
	r.Ghost.Mu.Unlock()
	json.NewEncoder(w).Encode(map[string]any{
		"themes":  []any{map[string]any{"name": name, "warnings": []any{map[string]any{"rule": "Use <b>one</b> font", "failures": []any{map[string]string{"ref": "style.css"}}}}}},
		"_errors": []any{map[string]string{"field": "events.types.<i>x</i>", "message": hostile, "severity": "warning"}},
	})
}

func (r *room) activate(w http.ResponseWriter, request *http.Request) {
	r.Ghost.Mu.Lock()
	defer r.Ghost.Mu.Unlock()
	for i := range r.Ghost.Themes {
		r.Ghost.Themes[i].IsActive = r.Ghost.Themes[i].Name == request.PathValue("theme")
	}
	w.Write([]byte(`{"themes":[]}`))
}

// picture answers with a picture of a colour.
func picture(w http.ResponseWriter, request *http.Request) {
	drawn := image.NewRGBA(image.Rect(0, 0, 192, 128))
	shade := uint8(len(request.URL.Path) * 37)
	for y := range 128 {
		for x := range 192 {
			colour := color.RGBA{shade, 160, 200, 255} // the sky
			if y > 80+x/8 {
				colour = color.RGBA{40, 90, shade, 255} // and a hill
			}
			drawn.Set(x, y, colour)
		}
	}
	var file bytes.Buffer
	png.Encode(&file, drawn)
	w.Header().Set("Content-Type", "image/png")
	w.Write(file.Bytes())
}

// hostile is what others may write.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(1)> "evil\' ` + "\u202egpj.exe"

// furnish puts posts, themes, integrations and pending members into the room.
func (r *room) furnish() {
	r.t.Helper()
	slots := func(prefix string, labels ...string) (list []manifest.Slot) {
		for i, label := range labels {
			key := fmt.Sprint(prefix, i)
			list = append(list, manifest.Slot{Key: key, Label: label, Tag: "#" + key})
		}
		return list
	}
	search := manifest.Picker{DefaultView: manifest.SearchView, RecentLimit: 20}
	recent := manifest.Picker{DefaultView: manifest.RecentView, RecentLimit: 20}
	sections := []manifest.Section{
		{Key: "top", Name: "Top stories", Description: "What readers see first.", Picker: search, Slots: slots("top", "Lead story", "Second story", "Third story")},
		{Key: "culture", Name: "Culture", Description: "Below the fold. " + hostile, Picker: recent, Slots: slots("culture", "Review", "Tips "+strings.Repeat("Donaudampfschifffahrt", 8))},
		{Key: "news", Name: hostile, Picker: recent, Slots: []manifest.Slot{{Key: "news", Label: "News", Tag: "news"}}},
	}
	r.Declare(sections...)
	for i, title := range []string{
		"The old lychgate is painted", "Bridges of the north", "Bridges of the south", "A choir for everybody", "What the council said",
		"What the council did not say", hostile, strings.Repeat("Unbrokenword", 40), "سوق الكتب القديمة في المدينة", "A market returns", "Older news", "Newer news",
	} {
		id := fmt.Sprintf("5ddc9141c35e7700383b%04d", i)
		var tags []string
		switch i {
		case 0:
			tags = []string{"#top0", "kept"}
		case 6:
			tags = []string{"#top2"}
		case 7:
			tags = []string{"#culture1"}
		case 10, 11:
			tags = []string{"news"}
		}
		r.Publish(id, title, tags...)
		if i%3 > 0 {
			r.Ghost.Posts[0].Picture = r.url + "/content/images/" + id + ".png"
		}
	}
	r.Ghost.Themes = append(r.Ghost.Themes, platform.InstalledTheme{Name: "broken"}, platform.InstalledTheme{Name: "a-theme-with-a-" + strings.Repeat("long", 20) + "-name"})
	r.Manifest("broken", "manifest_version: 1\nevents: {types: {"+fmt.Sprintf("%q", hostile)+": {}}}\nhomepage_curation:\n  sections: [{key: top, name: Top}, {name: None}]\n")
	r.Themes.Repositories["nightly"] = desktest.Source("", &git.Error{Kind: git.ErrFailed, Reason: hostile})
	r.Themes.Repositories["source"] = desktest.Source("manifest_version: 1\nevents: {types: {webinar: {post_template: custom-webinar}}}", nil)
	for _, name := range []string{"crm", "form"} {
		if _, _, err := r.Members.Keys.Add(r.t.Context(), members.Integration{Site: "daily", Name: name, Mode: members.EmailMode, SubscribeByDefault: true}); err != nil {
			r.t.Fatalf("r.Members.Keys.Add: %v", err)
		}
	}
	r.Outbox.Records = []members.Record{
		{Member: members.Member{Email: "jane@example.com", UpdatedAt: desktest.Now}, Attempts: 3, Problem: "Ghost answers 503.", NextAttempt: desktest.Now},
		{Member: members.Member{Email: strings.Repeat("a", 64) + "@" + strings.Repeat("b", 60) + ".example", UpdatedAt: desktest.Now}, Deleted: true, Problem: hostile, NextAttempt: desktest.Now},
	}
}

// tab is a page of a room.
type tab struct {
	*browser.Page

	room *room
}

// wanted are parts of what a browser says of responses that tests ask for, and, in Firefox, of axe, which asks the frame of a mail's
// preview: that has no origin. The desk's own scripts post no messages.
var wanted = []string{"status of 401 ", "status of 403 ", "status of 409 ", "status of 412 ", "status of 422 ", "net::ERR_INCOMPLETE_CHUNKED_ENCODING", "net::ERR_EMPTY_RESPONSE", "‘postMessage’ on ‘DOMWindow’"}

// visit opens a page of the desk as somebody with a role.
func (r *room) visit(role, address string, how browser.Look) tab {
	r.t.Helper()
	p := browser.Open(r.t, harness.Engine, r.url+"/sign-in?as="+role, how, prelude)
	v := tab{p, r}
	v.goTo(address)
	r.t.Cleanup(func() {
		problems, err := p.Problems()
		p.Must(err)
		problems = slices.DeleteFunc(problems, func(problem string) bool {
			return slices.ContainsFunc(wanted, func(part string) bool { return strings.Contains(problem, part) })
		})
		if len(problems) == 0 {
			problems = nil
		}
		diff(r.t, "errors in the console", []string(nil), problems)
	})
	return v
}

// goTo opens another page of the desk.
func (v tab) goTo(address string) {
	v.T.Helper()
	if browser.Name() == "webkit" { // whose page may be in a frame
		v.Do("window.left = true; location.href = %q", v.room.url+"/ghost/lychgate/desk/"+address)
		v.Until("!window.left && location.href === new URL(" + fmt.Sprintf("%q", address) + ", location.origin + '/ghost/lychgate/desk/').href && document.readyState === 'complete'")
		return
	}
	v.Must(v.Navigate(v.room.url + "/ghost/lychgate/desk/" + address))
}

// prelude has what most scripts need.
const prelude = `
	const $ = selector => document.querySelector(selector);
	const text = element => element?.textContent.replace(/\s+/g, ' ').trim() ?? null;
	const said = () => text($('.notice'));
	const slot = id => { const post = $('[data-slot="' + id + '"] > .post .title'); return post ? text(post) : null; };
	const button = (label, within = document) => [...within.querySelectorAll('button, a.button, summary')].find(b => text(b) === label);
	const inSight = e => { const box = e.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight; };
	const covered = e => { const box = e.getBoundingClientRect(); return !e.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)); };
	const focused = () => { const e = document.activeElement; return e === document.body || !e.checkVisibility() ? null : text(e) || e.id || e.localName; };
`

// js evaluates a JavaScript expression.
func js[T any](v tab, format string, args ...any) T {
	v.T.Helper()
	return browser.JS[T](v.Page, format, args...)
}

// says waits for a notice.
func (v tab) says(notice string) {
	v.T.Helper()
	v.Until(fmt.Sprintf("said() === %q && !$('desk-page').ariaBusy", notice))
}

// press presses a button that has a text.
func (v tab) press(label string) {
	v.T.Helper()
	v.Do("button(%q).click()", label)
}
