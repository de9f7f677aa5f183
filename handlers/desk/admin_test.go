package desk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
)

// Ghost's own admin is told what to show the user who is signed in, and of nothing that their
// role may not see. What fails is told in JSON, with no word of the cause.
func TestWhatGhostsAdminShows(t *testing.T) {
	const (
		inUse   = `{"curation":"/ghost/lychgate/desk/curation","events":"",`
		nothing = `{"curation":"","events":"","themes":[]}`
		nightly = `{"name":"nightly","status":"Valid","_errors":[],"more":0,"refresh":""}`
		broken  = "manifest_version: 1\nevents: \"</script>\"\n"
		finding = `{"name":"nightly","status":"1 warning","_errors":[{"field":"events.types","message":"` +
			"`events` is `\\u003c/script\\u003e`, so there are no event types; give it `types` with at least one event type" +
			`","severity":"warning"}],"more":0,"refresh":""}`
		bare     = `{"name":"source","status":"Not seen yet","_errors":[],"more":0,"refresh":"/ghost/lychgate/themes/source/refresh"}`
		signedIn = `{"message":"Sign in to Ghost's admin on this site first."}`
	)
	declared := func(h *harness) { h.Declare(desktest.Top) }
	for _, test := range []struct {
		name, method, role string
		given              func(*harness)
		status             int
		want               string
	}{
		{"an owner", "GET", "Owner", declared, 200, inUse + `"themes":[` + nightly + `]}`},
		{"an editor", "GET", "Editor", declared, 200, inUse + `"themes":[` + nightly + `]}`},
		{"an author", "GET", "Author", declared, 200, nothing},
		{"a contributor", "GET", "Contributor", declared, 200, nothing},
		{"a stranger", "GET", "", declared, 401, signedIn},
		{"a session that has ended", "GET", "Nobody", declared, 401, signedIn},
		{"no manifest", "GET", "Owner", func(*harness) {}, 200, nothing},
		{"slots of a theme that is not active", "GET", "Owner", func(h *harness) {
			h.Declare(desktest.Top)
			h.Ghost.Themes = []platform.InstalledTheme{{Name: "nightly"}, {Name: "source", IsActive: true}}
		}, 200, `{"curation":"","events":"","themes":[` + nightly + `]}`},
		{"event types", "GET", "Editor", func(h *harness) { h.declareEvents() }, 200, `{"curation":"","events":"/ghost/lychgate/desk/events","themes":[` + nightly + `]}`},
		{"event types, on a site without events", "GET", "Editor", func(h *harness) {
			h.declareEvents()
			h.Site.Events = nil
		}, 200, `{"curation":"","events":"","themes":[` + nightly + `]}`},
		{"findings, on an earlier copy", "GET", "Owner", func(h *harness) {
			h.Declare(desktest.Top)
			h.Manifest("nightly", broken)
		}, 200, inUse + `"themes":[` + finding + `]}`},
		{"a repository, without a manifest", "GET", "Owner", func(h *harness) { h.Themes.Repositories["source"] = desktest.Source("", nil) }, 200, `{"curation":"","events":"","themes":[` + bare + `]}`},
		{"a form", "POST", "Owner", declared, 405, `{"message":"This page cannot be asked for that way. Open it again."}`},
		{"Ghost is away", "GET", "Owner", func(h *harness) {
			h.Ghost.BreakCalls(desktest.ErrGone, "installed")
		}, 502, `{"message":"Ghost does not say which themes it has. Try again in a moment."}`},
		{"the store is away", "GET", "Owner", func(h *harness) { h.Away = desktest.ErrGone }, 503, `{"message":"Lychgate's store does not answer, so there is nothing to show. Nothing is lost, and the site goes on working. Try again in a moment."}`},
		{"no site", "GET", "Owner", func(h *harness) { h.Site = nil }, 404, `{"message":"There is no such page."}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			test.given(h)
			w := h.ask(test.method, path+"admin.json", test.role, "")
			got := w.Body.String()
			if diff := cmp.Diff(test.want, got); diff != "" || w.Code != test.status {
				t.Errorf("got status %d, want %d; body (-want +got):\n%s", w.Code, test.status, diff)
			}
			header := map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
			for name, want := range header {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if strings.Contains(got, desktest.ErrGone.Error()) {
				t.Errorf("got %s, want the cause, %v, not told to the browser", got, desktest.ErrGone)
			}
		})
	}
	h := newHarness(t)
	if w := h.ask(http.MethodGet, path+"admin.json", "Owner", "", "Sec-Fetch-Site", "cross-site"); w.Code != http.StatusForbidden {
		t.Errorf("from a page of another site: %v", w)
	}
}
