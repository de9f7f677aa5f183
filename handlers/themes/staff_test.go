package themes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	themeshandlers "github.com/lychgate/caddy-lychgate/handlers/themes"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// staff are at a site with a theme.
type staff struct {
	*desktest.Harness
	*exchange.Site
	isAtSite bool // false where there is none
}

func newStaff(t *testing.T) *staff {
	t.Helper()
	s := &staff{Harness: desktest.New(t), isAtSite: true}
	s.Manifest("nightly", `
manifest_version: 1
events:
  default_tags: [Events]
  types:
    webinar:
      post_template: custom-webinar
      tags: ["#webinar", Events]
      required_fields: [name]
      custom_fields:
        - {key: speaker, type: text, required: true, max_length: 5}
        - {key: seats, type: number, min: 1, max: 10}
    meetup: {post_template: custom-meetup}
`)
	of := themeshandlers.API{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
	s.Site = exchange.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		var site *api.Site
		if s.isAtSite {
			site = s.Harness.Site.Site
		}
		of.Serve(w, r, site, netip.MustParseAddr("192.0.2.1"))
	})
	return s
}

const path = "/ghost/lychgate/themes"

// endpoints are those of a theme, and the methods that they have.
var endpoints = map[string][]string{
	"": {"GET", "HEAD"}, "/nightly/manifest": {"GET", "HEAD"}, "/nightly/event-types": {"GET", "HEAD"}, "/nightly/curation": {"GET", "HEAD"},
	"/nightly/refresh": {"POST"}, "/nightly/events/validate": {"POST"},
}

func failure(status int, message string, header ...string) exchange.Response {
	text, _ := json.Marshal(map[string]string{"message": message}) // a string always can be
	return exchange.Staff(status, string(text), header...)
}

// Only the staff who edit may read and refresh, and what is away is said.
func TestThemesAreForStaff(t *testing.T) {
	notEditor := failure(403, "Owners, administrators and editors may do this.")
	for name, test := range map[string]struct {
		spoil  func(s *staff)
		cookie string
		want   exchange.Response
	}{
		"nobody":          {nil, "", failure(401, "Sign in to Ghost's admin on this site first.")},
		"an author":       {nil, "Author", notEditor},
		"a contributor":   {nil, "Contributor", notEditor},
		"no site":         {func(s *staff) { s.isAtSite = false }, "Owner", failure(404, "There is no site with a Ghost at this address.")},
		"Ghost is away":   {func(s *staff) { s.Ghost.Break(desktest.ErrGone) }, "Owner", failure(502, "Ghost could not be asked who you are. Try again.")},
		"the store fails": {func(s *staff) { s.Away = desktest.ErrGone }, "Owner", failure(500, "Internal error.")},
		"who makes up sessions": {func(s *staff) {
			for n := range 30 {
				s.Ask(fmt.Sprint("made up ", n), "GET", path, "")
			}
		}, "made up", exchange.Response{Status: 429}},
	} {
		s := newStaff(t)
		if test.spoil != nil {
			test.spoil(s)
		}
		for endpoint, methods := range endpoints {
			for _, method := range methods {
				want, got := test.want, s.Ask(test.cookie, method, path+endpoint, "")
				if method == "HEAD" {
					want = want.WithoutBody()
				}
				if want.Status == 429 && got.Header["Retry-After"] != "" { // which goes down meanwhile
					want.Header, want.Body = got.Header, got.Body
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s %q: response (-want +got):\n%s", name, method, endpoint, diff)
				}
			}
		}
	}
	s := newStaff(t)
	for endpoint, methods := range endpoints {
		want := failure(405, "The method is not allowed here.", "Allow", strings.Join(methods, ", "))
		for _, method := range []string{"DELETE", "OPTIONS"} {
			if diff := cmp.Diff(want, s.Ask("Owner", method, path+endpoint, "")); diff != "" {
				t.Errorf("%s %q: response (-want +got):\n%s", method, endpoint, diff)
			}
		}
	}
	noEndpoint, noManifest := failure(404, "There is no such endpoint."), failure(404, "The theme has no manifest.")
	const listed = `{"themes":[{"name":"nightly","status":"Valid","count":0,"_errors":[],"homepage_curation":"inactive","updated_at":"2026-05-04T15:00:00Z"}]}`
	for what, want := range map[string]exchange.Response{
		"GET ":               exchange.Staff(200, listed),
		"GET /nightly/types": noEndpoint, "GET /nightly": noEndpoint, "GET /a%00b/curation": noEndpoint, "GET /a%ffb/curation": noEndpoint,
		"GET %2Fa/curation": noEndpoint, "GET //curation": noEndpoint, "GET /none/curation": noManifest, "HEAD /none/manifest": noManifest.WithoutBody(),
		"GET /nightly/curation": failure(404, "Homepage Curation is inactive: it starts with a manifest that has it and no finding."),
		"POST /nightly/refresh": failure(404, "The theme has no repository to be refreshed from."),
	} {
		method, at, _ := strings.Cut(what, " ")
		if diff := cmp.Diff(want, s.Ask("Editor", method, path+at, "")); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", what, diff)
		}
	}
	if got := s.Ask("Editor", "HEAD", path+"/", ""); got.Status != 200 || got.Body != "" {
		t.Errorf("HEAD with a slash: %v, want 200 without a body", got)
	}
}

// Before an event is published, the editor learns what is wrong with it, and what its post is to be.
func TestValidateEvents(t *testing.T) {
	s := newStaff(t)
	const (
		webinar = `,"post_template":"custom-webinar","tags":["Events","#webinar"]}`
		meetup  = `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`
		of      = `{"type":"meetup"}`
	)
	noEvent := failure(422, `Send JSON such as {"type": "webinar", "values": {"name": "An evening"}}.`)
	for body, want := range map[string]exchange.Response{
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jane"}}`:             exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jäne!","seats":10}}`: exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"speaker":"Janette","seats":11}}`: exchange.Staff(200, `{"valid":false,"problems":[{"field":"name","message":"Name is required."},`+
			`{"field":"speaker","message":"Speaker must have 5 characters at most; it has 7."},{"field":"seats","message":"Seats must be 10 or less."}]`+webinar),
		of:                                 exchange.Staff(200, meetup),
		`{"type":"concert"}`:               failure(422, `The theme has no event type "concert". It has "webinar", "meetup".`),
		`{}`:                               failure(422, `The theme has no event type "". It has "webinar", "meetup".`),
		`{"type":"webinar","values`:        noEvent,
		"":                                 noEvent,
		strings.Repeat(" ", 1<<20-17) + of: exchange.Staff(200, meetup),
		strings.Repeat(" ", 1<<20-16) + of: failure(413, "The request's body is too large."),
	} {
		got := s.Ask("Editor", "POST", path+"/nightly/events/validate", body)
		delete(got.Header, "Connection") // of who sends too much
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.80s: response (-want +got):\n%s", body, diff)
		}
	}
}
