package thememanifest_test

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

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// themeEndpoints are those of a theme, and the methods that they have.
var themeEndpoints = map[string][]string{
	"": {"GET", "HEAD"}, "/nightly/manifest": {"GET", "HEAD"}, "/nightly/event-types": {"GET", "HEAD"}, "/nightly/curation": {"GET", "HEAD"},
	"/nightly/refresh": {"POST"}, "/nightly/events/validate": {"POST"},
}

// eachEndpoint holds all endpoints to one response.
func eachEndpoint(e *edgetest.Edge, name string, want edgetest.Response, header ...string) {
	e.T.Helper()
	for path, methods := range themeEndpoints {
		for _, method := range methods {
			want := want
			if method == "HEAD" {
				want.Body = ""
			}
			if diff := cmp.Diff(want, e.Do(method, "/ghost/lychgate/themes"+path, append(header, "Sec-Fetch-Site", "same-origin")...)); diff != "" {
				e.T.Errorf("%s: %s %q: response (-want +got):\n%s", name, method, path, diff)
			}
		}
	}
}

// refusedSession is the response to a session that Ghost refuses at an origin.
func refusedSession(expected, received string) edgetest.Response {
	return exchange.Staff(401, `{"message":"Ghost refuses this session: Request made from incorrect origin. Expected '`+expected+
		`' received '`+received+`'. Sign in to Ghost's admin at the expected origin."}`)
}

// Only the staff who edit may read and refresh, and only from a page of the site
// may anything be changed.
func TestThemesAreForStaff(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "staff-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)

	signInFirst := exchange.Staff(401, `{"message":"Sign in to Ghost's admin on this site first."}`)
	notEditor := exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`)
	for role, want := range map[string]edgetest.Response{
		"Administrator": {Status: 200}, "Editor": {Status: 200}, "Super Editor": {Status: 200},
		"Author": notEditor, "Contributor": notEditor,
	} {
		email := strings.ReplaceAll(strings.ToLower(role), " ", "-") + edgetest.GUIDLike() + "@example.com"
		e.AddStaff(owner, email, role)
		cookie := e.SignIn(email)
		for range 2 { // the second time from what is known
			got := e.Do("GET", "/ghost/lychgate/themes/"+theme+"/curation", "Cookie", cookie, "Origin", e.Base)
			if got.Status == 200 {
				got = edgetest.Response{Status: 200}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: response (-want +got):\n%s", role, diff)
			}
		}
		if role == "Author" {
			eachEndpoint(e, role, want, "Cookie", cookie, "Origin", e.Base)
		}
	}
	eachEndpoint(e, "nobody", signInFirst)
	eachEndpoint(e, "no site", exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`), "Host", "elsewhere.example.com")
	for path, methods := range themeEndpoints {
		want := exchange.Staff(405, `{"message":"The method is not allowed here."}`, "Allow", strings.Join(methods, ", "))
		if diff := cmp.Diff(want, e.Do("DELETE", "/ghost/lychgate/themes"+path, "Cookie", owner, "Origin", e.Base)); diff != "" {
			t.Errorf("DELETE %q: %s", path, diff)
		}
	}

	elsewhere := exchange.Staff(403, `{"message":"The request must come from a page of this site: its Origin header must name this site."}`)
	noEvent := exchange.Staff(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`)
	noEndpoint := exchange.Staff(404, `{"message":"There is no such endpoint."}`)
	noSite := exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`)
	notAllowed := func(allow string) edgetest.Response {
		return exchange.Staff(405, `{"message":"The method is not allowed here."}`, "Allow", allow)
	}
	for _, test := range []struct {
		name, method, path string
		header             []string
		want               edgetest.Response
	}{
		{"nobody", "GET", "", nil, signInFirst},
		{"a forged session", "GET", "", []string{"Cookie", strings.Replace(owner, "s%3A", "s%3Ax", 1), "Origin", e.Base}, signInFirst},
		{"another's origin", "GET", "", []string{"Cookie", owner, "Origin", "https://elsewhere.example"}, refusedSession(e.Base, "https://elsewhere.example")},
		{"a reader's cookie", "GET", "", []string{"Cookie", "ghost-members-ssr=jane@example.com", "Origin", e.Base}, signInFirst},
		{"an integration's key", "GET", "", []string{"Authorization", "Ghost " + key, "Origin", e.Base}, signInFirst},
		{"from another origin", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Origin", "https://elsewhere.example"}, elsewhere},
		{"from another site", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.Base, "Sec-Fetch-Site", "cross-site"}, elsewhere},
		{"from another host of the site", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", "http://www.localhost", "Sec-Fetch-Site", "same-site"}, elsewhere},
		{"from nowhere", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Referer", e.Base + "/ghost/"}, elsewhere},
		{"from a page", "POST", "/" + theme + "/events/validate", []string{"Cookie", owner, "Origin", e.Base, "Sec-Fetch-Site", "same-origin"}, noEvent},
		{"no such endpoint", "GET", "/" + theme + "/types", []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"a theme alone", "GET", "/" + theme, []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"a name with NUL", "GET", "/a%00b/curation", []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"a name that is no text", "GET", "/a%ffb/curation", []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"a slash in disguise", "GET", "%2Fa/curation", []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"no name", "GET", "//curation", []string{"Cookie", owner, "Origin", e.Base}, noEndpoint},
		{"no theme", "GET", "/none/curation", []string{"Cookie", owner, "Origin", e.Base}, exchange.Staff(404, `{"message":"The theme has no manifest."}`)},
		{"a refresh by GET", "GET", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.Base}, notAllowed("POST")},
		{"a list by POST", "POST", "", []string{"Cookie", owner, "Origin", e.Base}, notAllowed("GET, HEAD")},
		{"preflight", "OPTIONS", "", []string{"Origin", "https://elsewhere.example"}, notAllowed("GET, HEAD")},
		{"no repository", "POST", "/" + theme + "/refresh", []string{"Cookie", owner, "Origin", e.Base}, exchange.Staff(404, `{"message":"The theme has no repository to be refreshed from."}`)},
		{"no site", "GET", "", []string{"Host", "elsewhere.example.com"}, noSite},
		{"a site without Ghost", "GET", "", []string{"Host", "bare.example.com"}, noSite},
	} {
		if diff := cmp.Diff(test.want, e.Do(test.method, "/ghost/lychgate/themes"+test.path, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	// An address typed into the browser comes with neither Origin nor Referer.
	if got := e.Do("GET", "/ghost/lychgate/themes", "Cookie", owner, "Sec-Fetch-Site", "none"); got.Status != 200 {
		t.Errorf("from the address bar: %v", got)
	}
	if got := e.Do("HEAD", "/ghost/lychgate/themes/", "Cookie", owner, "Origin", e.Base); got.Status != 200 || got.Body != "" {
		t.Errorf("HEAD: %v", got)
	}
	// What is next to the API is Ghost's.
	if got := e.Do("GET", "/ghost/lychgate/themesx"); got.Header["Cache-Control"] == "no-store" {
		t.Errorf(`got %v, want another Cache-Control than "no-store"`, got)
	}
	if logged := e.Logged(); strings.Contains(logged, owner) || strings.Contains(logged, edgetest.GhostOwner) {
		t.Errorf("personal data in the log: %s", logged)
	}

	// Anyone who makes up sessions is told to wait.
	forged := strings.Replace(owner, "s%3A", "s%3Ax", 1)
	for range 30 {
		e.Do("GET", "/ghost/lychgate/themes", "Cookie", forged, "X-Forwarded-For", "192.0.2.1")
	}
	for path, methods := range themeEndpoints {
		for _, method := range methods {
			got := e.Do(method, "/ghost/lychgate/themes"+path, "Cookie", forged, "X-Forwarded-For", "192.0.2.1", "Sec-Fetch-Site", "same-origin")
			if got.Status != 429 || got.Header["Retry-After"] == "" {
				t.Errorf("%s %q: got %v, want status 429, a Retry-After", method, path, got)
			}
		}
	}
	// Nobody is taken for staff because Ghost does not answer.
	e.Load(edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://127.0.0.1:1", key, ""))
	eachEndpoint(e, "Ghost is away", exchange.Staff(502, `{"message":"Ghost could not be asked who you are. Try again."}`), "Cookie", owner, "Origin", e.Base)
	if logged := e.Logged(); strings.Contains(logged, owner) || !strings.Contains(logged, "Ghost does not say who is signed in") {
		t.Errorf("logged: %s", logged)
	}
}

// Before an event is published, the editor learns what is wrong with it, and
// what its post is to be.
func TestValidateEvents(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "events-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.WarnedManifest("A")), "Cookie", owner)
	const webinar = `,"post_template":"custom-webinar","tags":["Events","#webinar"]}`
	for body, want := range map[string]edgetest.Response{
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jane"}}`:             exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jäne!","seats":10}}`: exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"speaker":"Janette","seats":11}}`: exchange.Staff(200, `{"valid":false,"problems":[{"field":"name","message":"Name is required."},`+
			`{"field":"speaker","message":"Speaker must have 5 characters at most; it has 7."},{"field":"seats","message":"Seats must be 10 or less."}]`+webinar),
		`{"type":"meetup"}`:         exchange.Staff(200, `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`),
		`{"type":"concert"}`:        exchange.Staff(422, `{"message":"The theme has no event type \"concert\". It has \"webinar\", \"meetup\", \"gala\"."}`),
		`{}`:                        exchange.Staff(422, `{"message":"The theme has no event type \"\". It has \"webinar\", \"meetup\", \"gala\"."}`),
		`{"type":"webinar","values`: exchange.Staff(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`),
		`{"type":"meetup"` + strings.Repeat(" ", 1<<20-len(`{"type":"meetup"}`)) + `}`: exchange.Staff(200, `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`),
		`{"type":"webinar","values":` + strings.Repeat(" ", 1<<20) + `{}}`:             exchange.Staff(413, `{"message":"The request's body is too large."}`),
	} {
		got, err := e.SendBody("POST", "/ghost/lychgate/themes/"+theme+"/events/validate", body, "Cookie", owner, "Origin", e.Base, "Content-Type", "application/json")
		delete(got.Header, "Connection")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%.80s: response: error %v, want none (-want +got):\n%s", body, err, diff)
		}
	}
}

// A refresh reads what the repository has, or says why it cannot, and then
// changes nothing. Only a repository that was read and has no manifest clears it.
func TestRefreshWithGit(t *testing.T) {
	url, key := ghosttest.Real(t)
	git := edgetest.ThemeBranches(t)
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
	files := map[string]string{"lychgate-manifest.yaml": edgetest.CleanManifest("large")}
	for i := range 100 {
		files[fmt.Sprint("assets/", i, ".jpg")] = strings.Repeat(fmt.Sprint(i, "\n"), 100_000)
	}
	git.Commit("large", files)
	address := git.Start()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hanging.Close()
	gone := "127.0.0.1:" + freeport.New(t)

	// All are one theme, at one repository after another.
	store := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(store, url, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	refresh := func(repository, options string) edgetest.Response {
		t.Helper()
		e.Load(edgetest.ThemesConfig(store, url, key, "theme nightly {\nrepository "+repository+" {\n"+options+"\n}\n}"))
		return e.Do("POST", "/ghost/lychgate/themes/nightly/refresh", "Cookie", owner, "Origin", e.Base)
	}
	kept := func() string {
		t.Helper()
		got := e.Do("GET", "/ghost/lychgate/themes", "Cookie", owner, "Origin", e.Base)
		return edgetest.When.ReplaceAllString(got.Body, "TIME")
	}
	const token = "token " + gittest.Token
	listed := func(status, count, curation string) string {
		findings := edgetest.NoFindings
		if count != "0" {
			findings = edgetest.OneFinding
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
		{"findings at first", address + "/theme", token + "\nbranch next", 200, `{"status":"1 warning",` + edgetest.OneFinding + `,"manifest":{"manifest_version":1,`, listed("1 warning", "1", "inactive")},
		{"valid", address + "/theme", token, 200, `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,`, clean},
		{"the default branch by name", address + "/theme", token + "\nbranch main", 200, `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,`, clean},
		{"findings", address + "/theme", token + "\nbranch next", 200, `{"status":"1 warning",` + edgetest.OneFinding + `,"manifest":{"manifest_version":1,`, warned},
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
	e.Load(edgetest.ThemesConfig(store, url, key, "theme nightly {\nrepository "+hanging.URL+"/theme\n}"))
	e.Client.Timeout = 300 * time.Millisecond
	if _, err := e.SendBody("POST", "/ghost/lychgate/themes/nightly/refresh", "", "Cookie", owner, "Origin", e.Base); err == nil {
		t.Error("refreshing from a server that hangs: got a response, want a timeout")
	}
	if logged := e.Logged(); strings.Contains(logged, gittest.Token) || !strings.Contains(logged, "cannot refresh theme") {
		t.Errorf("logged: %s", logged)
	}
}

// A session that was begun at the address of Ghost's own configuration is good at
// the edge's, whichever Ghost it is. Ghost 6 refuses those that were not, and the
// answer says so.
func TestSessionBegunAtGhostsAddress(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	own := e.SignInAt(url, edgetest.GhostOwner)
	noTheme := exchange.Staff(404, `{"message":"The theme has no manifest."}`)
	noEvent := exchange.Staff(422, `{"message":"Send JSON such as {\"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`)
	for _, test := range []struct {
		name, method, path string
		header             []string
		want               edgetest.Response
	}{
		{"a page", "GET", "/none/curation", []string{"Sec-Fetch-Site", "same-origin", "Referer", e.Base + "/ghost/"}, noTheme},
		{"the address bar", "GET", "/none/curation", []string{"Sec-Fetch-Site", "none"}, noTheme},
		{"a page that changes something", "POST", "/none/events/validate", []string{"Sec-Fetch-Site", "same-origin", "Origin", e.Base}, noEvent},
		{"curl", "POST", "/none/events/validate", []string{"Origin", e.Base}, noEvent},
		{"curl, without an origin", "GET", "/none/curation", nil, noTheme},
		{"another host", "GET", "/none/curation", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://www.localhost"}, refusedSession(url, "http://www.localhost")},
	} {
		if diff := cmp.Diff(test.want, e.Do(test.method, "/ghost/lychgate/themes"+test.path, append(test.header, "Cookie", own)...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}

	want := noTheme
	if strings.HasPrefix(ghostVersion(t, url), "6.") {
		want = refusedSession(url, e.Base)
	}
	got, err := e.SendBody("POST", "/ghost/api/admin/session/", `{"username":"`+edgetest.GhostOwner+`","password":"`+edgetest.GhostPassword+`"}`,
		"Content-Type", "application/json", "Origin", e.Base)
	if err != nil || got.Status != http.StatusCreated {
		t.Fatalf("signing in: %v, %v", got, err)
	}
	here, _, _ := strings.Cut(got.Header["Set-Cookie"], ";")
	wait.Until(t, func() string { // Ghost keeps a session a moment after it has said so
		return cmp.Diff(want, e.Do("GET", "/ghost/lychgate/themes/none/curation", "Cookie", here, "Origin", e.Base))
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
