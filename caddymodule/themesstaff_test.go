package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// staffResponse is a response of the themes API.
func staffResponse(status int, body string, header ...string) response {
	return enveloped(status, body+"\n", header...)
}

// themeEndpoints are those of a theme, and the methods that they have.
var themeEndpoints = map[string][]string{
	"": {"GET", "HEAD"}, "/nightly/manifest": {"GET", "HEAD"}, "/nightly/event-types": {"GET", "HEAD"}, "/nightly/curation": {"GET", "HEAD"},
	"/nightly/refresh": {"POST"}, "/nightly/events/validate": {"POST"},
}

// eachEndpoint holds all endpoints to one response.
func (e *edge) eachEndpoint(name string, want response, header ...string) {
	e.t.Helper()
	for path, methods := range themeEndpoints {
		for _, method := range methods {
			want := want
			if method == "HEAD" {
				want.Body = ""
			}
			if diff := cmp.Diff(want, e.do(method, "/ghost/lychgate/themes"+path, append(header, "Sec-Fetch-Site", "same-origin")...)); diff != "" {
				e.t.Errorf("%s: %s %q: response (-want +got):\n%s", name, method, path, diff)
			}
		}
	}
}

// refusedSession is the response to a session that Ghost refuses at an origin.
func refusedSession(expected, received string) response {
	return staffResponse(401, `{"message":"Ghost refuses this session: Request made from incorrect origin. Expected '`+expected+
		`' received '`+received+`'. Sign in to Ghost's admin at the expected origin."}`)
}

// Only the staff who edit may read and refresh, and only from a page of the site
// may anything be changed.
func TestThemesAreForStaff(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), url, key, ""))
	owner := e.signIn(ghostOwner)
	theme := "staff-" + guidLike()
	e.uploadTheme(theme, sourceZip(t, "", cleanManifest("A")), "Cookie", owner)

	signInFirst := staffResponse(401, `{"message":"Sign in to Ghost's admin on this site first."}`)
	notEditor := staffResponse(403, `{"message":"Owners, administrators and editors may do this."}`)
	for role, want := range map[string]response{
		"Administrator": {Status: 200}, "Editor": {Status: 200}, "Super Editor": {Status: 200},
		"Author": notEditor, "Contributor": notEditor,
	} {
		email := strings.ReplaceAll(strings.ToLower(role), " ", "-") + guidLike() + "@example.com"
		e.addStaff(owner, email, role)
		cookie := e.signIn(email)
		for range 2 { // the second time from what is known
			got := e.do("GET", "/ghost/lychgate/themes/"+theme+"/curation", "Cookie", cookie, "Origin", e.base)
			if got.Status == 200 {
				got = response{Status: 200}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: response (-want +got):\n%s", role, diff)
			}
		}
		if role == "Author" {
			e.eachEndpoint(role, want, "Cookie", cookie, "Origin", e.base)
		}
	}
	e.eachEndpoint("nobody", signInFirst)
	e.eachEndpoint("no site", staffResponse(404, `{"message":"There is no site with a Ghost at this address."}`), "Host", "elsewhere.example.com")
	for path, methods := range themeEndpoints {
		want := staffResponse(405, `{"message":"The method is not allowed here."}`, "Allow", strings.Join(methods, ", "))
		if diff := cmp.Diff(want, e.do("DELETE", "/ghost/lychgate/themes"+path, "Cookie", owner, "Origin", e.base)); diff != "" {
			t.Errorf("DELETE %q: %s", path, diff)
		}
	}

	elsewhere := staffResponse(403, `{"message":"The request must come from a page of this site: its Origin header must name this site."}`)
	noEvent := staffResponse(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`)
	noEndpoint := staffResponse(404, `{"message":"There is no such endpoint."}`)
	noSite := staffResponse(404, `{"message":"There is no site with a Ghost at this address."}`)
	notAllowed := func(allow string) response {
		return staffResponse(405, `{"message":"The method is not allowed here."}`, "Allow", allow)
	}
	for _, test := range []struct {
		name, method, path string
		header             []string
		want               response
	}{
		{"nobody", "GET", "", nil, signInFirst},
		{"a forged session", "GET", "", []string{"Cookie", strings.Replace(owner, "s%3A", "s%3Ax", 1), "Origin", e.base}, signInFirst},
		{"another's origin", "GET", "", []string{"Cookie", owner, "Origin", "https://elsewhere.example"}, refusedSession(e.base, "https://elsewhere.example")},
		{"a reader's cookie", "GET", "", []string{"Cookie", "ghost-members-ssr=jane@example.com", "Origin", e.base}, signInFirst},
		{"an integration's key", "GET", "", []string{"Authorization", "Ghost " + key, "Origin", e.base}, signInFirst},
		{"from another origin", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Origin", "https://elsewhere.example"}, elsewhere},
		{"from another site", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.base, "Sec-Fetch-Site", "cross-site"}, elsewhere},
		{"from another host of the site", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", "http://www.localhost", "Sec-Fetch-Site", "same-site"}, elsewhere},
		{"from nowhere", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Referer", e.base + "/ghost/"}, elsewhere},
		{"from a page", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Origin", e.base, "Sec-Fetch-Site", "same-origin"}, noEvent},
		{"no such endpoint", "GET", "/" + theme + "/types", []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"a theme alone", "GET", "/" + theme, []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"a name with NUL", "GET", "/a%00b/curation", []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"a name that is no text", "GET", "/a%ffb/curation", []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"a slash in disguise", "GET", "%2Fa/curation", []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"no name", "GET", "//curation", []string{"Cookie", owner, "Origin", e.base}, noEndpoint},
		{"no theme", "GET", "/none/curation", []string{"Cookie", owner, "Origin", e.base}, staffResponse(404, `{"message":"The theme has no manifest."}`)},
		{"a refresh by GET", "GET", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.base}, notAllowed("POST")},
		{"a list by POST", "POST", "", []string{"Cookie", owner, "Origin", e.base}, notAllowed("GET, HEAD")},
		{"preflight", "OPTIONS", "", []string{"Origin", "https://elsewhere.example"}, notAllowed("GET, HEAD")},
		{"no repository", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.base}, staffResponse(404, `{"message":"The theme has no repository to be refreshed from."}`)},
		{"no site", "GET", "", []string{"Host", "elsewhere.example.com"}, noSite},
		{"a site without Ghost", "GET", "", []string{"Host", "bare.example.com"}, noSite},
	} {
		if diff := cmp.Diff(test.want, e.do(test.method, "/ghost/lychgate/themes"+test.path, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	// An address typed into the browser comes with neither Origin nor Referer.
	if got := e.do("GET", "/ghost/lychgate/themes", "Cookie", owner, "Sec-Fetch-Site", "none"); got.Status != 200 {
		t.Errorf("from the address bar: %v", got)
	}
	if got := e.do("HEAD", "/ghost/lychgate/themes/", "Cookie", owner, "Origin", e.base); got.Status != 200 || got.Body != "" {
		t.Errorf("HEAD: %v", got)
	}
	// What is next to the API is Ghost's.
	if got := e.do("GET", "/ghost/lychgate/themesx"); got.Header["Cache-Control"] == "no-store" {
		t.Errorf(`got %v, want another Cache-Control than "no-store"`, got)
	}
	if logged := e.logged(); strings.Contains(logged, owner) || strings.Contains(logged, ghostOwner) {
		t.Errorf("personal data in the log: %s", logged)
	}

	// Anyone who makes up sessions is told to wait.
	forged := strings.Replace(owner, "s%3A", "s%3Ax", 1)
	for range 30 {
		e.do("GET", "/ghost/lychgate/themes", "Cookie", forged, "X-Forwarded-For", "192.0.2.1")
	}
	for path, methods := range themeEndpoints {
		for _, method := range methods {
			got := e.do(method, "/ghost/lychgate/themes"+path, "Cookie", forged, "X-Forwarded-For", "192.0.2.1", "Sec-Fetch-Site", "same-origin")
			if got.Status != 429 || got.Header["Retry-After"] == "" {
				t.Errorf("%s %q: got %v, want status 429, a Retry-After", method, path, got)
			}
		}
	}
	// Nobody is taken for staff because Ghost does not answer.
	e.load(themesConfig(sqliteStore(t), "http://127.0.0.1:1", key, ""))
	e.eachEndpoint("Ghost is away", staffResponse(502, `{"message":"Ghost could not be asked who you are. Try again."}`), "Cookie", owner, "Origin", e.base)
	if logged := e.logged(); strings.Contains(logged, owner) || !strings.Contains(logged, "Ghost does not say who is signed in") {
		t.Errorf("logged: %s", logged)
	}
}

// Before an event is published, the editor learns what is wrong with it, and
// what its post is to be.
func TestValidateEvents(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), url, key, ""))
	owner := e.signIn(ghostOwner)
	theme := "events-" + guidLike()
	e.uploadTheme(theme, sourceZip(t, "", warnedManifest("A")), "Cookie", owner)
	const webinar = `,"post_template":"custom-webinar","tags":["Events","#webinar"]}`
	for body, want := range map[string]response{
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jane"}}`:             staffResponse(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jäne!","seats":10}}`: staffResponse(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"speaker":"Janette","seats":11}}`: staffResponse(200, `{"valid":false,"problems":[{"field":"name","message":"Name is required."},`+
			`{"field":"speaker","message":"Speaker must have 5 characters at most; it has 7."},{"field":"seats","message":"Seats must be 10 or less."}]`+webinar),
		`{"type":"meetup"}`:         staffResponse(200, `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`),
		`{"type":"concert"}`:        staffResponse(422, `{"message":"The theme has no event type \"concert\". It has \"webinar\", \"meetup\", \"gala\"."}`),
		`{}`:                        staffResponse(422, `{"message":"The theme has no event type \"\". It has \"webinar\", \"meetup\", \"gala\"."}`),
		`{"type":"webinar","values`: staffResponse(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`),
		`{"type":"meetup"` + strings.Repeat(" ", 1<<20-len(`{"type":"meetup"}`)) + `}`: staffResponse(200, `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`),
		`{"type":"webinar","values":` + strings.Repeat(" ", 1<<20) + `{}}`:             staffResponse(413, `{"message":"The request's body is too large."}`),
	} {
		got, err := e.sendBody("POST", "/ghost/lychgate/themes/"+theme+"/events/validate", body, "Cookie", owner, "Origin", e.base, "Content-Type", "application/json")
		delete(got.Header, "Connection")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%.80s: response: error %v, want none (-want +got):\n%s", body, err, diff)
		}
	}
}

// The server has the repository theme with three branches: the manifest of main has no finding,
// that of next has one, and removed, which is checked out, has no manifest.
func themeBranches(t *testing.T) *gittest.Server {
	git := gittest.New(t)
	git.Init("theme")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": cleanManifest("main"), "index.hbs": ""})
	git.Git("theme", "checkout", "-q", "-b", "next")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": warnedManifest("next")})
	git.Git("theme", "checkout", "-q", "-b", "removed")
	git.Git("theme", "rm", "-q", "lychgate-manifest.yaml")
	git.Commit("theme", nil)
	return git
}

// A refresh reads what the repository has, or says why it cannot, and then
// changes nothing. Only a repository that was read and has no manifest clears it.
func TestRefreshWithGit(t *testing.T) {
	url, key := ghosttest.Real(t)
	git := themeBranches(t)
	git.Git("theme", "checkout", "-q", "-b", "too-large")
	git.Commit("theme", map[string]string{"lychgate-manifest.yaml": strings.Repeat("#", 256<<10+1)})
	git.Git("theme", "checkout", "-q", "-b", "linked")
	if err := os.Remove(filepath.Join(git.Root, "theme", "lychgate-manifest.yaml")); err != nil {
		t.Fatalf("os.Remove: %v", err)
	}
	if err := os.Symlink("index.hbs", filepath.Join(git.Root, "theme", "lychgate-manifest.yaml")); err != nil {
		t.Fatalf("os.Symlink: %v", err)
	}
	git.Commit("theme", nil)
	git.Git("theme", "checkout", "-q", "main")
	git.Init("empty")
	git.Init("large")
	files := map[string]string{"lychgate-manifest.yaml": cleanManifest("large")}
	for i := range 100 {
		files[fmt.Sprint("assets/", i, ".jpg")] = strings.Repeat(fmt.Sprint(i, "\n"), 100_000)
	}
	git.Commit("large", files)
	address := git.Start()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hanging.Close()
	gone := "127.0.0.1:" + freeport.New(t)

	// All are one theme, at one repository after another.
	store := sqliteStore(t)
	e := startEdge(t, nil, themesConfig(store, url, key, ""))
	owner := e.signIn(ghostOwner)
	refresh := func(repository, options string) response {
		t.Helper()
		e.load(themesConfig(store, url, key, "theme nightly {\nrepository "+repository+" {\n"+options+"\n}\n}"))
		return e.do("POST", "/ghost/lychgate/themes/nightly/refresh", "Cookie", owner, "Origin", e.base)
	}
	kept := func() string {
		t.Helper()
		got := e.do("GET", "/ghost/lychgate/themes", "Cookie", owner, "Origin", e.base)
		return when.ReplaceAllString(got.Body, "TIME")
	}
	const token = "token " + gittest.Token
	listed := func(status, count, curation string) string {
		findings := noFindings
		if count != "0" {
			findings = oneFinding
		}
		return `{"themes":[{"name":"nightly","status":"` + status + `","count":` + count + `,` + findings +
			`,"homepage_curation":"` + curation + `","updated_at":"TIME"}]}` + "\n"
	}
	none := `{"themes":[]}` + "\n"
	clean, warned := listed("Valid", "0", "active"), listed("1 warning", "1", "active")
	failure := func(message, reason string) string { return `{"message":"` + message + `","reason":"` + reason + `"}` }
	for _, test := range []struct {
		name, repository, options string
		status                    int
		body                      string // what it begins with
		kept                      string
	}{
		{"gone at first", "http://" + gone + "/theme", "", 502, failure("the repository cannot be reached: dial tcp "+gone+": connect: connection refused", "unreachable"), none},
		{"no such branch at first", address + "/theme", token + "\nbranch nowhere", 502, failure(`reading the repository failed: there is no branch \"nowhere\"`, "request_failed"), none},
		{"no manifest at first", address + "/theme", token + "\nbranch removed", 200, `{"status":"No manifest","_errors":[],"manifest":null}`, none},
		{"findings at first", address + "/theme", token + "\nbranch next", 200, `{"status":"1 warning",` + oneFinding + `,"manifest":{"manifest_version":1,`, listed("1 warning", "1", "inactive")},
		{"valid", address + "/theme", token, 200, `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,`, clean},
		{"the default branch by name", address + "/theme", token + "\nbranch main", 200, `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,`, clean},
		{"findings", address + "/theme", token + "\nbranch next", 200, `{"status":"1 warning",` + oneFinding + `,"manifest":{"manifest_version":1,`, warned},
		{"gone", "http://" + gone + "/theme", token, 502, failure("the repository cannot be reached: dial tcp "+gone+": connect: connection refused", "unreachable"), warned},
		{"a wrong token", address + "/theme", "token wrong", 502, failure("the repository denied access: it rejects the token (status 401)", "token_rejected"), warned},
		{"no token", address + "/theme", "", 502, failure("the repository denied access: it asks for a token, and none is set (status 401)", "token_rejected"), warned},
		{"no such repository", address + "/nowhere", token, 502, `{"message":"reading the repository failed: `, warned},
		{"no such branch", address + "/theme", token + "\nbranch nowhere", 502, failure(`reading the repository failed: there is no branch \"nowhere\"`, "request_failed"), warned},
		{"empty", address + "/empty", token, 502, failure("reading the repository failed: the repository is empty", "request_failed"), warned},
		{"a symbolic link", address + "/theme", token + "\nbranch linked", 502, `{"message":"reading the repository failed: a symbolic link is not followed`, warned},
		{"large", address + "/large", token, 200, `{"status":"Valid",`, clean},
		{"removed", address + "/theme", token + "\nbranch removed", 200, `{"status":"No manifest","_errors":[],"manifest":null}`, none},
		{"restored", address + "/theme", token, 200, `{"status":"Valid",`, clean},
		{"too large", address + "/theme", token + "\nbranch too-large", 200, `{"status":"1 warning","_errors":[{"field":"manifest",`, ""},
	} {
		got := refresh(test.repository, test.options)
		if got.Status != test.status || !strings.HasPrefix(got.Body, test.body) {
			t.Errorf("%s: refresh = %v, want status %v, body beginning with %v", test.name, got, test.status, test.body)
		}
		if diff := cmp.Diff(test.kept, kept()); diff != "" && test.kept != "" {
			t.Errorf("%s: kept: %s", test.name, diff)
		}
		if strings.Contains(got.Body, gittest.Token) {
			t.Errorf("%s: the token is in the response", test.name)
		}
	}
	// Anyone who asked and leaves does not leave a hanging server behind.
	e.load(themesConfig(store, url, key, "theme nightly {\nrepository "+hanging.URL+"/theme\n}"))
	e.client.Timeout = 300 * time.Millisecond
	if _, err := e.sendBody("POST", "/ghost/lychgate/themes/nightly/refresh", "", "Cookie", owner, "Origin", e.base); err == nil {
		t.Error("refreshing from a server that hangs: got a response, want a timeout")
	}
	if logged := e.logged(); strings.Contains(logged, gittest.Token) || !strings.Contains(logged, "cannot refresh theme") {
		t.Errorf("logged: %s", logged)
	}
}

// A session that was begun at the address of Ghost's own configuration is good at
// the edge's, whichever Ghost it is. Ghost 6 refuses those that were not, and the
// answer says so.
func TestSessionBegunAtGhostsAddress(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := startEdge(t, nil, themesConfig(sqliteStore(t), url, key, ""))
	own := e.signInAt(url, ghostOwner)
	noTheme := staffResponse(404, `{"message":"The theme has no manifest."}`)
	noEvent := staffResponse(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`)
	for _, test := range []struct {
		name, method, path string
		header             []string
		want               response
	}{
		{"a page", "GET", "/none/curation", []string{"Sec-Fetch-Site", "same-origin", "Referer", e.base + "/ghost/"}, noTheme},
		{"the address bar", "GET", "/none/curation", []string{"Sec-Fetch-Site", "none"}, noTheme},
		{"a page that changes something", "POST", "/none/events/validate", []string{"Sec-Fetch-Site", "same-origin", "Origin", e.base}, noEvent},
		{"curl", "POST", "/none/events/validate", []string{"Origin", e.base}, noEvent},
		{"curl, without an origin", "GET", "/none/curation", nil, noTheme},
		{"another host", "GET", "/none/curation", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://www.localhost"}, refusedSession(url, "http://www.localhost")},
	} {
		if diff := cmp.Diff(test.want, e.do(test.method, "/ghost/lychgate/themes"+test.path, append(test.header, "Cookie", own)...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}

	want := noTheme
	if strings.HasPrefix(ghostVersion(t, url), "6.") {
		want = refusedSession(url, e.base)
	}
	got, err := e.sendBody("POST", "/ghost/api/admin/session/", `{"username":"`+ghostOwner+`","password":"`+ghostPassword+`"}`,
		"Content-Type", "application/json", "Origin", e.base)
	if err != nil || got.Status != http.StatusCreated {
		t.Fatalf("signing in: %v, %v", got, err)
	}
	here, _, _ := strings.Cut(got.Header["Set-Cookie"], ";")
	wait.Until(t, func() string { // Ghost keeps a session a moment after it has said so
		return cmp.Diff(want, e.do("GET", "/ghost/lychgate/themes/none/curation", "Cookie", here, "Origin", e.base))
	})
}

// ghostVersion is major and minor, such as 5.130.
func ghostVersion(t testing.TB, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/ghost/api/admin/site/", nil)
	if err != nil {
		t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatalf("transport.RoundTrip: %v", err)
	}
	defer response.Body.Close()
	var body struct{ Site struct{ Version string } }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatalf("json.NewDecoder(answer.Body).Decode: %v", err)
	}
	return body.Site.Version
}
