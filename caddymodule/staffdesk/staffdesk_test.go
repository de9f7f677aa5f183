package staffdesk_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/gittest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// What a Caddyfile says of the desk is all in the JSON that it becomes.
func TestDeskJSON(t *testing.T) {
	adapted, err := inprocess.Adapt("{\nlychgate {\nsite daily {\nhosts localhost\nplatform ghost http://127.0.0.1:2368 {\nadmin_key {env.X}\n}\nstaff_integrations on\n}\n" +
		"site weekly {\nhosts weekly.example.com\nplatform none\nstaff_integrations off\n}\n}\n}\n:80 {\nstaff_desk {\npath /blog/ghost\n}\n}\n")
	if err != nil {
		t.Fatalf("inprocess.Adapt: %v", err)
	}
	var config struct {
		Apps struct{ Lychgate caddymodule.App }
	}
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	got := make(map[string]bool)
	for name, site := range config.Apps.Lychgate.Sites {
		got[name] = site.StaffIntegrations
	}
	if diff := cmp.Diff(map[string]bool{"daily": true, "weekly": false}, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(adapted), `{"handler":"staff_desk","path":"/blog/ghost"}`) {
		t.Errorf("got %s, want adapted with %s", adapted, `{"handler":"staff_desk","path":"/blog/ghost"}`)
	}
}

// deskPath is where the pages are.
const deskPath = "/ghost/lychgate/desk/"

// desk is one of the staff, who looks at pages of the desk.
type desk struct {
	*edgetest.Edge
	cookie string
}

// deskPage is a page as it is read, with the status of the response before it.
type deskPage struct {
	Status int
	Text   string // below the navigation
	IDs    map[string]string
}

func (d desk) get(page string) deskPage {
	d.T.Helper()
	return readPage(d.T, d.Do("GET", deskPath+page, "Cookie", d.cookie, "Sec-Fetch-Site", "same-origin"))
}

// post sends a form of a page, whose fields are name and value in turn, and follows where
// it leads.
func (d desk) post(page string, fields ...string) deskPage {
	d.T.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	response, err := d.SendBody("POST", deskPath+page, form.Encode(), "Cookie", d.cookie, "Content-Type", "application/x-www-form-urlencoded",
		"Origin", d.Base, "Sec-Fetch-Site", "same-origin")
	if err != nil {
		d.T.Fatalf("d.sendBody: %v", err)
	}
	if response.Status == 303 {
		response = d.Do("GET", response.Header["Location"], "Cookie", d.cookie, "Sec-Fetch-Site", "same-origin")
	}
	return readPage(d.T, response)
}

var (
	shownTime = regexp.MustCompile(`\d+ \w{3} \d{4}, \d\d:\d\d UTC`)
	shownAge  = regexp.MustCompile(`(findings), (now|\d+ \w+ old)`)
)

func readPage(t testing.TB, got edgetest.Response) deskPage {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(got.Body))
	if err != nil {
		t.Fatalf("html.Parse: %v", err)
	}
	textOf := func(n *html.Node) string {
		var text []string
		for n := range n.Descendants() {
			if n.Type == html.TextNode {
				text = append(text, strings.Fields(n.Data)...)
			}
		}
		return strings.Join(text, " ")
	}
	page := deskPage{Status: got.Status, IDs: make(map[string]string)}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "id" {
				page.IDs[a.Val] = textOf(n)
			}
		}
		if n.Data == "desk-page" {
			page.Text = shownAge.ReplaceAllString(shownTime.ReplaceAllString(textOf(n), "TIME"), "$1, AGE")
		}
	}
	return page
}

// Editors and administrators of a real Ghost see what became of each upload and refresh.
func TestDeskThemesWithGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	git := edgetest.ThemeBranches(t)
	git.Git("theme", "checkout", "-q", "main")
	address := git.Start()
	store, theme := edgetest.SQLiteStore(t), "desk-"+edgetest.GUIDLike()
	refreshing := func(repository, options string) string {
		return edgetest.DeskConfig(store, url, key, "theme "+theme+" {\nrepository "+repository+" {\n"+options+"\n}\n}")
	}
	e := edgetest.StartEdge(t, nil, refreshing(address+"/theme", "token "+gittest.Token))
	owner := desk{e, e.SignIn(edgetest.GhostOwner)}
	editor := desk{e, ""}
	email := "desk" + edgetest.GUIDLike() + "@example.com"
	e.AddStaff(owner.cookie, email, "Editor")
	editor.cookie = e.SignIn(email)
	defer e.Do("DELETE", "/ghost/api/admin/themes/"+theme+"/", "Cookie", owner.cookie, "Origin", e.Base)

	const next = "Manifest Status"
	status := func(d desk) string {
		t.Helper()
		page := d.get("themes")
		_, rest, ok := strings.Cut(page.Text, " "+theme+" "+next+" ")
		row, _, _ := strings.Cut(rest, " "+next+" ")
		if !ok || page.Status != 200 {
			t.Fatalf("%s is not listed: %d %s", theme, page.Status, page.Text)
		}
		return row
	}
	for _, step := range []struct {
		name, manifest string
		want           string
	}{
		{"findings at first", edgetest.WarnedManifest("A"), "1 warning List them"},
		{"valid", edgetest.CleanManifest("A"), "Valid Read TIME Homepage Curation Active since TIME"},
		{"findings", edgetest.WarnedManifest("B"), "1 warning List them"},
		{"no manifest", "", "No manifest Homepage Curation Inactive"},
		{"valid again", edgetest.CleanManifest("C"), "Valid Read TIME Homepage Curation Active since TIME"},
	} {
		e.UploadTheme(theme, edgetest.SourceZip(t, "", step.manifest), "Cookie", owner.cookie)
		if got := status(owner); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s: status = %s, want beginning with %v", step.name, got, step.want)
		}
		if got := status(editor); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s, as editor: %s", step.name, got)
		}
		hasAge := strings.Contains(status(owner), "Homepage Curation Active since TIME On the last copy without findings, AGE")
		if hasAge != (step.name == "findings") {
			t.Errorf("%s: the age of the copy: %s", step.name, status(owner))
		}
	}

	for _, test := range []struct{ name, repository, options, says, kept string }{
		{"valid", address + "/theme", "token " + gittest.Token, theme + " was refreshed. Its manifest is valid, and in use now.", "Valid Read TIME"},
		{"findings", address + "/theme", "branch next\ntoken " + gittest.Token, theme + " was refreshed. Its manifest has findings, which are listed below. Homepage Curation goes on with the last copy that had none.", "1 warning"},
		{"a wrong token", address + "/theme", "token wrong", theme + " could not be refreshed, so nothing has changed: the repository denied access: it rejects the token (status 401)", "1 warning"},
		{"unreachable", "http://127.0.0.1:1/theme", "", theme + " could not be refreshed, so nothing has changed: the repository cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused", "1 warning"},
		{"failed", address + "/theme", "branch nowhere\ntoken " + gittest.Token, theme + ` could not be refreshed, so nothing has changed: reading the repository failed: there is no branch "nowhere"`, "1 warning"},
		{"removed", address + "/theme", "branch removed\ntoken " + gittest.Token, theme + " was refreshed. Its repository has no manifest any more, so Homepage Curation and its event types are off.", "No manifest"},
	} {
		e.Load(refreshing(test.repository, test.options))
		page := editor.post("themes", "refresh", theme)
		if !strings.HasPrefix(page.Text, "Themes "+test.says+" ") || page.Status != 200 {
			t.Errorf("%s: post = %d %s, want text beginning with %q, status 200",
				test.name, page.Status, page.Text, "Themes "+test.says+" ")
		}
		if got := status(owner); !strings.HasPrefix(got, test.kept) {
			t.Errorf("%s: status = %s, want beginning with %v", test.name, got, test.kept)
		}
		if strings.Contains(page.Text, gittest.Token) {
			t.Errorf("%s: the token is on the page", test.name)
		}
	}

	// A theme is activated at the address that the page has for that.
	page := owner.Do("GET", deskPath+"themes", "Cookie", owner.cookie, "Sec-Fetch-Site", "same-origin")
	activate := "/ghost/api/admin/themes/" + theme + "/activate/"
	if !strings.Contains(page.Body, `<desk-activate to="`+activate+`" theme="`+theme+`" hidden>`) {
		t.Errorf("the theme cannot be activated: %s", page.Body)
	}
	if got := e.Do("PUT", strings.Replace(activate, theme, "no-such-theme", 1), "Cookie", owner.cookie, "Origin", e.Base); got.Status == 404 && !strings.Contains(got.Body, "errors") {
		t.Errorf("the address is not Ghost's: %v", got)
	}
	if page := editor.Do("GET", deskPath+"themes", "Cookie", editor.cookie, "Sec-Fetch-Site", "same-origin"); strings.Contains(page.Body, "desk-activate") || strings.Contains(page.Body, "desk-upload") {
		t.Error("the page of an editor: got forms to activate or upload themes, want none: Ghost does not let editors do that")
	}
	if n := e.Metric(`lychgate_desk_requests_total{operation="themes",outcome="done",site="daily"}`); n == "" {
		t.Error("lychgate_desk_requests_total of the operation themes: got no series, want one")
	}
}

// An owner adds an integration, and the command that is printed works; two of the staff do
// not get in each other's way, and where the operator has not switched it on nobody can.
func TestDeskIntegrationsWithGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	store := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.DeskConfig(store, url, key, "integration declared {\nkey "+edgetest.FormKey+"\n}\nstaff_integrations on"))
	owner := desk{e, e.SignIn(edgetest.GhostOwner)}
	administrator := desk{e, ""}
	email := "desk" + edgetest.GUIDLike() + "@example.com"
	e.AddStaff(owner.cookie, email, "Administrator")
	administrator.cookie = e.SignIn(email)

	added := owner.post("integrations", "do", "add", "name", "crm", "mode", "custom_id", "subscribe_by_default", "on")
	first := added.IDs["api-key"]
	if !strings.HasPrefix(first, "lg_crm_") || added.IDs["api-url"] != e.Base+"/integration" {
		t.Fatalf(`post = %d %v %s, want a key beginning with "lg_crm_", api-url %q`,
			added.Status, added.IDs, added.Text, e.Base+"/integration")
	}
	// The site's address leads to the edge here, not to Ghost.
	port := e.Vars["port"]
	command := strings.ReplaceAll(added.IDs["api-try"], e.Base, "http://127.0.0.1:"+port)
	output, err := exec.CommandContext(t.Context(), "sh", "-c", command+" --silent").CombinedOutput()
	if err != nil || string(output) != `{"success":false,"message":"Member not found.","code":"not_found"}` {
		t.Errorf("%s: got %s, %v, want no error, output %s",
			added.IDs["api-try"], output, err, `{"success":false,"message":"Member not found.","code":"not_found"}`)
	}
	create := func(key string) string {
		id := edgetest.GUIDLike()
		return e.Call(key, "POST", "", `{"email":"desk-`+id+`@example.com","member_id":"`+id+`"}`).Body
	}
	if got := create(first); !strings.Contains(got, `"success":true`) {
		t.Errorf("the key: %s", got)
	}
	wait.Until(t, func() string { // when the key was used is kept in the background
		page := owner.get("integrations")
		if strings.Contains(page.Text, first) || !strings.Contains(page.Text, "crm Members by custom ID Options New members get newsletters Key Added TIME History TIME : Owner added it Last used TIME Rotate crm Revoke crm") {
			return "the list: " + page.Text
		}
		return ""
	})

	// Two at once: the key that was given last is the one.
	rotated := administrator.post("integrations", "do", "rotate", "name", "crm").IDs["api-key"]
	again := owner.post("integrations", "do", "rotate", "name", "crm").IDs["api-key"]
	for key, want := range map[string]int{first: 401, rotated: 401, again: 404} {
		if got := e.Call(key, "GET", "/nobody@example.com", ""); got.Status != want {
			t.Errorf("a key answers %d, want %d", got.Status, want)
		}
	}
	if page := administrator.post("integrations", "do", "add", "name", "crm"); !strings.HasPrefix(page.Text, "Integrations crm is there already: choose another name, or give it another key. ") {
		t.Errorf("the same name: %s", page.Text)
	}
	for name, d := range map[string]desk{"one": owner, "and the other": administrator} {
		if page := d.post("integrations", "do", "revoke", "name", "crm"); !strings.HasPrefix(page.Text, "Integrations crm is revoked. Its key is refused from now on. ") {
			t.Errorf("%s revokes: %s", name, page.Text)
		}
	}
	if got := e.Call(again, "GET", "/nobody@example.com", ""); got.Status != 401 {
		t.Errorf("the revoked key answers %d", got.Status)
	}
	if got := e.Call(edgetest.FormKey, "GET", "/nobody@example.com", ""); got.Status != 404 {
		t.Errorf("the configuration's key answers %d", got.Status)
	}
	if page := owner.post("integrations", "do", "revoke", "name", "declared"); !strings.HasPrefix(page.Text, "Integrations declared cannot be changed here: it is gone, or in the configuration. ") {
		t.Errorf("the configuration's: %s", page.Text)
	}
	for what, name := range map[string]string{"letters": "our crm", "length": strings.Repeat("c", 64), "nothing": " "} {
		if page := owner.post("integrations", "do", "add", "name", name); page.Status != 200 || page.IDs["api-key"] != "" || !strings.Contains(page.Text, "a name has 1 to 63 letters") {
			t.Errorf("a name that cannot be used, for its %s: %d %s", what, page.Status, page.Text)
		}
	}
	if page := owner.post("integrations", "do", "add", "name", "two", "mode", "email", "allow_duplicate_emails", "on"); !strings.Contains(page.Text, "Members who share an email need an ID of the integration's own: choose that above.") {
		t.Errorf("duplicates by email: %s", page.Text)
	}

	e.Load(edgetest.DeskConfig(store, url, key, "integration declared {\nkey "+edgetest.FormKey+"\n}"))
	off := owner.get("integrations")
	if !strings.HasPrefix(off.Text, "Integrations "+"Integrations are managed by the operator of this service Staff can add them here once the operator has switched it on for the site, with: "+
		"lychgate { site daily { staff_integrations on } } ") || strings.Contains(off.Text, "Rotate") {
		t.Errorf("off: %s", off.Text)
	}
	if page := owner.post("integrations", "do", "rotate", "name", "crm"); page.Status != 403 {
		t.Errorf("off: rotate answers %d", page.Status)
	}
	for _, secret := range []string{first, rotated, again, owner.cookie} {
		if strings.Contains(e.Logged(), secret) {
			t.Error("the log has a key or a session, want neither")
		}
	}
}

// Administrators see what a Ghost that is away does not have, and have it tried once it is
// back.
func TestDeskSyncWithGhost(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "daily")
	e := edgetest.StartEdge(t, nil, edgetest.DeskConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "integration form {\nkey "+edgetest.FormKey+"\n}"))
	owner := desk{e, e.SignIn(edgetest.GhostOwner)}
	const nothing = "Sync Nothing is pending: Ghost has all that was written here."
	if page := owner.get("sync"); page.Text != nothing {
		t.Errorf("at first: %s", page.Text)
	}
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/members/") {
			edgetest.Responding(503, `{"errors":[{"message":"Down for maintenance."}]}`)(p, w, r)
			return
		}
		p.Ghost.ServeHTTP(w, r)
	})
	for _, name := range []string{"jane", "john"} {
		if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"`+p.Email(name)+`"}`); got.Header["Lychgate-Sync"] != "queued" {
			t.Fatalf(`got %v, want Lychgate-Sync "queued"`, got)
		}
	}
	pending := owner.get("sync")
	if !strings.HasPrefix(pending.Text, "Sync The last write of 2 members is not in Ghost yet. It is tried again by itself. Try now ") ||
		!strings.Contains(pending.Text, p.Email("jane")+" Written TIME Why it is pending It does not answer as it should. ") {
		t.Errorf("pending: %s", pending.Text)
	}
	p.Fix()
	if page := owner.post("sync"); !strings.HasPrefix(page.Text, "Sync Being tried now: ") && !strings.HasPrefix(page.Text, "Sync Nothing was pending. ") {
		t.Errorf("tried: %s", page.Text)
	}
	done := func() string {
		if page := owner.get("sync"); page.Text != nothing {
			return page.Text
		}
		return ""
	}
	wait.Until(t, done)
	for _, name := range []string{"jane", "john"} {
		if got := e.Call(edgetest.FormKey, "DELETE", "/"+p.Email(name), ""); got.Status != 200 {
			t.Errorf("got %v, want status 200", got)
		}
	}
	wait.Until(t, done)
	// Ghost itself is away: the page says so, and who is known still sees the store's pages.
	p.Down()
	if page := owner.get("themes"); page.Status != 502 || page.Text != "Not available now Ghost does not say which themes it has. Try again in a moment." {
		t.Errorf("themes: %d %s", page.Status, page.Text)
	}
	if page := owner.get("sync"); page.Text != nothing {
		t.Errorf("sync: %d %s", page.Status, page.Text)
	}
}

// While PostgreSQL is away the desk says so, also before it was ever there, and Ghost's admin
// goes on.
func TestDeskWithoutItsStore(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	w := tcpproxy.Start(t, source.Host)
	source.Host = w.Address
	for name, away := range map[string]func(*tcpproxy.Proxy){"gone": (*tcpproxy.Proxy).Cut, "hangs": (*tcpproxy.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			e := edgetest.StartEdge(t, nil, edgetest.DeskConfig("postgres "+source.String(), ghost, key, "staff_integrations on"))
			owner := desk{e, e.SignIn(edgetest.GhostOwner)}
			if page := owner.get("themes"); page.Status != 200 {
				t.Fatalf("before: %d %s", page.Status, page.Text)
			}
			away(w)
			e.Client.Timeout = 20 * time.Second // after which somebody has given up
			var asked sync.WaitGroup
			for _, page := range []string{"themes", "integrations", "sync", "curation"} {
				asked.Go(func() {
					response, err := e.Send("GET", deskPath+page, "Cookie", owner.cookie, "Sec-Fetch-Site", "same-origin")
					if err != nil || response.Status != 503 || !strings.Contains(response.Body, "Lychgate&#39;s store does not answer, so there is nothing to show.") {
						t.Errorf(`%s: send = %v, %v, want no error, status 503, body with "Lychgate&#39;s store does not answer, so there is nothing to show."`,
							page, response, err)
					}
				})
			}
			asked.Wait()
			if got := e.Do("GET", "/ghost/api/admin/users/me/", "Cookie", owner.cookie, "Origin", e.Base); got.Status != 200 {
				t.Errorf("Ghost's admin: %d", got.Status)
			}
			w.Fix()
			wait.Until(t, func() string {
				if page := owner.get("themes"); page.Status != 200 {
					return page.Text
				}
				return ""
			})
			if logged := e.Logged(); strings.Contains(logged, source.User.String()+"@") {
				t.Errorf("the connection string is in the log: %s", logged)
			}
		})
	}
}

// The desk of a Ghost in a subdirectory is in that subdirectory, and so is all that it leads
// to.
func TestDeskInASubdirectory(t *testing.T) {
	const key = "1:" + "0000000000000000000000000000000000000000000000000000000000000000"
	e := edgetest.StartEdge(t, nil, edgetest.ThemesSite{
		Store: edgetest.SQLiteStore(t), URL: "http://127.0.0.1:1/blog", Key: key,
		Serve: "staff_desk {\n path /blog/ghost\n}\ntheme_manifest {\n path /blog/ghost\n}",
	}.Caddyfile())
	got := e.Do("GET", "/blog/ghost/lychgate/desk/")
	if got.Status != 303 || got.Header["Location"] != "/blog/ghost/lychgate/desk/themes" {
		t.Errorf(`got %v, want status 303, Location "/blog/ghost/lychgate/desk/themes"`, got)
	}
	page := e.Do("GET", "/blog/ghost/lychgate/desk/themes")
	if page.Status != 401 {
		t.Errorf("status %d", page.Status)
	}
	for _, address := range []string{`href="/blog/ghost/"`, `src="/blog/ghost/lychgate/desk/desk.js?v=`, `href="/blog/ghost/lychgate/desk/desk.css?v=`} {
		if !strings.Contains(page.Body, address) {
			t.Errorf("no %s in %s", address, page.Body)
		}
	}
	if script := e.Do("GET", "/blog/ghost/lychgate/desk/desk.js"); script.Status != 200 {
		t.Errorf("the script: %d", script.Status)
	}
	if got := e.Do("GET", "/ghost/lychgate/desk/themes"); got.Status == 401 || strings.Contains(got.Body, "desk-page") {
		t.Errorf("the desk is at the other path too: %d", got.Status)
	}
	for host, want := range map[string]int{"localhost": 401, "bare.example.com": 404, "elsewhere.example.com": 404} {
		if got := e.Do("GET", "/blog/ghost/lychgate/desk/themes", "Host", host); got.Status != want {
			t.Errorf("%s: %d, want %d", host, got.Status, want)
		}
	}
}
