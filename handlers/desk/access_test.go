package desk_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// Each of the staff gets the pages that their role may see, and finds the others in no
// navigation.
func TestWhoMaySeeWhat(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	editing := []string{"Homepage Curation", "Events", "Themes"}
	all := append(editing[:3:3], "Integrations", "Sync")
	signIn := shown{
		Status: http.StatusUnauthorized, Title: "Sign in first",
		Text: "Sign in to Ghost's admin on this site first. Pages here are for the publication's staff. Sign in, which opens another tab, and then go on here. " +
			"Sign in to Ghost (in another tab) Go on",
	}
	notYours := func(nav []string) shown {
		return shown{
			Status: http.StatusForbidden, Title: "Not allowed", Nav: nav,
			Text: "Your role may not see this page. Ask an owner or an administrator of the site.",
		}
	}
	page := func(title string, nav []string) shown { return shown{Status: http.StatusOK, Title: title, Nav: nav} }
	titles := map[string]string{"curation": "Homepage Curation", "events": "Events", "event-settings": "Event Settings", "themes": "Themes", "integrations": "Integrations", "sync": "Sync"}
	for _, name := range pageNames() {
		for _, role := range []string{"Owner", "Administrator", "Editor", "Super Editor", "Author", "Contributor", "", "Stranger"} {
			isForAdministrators := name == "integrations" || name == "sync"
			want := page(titles[name], all)
			switch role {
			case "Editor", "Super Editor":
				if want = page(titles[name], editing); isForAdministrators {
					want = notYours(editing)
				}
			case "Author", "Contributor":
				want = notYours(nil)
			case "", "Stranger":
				want = signIn
			}
			got := h.get(name, role)
			if want.Text == "" {
				got.Text = ""
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(shown{})); diff != "" {
				t.Errorf("GET %s as %q: %s", name, role, diff)
			}
			// A form is no way around that.
			if want.Status != http.StatusOK {
				if diff := cmp.Diff(want, h.post(name, role, "do", "add", "name", "crm", "refresh", "nightly"), cmpopts.IgnoreUnexported(shown{})); diff != "" {
					t.Errorf("POST %s as %q: %s", name, role, diff)
				}
			}
		}
	}
	if h.Outbox.Tried != 0 {
		t.Errorf("somebody without the right had %d members tried", h.Outbox.Tried)
	}
	if list, err := h.Members.Keys.Store.ListIntegrations(t.Context(), "daily"); err != nil || len(list) > 0 {
		t.Errorf("somebody without the right added %v, %v", list, err)
	}
}

// Somebody whose session has ended finds the way to Ghost's sign-in, and back to where they
// were.
func TestSessionThatEnded(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	for target, again := range map[string]string{
		"curation?slot=top/lead&view=search&q=a%22b%26c": `curation?slot=top/lead&view=search&q=a%22b%26c`,
		"sync":                                  "sync",
		`themes?"><script>=//elsewhere.example`: `themes?%22%3e%3cscript%3e=//elsewhere.example`,
	} {
		var links []string
		page := h.read(h.ask("GET", path+strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22").Replace(target), "", ""))
		for a := range elements(page.body, "a") {
			links = append(links, attribute(a, "href"))
		}
		want := []string{"#main", "/ghost/", "/ghost/", again}
		if diff := cmp.Diff(want, links); diff != "" && !strings.EqualFold(strings.Join(want, " "), strings.Join(links, " ")) {
			t.Errorf("%s: links (-want +got):\n%s", target, diff)
		}
	}
}

// What a stranger sends costs no more memory than it is long: it is not shown again.
func TestLongAddressOfStranger(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	short := h.ask("GET", path+"curation", "", "")
	long := h.ask("GET", path+"curation?slot="+strings.Repeat("&", 1<<20), "", "")
	if diff := cmp.Diff(withoutNonce(short.Body.String()), withoutNonce(long.Body.String())); diff != "" || long.Code != http.StatusUnauthorized {
		t.Errorf("%d, with %d bytes", long.Code, long.Body.Len())
	}
}

// Editors do not upload or activate themes: Ghost would not let them.
func TestThemesAreUploadedByThoseWhoMay(t *testing.T) {
	h := newHarness(t)
	for role, want := range map[string][]string{
		"Owner":         {"desk-upload /ghost/api/admin/themes/upload/", "desk-activate /ghost/api/admin/themes/source/activate/"},
		"Administrator": {"desk-upload /ghost/api/admin/themes/upload/", "desk-activate /ghost/api/admin/themes/source/activate/"},
		"Editor":        nil,
		"Super Editor":  nil,
	} {
		var got []string
		page := h.get("themes", role)
		for _, name := range []string{"desk-upload", "desk-activate"} {
			for e := range elements(page.body, name) {
				got = append(got, name+" "+attribute(e, "to"))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

// A page of another site changes nothing here and reads nothing, no matter who looks at it.
func TestRequestsOfOtherSites(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	h.Publish("1", "A", "#lead")
	before := h.Ghost.PostsByTag()
	for name, header := range map[string][]string{
		"another origin":         {"Sec-Fetch-Site", "", "Origin", "https://elsewhere.example"},
		"another site":           {"Sec-Fetch-Site", "cross-site", "Origin", "https://elsewhere.example"},
		"another host":           {"Sec-Fetch-Site", "same-site", "Origin", "https://www.news.example.com"},
		"no origin":              {"Sec-Fetch-Site", "", "Origin", ""},
		"a page without origin":  {"Sec-Fetch-Site", "", "Origin", "null"},
		"headers that disagree":  {"Sec-Fetch-Site", "same-origin", "Origin", "https://elsewhere.example"},
		"a frame of another one": {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "iframe"},
	} {
		for _, page := range pageNames() {
			response := h.ask("POST", path+page, "Owner", "do=add&name=crm&theme=nightly&slot=top/lead&post=", header...)
			got := h.read(response)
			if got.Status != http.StatusForbidden || !strings.HasPrefix(got.Text, "The request must come from a page of this site") {
				t.Errorf("%s: POST %s: %d %s", name, page, got.Status, got.Text)
			}
		}
	}
	for _, page := range pageNames() {
		if got := h.read(h.ask("GET", path+page, "Owner", "", "Sec-Fetch-Site", "cross-site")); got.Status != http.StatusForbidden || len(got.Nav) > 0 {
			t.Errorf("GET %s from another site: %d %v", page, got.Status, got.Nav)
		}
	}
	if diff := cmp.Diff(before, h.Ghost.PostsByTag()); diff != "" {
		t.Errorf("the homepage has changed: %s", diff)
	}
	if list, _ := h.Members.Keys.Store.ListIntegrations(t.Context(), "daily"); len(list) > 0 || h.Outbox.Tried > 0 {
		t.Errorf("changed: %v, tried %d times", list, h.Outbox.Tried)
	}
}

// Every response keeps scripts of others out, and pages and redirections are kept nowhere.
func TestHeadersKeepScriptsOfOthersOut(t *testing.T) {
	h := newHarness(t)
	const (
		csp   = "default-src 'none'; script-src 'nonce-NONCE'; style-src 'nonce-NONCE'; img-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		noCSP = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"
	)
	secure := http.Header{
		"Content-Security-Policy": {csp}, "Referrer-Policy": {"same-origin"}, "X-Content-Type-Options": {"nosniff"},
		"Cache-Control": {"no-store"}, "Content-Type": {"text/html; charset=utf-8"},
	}
	with := func(pairs ...string) http.Header {
		header := secure.Clone()
		for i := 0; i < len(pairs); i += 2 {
			header[pairs[i]] = []string{pairs[i+1]}
		}
		return header
	}
	bare := newHarness(t)
	bare.Site.Members = nil
	bare.Site.Events = nil
	none := newHarness(t)
	none.Site = nil
	for name, test := range map[string]struct {
		h            *harness
		method, page string
		role         string
		status       int
		header       http.Header
	}{
		"a page":                      {h, "GET", "themes", "Owner", 200, secure},
		"HEAD of a page":              {h, "HEAD", "themes", "Owner", 200, secure},
		"a page that is not there":    {h, "GET", "curation", "Owner", 404, secure},
		"not signed in":               {h, "GET", "themes", "", 401, secure},
		"not allowed":                 {h, "GET", "sync", "Editor", 403, secure},
		"no such page":                {h, "GET", "nothing", "Owner", 404, secure},
		"a page of another page":      {h, "GET", "themes/nightly", "Owner", 404, secure},
		"a template":                  {h, "GET", "frame.html", "Owner", 404, secure},
		"a part of a script":          {h, "GET", "curation.js", "Owner", 404, secure},
		"another method":              {h, "PUT", "themes", "Owner", 405, with("Allow", "GET, HEAD, POST")},
		"preflight":                   {h, "OPTIONS", "sync", "", 405, with("Allow", "GET, HEAD, POST")},
		"a form of no kind":           {h, "POST", "integrations", "Owner", 400, secure},
		"the folder":                  {h, "GET", "", "Owner", 303, with("Location", path+"themes", "Content-Security-Policy", noCSP)},
		"with a slash at its end":     {h, "GET", "sync/", "Owner", 308, with("Location", path+"sync", "Content-Security-Policy", noCSP)},
		"after a form":                {h, "POST", "sync", "Owner", 303, with("Location", path+"sync?tried=0", "Content-Security-Policy", noCSP)},
		"a site without the API":      {bare, "GET", "integrations", "Owner", 404, secure},
		"a site without events":       {bare, "GET", "events", "Owner", 404, secure},
		"no site":                     {none, "GET", "themes", "Owner", 404, secure},
		"the folder where no site is": {none, "GET", "", "Owner", 404, secure},
	} {
		t.Run(name, func(t *testing.T) {
			response := test.h.ask(test.method, path+test.page, test.role, "")
			got := response.Header().Clone()
			got.Set("Content-Security-Policy", nonceOf.ReplaceAllString(got.Get("Content-Security-Policy"), "'nonce-NONCE'"))
			if response.Code == 303 && test.method == "POST" { // without the page that net/http writes for a GET
				got.Set("Content-Type", "text/html; charset=utf-8")
			}
			if diff := cmp.Diff(test.header, got); diff != "" || response.Code != test.status {
				t.Errorf("status %d, want %d: %s", response.Code, test.status, diff)
			}
		})
	}
}

// nonceOf is the number in a Content-Security-Policy by which the script and the style of a
// page are known.
var nonceOf = regexp.MustCompile("'nonce-[A-Z2-7]{26}'")

func withoutNonce(page string) string {
	return regexp.MustCompile(`nonce="[A-Z2-7]{26}"`).ReplaceAllString(page, "nonce")
}

// Each page allows its own script and style by a number of its own, and no other file of the
// site: others upload files to it.
func TestScriptsOfOthers(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	seen := make(map[string]bool)
	for _, page := range append(pageNames(), "nothing", "curation") {
		for _, role := range []string{"Owner", ""} {
			response := h.ask("GET", path+page, role, "")
			policy := response.Header().Get("Content-Security-Policy")
			nonces := nonceOf.FindAllString(policy, -1)
			if len(nonces) != 2 || nonces[0] != nonces[1] || seen[nonces[0]] {
				t.Fatalf("%s: %s, after %v", page, policy, seen)
			}
			seen[nonces[0]] = true
			var loaded []string
			for n := range h.read(response).body.Descendants() {
				if n.Data == "script" || n.Data == "link" {
					loaded = append(loaded, n.Data+" 'nonce-"+attribute(n, "nonce")+"'")
				}
			}
			if diff := cmp.Diff([]string{"link " + nonces[0], "script " + nonces[0]}, loaded); diff != "" {
				t.Errorf("%s (-want +got):\n%s", page, diff)
			}
		}
	}
}

// Of a HEAD a browser learns what a GET would answer, and gets no page.
func TestHeadAnswersAsGetWithoutAPage(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	address := h.serve() + path
	for _, name := range append(pageNames(), "nothing", "desk.js", "desk.css") {
		status, header, length := fetch(t, "GET", address+name, "Cookie", "Owner")
		gotStatus, got, none := fetch(t, "HEAD", address+name, "Cookie", "Owner")
		if length == 0 || none != 0 || gotStatus != status {
			t.Errorf("%s: %d, %d bytes; HEAD: %d, %d bytes", name, status, length, gotStatus, none)
		}
		for _, of := range []http.Header{header, got} {
			of.Del("Date")
			of.Set("Content-Security-Policy", nonceOf.ReplaceAllString(of.Get("Content-Security-Policy"), ""))
		}
		if diff := cmp.Diff(header, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
