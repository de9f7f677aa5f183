package events

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/e2e/mailbox"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// adminDomain has a block for readers and one for staff, each with what is used there alone.
const adminDomain = `{
	{{global}}
	{{servers}}
	lychgate {
		store sqlite {{store}}
		site daily {
			hosts {{readers}} {{staff}}
			platform ghost {{ghost}} {
				{{admin_url}}
				admin_key {{key}}
				webhooks off
			}
			integration crm {
				key {{crm}}
			}
		}
	}
}

http://{{readers}}:{{port}} {
	inbox_provider {
		path {{path}}/ghost/inbox-provider
	}
	members_api {
		path {{path}}/integration
	}
	events_api {
		path {{path}}/ghost/lychgate/events
		limit 60000 1m
	}
	reverse_proxy {{upstream}}
}

http://{{staff}}:{{port}} {
	theme_manifest {
		path {{path}}/ghost
	}
	staff_desk {
		path {{path}}/ghost
	}
	reverse_proxy {{upstream}}
}
`

const crmKey = "a-key-of-the-crm-that-is-long-enough"

// tlsInFront ends TLS before the edge, as a CDN does.
const tlsInFront = `{
	{{global}}
	skip_install_trust
}

https://{{readers}}:{{port}}, https://{{staff}}:{{port}} {
	tls internal
	reverse_proxy 127.0.0.1:{{edge}}
}
`

// hosts are where readers and staff find a Ghost, and the path that both have.
type hosts struct {
	readers, staff, path string
	tls                  bool // ends before the edge
}

var separateHosts = hosts{readers: "daily.localhost", staff: "admin.localhost"}

// ownAdmin is a site whose staff have a host of their own.
type ownAdmin struct {
	*site
	readers string // the origin
	values  caddytest.Values
	edge    *caddytest.Edge
}

func newOwnAdmin(t *testing.T, at hosts) *ownAdmin {
	t.Helper()
	harness.NeedBrowser(t)
	installed(t)
	port := freeport.New(t)
	scheme, public, servers := "http://", port, ""
	if at.tls {
		scheme, public, servers = "https://", freeport.New(t), "servers {\ntrusted_proxies static private_ranges\n}"
		caddytest.New(t, tlsInFront, caddytest.Values{"port": public, "edge": port, "readers": at.readers, "staff": at.staff})
	}
	to := &net.Dialer{}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return to.DialContext(ctx, "tcp4", "127.0.0.1:"+public) // which browsers know for each localhost
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Caddy's own authority, which is new
	}
	jar, err := cookiejar.New(nil)
	origins := struct{ readers, staff string }{scheme + at.readers + ":" + public, scheme + at.staff + ":" + public}
	s := &site{
		t: t, base: origins.readers + at.path, admin: origins.staff + at.path, origin: origins.staff,
		store: filepath.Join(t.TempDir(), "lychgate.db"), ghost: ghosttest.New(t),
		client: &http.Client{Jar: must(t, jar, err), Transport: transport},
	}
	t.Cleanup(s.client.CloseIdleConnections)
	t.Setenv("LYCHGATE_GHOST_URL", s.base)
	t.Setenv("LYCHGATE_GHOST_ADMIN_URL", s.origin)
	s.ghost.Start()
	o := &ownAdmin{site: s, readers: origins.readers, values: caddytest.Values{
		"port": port, "path": at.path, "store": s.store, "ghost": s.ghost.URL, "key": s.ghost.Key, "crm": crmKey,
		"upstream": strings.TrimSuffix(strings.TrimPrefix(s.ghost.URL, "http://"), at.path),
		"readers":  at.readers, "staff": at.staff, "servers": servers,
	}}
	o.start("admin_url " + s.origin)
	return o
}

// start starts the edge, or another in its place.
func (o *ownAdmin) start(adminURL string) {
	o.t.Helper()
	if o.edge != nil {
		if err := o.edge.Stop(); err != nil {
			o.t.Fatalf("o.edge.Stop: %v", err)
		}
	}
	values := maps.Clone(o.values)
	values["admin_url"] = adminURL
	o.edge = caddytest.New(o.t, adminDomain, values)
}

// atReaders asks at the readers' host.
func (o *ownAdmin) atReaders(method, path, body string, header ...string) (status int, text string) {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.base+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Client{Transport: o.client.Transport}).Do(request)
	if err != nil {
		o.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(must(o.t, content, err))
}

// doctor has what the doctor finds that is not right.
func (o *ownAdmin) doctor() (findings []string) {
	o.t.Helper()
	doctor := exec.CommandContext(o.t.Context(), caddytest.Build(o.t), "lychgate", "doctor", "--json", "--config", filepath.Join(o.edge.Folder, "Caddyfile"))
	output, _ := doctor.Output() // its exit code says that there are findings
	var report struct {
		Results []struct{ Subject, Status, Message, Fix string }
	}
	if err := json.Unmarshal(output, &report); err != nil || len(report.Results) == 0 {
		o.t.Fatalf("doctor: %v: %s", err, output)
	}
	for _, r := range report.Results {
		if r.Status != "ok" && strings.HasPrefix(r.Subject, "site daily") {
			findings = append(findings, r.Subject+" "+r.Message+": "+r.Fix)
		}
	}
	return findings
}

// A Ghost whose staff have a host of their own (admin:url) serves each of its paths at one of its hosts alone. All
// of Lychgate works there: what readers use at theirs, and what staff use at the admin's.
func TestAdminAtItsOwnHost(t *testing.T) {
	box, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	o := newOwnAdmin(t, separateHosts)
	diff(t, "the doctor's findings", []string(nil), o.doctor())
	o.signIn()
	o.uploadTheme()
	o.hasFindings()
	o.takesMembers("jane")
	event := o.publish("webinar", map[string]any{
		"name": "Party", "slug": "party", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "speaker": "Ada", "access": "free",
	})
	o.fills(event)
	o.lookups()
	o.registersByMail(box, event)
	o.checksIn(event)
}

// hasFindings uploads a theme whose manifest is wrong.
func (o *ownAdmin) hasFindings() {
	o.t.Helper()
	got := o.upload(themeName, fstest.MapFS{
		"package.json":           {Data: []byte(`{"name": "wrong", "version": "1.0.0", "author": {"email": "a@example.com"}, "config": {"posts_per_page": 5}, "engines": {"ghost": ">=5.0.0"}}`)},
		"index.hbs":              {Data: []byte("{{#foreach posts}}{{title}}{{/foreach}}")},
		"post.hbs":               {Data: []byte("{{#post}}{{title}}{{/post}}")},
		"lychgate-manifest.yaml": {Data: []byte("manifest_version: 99\n")},
	})
	if len(got.Errors) == 0 {
		o.t.Errorf("the upload of a theme whose manifest is wrong: %+v, want findings", got)
	}
	o.uploadTheme()
}

// takesMembers has a CRM make a member, who is in Ghost then.
func (o *ownAdmin) takesMembers(name string) {
	o.t.Helper()
	email := name + "@example.com"
	status, body := o.atReaders("POST", "/integration/members", `{"email": "`+email+`"}`, "Authorization", "Bearer "+crmKey, "Content-Type", "application/json")
	if status != http.StatusOK {
		o.t.Fatalf("making a member: %d %s", status, body)
	}
	wait.Until(o.t, func() string {
		var found struct{ Members []struct{ Email string } }
		o.send("GET", "/ghost/api/admin/members/?filter=email:'"+email+"'", nil, &found)
		return map[bool]string{true: "the member is not in Ghost"}[len(found.Members) != 1]
	})
}

// fills puts the event's post with a picture of the publication's into a slot, and looks at the desk.
func (o *ownAdmin) fills(e event) {
	o.t.Helper()
	picture := o.base + "/content/images/size/w600/2031/05/a.jpg"
	o.editPost(e, "feature_image", o.base+"/content/images/2031/05/a.jpg")
	o.send("PUT", "/ghost/lychgate/curation/front/lead", map[string]any{"post": e.Post.ID, "from_all": true}, nil)
	p := o.openDesk("curation")
	p.Until("find('img')?.src === '" + picture + "'")
	problems, err := p.Problems()
	for _, problem := range must(o.t, problems, err) {
		if strings.Contains(problem, "Security Policy") {
			o.t.Errorf("the desk: %s", problem)
		}
	}
	p.Must(p.Navigate(o.admin + "/ghost/lychgate/desk/event-settings"))
	diff(o.t, "the address of the calendar", true, browser.JS[bool](p, fmt.Sprintf("document.body.innerHTML.includes(%q)", o.base+"/ghost/lychgate/events.ics")))
}

// openDesk opens a page of the desk as the owner.
func (o *ownAdmin) openDesk(page string) *browser.Page {
	o.t.Helper()
	p := browser.Open(o.t, harness.Engine, o.admin+"/ghost/", browser.Look{Width: 1280, Height: 900}, helpers)
	p.Until("document.querySelector('input[name=identification]')")
	p.Keys("input[name=identification]", "owner@example.com")
	p.Keys("input[name=password]", "four-words-on-a-lychgate\r")
	p.Until("!document.querySelector('input[name=identification]') && !/signin/.test(location.hash)")
	p.Must(p.Navigate(o.admin + "/ghost/lychgate/desk/" + page))
	return p
}

// lookups are those of themes, at the readers' host.
func (o *ownAdmin) lookups() {
	o.t.Helper()
	if status, body := o.atReaders("GET", "/ghost/inbox-provider?domain=gmail.com", ""); status != http.StatusOK || body != `{"provider":"gmail"}` {
		o.t.Errorf("a lookup: %d %s", status, body)
	}
	for _, script := range []string{"inbox-button.js", "event.js"} {
		if status, _ := o.atReaders("GET", "/ghost/lychgate/"+script, ""); status != http.StatusOK {
			o.t.Errorf("%s: status %d", script, status)
		}
	}
}

var ownLink = regexp.MustCompile(`http://daily\.localhost:[0-9]+[^\s"<>)]*/members/\?token=[^\s"<>)]*`)

// registersByMail is a guest who types an email, and opens the link of the mail.
func (o *ownAdmin) registersByMail(box mailbox.Mailbox, e event) {
	o.t.Helper()
	p := o.visitor("/" + e.slug() + "/")
	diff(o.t, "a guest", "login_required_free", p.state())
	p.sendLink("john@example.com")
	link := strings.ReplaceAll(ownLink.FindString(box.Wait(o.t, "john@example.com")), "&amp;", "&")
	if link == "" {
		o.t.Fatal("the mail has no link to the readers' host")
	}
	p.Must(p.Navigate(link))
	p.Until("element?.state.state === 'registered'")
	diff(o.t, "where the link leads", o.base+"/"+e.slug()+"/", browser.JS[string](p.Page, "location.origin + location.pathname"))
}

// checksIn lets the guest in, on the desk's own page.
func (o *ownAdmin) checksIn(e event) {
	o.t.Helper()
	p := o.openDesk("check-in?event=" + e.ID)
	p.Until("document.body.innerText.includes('john@example.com')")
	p.Do("[...document.querySelectorAll('button')].find(b => seen(b) && /check in/i.test(b.innerText + b.ariaLabel)).click()")
	wait.Until(o.t, func() string {
		list := o.get("/ghost/lychgate/desk/events/" + e.ID + "/registrations")
		return map[bool]string{true: "nobody is checked in: " + list}[!regexp.MustCompile(`"checked_in_at":"[^"]`).MatchString(list)]
	})
}

// serves is all that a reader and a CRM need, and staff without a browser.
func (o *ownAdmin) serves() {
	o.t.Helper()
	o.signIn()
	o.takesMembers("jane")
	o.uploadTheme()
	event := o.publish("webinar", map[string]any{
		"name": "Party", "slug": "party", "event_date": "2031-05-01", "event_time_start": "19:00", "event_time_zone": "Europe/Berlin", "speaker": "Ada", "access": "free",
	})
	status, body := o.atReaders("POST", "/ghost/lychgate/events/"+event.slug()+"/registration", `{"email": "john@example.com"}`, "Content-Type", "application/json", "Origin", o.readers, "Sec-Fetch-Site", "same-origin")
	if status != http.StatusAccepted {
		o.t.Errorf("a mail to a guest: %d %s", status, body)
	}
}

// A publication may be at www, its admin at an address that only its staff reach, and TLS may end before Caddy.
func TestAdminAtOtherPlaces(t *testing.T) {
	for name, at := range map[string]hosts{
		"www, and staff at a private address":         {readers: "www.localhost", staff: "127.0.0.1"},
		"TLS ends before the edge, in subdirectories": {readers: "daily.localhost", staff: "admin.localhost", path: "/blog", tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, smtp := mailbox.Start(t)
			t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
			o := newOwnAdmin(t, at)
			o.serves()
			o.lookups()
			diff(t, "the doctor's findings", []string(nil), o.doctor())
		})
	}
}

// Nobody has to write where the admin is: Ghost tells, and the log and the doctor say what to write. In a
// subdirectory it is the same.
func TestAdminAtItsOwnHostIsFound(t *testing.T) {
	_, smtp := mailbox.Start(t)
	t.Setenv("LYCHGATE_GHOST_SMTP", smtp)
	o := newOwnAdmin(t, hosts{readers: separateHosts.readers, staff: separateHosts.staff, path: "/blog"})
	o.start("")
	o.serves()
	const found = "its admin is at another host, as it says when it is asked"
	write := "write admin_url " + o.admin + " into its block"
	diff(t, "the doctor's findings", []string{"site daily " + version() + " answers and accepts the key, but " + found + ": " + write}, o.doctor())
	wait.Until(t, func() string {
		log, err := os.ReadFile(o.edge.LogFile)
		if err != nil || !strings.Contains(string(log), found) || !strings.Contains(string(log), write) {
			return fmt.Sprintf("the log does not say what to write: %v", err)
		}
		return ""
	})
}

func version() string { return "Ghost " + os.Getenv("LYCHGATE_GHOST_VERSION") }
