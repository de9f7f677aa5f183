package thememanifest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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

// refusedSession is the response to a session that Ghost refuses at an origin.
func refusedSession(expected, received string) edgetest.Response {
	return exchange.Staff(401, `{"message":"Ghost refuses this session: Request made from incorrect origin. Expected '`+expected+
		`' received '`+received+`'. Sign in to Ghost's admin at the expected origin."}`)
}

// Ghost's roles decide who may read and change, whatever else a site has of Ghost's.
func TestThemesAreForStaff(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.ThemesConfig(edgetest.SQLiteStore(t), url, key, ""))
	owner := e.SignIn(edgetest.GhostOwner)
	theme := "staff-" + edgetest.GUIDLike()
	e.UploadTheme(theme, edgetest.SourceZip(t, "", edgetest.CleanManifest("A")), "Cookie", owner)
	const path = "/ghost/lychgate/themes"
	valid := exchange.Staff(200, `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`)
	notEditor := exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`)
	for role, want := range map[string]edgetest.Response{
		"Administrator": valid, "Editor": valid, "Super Editor": valid, "Author": notEditor, "Contributor": notEditor,
	} {
		email := strings.ReplaceAll(strings.ToLower(role), " ", "-") + edgetest.GUIDLike() + "@example.com"
		e.AddStaff(owner, email, role)
		cookie := e.SignIn(email)
		for range 2 { // the second time from what is known
			got, err := e.SendBody("POST", path+"/"+theme+"/events/validate", `{"type":"meetup"}`, "Cookie", cookie, "Origin", e.Base, "Content-Type", "application/json")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: response: error %v, want none (-want +got):\n%s", role, err, diff)
			}
		}
	}
	signInFirst := exchange.Staff(401, `{"message":"Sign in to Ghost's admin on this site first."}`)
	noSite := exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`)
	for _, test := range []struct {
		name   string
		header []string
		want   edgetest.Response
	}{
		{"another's origin", []string{"Cookie", owner, "Origin", "https://elsewhere.example"}, refusedSession(e.Base, "https://elsewhere.example")},
		{"a reader's cookie", []string{"Cookie", "ghost-members-ssr=jane@example.com", "Origin", e.Base}, signInFirst},
		{"an integration's key", []string{"Authorization", "Ghost " + key, "Origin", e.Base}, signInFirst},
		{"no site", []string{"Host", "elsewhere.example.com"}, noSite},
		{"a site without Ghost", []string{"Host", "bare.example.com"}, noSite},
	} {
		if diff := cmp.Diff(test.want, e.Do("GET", path, test.header...)); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	// An address typed into the browser comes with neither Origin nor Referer.
	if got := e.Do("GET", path, "Cookie", owner, "Sec-Fetch-Site", "none"); got.Status != 200 {
		t.Errorf("from the address bar: %v", got)
	}
	// What is next to the API is Ghost's.
	if got := e.Do("GET", path+"x"); got.Header["Cache-Control"] == "no-store" {
		t.Errorf(`got %v, want another Cache-Control than "no-store"`, got)
	}
	if logged := e.Logged(); strings.Contains(logged, owner) || strings.Contains(logged, edgetest.GhostOwner) {
		t.Errorf("personal data in the log: %s", logged)
	}

	// Nobody is taken for staff because Ghost does not answer.
	e.Load(edgetest.ThemesConfig(edgetest.SQLiteStore(t), "http://127.0.0.1:1", key, ""))
	away := exchange.Staff(502, `{"message":"Ghost could not be asked who you are. Try again."}`)
	if diff := cmp.Diff(away, e.Do("GET", path, "Cookie", owner, "Origin", e.Base)); diff != "" {
		t.Errorf("Ghost is away: response (-want +got):\n%s", diff)
	}
	if logged := e.Logged(); strings.Contains(logged, owner) || !strings.Contains(logged, "Ghost does not say who is signed in") {
		t.Errorf("logged: %s", logged)
	}
}

// A refresh reads what the repository has, or says why it cannot, and then
// changes nothing. Only a repository that was read and has no manifest clears it.
func TestRefreshWithGit(t *testing.T) {
	url, key := ghosttest.Real(t)
	git := edgetest.ThemeBranches(t)
	git.Git("theme", "checkout", "-q", "main")
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
		{"valid", address + "/theme", token, 200, `{"status":"Valid","_errors":[],"manifest":{"manifest_version":1,`, clean},
		{"findings", address + "/theme", token + "\nbranch next", 200, `{"status":"1 warning",` + edgetest.OneFinding + `,"manifest":{"manifest_version":1,`, warned},
		{"gone", "http://" + gone + "/theme", token, 502, failure("the repository cannot be reached: dial tcp "+gone+": connect: connection refused", "unreachable"), warned},
		{"a wrong token", address + "/theme", "token wrong", 502, failure("the repository denied access: it rejects the token (status 401)", "token_rejected"), warned},
		{"no such branch", address + "/theme", token + "\nbranch nowhere", 502, failure(`reading the repository failed: there is no branch \"nowhere\"`, "request_failed"), warned},
		{"removed", address + "/theme", token + "\nbranch removed", 200, `{"status":"No manifest","_errors":[],"manifest":null}`, none},
		{"restored", address + "/theme", token, 200, `{"status":"Valid",`, clean},
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
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	got, err := exchange.Send(client, "GET", url+"/ghost/api/admin/site/", nil)
	if err != nil {
		t.Fatalf("exchange.Send: %v", err)
	}
	var body struct{ Site struct{ Version string } }
	if err := json.Unmarshal([]byte(got.Body), &body); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	return body.Site.Version
}
