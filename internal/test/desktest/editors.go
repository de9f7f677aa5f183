package desktest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// Endpoint is a request that staff may send to an API.
type Endpoint struct{ Method, Path, Body string }

// ForEditors holds all endpoints of an API to what strangers are answered, and to what is answered while something is
// away. The handler has no site if the harness has none. The first endpoint lists what the others change.
func ForEditors(t *testing.T, serve func(h *Harness) http.HandlerFunc, endpoints func(h *Harness) []Endpoint, withoutStore ...string) {
	t.Helper()
	signInFirst := exchange.Refused(401, "Sign in to Ghost's admin on this site first.")
	notEditor := exchange.Refused(403, "Owners, administrators and editors may do this.")
	for name, test := range map[string]struct {
		spoil func(h *Harness, site *exchange.Site)
		role  string
		want  exchange.Response
	}{
		"nobody":                 {nil, "", signInFirst},
		"a stranger":             {nil, "Stranger", signInFirst},
		"an author":              {nil, "Author", notEditor},
		"a contributor":          {nil, "Contributor", notEditor},
		"a page of another site": {nil, "Editor", exchange.Refused(403, "The request must come from a page of this site: its Origin header must name this site.")},
		"no site":                {func(h *Harness, _ *exchange.Site) { h.Site = nil }, "Owner", exchange.Refused(404, "There is no site with a Ghost at this address.")},
		"Ghost is away":          {func(h *Harness, _ *exchange.Site) { h.Ghost.Break(ErrGone) }, "Administrator", exchange.Refused(502, "Ghost could not be asked who you are. Try again.")},
		"the store is away":      {func(h *Harness, _ *exchange.Site) { h.Away = ErrGone }, "Owner", exchange.Refused(500, "Internal error.")},
		"who makes up sessions": {func(_ *Harness, site *exchange.Site) {
			for n := range 30 {
				site.Ask(fmt.Sprint("made up ", n), "GET", endpoints(nil)[0].Path, "")
			}
		}, "made up", exchange.Response{Status: 429}},
	} {
		h := New(t)
		site := exchange.Serve(t, serve(h))
		all := endpoints(h)
		before := site.Ask("Owner", "GET", all[0].Path, "")
		if test.spoil != nil {
			test.spoil(h, site)
		}
		from := "same-origin"
		if name == "a page of another site" {
			from = "cross-site"
		}
		for _, e := range all {
			if test.want.Status == 500 && slices.Contains(withoutStore, e.Path) {
				continue
			}
			want, got := test.want, site.Ask(test.role, e.Method, e.Path, e.Body, "Sec-Fetch-Site", from)
			if e.Method == http.MethodHead {
				want = want.WithoutBody()
			}
			if want.Status == 429 && got.Header["Retry-After"] != "" { // which goes down meanwhile
				want.Header, want.Body = got.Header, got.Body
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s %s: response (-want +got):\n%s", name, e.Method, e.Path, diff)
			}
		}
		if test.spoil == nil {
			if diff := cmp.Diff(before, site.Ask("Owner", "GET", all[0].Path, "")); diff != "" {
				t.Errorf("%s: what is there (-want +got):\n%s", name, diff)
			}
		}
	}
}
