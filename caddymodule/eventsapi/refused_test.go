package eventsapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// eachOfEvents sends each request that staff may send about an event, and holds it to one
// answer.
func eachOfEvents(h *edgetest.Homepage, name, id string, want edgetest.Response, header ...string) {
	h.T.Helper()
	list, one := "/ghost/lychgate/desk/events", "/ghost/lychgate/desk/events/"+id
	body := h.EventBody(map[string]any{"name": "Nobody's " + h.Unique})
	for _, endpoint := range []struct{ method, path, body string }{
		{"GET", list, ""},
		{"HEAD", list, ""},
		{"POST", list, body},
		{"GET", one, ""},
		{"HEAD", one, ""},
		{"PUT", one, body},
		{"DELETE", one, ""},
		{"POST", one + "/write", ""},
		{"POST", one + "/publish", ""},
		{"POST", one + "/unpublish", ""},
		{"POST", one + "/cancel", ""},
		{"POST", one + "/duplicate", ""},
		{"POST", one + "/copies", `{"date":"2031-05-08"}`},
		{"GET", one + "/history", ""},
		{"HEAD", one + "/history", ""},
		{"POST", one + "/presence", ""},
		{"GET", one + "/registrations", ""},
		{"HEAD", one + "/registrations", ""},
		{"POST", one + "/registrations", `{"email":"jane@example.com"}`},
		{"GET", one + "/registrations.csv", ""},
		{"HEAD", one + "/registrations.csv", ""},
		{"DELETE", one + "/registrations/nobody", ""},
		{"PUT", one + "/registrations/nobody/check-in", ""},
		{"DELETE", one + "/registrations/nobody/check-in", ""},
		{"GET", "/ghost/lychgate/desk/event-labels", ""},
		{"HEAD", "/ghost/lychgate/desk/event-labels", ""},
	} {
		want := want
		if endpoint.method == "HEAD" {
			want.Body = ""
		}
		if want.Status == 500 && strings.HasSuffix(endpoint.path, "labels") { // which the store does not have
			continue
		}
		got, err := h.SendBody(endpoint.method, endpoint.path, endpoint.body, append(header, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json")...)
		if want.Status == http.StatusTooManyRequests && got.Header["Retry-After"] != "" { // which goes down meanwhile
			want.Header, want.Body = got.Header, got.Body
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			h.T.Errorf("%s, %s, %s: response: error %v, want none (-want +got):\n%s", name, endpoint.method, endpoint.path, err, diff)
		}
	}
}

// refusal is a request about events that cannot be done, and the response.
type refusal struct {
	name, method, path, body string
	header                   []string
	status                   int
	want                     string
}

// refusals are about a draft of which k1 is the key.
func refusals(h *edgetest.Homepage, draft edgetest.Event) []refusal {
	large, noID := strings.Repeat("x", 300<<10), "/"+strings.Repeat("a", 26)
	noEvent := `{"message":"There is no such event. Somebody may have deleted it."}`
	noTag := `{"message":"The header If-Match must have the ETag of the event, such as \"12\"."}`
	changed := `{"message":"The event was changed since it was read. Read it again."}`
	noBody := `{"message":"Send JSON such as {\"theme\": \"solo\", \"type\": \"webinar\", \"values\": {\"name\": \"An evening\"}}."}`
	notJSON := `{"message":"Send the header Content-Type: application/json."}`
	notPublished := `{"message":"The event is not published."}`
	noControl := `{"message":"The value must be text without control characters other than tabs and line breaks, a number, true or false, or a list of texts.",` +
		`"problems":[{"field":"name","message":"The value must be text without control characters other than tabs and line breaks, a number, true or false, or a list of texts."}]}`
	noRegistrant := `{"message":"This member has not registered for the event."}`
	noTime := `{"message":"The at is a time such as 2031-05-01T17:00:00Z."}`
	body := h.EventBody(map[string]any{"name": "Party"})
	as := func(header ...string) []string { return header }
	return []refusal{
		{"no such view", "GET", "?view=old", "", nil, 422, `{"message":"The view is upcoming, past or drafts."}`},
		{"no such view, without the body", "HEAD", "?view=old", "", nil, 422, ""},
		{"another method", "PATCH", "", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"another method of an event", "POST", "/" + draft.ID, body, nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading what is written", "GET", "/" + draft.ID + "/write", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading what publishes", "GET", "/" + draft.ID + "/publish", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading what unpublishes", "GET", "/" + draft.ID + "/unpublish", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading what cancels", "GET", "/" + draft.ID + "/cancel", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading what copies", "GET", "/" + draft.ID + "/duplicate", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading copies", "GET", "/" + draft.ID + "/copies", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"copies of none", "POST", noID + "/copies", `{"date":"2031-05-08"}`, nil, 404, noEvent},
		{"copies without JSON", "POST", "/" + draft.ID + "/copies", "date=2031-05-08", as("Content-Type", "text/plain"), 415, notJSON},
		{"too large for copies", "POST", "/" + draft.ID + "/copies", large, nil, 413, `{"message":"The request's body is too large."}`},
		{"copies on no date", "POST", "/" + draft.ID + "/copies", `{"date":"2031-05-08","until":"2031-05-07"}`, nil, 422, `{"message":"The last date of the copies must not be before the first one.",` +
			`"problems":[{"field":"until","message":"The last date of the copies must not be before the first one."}]}`},
		{"changing the history", "POST", "/" + draft.ID + "/history", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"the history of none", "GET", noID + "/history", "", nil, 404, noEvent},
		{"the history of none, without the body", "HEAD", noID + "/history", "", nil, 404, ""},
		{"reading who is there", "GET", "/" + draft.ID + "/presence", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"registrations of none", "GET", noID + "/registrations", "", nil, 404, noEvent},
		{"changing registrations", "PUT", "/" + draft.ID + "/registrations", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"changing the CSV", "POST", "/" + draft.ID + "/registrations.csv", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading one registration", "GET", "/" + draft.ID + "/registrations/nobody", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"reading a check-in", "GET", "/" + draft.ID + "/registrations/nobody/check-in", "", nil, 405, `{"message":"The method is not allowed here."}`},
		{"a limit of none", "GET", "/" + draft.ID + "/registrations?limit=0", "", nil, 422, `{"message":"The limit is a number from 1 to 1000."}`},
		{"a limit of none, without the body", "HEAD", "/" + draft.ID + "/registrations?limit=0", "", nil, 422, ""},
		{"registrations of none, without the body", "HEAD", noID + "/registrations", "", nil, 404, ""},
		{"the CSV of none", "GET", noID + "/registrations.csv", "", nil, 404, noEvent},
		{"the CSV of none, without it", "HEAD", noID + "/registrations.csv", "", nil, 404, ""},
		{"registering for none", "POST", noID + "/registrations", `{"email":"jane@example.com"}`, nil, 404, noEvent},
		{"registering for a draft", "POST", "/" + draft.ID + "/registrations", `{"email":"jane@example.com"}`, nil, 409, `{"message":"The event takes no registrations. Choose its Access, and publish it."}`},
		{"registering no address", "POST", "/" + draft.ID + "/registrations", `{"email":"jane"}`, nil, 422, `{"message":"The email is not a valid address of 191 characters at most."}`},
		{"registering without JSON", "POST", "/" + draft.ID + "/registrations", "email=jane", as("Content-Type", "text/plain"), 415, notJSON},
		{"registering too much", "POST", "/" + draft.ID + "/registrations", large, nil, 413, `{"message":"The request's body is too large."}`},
		{"removing nobody", "DELETE", "/" + draft.ID + "/registrations/nobody", "", nil, 404, noRegistrant},
		{"checking nobody in", "PUT", "/" + draft.ID + "/registrations/nobody/check-in", "", nil, 404, noRegistrant},
		{"checking in at no time", "PUT", "/" + draft.ID + "/registrations/nobody/check-in?at=noon", "", nil, 422, noTime},
		{"taking back nobody's check-in", "DELETE", "/" + draft.ID + "/registrations/nobody/check-in", "", nil, 404, noRegistrant},
		{"taking back at no time", "DELETE", "/" + draft.ID + "/registrations/nobody/check-in?at=noon", "", nil, 422, noTime},
		{"attending none", "POST", noID + "/presence", "", nil, 404, noEvent},
		{"no such action", "GET", "/" + draft.ID + "/send/it", "", nil, 404, `{"message":"There is no such endpoint."}`},
		{"no such event", "GET", noID, "", nil, 404, noEvent},
		{"no such event, without the body", "HEAD", noID, "", nil, 404, ""},
		{"no event's ID", "GET", "/%2e%2e", "", nil, 404, noEvent},
		{"saving none", "PUT", noID, body, nil, 404, noEvent},
		{"deleting none", "DELETE", noID, "", nil, 404, noEvent},
		{"writing none", "POST", noID + "/write", "", nil, 404, noEvent},
		{"writing an old one", "POST", "/" + draft.ID + "/write", "", as("If-Match", `"1"`), 412, changed},
		{"publishing none", "POST", noID + "/publish", "", nil, 404, noEvent},
		{"copying none", "POST", noID + "/duplicate", "", nil, 404, noEvent},
		{"unpublishing a draft", "POST", "/" + draft.ID + "/unpublish", "", nil, 409, notPublished},
		{"cancelling a draft", "POST", "/" + draft.ID + "/cancel", "", nil, 409, notPublished},
		{"saving an old one", "PUT", "/" + draft.ID, body, as("If-Match", `"1"`), 412, changed},
		{"deleting an old one", "DELETE", "/" + draft.ID, "", as("If-Match", `"1"`), 412, changed},
		{"publishing an old one", "POST", "/" + draft.ID + "/publish", "", as("If-Match", `"1"`), 412, changed},
		{"unpublishing an old one", "POST", "/" + draft.ID + "/unpublish", "", as("If-Match", `"1"`), 412, changed},
		{"cancelling an old one", "POST", "/" + draft.ID + "/cancel", "", as("If-Match", `"1"`), 412, changed},
		{"no tag", "DELETE", "/" + draft.ID, "", as("If-Match", `"x"`), 422, noTag},
		{"no tag to unpublish", "POST", "/" + draft.ID + "/unpublish", "", as("If-Match", `"x"`), 422, noTag},
		{"no tag to cancel", "POST", "/" + draft.ID + "/cancel", "", as("If-Match", `"x"`), 422, noTag},
		{"no JSON", "POST", "", "name=Party", nil, 422, noBody},
		{"no JSON to save", "PUT", "/" + draft.ID, "", nil, 422, noBody},
		{"no JSON by its name", "PUT", "/" + draft.ID, body, as("Content-Type", "text/plain"), 415, notJSON},
		{"no JSON by its name to create", "POST", "", body, as("Content-Type", "application/json-seq"), 415, notJSON},
		{"too large", "POST", "", large, nil, 413, `{"message":"The request's body is too large."}`},
		{"too large to save", "PUT", "/" + draft.ID, large, nil, 413, `{"message":"The request's body is too large."}`},
		{"another event by the same key", "POST", "", body, as("Idempotency-Key", "k1"), 409, fmt.Sprintf(`{"message":"The Idempotency-Key was used for another event.","id":%q,"revision":%d}`, draft.ID, draft.Revision)},
		{"a long key", "POST", "", body, as("Idempotency-Key", strings.Repeat("k", 256)), 422, `{"message":"The Idempotency-Key has more than 255 characters."}`},
		{"a long key to copy", "POST", "/" + draft.ID + "/duplicate", "", as("Idempotency-Key", strings.Repeat("k", 256)), 422, `{"message":"The Idempotency-Key has more than 255 characters."}`},
		{"no such type", "POST", "", `{"theme":"` + h.Theme + `","type":"ball"}`, nil, 422, `{"message":"The theme has no event type \"ball\". It has \"webinar\"."}`},
		{"no such theme", "POST", "", `{"theme":"none","type":"webinar"}`, nil, 422, `{"message":"There is no theme \"none\" with event types on this site."}`},
		{"no theme", "POST", "", `{"type":"webinar"}`, nil, 422, `{"message":"There is no theme \"\" with event types on this site."}`},
		{"a control character", "PUT", "/" + draft.ID, `{"theme":"` + h.Theme + `","type":"webinar","values":{"name":"\u0000"}}`, nil, 422, noControl},
		{"another site's page", "POST", "/" + draft.ID + "/publish", "", as("Sec-Fetch-Site", "cross-site"), 403, `{"message":"The request must come from a page of this site: its Origin header must name this site."}`},
	}
}

// Nobody but editors gets to the events, and what cannot be done says why and changes
// nothing.
func TestEventsRefused(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), ghost, key, "6000 1m"))
	h := edgetest.NewEvents(t, e, key)
	party := h.EventBody(map[string]any{"name": "Party " + h.Unique})
	draft, _ := h.Events(201, "POST", "", party, "Idempotency-Key", "k1")
	if again, _ := h.Events(201, "POST", "", party, "Idempotency-Key", "k1"); again.ID != draft.ID || again.Revision != draft.Revision {
		t.Errorf("asked again: %+v", again)
	}

	author := "author" + edgetest.GUIDLike() + "@example.com"
	e.AddStaff(h.Owner, author, "Author")
	eachOfEvents(h, "an author", draft.ID, exchange.Staff(403, `{"message":"Owners, administrators and editors may do this."}`), "Cookie", e.SignIn(author), "Origin", e.Base)
	eachOfEvents(h, "nobody", draft.ID, exchange.Staff(401, `{"message":"Sign in to Ghost's admin on this site first."}`))
	for _, host := range []string{"elsewhere.example.com", "bare.example.com"} {
		eachOfEvents(h, host, draft.ID, exchange.Staff(404, `{"message":"There is no site with a Ghost at this address."}`), "Host", host)
	}
	for _, test := range refusals(h, draft) {
		header := append([]string{"Cookie", h.Owner, "Origin", h.Base}, test.header...)
		if !slices.Contains(test.header, "Content-Type") {
			header = append(header, "Content-Type", "application/json")
		}
		got, err := h.SendBody(test.method, "/ghost/lychgate/desk/events"+test.path, test.body, header...)
		want := test.want
		if want != "" {
			want += "\n"
		}
		if got.Status != test.status || got.Body != want || err != nil {
			t.Errorf("%s: got %v, %v, want status %v, body %v, no error", test.name, got, err, test.status, want)
		}
	}
	for _, path := range []string{"/ghost/lychgate/desk/event-labels", "/ghost/lychgate/events", "/ghost/lychgate/events.ics", "/ghost/lychgate/events/x"} {
		if got, err := h.SendBody("DELETE", path, "", "Cookie", h.Owner, "Origin", h.Base); got.Status != 405 || err != nil {
			t.Errorf("DELETE %s: %v, %v", path, got, err)
		}
	}
	if got, _ := h.Events(200, "GET", "/"+draft.ID, ""); got.Revision != draft.Revision {
		t.Errorf("what was refused changed the event: %+v", got)
	}

	forged := []string{"Cookie", strings.Replace(h.Owner, "s%3A", "s%3Ax", 1), "X-Forwarded-For", "192.0.2.1"}
	for range 30 {
		e.Do("GET", "/ghost/lychgate/curation", forged...)
	}
	eachOfEvents(h, "too many", draft.ID, edgetest.Response{Status: 429}, forged...)
	if list := h.Do("GET", "/ghost/lychgate/desk/event-labels", "Cookie", h.Owner); list.Status != 200 || !strings.HasPrefix(list.Body, `{"labels":[`) {
		t.Errorf("got %v, want status 200, body beginning with %s", list, `{"labels":[`)
	}
	if list := h.Do("HEAD", "/ghost/lychgate/desk/event-labels", "Cookie", h.Owner); list.Status != 200 {
		t.Errorf("got %v, want status 200", list)
	}
	if list := h.Do("HEAD", "/ghost/lychgate/desk/events", "Cookie", h.Owner, "Accept", "application/json"); list.Status != 200 {
		t.Errorf("got %v, want status 200", list)
	}
	if one := h.Do("HEAD", "/ghost/lychgate/desk/events/"+draft.ID, "Cookie", h.Owner); one.Status != 200 {
		t.Errorf("got %v, want status 200", one)
	}
}

// Readers get what is published, in half a minute, and are told what is wrong with what they
// ask.
func TestReadersEvents(t *testing.T) {
	ghost, key := ghosttest.Real(t)
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	w := tcpproxy.Start(t, source.Host)
	source.Host = w.Address
	e := edgetest.StartEdge(t, nil, edgetest.EventsConfig("postgres "+source.String(), ghost, key, "120 1m"))
	h := edgetest.NewEvents(t, e, key)
	draft, _ := h.Events(201, "POST", "", h.EventBody(map[string]any{"name": "Party " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada"}))
	published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "")
	one := "/" + published.Values["slug"].(string)
	ask := func(method, path string, header ...string) edgetest.Response {
		t.Helper()
		return h.Do(method, "/ghost/lychgate/events"+path, header...)
	}
	byID := "/" + draft.ID
	all := []string{"", ".ics", one, one + ".ics", byID, byID + ".ics"}
	own := `attachment; filename="Party ` + h.Unique + `.ics"`
	saved := map[string]string{".ics": `attachment; filename="events.ics"`, one + ".ics": own, byID + ".ics": own}
	for _, path := range all {
		for _, method := range []string{"GET", "HEAD"} {
			got := ask(method, path)
			if got.Status != 200 || got.Header["Cache-Control"] != "public, max-age=30" || (method == "GET") != (got.Body != "") {
				t.Errorf(`%s %s: got %v, want status 200, Cache-Control "public, max-age=30", a body for GET alone`, method, path, got)
			}
			if want := saved[path]; got.Header["Content-Disposition"] != want {
				t.Errorf("%s %s is saved as %s, want %s", method, path, got.Header["Content-Disposition"], want)
			}
			if again := ask(method, path, "If-None-Match", `"x", W/`+got.Header["Etag"]); again.Status != 304 || again.Body != "" {
				t.Errorf("%s %s again: %v", method, path, again)
			}
			if got := ask(method, path, "Host", "elsewhere.example.com"); got.Status != 404 {
				t.Errorf("%s %s of another site: %v", method, path, got)
			}
		}
		if got := ask("OPTIONS", path); got.Status != 204 || got.Header["Access-Control-Allow-Origin"] != "*" {
			t.Errorf("OPTIONS %s: %v", path, got)
		}
		if got := ask("OPTIONS", path, "Host", "elsewhere.example.com"); got.Status != 404 {
			t.Errorf("OPTIONS %s of another site: %v", path, got)
		}
		if got := ask("POST", path); got.Status != 405 {
			t.Errorf("POST %s: %v", path, got)
		}
	}
	for query, want := range map[string]int{
		"?type=webinar": 1, "?type=ball": 0, "?past": 0, "?from=1": 0, "?limit=1": 1, "?from=0&limit=1000&type=webinar": 1,
	} {
		var list struct {
			Events []struct{ Slug string }
			Total  int
			Next   *int
		}
		h.Decode(ask("GET", query).Body, &list)
		if len(list.Events) != want || list.Next != nil {
			t.Errorf("%s: got %+v, want %v events, no next", query, list, want)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?from=-1", "?from=1000001", "?type=" + strings.Repeat("x", 201), "?%zz"} {
		for _, path := range []string{query, ".ics" + query} {
			if got := ask("GET", path); got.Status != 422 || !strings.Contains(got.Body, `"errors":{"`) {
				t.Errorf("%s: got %v, want status 422, body with %s", path, got, `"errors":{"`)
			}
			if got := ask("HEAD", path); got.Status != 422 {
				t.Errorf("HEAD %s: %v", path, got)
			}
		}
	}
	for _, path := range []string{"/none", "/none.ics", "/a/b", "/%00", "/" + strings.Repeat("x", 1000)} {
		if got := ask("GET", path); got.Status != 404 || got.Body != `{"message":"There is no event at this address."}` {
			t.Errorf("%.20s: got %v, want status 404, body %s", path, got, `{"message":"There is no event at this address."}`)
		}
	}

	// While the store is away, readers get what was there; staff are told.
	before := ask("GET", "")
	w.Cut()
	eachOfEvents(h, "the store is away", draft.ID, exchange.Staff(500, `{"message":"Internal error."}`), "Cookie", h.Owner, "Origin", h.Base)
	if diff := cmp.Diff(before, ask("GET", "")); diff != "" {
		t.Errorf("ask (-want +got):\n%s", diff)
	}
	// For a second an edge takes what it has read for what there is, and makes other lists of it.
	asked := 0
	wait.Until(t, func() string {
		asked++
		got := ask("GET", fmt.Sprint("?from=", asked), "X-Forwarded-For", fmt.Sprintf("198.51.%d.1", asked%200))
		if got.Status != 503 {
			return fmt.Sprintf("another list is answered with %d", got.Status)
		}
		return ""
	})
	for _, path := range []string{"?limit=7", ".ics?limit=7", "/unknown"} {
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(method, path); got.Status != 503 || got.Header["Retry-After"] != "5" {
				t.Errorf(`%s %s: got %v, want status 503, Retry-After "5"`, method, path, got)
			}
		}
	}
	w.Fix()
	wait.Until(t, func() string {
		if got := ask("GET", "?limit=7"); got.Status != 200 && got.Status != 429 {
			return fmt.Sprint(got)
		}
		return ""
	})
	const another = "203.0.113.1" // whose minute begins here
	for range 120 {
		ask("HEAD", "", "X-Forwarded-For", another)
	}
	for _, path := range all {
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(method, path, "X-Forwarded-For", another); got.Status != 429 || got.Header["Retry-After"] == "" {
				t.Errorf("%s %s: got %v, want status 429, a Retry-After", method, path, got)
			}
		}
	}
}

// While Ghost does not take an event, it is kept, and sent to Ghost as soon as it does:
// once.
func TestEventsWhileGhostFails(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "events")
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "6000 1m")), p.Key)
	writes := func(f edgetest.Fault) edgetest.Fault {
		return func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet && strings.HasPrefix(r.URL.Path, "/ghost/api/admin/posts/") {
				f(p, w, r)
				return
			}
			p.Ghost.ServeHTTP(w, r)
		}
	}
	settled := func(id string) (e edgetest.Event) {
		t.Helper()
		wait.Until(t, func() string {
			if e, _ = h.Events(200, "GET", "/"+id, ""); e.Pending != nil {
				return "pending: " + e.Pending.Problem
			}
			return ""
		})
		return e
	}
	posts := 0
	for name, fault := range map[string]edgetest.Fault{
		"an internal error":                writes(edgetest.Responding(500, `{}`)),
		"done, and the responses are lost": writes(edgetest.ApplyAndClose),
	} {
		body := h.EventBody(map[string]any{"name": "Party " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada"})
		text, _ := h.Events(201, "POST", "", body)
		p.Begin(fault)
		if got, response := h.Events(202, "POST", "/"+text.ID+"/write", ""); got.Pending == nil {
			t.Errorf("%s: write: %v", name, response)
		}
		h.Events(202, "PUT", "/"+text.ID, strings.Replace(body, "Ada", "Bea", 1))
		p.Fix()
		posts++
		if got := settled(text.ID); got.Status != "draft" || got.Post == nil || got.Post.Status != "draft" || got.Values["speaker"] != "Bea" {
			t.Errorf("%s: %+v, want a draft with a post", name, got)
		}
		draft, _ := h.Events(201, "POST", "", body)
		p.Begin(fault)
		for _, action := range []string{"publish", "cancel", "publish"} {
			if got, response := h.Events(202, "POST", "/"+draft.ID+"/"+action, ""); got.Pending == nil {
				t.Errorf("%s: events = %s: %v, want a pending", name, action, response)
			}
		}
		p.Fix()
		posts++
		if got := settled(draft.ID); got.Status != "published" || got.Post == nil || got.Post.Status != "published" {
			t.Errorf(`%s: settled = %+v, want status "published", a published post`, name, got)
		}
		if made := h.IDs("posts", "title:~'"+h.Unique+"'"); len(made) != posts {
			t.Errorf("%s: posts %v, want %d", name, made, posts)
		}
		p.Begin(fault)
		h.Events(202, "PUT", "/"+draft.ID, strings.Replace(body, "Ada", "Bea", 1))
		h.Events(202, "POST", "/"+draft.ID+"/unpublish", "")
		p.Fix()
		if got := settled(draft.ID); got.Status != "draft" || got.Post == nil || got.Post.Status != "draft" || got.Values["speaker"] != "Bea" {
			t.Errorf(`%s: settled = %+v, want status "draft", a post that is a draft, speaker "Bea"`, name, got)
		}
	}
	fresh := h.SignIn(edgetest.GhostOwner)
	p.Down()
	eachOfEvents(h, "Ghost is away", strings.Repeat("a", 26), exchange.Staff(502, `{"message":"Ghost could not be asked who you are. Try again."}`), "Cookie", fresh, "Origin", h.Base)
	p.Fix()
}

// An edge without the desk answers readers too.
func TestEventsWithoutTheDesk(t *testing.T) {
	e := edgetest.StartEdge(t, nil, `
{
	{{global}}
	lychgate {
		store `+edgetest.SQLiteStore(t)+`
		site daily {
			hosts localhost 127.0.0.1
			platform `+edgetest.GhostPlatform("http://127.0.0.1:9", "0123456789abcdef01234567:"+strings.Repeat("0f", 32), "off")+`
		}
		site bare {
			hosts bare.example.com
			platform none
		}
	}
}
http://:{{port}} {
	events_api
}
`)
	if got := e.Do("GET", "/ghost/lychgate/events"); got.Status != 200 || got.Body != `{"events":[],"total":0,"next":null,"messages":{}}` {
		t.Errorf("got %v, want status 200, body %s", got, `{"events":[],"total":0,"next":null,"messages":{}}`)
	}
	for _, host := range []string{"bare.example.com", "nobody.example.com"} {
		if got := e.Do("GET", "/ghost/lychgate/events", "Host", host); got.Status != 404 {
			t.Errorf("%s: got %v, want status 404", host, got)
		}
	}
}

// Staff, and anyone with their session, fill no disk with events: they are told when to go on.
func TestTooManyEvents(t *testing.T) {
	url, key := ghosttest.Real(t)
	source := edgetest.SQLiteStore(t)
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(source, url, key, "6000 1m")), key)
	const most = 120 // docs/guarantees.md#strangers
	body := h.EventBody(map[string]any{"name": "Party " + h.Unique})
	first, _ := h.Events(201, "POST", "", body)
	for range most - 1 {
		h.Events(201, "POST", "", body)
	}
	db, err := database.Open(t.Context(), database.SQLite, strings.TrimPrefix(source, "sqlite "))
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	// They may have taken more than a minute.
	if _, err := db.Write.ExecContext(t.Context(), "UPDATE events SET created_at = $1", time.Now().UnixMilli()); err != nil {
		t.Fatalf("db.Write.ExecContext: %v", err)
	}
	for _, path := range []string{"", "/" + first.ID + "/duplicate"} {
		_, got := h.Events(429, "POST", path, body)
		if want := `{"message":"This site made 120 events in the last minute. Wait a minute, and try again."}` + "\n"; got.Body != want || got.Header["Retry-After"] != "60" {
			t.Errorf("POST %s: %v, want %s", path, got, want)
		}
	}
	h.Events(200, "PUT", "/"+first.ID, body)
}
