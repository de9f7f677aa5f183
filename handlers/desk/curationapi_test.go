package desk_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	pages "github.com/lychgate/caddy-lychgate/handlers/desk"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// serveCuration serves the API of the homepage.
func serveCuration(h *desktest.Harness) http.HandlerFunc {
	of := pages.CurationAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
	return func(w http.ResponseWriter, r *http.Request) {
		var site *pages.CurationSite
		if h.Site != nil {
			site = h.Site.CurationSite
		}
		of.Serve(w, r, site, netip.MustParseAddr("192.0.2.1"))
	}
}

// homepage is the path of the API.
const homepage = "/ghost/lychgate/curation"

// Strangers, and staff without the role, neither see nor change the homepage.
func TestWhoMayFillTheHomepage(t *testing.T) {
	desktest.ForEditors(t, serveCuration, func(h *desktest.Harness) []desktest.Endpoint {
		if h != nil {
			h.Declare(desktest.Top)
			h.Publish("3", "The third")
		}
		return []desktest.Endpoint{
			{"GET", homepage, ""},
			{"HEAD", homepage, ""},
			{"GET", homepage + "/top/picker", ""},
			{"HEAD", homepage + "/top/picker", ""},
			{"GET", homepage + "/top/lead/history", ""},
			{"HEAD", homepage + "/top/lead/history", ""},
			{"PUT", homepage + "/top/lead", `{"post":"3"}`},
			{"DELETE", homepage + "/top/lead", ""},
		}
	})
}

// What cannot be done is said, and changes nothing.
func TestHomepageRefuses(t *testing.T) {
	h := newsroom(t)
	h.Publish("4", "Older news", "news")
	h.Publish("5", "Newer news", "news")
	before := h.Ghost.PostsByTag()
	site := exchange.Serve(t, serveCuration(h.Harness))
	const choice = `{"post":"3"}`
	notAllowed := func(allow string) exchange.Response {
		return exchange.Refused(405, "The method is not allowed here.", "Allow", allow)
	}
	noSlot, noSection := exchange.Refused(404, "The active theme has no such slot. Load the page again."), exchange.Refused(404, "The active theme has no such section. Load the page again.")
	noPost, noEndpoint := exchange.Refused(404, "The post does not exist any more. Choose another."), exchange.Refused(404, "There is no such endpoint.")
	noChoice, noView := exchange.Refused(422, `Send JSON such as {"post": "5ddc9141c35e7700383b2937"}.`), exchange.Refused(422, "The view is recent or search.")
	switched := exchange.Refused(409, "Another theme was made the active one meanwhile. Load the page again.")
	elsewhere := exchange.Refused(403, "The request must come from a page of this site: its Origin header must name this site.")
	tooLarge := exchange.Refused(413, "The request's body is too large.")
	several := exchange.Refused(409, "2 posts carry this tag, which readers see. Choosing a post takes it from all others: confirm that, or take it from them in the platform's admin first.")
	large := strings.Repeat("1", 20<<10)
	for _, test := range []struct {
		name, method, path, body, fetchSite string
		want                                exchange.Response
	}{
		{"another site's page", "PUT", "/top/lead", choice, "cross-site", elsewhere},
		{"another site's page clears", "DELETE", "/top/lead", "", "cross-site", elsewhere},
		{"POST", "POST", "", "", "", notAllowed("GET, HEAD")},
		{"reading a slot", "GET", "/top/lead", "", "", notAllowed("PUT, DELETE")},
		{"POST to the picker", "POST", "/top/picker", "", "", notAllowed("GET, HEAD, PUT, DELETE")},
		{"POST to a history", "POST", "/top/lead/history", "", "", notAllowed("GET, HEAD")},
		{"the history of no slot", "GET", "/top/none/history", "", "", noSlot},
		{"the history of no slot, without the body", "HEAD", "/top/none/history", "", "", noSlot.WithoutBody()},
		{"a section alone", "GET", "/top", "", "", noEndpoint},
		{"too deep", "PUT", "/top/lead/x", choice, "", noEndpoint},
		{"no section", "PUT", "/none/lead", choice, "", noSlot},
		{"no slot", "PUT", "/top/none", choice, "", noSlot},
		{"no slot to clear", "DELETE", "/top/news", "", "", noSlot},
		{"a slot that needs escaping", "PUT", "/top/%2e%2e", choice, "", noSlot},
		{"no section to pick for", "GET", "/none/picker", "", "", noSection},
		{"no view", "GET", "/top/picker?view=old", "", "", noView},
		{"no view, without the body", "HEAD", "/top/picker?view=old", "", "", noView.WithoutBody()},
		{"no post", "PUT", "/top/lead", `{"post":"none"}`, "", noPost},
		{"another path as a post", "PUT", "/top/lead", `{"post":"../members/"}`, "", noPost},
		{"an empty post", "PUT", "/top/lead", `{"post":""}`, "", noChoice},
		{"no body", "PUT", "/top/lead", "", "", noChoice},
		{"no JSON", "PUT", "/top/lead", "post=3", "", noChoice},
		{"a number", "PUT", "/top/lead", `{"post":1}`, "", noChoice},
		{"a post to clear", "DELETE", "/top/lead", choice, "", noChoice},
		{"too large", "PUT", "/top/lead", `{"post":"` + large + `"}`, "", tooLarge},
		{"too large to clear", "DELETE", "/top/lead", `{"theme":"` + large + `"}`, "", tooLarge},
		{"no JSON to clear", "DELETE", "/top/lead", "x", "", noChoice},
		{"another theme", "PUT", "/top/lead", `{"post":"3","theme":"source"}`, "", switched},
		{"another theme to clear", "DELETE", "/top/lead", `{"theme":"source"}`, "", switched},
		{"a tag of readers", "PUT", "/more/news", choice, "", several},
		{"a tag of readers to clear", "DELETE", "/more/news", "", "", several},
	} {
		header := []string{}
		if test.fetchSite != "" {
			header = []string{"Sec-Fetch-Site", test.fetchSite}
		}
		got := site.Ask("Editor", test.method, homepage+test.path, test.body, header...)
		delete(got.Header, "Connection") // of who sends too much
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", test.name, diff)
		}
	}
	if diff := cmp.Diff(before, h.Ghost.PostsByTag()); diff != "" {
		t.Errorf("what was refused changed the slots (-want +got):\n%s", diff)
	}
	bare := exchange.Serve(t, serveCuration(desktest.New(t)))
	if diff := cmp.Diff(exchange.Refused(404, "The theme has no manifest."), bare.Ask("Editor", "PUT", homepage+"/top/lead", choice)); diff != "" {
		t.Errorf("no manifest: response (-want +got):\n%s", diff)
	}
}
