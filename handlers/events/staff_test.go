package events_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// serveStaff serves the API of a site whose theme has webinars.
func serveStaff(h *desktest.Harness) http.HandlerFunc {
	h.Manifest("nightly", `
manifest_version: 1
events:
  types:
    webinar:
      post_template: custom-webinar
      required_fields: [name, event_date]
      custom_fields:
        - {key: speaker, type: text, required: true}
`)
	of := eventhandlers.StaffAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
	return func(w http.ResponseWriter, r *http.Request) {
		var site *api.EventsSite
		if h.Site != nil {
			site = h.Site.Events
		}
		of.Serve(w, r, site, netip.MustParseAddr("192.0.2.1"))
	}
}

const (
	desk  = "/ghost/lychgate/desk/events"
	party = `{"theme":"nightly","type":"webinar","values":{"name":"Party"}}`
	ball  = `{"theme":"nightly","type":"webinar","values":{"name":"Ball"}}`
)

// made is what the tests read of an event.
type made struct {
	ID       string
	Revision int64
}

// draft makes an event, of which k1 is the key.
func draft(t *testing.T, site *exchange.Site) (m made) {
	t.Helper()
	got := site.Ask("Editor", "POST", desk, party, "Idempotency-Key", "k1")
	if err := json.Unmarshal([]byte(got.Body), &m); err != nil || got.Status != 201 {
		t.Fatalf("making an event: %v, %v, want 201", got, err)
	}
	return m
}

// Nobody but editors gets to the events.
func TestWhoMayChangeEvents(t *testing.T) {
	const labels = "/ghost/lychgate/desk/event-labels" // which the store does not have
	desktest.ForEditors(t, serveStaff, func(h *desktest.Harness) []desktest.Endpoint {
		one := desk
		if h != nil {
			e, err := h.Events.Create(t.Context(), "daily", events.Edit{Theme: "nightly", Type: "webinar"})
			if err != nil {
				t.Fatalf("h.Events.Create: %v", err)
			}
			one += "/" + e.ID
		}
		return []desktest.Endpoint{
			{"GET", desk + "?view=drafts", ""},
			{"HEAD", desk, ""},
			{"POST", desk, party},
			{"GET", one, ""},
			{"HEAD", one, ""},
			{"PUT", one, party},
			{"DELETE", one, ""},
			{"POST", one + "/write", ""},
			{"POST", one + "/publish", ""},
			{"POST", one + "/unpublish", ""},
			{"POST", one + "/cancel", ""},
			{"POST", one + "/card", ""},
			{"POST", one + "/duplicate", ""},
			{"POST", one + "/copies", `{"date":"2031-05-08"}`},
			{"POST", one + "/publish-series", ""},
			{"GET", one + "/history", ""},
			{"HEAD", one + "/history", ""},
			{"POST", one + "/presence", ""},
			{"GET", one + "/registrations", ""},
			{"HEAD", one + "/registrations", ""},
			{"POST", one + "/registrations", `{"email":"jane@example.com"}`},
			{"GET", one + "/registrations.csv", ""},
			{"HEAD", one + "/registrations.csv", ""},
			{"DELETE", one + "/registrations/nobody", ""},
			{"DELETE", one + "/registrations/nobody/name", ""},
			{"PUT", one + "/registrations/nobody/check-in", ""},
			{"DELETE", one + "/registrations/nobody/check-in", ""},
			{"GET", labels, ""},
			{"HEAD", labels, ""},
		}
	}, labels)
}

// What cannot be done says why, and changes nothing.
func TestEventsRefused(t *testing.T) {
	s := exchange.Serve(t, serveStaff(desktest.New(t)))
	draft, again := draft(t, s), draft(t, s)
	if diff := cmp.Diff(draft, again); diff != "" {
		t.Errorf("asked again: the event (-want +got):\n%s", diff)
	}
	waits := "/" + draft.ID + "/waiting/nobody"
	one, none, nobody, large := "/"+draft.ID, "/"+strings.Repeat("a", 26), "/"+draft.ID+"/registrations/nobody", strings.Repeat("x", 300<<10)
	const notText = "The value must be text without control characters other than tabs and line breaks, a number, true or false, or a list of texts."
	problem := func(field, message string) exchange.Response {
		return exchange.Staff(422, fmt.Sprintf(`{"message":%q,"problems":[{"field":%q,"message":%[1]q}]}`, message, field))
	}
	for _, test := range []struct {
		want     exchange.Response
		header   string
		requests []string // method, path and body
	}{
		{exchange.Refused(405, "The method is not allowed here."), "", []string{
			"PATCH ", "POST " + one, "GET " + one + "/write", "GET " + one + "/publish", "GET " + one + "/unpublish", "GET " + one + "/cancel", "GET " + one + "/card",
			"GET " + one + "/duplicate", "GET " + one + "/copies", "GET " + one + "/publish-series", "POST " + one + "/history", "GET " + one + "/presence", "PUT " + one + "/registrations",
			"POST " + one + "/registrations.csv", "GET " + nobody, "PUT " + nobody + "/name", "GET " + nobody + "/check-in", "PUT " + one + "/waiting", "GET " + waits,
		}},
		{exchange.Refused(404, "There is no such event. Somebody may have deleted it."), "", []string{
			"GET " + none, "HEAD " + none, "GET /%2e%2e", "PUT " + none + " " + party, "DELETE " + none, "POST " + none + "/write", "POST " + none + "/publish", "POST " + none + "/card",
			"POST " + none + "/duplicate", "POST " + none + `/copies {"date":"2031-05-08"}`, "POST " + none + "/publish-series", "POST " + none + "/presence", "GET " + none + "/history", "HEAD " + none + "/history",
			"GET " + none + "/registrations", "HEAD " + none + "/registrations", "POST " + none + `/registrations {"email":"jane@example.com"}`,
			"GET " + none + "/registrations.csv", "HEAD " + none + "/registrations.csv",
			"GET " + none + "/waiting", "HEAD " + none + "/waiting", "POST " + none + "/waiting/nobody {}", "DELETE " + none + "/waiting/nobody",
		}},
		{exchange.Refused(404, "This guest is not on the waiting list."), "", []string{"DELETE " + waits}},
		{exchange.Refused(404, "There is no such endpoint."), "", []string{"GET " + one + "/send/it"}},
		{exchange.Refused(404, "This member has not registered for the event."), "", []string{"DELETE " + nobody, "DELETE " + nobody + "/name", "PUT " + nobody + "/check-in", "DELETE " + nobody + "/check-in"}},
		{exchange.Refused(409, "The event is not published."), "", []string{"POST " + one + "/unpublish", "POST " + one + "/cancel", "POST " + one + "/card"}},
		{exchange.Refused(409, "The event takes no registrations. Choose its Access, and publish it."), "", []string{"POST " + one + `/registrations {"email":"jane@example.com"}`, "POST " + waits + " {}"}},
		{exchange.Staff(409, fmt.Sprintf(`{"message":"The Idempotency-Key was used for another event.","id":%q,"revision":%d}`, draft.ID, draft.Revision)), "Idempotency-Key: k1", []string{"POST  " + ball}},
		{exchange.Refused(412, "The event was changed since it was read. Read it again."), `If-Match: "1"`, []string{
			"PUT " + one + " " + ball, "DELETE " + one, "POST " + one + "/write", "POST " + one + "/publish", "POST " + one + "/unpublish", "POST " + one + "/cancel", "POST " + one + "/card",
		}},
		{exchange.Refused(413, "The request's body is too large."), "", []string{"POST  " + large, "PUT " + one + " " + large, "POST " + one + "/copies " + large, "POST " + one + "/publish-series " + large, "POST " + one + "/registrations " + large, "POST " + waits + " " + large}},
		{exchange.Refused(415, "Send the header Content-Type: application/json."), "Content-Type: text/plain", []string{"PUT " + one + " " + party, "POST " + one + "/copies date=2031-05-08", "POST " + one + "/publish-series drafts=", "POST " + one + "/registrations email=jane", "POST " + waits + " over_limit="}},
		{exchange.Refused(415, "Send the header Content-Type: application/json."), "Content-Type: application/json-seq", []string{"POST  " + party}},
		{exchange.Refused(422, "The view is upcoming, past or drafts."), "", []string{"GET ?view=old", "HEAD ?view=old"}},
		{exchange.Refused(422, "The limit is a number from 1 to 1000."), "", []string{"GET " + one + "/registrations?limit=0", "HEAD " + one + "/registrations?limit=0", "GET " + one + "/registrations?limit=1001", "GET " + one + "/waiting?limit=x", "HEAD " + one + "/waiting?limit=0"}},
		{exchange.Refused(422, `Send JSON such as {"over_limit": false}.`), "", []string{"POST " + waits + " []"}},
		{exchange.Refused(422, "The at is a time such as 2031-05-01T17:00:00Z."), "", []string{"PUT " + nobody + "/check-in?at=noon", "DELETE " + nobody + "/check-in?at=noon"}},
		{exchange.Refused(422, "The email is not a valid address."), "", []string{"POST " + one + `/registrations {"email":"jane"}`}},
		{exchange.Refused(422, `The header If-Match must have the ETag of the event, such as "12".`), `If-Match: "x"`, []string{"DELETE " + one, "POST " + one + "/unpublish", "POST " + one + "/cancel", "POST " + one + "/card"}},
		{exchange.Refused(422, `Send JSON such as {"theme": "solo", "type": "webinar", "values": {"name": "An evening"}}.`), "", []string{"POST  name=Party", "PUT " + one}},
		{exchange.Refused(422, "The Idempotency-Key has more than 255 characters."), "Idempotency-Key: " + strings.Repeat("k", 256), []string{"POST  " + party, "POST " + one + "/duplicate"}},
		{exchange.Refused(422, `The theme has no event type "ball". It has "webinar".`), "", []string{`POST  {"theme":"nightly","type":"ball"}`}},
		{exchange.Refused(422, `There is no theme "none" with event types on this site.`), "", []string{`POST  {"theme":"none","type":"webinar"}`}},
		{exchange.Refused(422, `The field "theme" is missing: send the name of the theme that has the event type.`), "", []string{`POST  {"type":"webinar"}`}},
		{exchange.Refused(422, `Send no body, or JSON such as {"drafts": [{"id": "k5xqzrj2mdr7yqf4w3vhnb6tea", "revision": 12}]}.`), "", []string{
			"POST " + one + "/publish-series []", "POST " + one + `/publish-series {"drafts":[{"id":"x","revision":12}]}`, "POST " + one + `/publish-series {"drafts":[{"id":"` + draft.ID + `"}]}`,
		}},
		{problem("every", "An event without a date is on no weekday of a month. Give it a date first."), "", []string{"POST " + one + `/copies {"date":"2031-05-08","every":"month"}`}},
		{problem("until", "The last date of the copies must not be before the first one."), "", []string{"POST " + one + `/copies {"date":"2031-05-08","until":"2031-05-07"}`}},
		{problem("name", notText), "", []string{"PUT " + one + " " + strings.Replace(party, "Party", `\u0000`, 1)}},
	} {
		for _, request := range test.requests {
			method, rest, _ := strings.Cut(request, " ")
			path, body, _ := strings.Cut(rest, " ")
			want, header := test.want, []string(nil)
			if name, value, ok := strings.Cut(test.header, ": "); ok {
				header = []string{name, value}
			}
			if method == "HEAD" {
				want = want.WithoutBody()
			}
			got := s.Ask("Editor", method, desk+path, body, header...)
			delete(got.Header, "Connection") // of who sends too much
			if want.Status == 405 {
				delete(got.Header, "Allow")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%.120s %.80s: response (-want +got):\n%s", request, test.header, diff)
			}
		}
	}
	var now made
	if err := json.Unmarshal([]byte(s.Ask("Editor", "GET", desk+one, "").Body), &now); err != nil || now != draft {
		t.Errorf("after all that: %+v, %v, want %+v", now, err, draft)
	}
	if got := s.Ask("Editor", "DELETE", "/ghost/lychgate/desk/event-labels", ""); got.Status != 405 {
		t.Errorf("deleting labels: %v, want 405", got)
	}
}

// A program makes a series, and publishes what is ready of it.
func TestSeriesOfEvents(t *testing.T) {
	h := desktest.New(t)
	s := exchange.Serve(t, serveStaff(h))
	ask := func(method, path, body string, status int) (got struct {
		ID                 string
		Events             []made
		Skipped, Published []string
		Unready            []struct {
			ID       string
			Problems []struct{ Field string }
		}
		Left int
	},
	) {
		t.Helper()
		response := s.Ask("Editor", method, desk+path, body)
		if err := json.Unmarshal([]byte(response.Body), &got); err != nil || response.Status != status {
			t.Fatalf("%s %s: %v, %v, want status %d", method, path, response, err, status)
		}
		return got
	}
	const body = `{"theme":"nightly","type":"webinar","values":{"name":"Choir","event_date":"2031-10-31","speaker":"Ada"}}`
	of := ask("POST", "", body, 201)
	copies := ask("POST", "/"+of.ID+"/copies", `{"date":"2031-11-01","every":"month","until":"2032-04-30"}`, 201)
	if diff := cmp.Diff([]string{"2031-11", "2031-12", "2032-02", "2032-03"}, copies.Skipped); diff != "" || len(copies.Events) != 2 {
		t.Fatalf("got %+v, want 2 copies, and the months without a fifth Friday (-want +got): %s", copies, diff)
	}
	first, second := copies.Events[0].ID, copies.Events[1].ID
	ask("PUT", "/"+second, party, 200)
	if done := ask("POST", "/"+first+"/publish-series", fmt.Sprintf(`{"drafts":[{"id":%q,"revision":1}]}`, first), 200); len(done.Unready) != 2 || done.Unready[0].ID != first || done.Unready[0].Problems[0].Field != "revision" || done.Left != 1 {
		t.Errorf("with another revision of one: %+v, want it refused, and the other that is ready left", done)
	}
	done := ask("POST", "/"+first+"/publish-series", "", 202)
	if diff := cmp.Diff([]string{of.ID, first}, done.Published); diff != "" || len(done.Unready) != 1 || done.Unready[0].ID != second || len(done.Unready[0].Problems) != 2 {
		t.Errorf("got %+v, want the last one with 2 problems, and the others published (-want +got): %s", done, diff)
	}
	if done := ask("POST", "/"+first+"/publish-series", "", 200); len(done.Published) != 0 || len(done.Unready) != 1 || done.Left != 0 {
		t.Errorf("again: %+v, want nothing published", done)
	}
	if list := ask("GET", "?series="+of.ID, "", 200); len(list.Events) != 3 {
		t.Errorf("the list of the series: %+v, want 3 events", list.Events)
	}
	h.Ghost.Break(desktest.ErrGone)
	if done := ask("POST", "/"+first+"/publish-series", "", 200); len(done.Unready) != 0 {
		t.Errorf("while Ghost does not say whose the session is: %+v, want nothing of any draft", done)
	}
}

// Staff, and anyone with their session, fill no disk with events: they are told when to go on.
func TestTooManyEvents(t *testing.T) {
	h := desktest.New(t)
	s := exchange.Serve(t, serveStaff(h))
	const most = 120 // docs/security.md#strangers
	first := draft(t, s)
	for range most - 1 {
		s.Ask("Editor", "POST", desk, party)
	}
	// They may have taken more than a minute.
	dbtest.Exec(t, h.DB, "UPDATE events SET created_at = $1", time.Now().UnixMilli())
	want := exchange.Staff(429, `{"message":"This site made 120 events in the last minute. Wait a minute, and try again."}`, "Retry-After", "60")
	for _, path := range []string{"", "/" + first.ID + "/duplicate"} {
		if diff := cmp.Diff(want, s.Ask("Editor", "POST", desk+path, party)); diff != "" {
			t.Errorf("POST %s: response (-want +got):\n%s", path, diff)
		}
	}
	for _, path := range []string{desk, desk + "/" + first.ID, "/ghost/lychgate/desk/event-labels"} {
		if got := s.Ask("Editor", "HEAD", path, ""); got.Status != 200 || got.Body != "" {
			t.Errorf("HEAD %s: %v, want 200 without a body", path, got)
		}
	}
	if got := s.Ask("Editor", "PUT", desk+"/"+first.ID, ball); got.Status != 200 {
		t.Errorf("saving one meanwhile: %v, want 200", got)
	}
}
