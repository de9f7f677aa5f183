package themes_test

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	themeshandlers "github.com/lychgate/caddy-lychgate/handlers/themes"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// serve serves the API of a site with a theme.
func serve(h *desktest.Harness) http.HandlerFunc {
	h.Manifest("nightly", `
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
	return func(w http.ResponseWriter, r *http.Request) {
		var site *api.Site
		if h.Site != nil {
			site = h.Site.Site
		}
		of.Serve(w, r, site, netip.MustParseAddr("192.0.2.1"))
	}
}

const path = "/ghost/lychgate/themes"

// endpoints are those of a theme, and the methods that they have.
var endpoints = map[string][]string{
	"": {"GET", "HEAD"}, "/nightly/manifest": {"GET", "HEAD"}, "/nightly/event-types": {"GET", "HEAD"}, "/nightly/curation": {"GET", "HEAD"},
	"/nightly/refresh": {"POST"}, "/nightly/events/validate": {"POST"},
}

// Only the staff who edit may read and refresh.
func TestThemesAreForStaff(t *testing.T) {
	desktest.ForEditors(t, serve, func(*desktest.Harness) (all []desktest.Endpoint) {
		for _, endpoint := range slices.Sorted(maps.Keys(endpoints)) {
			for _, method := range endpoints[endpoint] {
				all = append(all, desktest.Endpoint{method, path + endpoint, ""})
			}
		}
		return all
	})
}

// What is no endpoint, and what a theme does not have, is said.
func TestWhatThemesDoNotHave(t *testing.T) {
	s := exchange.Serve(t, serve(desktest.New(t)))
	for endpoint, methods := range endpoints {
		want := exchange.Refused(405, "The method is not allowed here.", "Allow", strings.Join(methods, ", "))
		for _, method := range []string{"DELETE", "OPTIONS"} {
			if diff := cmp.Diff(want, s.Ask("Owner", method, path+endpoint, "")); diff != "" {
				t.Errorf("%s %q: response (-want +got):\n%s", method, endpoint, diff)
			}
		}
	}
	noEndpoint, noManifest := exchange.Refused(404, "There is no such endpoint."), exchange.Refused(404, "The theme has no manifest.")
	const listed = `{"themes":[{"name":"nightly","status":"Valid","count":0,"_errors":[],"homepage_curation":"inactive","updated_at":"2026-05-04T15:00:00Z"}]}`
	for what, want := range map[string]exchange.Response{
		"GET ":               exchange.Staff(200, listed),
		"GET /nightly/types": noEndpoint, "GET /nightly": noEndpoint, "GET /a%00b/curation": noEndpoint, "GET /a%ffb/curation": noEndpoint,
		"GET %2Fa/curation": noEndpoint, "GET //curation": noEndpoint, "GET /none/curation": noManifest, "HEAD /none/manifest": noManifest.WithoutBody(),
		"GET /nightly/curation": exchange.Refused(404, "Homepage Curation is inactive: it starts with a manifest that has it and no finding."),
		"POST /nightly/refresh": exchange.Refused(404, "The theme has no repository to be refreshed from."),
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
	s := exchange.Serve(t, serve(desktest.New(t)))
	const (
		webinar = `,"post_template":"custom-webinar","tags":["Events","#webinar"]}`
		meetup  = `{"valid":true,"problems":[],"post_template":"custom-meetup","tags":["Events"]}`
		of      = `{"type":"meetup"}`
	)
	noEvent := exchange.Refused(422, `Send JSON such as {"type": "webinar", "values": {"name": "An evening"}}.`)
	for body, want := range map[string]exchange.Response{
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jane"}}`:             exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"name":"An evening","speaker":"Jäne!","seats":10}}`: exchange.Staff(200, `{"valid":true,"problems":[]`+webinar),
		`{"type":"webinar","values":{"speaker":"Janette","seats":11}}`: exchange.Staff(200, `{"valid":false,"problems":[{"field":"name","message":"Name is required."},`+
			`{"field":"speaker","message":"Speaker must have 5 characters at most; it has 7."},{"field":"seats","message":"Seats must be 10 or less."}]`+webinar),
		of:                                 exchange.Staff(200, meetup),
		`{"type":"concert"}`:               exchange.Refused(422, `The theme has no event type "concert". It has "webinar", "meetup".`),
		`{}`:                               exchange.Refused(422, `The theme has no event type "". It has "webinar", "meetup".`),
		`{"type":"webinar","values`:        noEvent,
		"":                                 noEvent,
		strings.Repeat(" ", 1<<20-17) + of: exchange.Staff(200, meetup),
		strings.Repeat(" ", 1<<20-16) + of: exchange.Refused(413, "The request's body is too large."),
	} {
		got := s.Ask("Editor", "POST", path+"/nightly/events/validate", body)
		delete(got.Header, "Connection") // of who sends too much
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.80s: response (-want +got):\n%s", body, diff)
		}
	}
}
