package desk_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/web/desk"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// A page loads one script and one style, which a browser keeps until they change.
func TestBrowsersKeepAssetsUntilTheyChange(t *testing.T) {
	h := newHarness(t)
	address := h.serve()
	page := h.get("themes", "Owner")
	var loaded []string
	for e := range elements(page.body, "script") {
		loaded = append(loaded, attribute(e, "src"))
	}
	for e := range elements(page.body, "link") {
		loaded = append(loaded, attribute(e, "href"))
	}
	versioned := func(name string) string { return path + name + "?v=" + desk.Assets[name].Version }
	if diff := cmp.Diff([]string{versioned("desk.js"), versioned("desk.css")}, loaded); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	for name, contentType := range map[string]string{"desk.js": "text/javascript; charset=utf-8", "desk.css": "text/css; charset=utf-8"} {
		tag := `"` + desk.Assets[name].Version + `"`
		for _, test := range []struct {
			target, known string
			status        int
			caching       string
		}{
			{versioned(name), "", 200, "public, max-age=31536000, immutable"},
			{path + name, "", 200, "public, max-age=3600"},
			{path + name + "?v=old", "", 200, "public, max-age=3600"},
			{path + name, `"old"`, 200, "public, max-age=3600"},
			{path + name, tag, 304, "public, max-age=3600"},
			{versioned(name), "W/" + tag, 304, "public, max-age=31536000, immutable"},
		} {
			status, header, length := fetch(t, "GET", address+test.target, "If-None-Match", test.known)
			want := []string{test.caching, tag, "nosniff"}
			got := []string{header.Get("Cache-Control"), header.Get("Etag"), header.Get("X-Content-Type-Options")}
			if diff := cmp.Diff(want, got); diff != "" || status != test.status || (length > 0) != (status == 200) {
				t.Errorf("%s, known as %q: %d, %d bytes: %s", test.target, test.known, status, length, diff)
			}
			if got := header.Get("Content-Type"); status == 200 && got != contentType {
				t.Errorf("%s: got content type %q, want %q", name, got, contentType)
			}
		}
	}
	// They are the same for everybody, and are there while nothing else is.
	h.Ghost.Break(desktest.ErrGone)
	h.Away = desktest.ErrGone
	if status, _, _ := fetch(t, "GET", address+path+"desk.css"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}

const (
	// maxPage bounds a page, and maxLarge one that shows 50 posts, in bytes. Neither loads
	// more than twice itself.
	maxPage, maxLarge = 48 << 10, 90 << 10

	// maxWire bounds a page with its style and its script, as Caddy's encode sends them.
	maxWire = 25 << 10

	// maxEventWire bounds one of events, which has more to do.
	maxEventWire = 80 << 10
)

// Caddy's encode uses gzip too.
func compressed(t *testing.T, text []byte) []byte {
	t.Helper()
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatalf("compressing: %v", err)
	}
	return small.Bytes()
}

// Editors abroad wait for no page, however much a site has: it stays small.
func TestPagesStaySmall(t *testing.T) {
	h := newHarness(t)
	var sections []manifest.Section
	for i := range 10 {
		section := manifest.Section{
			Key: fmt.Sprint("section-", i), Name: fmt.Sprint("Section ", i), Description: "What readers of this section see first.",
			Picker: manifest.Picker{DefaultView: manifest.SearchView, RecentLimit: manifest.MaxRecentLimit},
		}
		for n := range 5 {
			slot := manifest.Slot{Key: fmt.Sprint("slot-", n), Label: fmt.Sprintf("Story %d of section %d", n+1, i+1), Tag: fmt.Sprintf("#tag-%d-%d", i, n)}
			section.Slots = append(section.Slots, slot)
			h.Publish(fmt.Sprintf("5ddc9141c35e7700383b%02d%02d", i, n), "What the council has said about the old lychgate of the parish", slot.Tag)
		}
		sections = append(sections, section)
	}
	party := manifest.EventType{
		Key: "party", PostTemplate: "custom-party", SupportedFields: manifest.StandardFields(),
		Tags: []string{}, RequiredFields: []string{}, MessagingStates: []string{},
	}
	kinds := []string{"text", "textarea", "number", "select", "url", "date", "toggle", "image"}
	for i := range 10 {
		field := manifest.CustomField{Key: fmt.Sprint("field_", i), Type: kinds[i%len(kinds)], HelpText: "What readers see of it first."}
		if field.Type == "select" {
			field.Options = []string{"Casual", "Formal"}
		}
		party.CustomFields = append(party.CustomFields, field)
	}
	h.Manifest("nightly", manifest.Manifest{Version: 1, Curation: &manifest.Curation{Sections: sections}, Events: &manifest.Events{DefaultTags: []string{}, Types: manifest.Types{party}}})
	broken := "manifest_version: 1\nevents:\n  types:\n" + strings.Repeat("    webinar: {}\n", 1) +
		"homepage_curation:\n  sections:\n" + strings.Repeat("    - {key: top, name: Top}\n", 40)
	for i := range 20 {
		name := fmt.Sprint("theme-", i)
		h.Ghost.Themes = append(h.Ghost.Themes, platform.InstalledTheme{Name: name})
		if i < 3 {
			h.Manifest(name, broken)
		}
	}
	for i := range 300 {
		h.Outbox.Records = append(h.Outbox.Records, members.Record{
			Member: members.Member{Email: fmt.Sprintf("reader-%d@example.com", i), UpdatedAt: desktest.Now}, Problem: "Ghost does not answer: dial tcp 192.0.2.7:2368: connect: connection refused",
			Attempts: 7, NextAttempt: desktest.Now,
		})
		integration := members.Integration{Site: "daily", Name: fmt.Sprint("crm-", i), Mode: members.EmailMode, SubscribeByDefault: true}
		if _, _, err := h.Members.Keys.Add(t.Context(), integration); err != nil {
			t.Fatalf("h.Members.Keys.Add: %v", err)
		}
	}
	for i := range 60 {
		h.create(map[string]any{"name": fmt.Sprint("An evening at the old lychgate ", i), "event_date": "2026-06-01", "description": strings.Repeat("What we will see. ", 15)})
	}
	assets := make(map[string]int)
	for name, asset := range desk.Assets {
		base, _, _ := strings.Cut(name, ".")
		assets[base] += len(compressed(t, asset.Content))
	}
	for target, most := range map[string]int{
		"curation": maxLarge, "curation?slot=section-3/slot-2&move=": maxLarge,
		"curation?slot=section-3/slot-2&view=recent": maxLarge, "curation?slot=section-3/slot-2&q=council": maxPage,
		"themes": maxPage, "integrations": maxPage, "sync": maxPage,
		"events?view=drafts": maxPage, "events?new=party": maxPage, "event-settings": maxPage,
	} {
		loaded, wire := assets["desk"], maxWire
		if strings.HasPrefix(target, "event") {
			loaded, wire = assets["events"], maxEventWire
		}
		response := h.ask("GET", path+target, "Owner", "")
		plain, compressed := response.Body.Len(), len(compressed(t, response.Body.Bytes()))
		if response.Code != http.StatusOK || plain > most || compressed+loaded > wire {
			t.Errorf("%s: status %d, %d bytes, %d with all that it loads, compressed", target, response.Code, plain, compressed+loaded)
		}
	}
}

// Staff who have chosen dark or light in the platform's own admin have the desk in it too. For others it
// is as the system is.
func TestDeskHasTheColourSchemeOfStaff(t *testing.T) {
	for scheme, want := range map[string][]string{"": {"light dark", "desk.css"}, "dark": {"dark", "desk-dark.css"}, "light": {"light", "desk-light.css"}} {
		h := newHarness(t)
		member := platformtest.Staff["editor"]
		t.Cleanup(func() { platformtest.Staff["editor"] = member })
		chosen := member
		chosen.Scheme = scheme
		platformtest.Staff["editor"] = chosen
		page := h.get("themes", "Editor")
		var got []string
		for e := range elements(page.body, "meta") {
			if attribute(e, "name") == "color-scheme" {
				got = append(got, attribute(e, "content"))
			}
		}
		for e := range elements(page.body, "link") {
			name, _, _ := strings.Cut(strings.TrimPrefix(attribute(e, "href"), path), "?")
			got = append(got, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", scheme, diff)
		}
		platformtest.Staff["editor"] = member
	}
	const isDark = "--page: #151719"
	for name, want := range map[string][]bool{"desk.css": {true, true}, "desk-dark.css": {true, false}, "desk-light.css": {false, false}} {
		text := string(desk.Assets[name].Content)
		if got := []bool{strings.Contains(text, isDark), strings.Contains(text, "(prefers-color-scheme: dark)")}; !slices.Equal(got, want) {
			t.Errorf("%s: dark, and only if the system is: got %v, want %v", name, got, want)
		}
	}
}
