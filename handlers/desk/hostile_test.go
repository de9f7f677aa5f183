package desk_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	pages "github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/internal/themes/git"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// hostile are texts that others write and the desk shows.
var hostile = map[string]string{
	"a script":      `<script>alert(1)</script>`,
	"a handler":     `"><img src=x onerror=alert(1)>`,
	"an attribute":  `' autofocus onfocus='alert(1)`,
	"an address":    `javascript:alert(1)//`,
	"the end":       `</title></bdi></main></template><!--`,
	"a template":    `{{.Key}}${1}`,
	"right to left": "safe\u202egnp.exe\u2066\u2067",
	"long":          strings.Repeat("word ", 2000),
	"one long word": strings.Repeat("W", 10_000),
	"emoji":         strings.Repeat("👩‍👩‍👧‍👦", 1000),
	"marks":         "a" + strings.Repeat("\u0301", 5000),
	"NUL":           "a\x00b\x1b[31m",
	"not UTF-8":     "a\xff\xfe<b>",
}

// first cuts a text to n code points.
func first(text string, n int) string {
	points := []rune(text)
	return string(points[:min(len(points), n)])
}

// hostileEvents are event types that say a text wherever they can.
func hostileEvents(text string) *manifest.Events {
	number := 3.0
	return &manifest.Events{Types: manifest.Types{
		{Key: "party", Label: text, PostTemplate: text, SupportedFields: manifest.StandardFields(), RequiredFields: []string{"name"}, CustomFields: []manifest.CustomField{
			{Key: "motto", Type: "text", Label: text, HelpText: text, Required: true, Constraints: manifest.Constraints{Pattern: text, MaxLength: 10}},
			{Key: "sel", Type: "select", Label: text, Options: []string{text, text + "2"}},
			{Key: "num", Type: "number", Label: text, Constraints: manifest.Constraints{Min: &number}},
			{Key: "pic", Type: "image", Label: text, Constraints: manifest.Constraints{AspectRatio: text}},
			{Key: "tog", Type: "toggle", Label: text, HelpText: text},
			{Key: "menu", Type: "textarea", Label: text, Constraints: manifest.Constraints{MaxLength: 20}},
		}},
		{Key: "other", Label: text, PostTemplate: text},
	}}
}

// What a manifest, Ghost, a repository or an address says is shown as text: no element and no
// attribute comes of it, it does not turn around what stands beside it, and it is cut.
func TestHostileTexts(t *testing.T) {
	lineartest.Volume(t)
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			title := strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "") // as JSON and YAML have it
			label := strings.ReplaceAll(title, "\x1b", "")
			h.Declare(manifest.Section{
				Key: label, Name: label, Description: label, Picker: manifest.Picker{DefaultView: manifest.SearchView, RecentLimit: 5},
				Slots: []manifest.Slot{{Key: label, Label: label, Tag: "#" + label}, {Key: "second", Label: label, Tag: "#second"}},
			})
			for i := range 3 {
				h.Publish(strconv.Itoa(i), title, "#"+label)
				h.Ghost.Posts[0].Authors = []string{title, title}
				h.Ghost.Posts[0].Picture = "https://news.example.com/content/images/" + text
				h.Ghost.Posts[0].Edit = "/#/editor/post/" + title
			}
			h.Ghost.Themes = append(h.Ghost.Themes, platform.InstalledTheme{Name: text})
			h.Manifest(text, fmt.Sprintf("manifest_version: 1\nhomepage_curation:\n  sections:\n    - {key: %q, name: []}\n", title))
			h.Themes.Repositories[text] = desktest.Source("", &git.Error{Kind: git.ErrFailed, Reason: text})
			h.Outbox.Records = []members.Record{{Member: members.Member{Email: text}, Problem: text}}
			h.Members.Declared[text] = pages.DeclaredIntegration{Integration: members.Integration{Name: text, DuplicateEmails: true, PlaceholderDomain: text}, HasKey: true}
			h.Members.Keys.Store.AddIntegration(t.Context(), members.Integration{Site: "daily", Name: title, Mode: members.EmailMode})

			// A manifest and values keep no control characters.
			plain := strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f {
					return -1
				}
				return r
			}, title)
			kept, err := h.Themes.Find(t.Context(), "nightly")
			if err != nil {
				t.Fatalf("h.Themes.Find: %v", err)
			}
			h.Manifest("nightly", manifest.Manifest{Version: 1, Curation: kept.Curation(), Events: hostileEvents(plain)})
			plain = first(plain, 1800)
			values := map[string]any{
				"name": plain, "slug": plain, "event_date": plain, "event_time_start": plain, "event_time_zone": plain, "description": plain, "feature_image": plain,
				"access": plain, "rsvp_labels": []any{plain}, "max_attendees": plain, "other": plain, "sel": plain, "pic": plain, "tog": plain,
			}
			e, gone := h.create(values), h.create(values)
			if _, err := h.Events.Save(t.Context(), "daily", gone.ID, 0, events.Edit{Theme: "gone" + first(plain, 40), Type: "gone" + first(plain, 40), Values: values}, nil); err != nil {
				t.Fatalf("h.Events.Save: %v", err)
			}
			if err := h.Events.SaveSettings(t.Context(), "daily", events.Settings{ImageSize: first(plain, 90), Messages: map[string]string{"registered": plain}}); err != nil {
				t.Fatalf("h.Events.SaveSettings: %v", err)
			}
			dbtest.Exec(t, h.DB, `INSERT INTO registrations (site, event, member, email, name, search, registered_at, added_by) VALUES
				('daily', $1, 'm1', $2, $2, '', 1000, $2), ('daily', $1, 'm2', $2, '', '', 1001, '')`, e.ID, plain)
			dbtest.Exec(t, h.DB, `UPDATE registrations SET cancelled_at = 2000, cancelled_by = $1 WHERE member = 'm2'`, plain)
			dbtest.Exec(t, h.DB, `INSERT INTO registrations_waiting (site, event, member, email, name, language, since) VALUES ('daily', $1, 'm3', $2, $2, '', 1000), ('daily', $1, 'm4', $2, '', '', 1001)`, e.ID, plain)
			slot := url.QueryEscape(url.PathEscape(label) + "/" + url.PathEscape(label))
			said := url.QueryEscape(text)
			for _, target := range []string{
				"curation", "curation?slot=" + slot, "curation?slot=" + slot + "&view=recent", "curation?move=&slot=" + slot,
				"curation?slot=" + slot + "&view=search&q=" + said, "curation?done=" + slot + "&was=" + said + "&now=1", "curation?done=" + slot + "&with=" + slot,
				"curation?slot=" + said, "curation?done=" + said + "&with=" + said,
				"themes", "themes?as=valid&refreshed=" + said, "themes?as=" + said,
				"integrations", "integrations?revoked=" + said, "integrations?rotate=" + url.QueryEscape(title), "integrations?revoke=" + said,
				"sync", "sync?tried=" + said,
				"events", "events?view=drafts", "events?view=" + said + "&q=" + said + "&after=" + said, "events?from=" + said + "&q=" + said + "&type=" + said + "&month=" + said, "events?view=month&type=" + said, "events?view=month&month=2100-06", "events?new=" + said, "events?new=" + url.QueryEscape(label),
				"events?event=" + said, "events?event=" + e.ID, "events?event=" + e.ID + "&confirm=delete", "events?event=" + e.ID + "&confirm=" + said, "events?event=" + gone.ID, "events?done=" + said,
				"event-settings",
				"guest-list?event=" + e.ID, "guest-list?event=" + e.ID + "&q=" + said + "&after=" + said + "&waiting=" + said, "guest-list?event=" + e.ID + "&done=remove&member=m2", "guest-list?event=" + said,
				"check-in?event=" + e.ID, "check-in?event=" + e.ID + "&q=" + said,
			} {
				h.isPlain(target, h.ask("GET", path+target, "Owner", "").Body.String())
				h.isPlain(target+" without a session", h.ask("GET", path+target, "", "").Body.String())
			}
			for page, fields := range map[string]url.Values{
				"themes":         {"refresh": {text}},
				"events":         {"do": {"publish"}, "event": {e.ID}, "revision": {"1"}, "type": {"party"}, "was": {"party"}, "kept": {`{"other": "x"}`}, "f.name": {text}, "f.pic": {text}, "f.menu": {text}},
				"event-settings": {"image_size": {text}, "registered": {text}},
				"guest-list":     {"do": {"add"}, "event": {e.ID}, "email": {text}, "name": {text}, "q": {text}, "after": {text}},
				"check-in":       {"do": {"in"}, "event": {e.ID}, "member": {"m2"}, "q": {text}},
				"integrations":   {"do": {"add"}, "name": {text}, "placeholder_domain": {text}, "mode": {text}},
				"curation":       {"theme": {"nightly"}, "slot": {url.PathEscape(label) + "/" + url.PathEscape(label)}, "post": {text}},
			} {
				h.isPlain("POST "+page, h.ask("POST", path+page, "Owner", fields.Encode()).Body.String())
			}
			h.Ghost.BreakCalls(&platform.Refusal{Reason: text}, "tag", "untag")
			form := url.Values{"theme": {"nightly"}, "slot": {url.PathEscape(label) + "/" + url.PathEscape(label)}, "post": {"0"}, "from_all": {"on"}}
			h.isPlain("a refusal", h.ask("POST", path+"curation", "Owner", form.Encode()).Body.String())
			h.Ghost.Break(&platform.SessionError{Reason: text})
			h.isPlain("a session", h.ask("GET", path+"themes", "Owner", "", "User-Agent", "another").Body.String())
		})
	}
}

// known are the elements that a page may have, and the attributes of any.
var known = map[string]string{
	"html": "", "head": "", "meta": "charset name content", "title": "", "link": "rel href nonce", "script": "src type nonce", "body": "",
	"a": "href target download", "header": "", "svg": "viewBox", "path": "d", "circle": "cx cy r", "p": "", "nav": "", "ul": "", "li": "data-slot", "main": "",
	"h1": "", "h2": "", "h3": "", "b": "", "bdi": "", "small": "", "span": "", "div": "", "section": "", "code": "", "pre": "", "dl": "", "dt": "", "dd": "",
	"time": "datetime", "details": "open", "summary": "", "table": "", "thead": "", "tbody": "", "tr": "", "th": "scope", "td": "",
	"img": "src alt width height loading decoding", "form": "method action data-quick novalidate", "button": "type name value",
	"input": "type name value id required maxlength pattern autocomplete spellcheck checked placeholder enterkeyhint inputmode autocapitalize accept list min max step", "label": "for", "fieldset": "", "legend": "",
	"textarea": "name rows", "select": "name", "option": "value selected", "datalist": "",
	"desk-event": "event owner theme status platform saved conflict", "desk-labels": "", "desk-zone": "", "desk-message": "", "desk-image": "to label ratio min-width min-height phrase",
	"template": "", "progress": "max value", "desk-page": "zone", "desk-search": "focus", "desk-live": "", "desk-slots": "theme", "desk-upload": "to platform",
	"desk-door": "event list", "desk-activate": "to theme", "desk-copy": "for what",
}

const anyElement = " id class role lang tabindex hidden data-focus aria-label aria-labelledby aria-describedby aria-hidden aria-current aria-invalid autofocus " +
	"data-key data-kind data-most data-advised data-for data-discard data-leave data-found data-missing data-field data-first data-default data-pending "

// isPlain checks that a page has no element, attribute or address but the desk's own, and
// shows no text that is long or of others outside of what isolates it.
func (h *harness) isPlain(name, page string) {
	h.T.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		h.T.Fatalf("html.Parse: %v", err)
	}
	name = name[:min(len(name), 60)]
	for n := range doc.Descendants() {
		switch n.Type {
		case html.CommentNode:
			h.T.Errorf("%q: a comment: %.60q", name, n.Data)
		case html.TextNode:
			isWhole := n.Parent.Data == "textarea" || n.Parent.Parent.Data == "dd" // where values are whole
			if len([]rune(n.Data)) > 600 && !isWhole {
				h.T.Errorf("%q: a text of %d characters in %s", name, len([]rune(n.Data)), n.Parent.Data)
			}
			if strings.ContainsAny(n.Data, "\x00\x1b") {
				h.T.Errorf("%q: a control character in %.80q", name, n.Data)
			}
			if strings.ContainsAny(n.Data, "\u202e\u2066\u2067") && !isIsolated(n) {
				h.T.Errorf("%q: %.80q is not isolated", name, n.Data)
			}
		case html.ElementNode:
			attributes, ok := known[n.Data]
			if !ok {
				h.T.Errorf("%q: an element %s", name, n.Data)
			}
			for _, a := range n.Attr {
				if !strings.Contains(anyElement+attributes+" ", " "+a.Key+" ") {
					h.T.Errorf("%q: %s with %s", name, n.Data, a.Key)
				}
				if isAddress := a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "to"; isAddress && !isOfSite(a.Val) {
					h.T.Errorf("%q: %s leads to %.80q", name, n.Data, a.Val)
				}
			}
			source, _, _ := strings.Cut(strings.TrimPrefix(attribute(n, "src"), path), "?v=")
			if n.Data == "script" && (n.FirstChild != nil || !slices.Contains([]string{"desk.js", "events.js", "guests.js"}, source)) {
				h.T.Errorf("%q: a script %v", name, n.Attr)
			}
		}
	}
}

// isIsolated reports whether a text cannot turn around what stands before or behind it.
func isIsolated(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		switch p.Data {
		case "bdi", "title", "pre", "option", "textarea":
			return true
		case "p": // unless something stands behind it in the paragraph
			return p.LastChild == n
		}
	}
	return false
}

// isOfSite reports whether a browser goes to the site itself for an address.
func isOfSite(address string) bool {
	base := &url.URL{Scheme: "https", Host: "news.example.com", Path: path + "curation"}
	to, err := base.Parse(address)
	return err == nil && to.Scheme == base.Scheme && to.Host == base.Host && !strings.HasPrefix(to.Path, "//")
}

// A picture is shown, in a small size, where the site itself has the pictures of posts. Of others the browser
// asks nobody: nobody learns who edits when, and no address that does something is opened.
func TestPicturesOfOtherHostsAreNotLoaded(t *testing.T) {
	h := newHarness(t)
	h.Declare(desktest.Top)
	h.Publish("1", "A", "#lead")
	for picture, want := range map[string]string{
		"https://news.example.com/content/images/a.jpg":                      "/content/images/size/w600/a.jpg",
		"http://news.example.com/content/images/a%20b%2Fc.jpg":               "/content/images/size/w600/a%20b%2Fc.jpg",
		"/content/images/a.jpg":                                              "/content/images/size/w600/a.jpg",
		"https://news.example.com/content/images/a.jpg?w=1#x":                "/content/images/size/w600/a.jpg",
		"https://readers.example.com/content/images/a.jpg":                   "https://readers.example.com/content/images/size/w600/a.jpg", // of the admin's host
		"https://readers.example.com/ghost/api/admin/x":                      "",
		"https://readers.example.com.elsewhere.example/content/images/a.jpg": "",
		"ftp://readers.example.com/content/images/a.jpg":                     "",
		"https://elsewhere.example/a.jpg":                                    "",
		"//elsewhere.example/a.jpg":                                          "",
		"////elsewhere.example/a.jpg":                                        "",
		"https://news.example.com//elsewhere.example/a.jpg":                  "",
		`https://news.example.com/\elsewhere.example/a.jpg`:                  "",
		`/content/images/\..\..\a.jpg`:                                       "/content/images/size/w600/%5C..%5C..%5Ca.jpg", // one name, for a browser
		"/content/images/size/w2000/a.jpg":                                   "/content/images/size/w2000/a.jpg",
		"/content/im%61ges/a.jpg":                                            "/content/im%61ges/a.jpg", // another spelling of the folder
		"/content/images/size/w600/a.jpg":                                    "/content/images/size/w600/a.jpg",
		"/content/images/../../ghost/api/admin/x":                            "",
		"/content/images/%2e%2E/%2e%2e/ghost/api/admin/x":                    "",
		"/content/images/..%2f..%2fghost/api/admin/x":                        "",
		"/content/images/./a.jpg":                                            "",
		"/content/images//elsewhere.example/a.jpg":                           "",
		"/content/images/":                                                   "",
		"/content/images":                                                    "",
		"/content/imagesx/a.jpg":                                             "",
		"/content/files/a.svg":                                               "",
		"/ghost/api/admin/users/me/":                                         "",
		"/members/?action=signin":                                            "",
		"/blog/content/images/a.jpg":                                         "",
		`\\elsewhere.example\a.jpg`:                                          "",
		"a.jpg":                                                              "",
		"sync?tried=1":                                                       "",
		"javascript:alert(1)":                                                "",
		"data:image/png;base64,AAAA":                                         "",
		"ftp://news.example.com/a.jpg":                                       "",
		"https://news.example.com:8443/a.jpg":                                "",
		"https://user@elsewhere.example@news.example.com/a.jpg":              "",
		"https://news.example.com":                                           "",
		"":                                                                   "",
	} {
		h.Ghost.Posts[0].Picture = picture
		got := ""
		page := h.ask("GET", path+"curation", "Editor", "")
		body, err := html.Parse(page.Body)
		if err != nil {
			t.Fatalf("html.Parse: %v", err)
		}
		for img := range elements(body, "img") {
			got = attribute(img, "src")
		}
		if got != want {
			t.Errorf("%q: %q, want %q", picture, got, want)
		}
		policy := page.Header().Get("Content-Security-Policy")
		if want := map[bool]string{true: "img-src 'self' blob: https://readers.example.com;", false: "img-src 'self' blob:;"}[strings.HasPrefix(got, "https:")]; !strings.Contains(policy, want) {
			t.Errorf("%q: the policy is %s, want %s", picture, policy, want)
		}
	}
}

// Errors that nobody foresaw are for the operator's log: a page does not show them.
func TestInnerErrorsAreNotShown(t *testing.T) {
	h := newHarness(t)
	secret := errors.New("postgres://lychgate:secret@db.example.com/lychgate")
	h.Away = secret
	h.Outbox.Err = secret
	for _, name := range pageNames() {
		for _, body := range []string{h.ask("GET", path+name, "Owner", "").Body.String(), h.ask("POST", path+name, "Owner", "do=add&name=crm").Body.String()} {
			if strings.Contains(body, "secret") {
				t.Errorf("%s shows %s", name, body)
			}
		}
	}
}

// Of a Ghost in a subdirectory the pictures are there too.
func TestPicturesInSubdirectory(t *testing.T) {
	h := newHarness(t)
	h.Desk.Path = "/blog/ghost"
	h.Declare(desktest.Top)
	h.Publish("1", "A", "#lead")
	for picture, want := range map[string][]string{
		"https://news.example.com/blog/content/images/a.jpg": {"/blog/content/images/size/w600/a.jpg"},
		"https://news.example.com/content/images/a.jpg":      nil,
		"/blog/content/images/../../../content/images/a.jpg": nil,
	} {
		h.Ghost.Posts[0].Picture = picture
		var got []string
		for img := range elements(h.read(h.ask("GET", "/blog/ghost/lychgate/desk/curation", "Editor", "")).body, "img") {
			got = append(got, attribute(img, "src"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", picture, diff)
		}
	}
	h.Site.Kind.SmallPictures = "" // as of a platform that has one size
	h.Ghost.Posts[0].Picture = "/blog/content/images/a.jpg"
	if body := h.ask("GET", "/blog/ghost/lychgate/desk/curation", "Editor", "").Body.String(); !strings.Contains(body, `<img src="/blog/content/images/a.jpg"`) {
		t.Errorf("a platform with one size: got %s, want the picture as it is", body)
	}
	h.Site.Kind.Pictures = "" // as of a platform that has none for browsers
	h.Ghost.Posts[0].Picture = "/blog/content/images/a.jpg"
	if body := h.ask("GET", "/blog/ghost/lychgate/desk/curation", "Editor", "").Body.String(); strings.Contains(body, "<img") {
		t.Errorf("a platform without pictures: %s", body)
	}
}
