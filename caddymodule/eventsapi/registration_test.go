package eventsapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// signInReader makes a member in Ghost, who has what others pay for if isPaid, and returns the
// cookies with which the member's browser comes.
func signInReader(h *edgetest.Homepage, email string, isPaid bool) string {
	h.T.Helper()
	member := map[string]any{"email": email}
	if isPaid { // without paying: complimentary
		var found struct{ Tiers []struct{ ID string } }
		h.Decode(h.Ghost("GET", "/tiers/?filter=type:paid", ""), &found)
		member["tiers"] = []any{map[string]string{"id": found.Tiers[0].ID}}
	}
	body, err := json.Marshal(map[string]any{"members": []any{member}})
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	var made struct{ Members []struct{ ID string } }
	h.Decode(h.Ghost("POST", "/members/", string(body)), &made)
	h.T.Cleanup(func() {
		for _, id := range h.IDs("members", "email:'"+email+"'") {
			h.Ghost("DELETE", "/members/"+id+"/", "")
		}
	})
	var link struct {
		URLs []struct{ URL string } `json:"member_signin_urls"`
	}
	h.Decode(h.Ghost("GET", "/members/"+made.Members[0].ID+"/signin_urls/", ""), &link)
	_, path, _ := strings.Cut(strings.TrimPrefix(link.URLs[0].URL, "http://"), "/")
	cookies := h.Do("GET", "/"+path).Header["Set-Cookie"]
	var pairs []string
	for part := range strings.SplitSeq(cookies, "; ") {
		if strings.HasPrefix(part, "ghost-members-ssr") {
			pairs = append(pairs, part)
		}
	}
	if len(pairs) != 2 {
		h.T.Fatalf("the cookies are %q, want a session and its signature", cookies)
	}
	return strings.Join(pairs, "; ")
}

// readers are Jane, who pays nothing, and John, who has a gift, at a site with events.
type readers struct {
	*edgetest.Homepage
	p                      *edgetest.GhostProxy
	ids                    map[string]string // of the events, by the path of their registration
	free, paid, none, over string            // those paths; free has one place
	jane, john             string            // their cookies
}

func newReaders(t *testing.T) *readers {
	t.Helper()
	p := edgetest.StartGhostProxy(t, "registration")
	e := edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "120 1m"))
	r := &readers{Homepage: edgetest.NewEvents(t, e, p.Key), p: p, ids: make(map[string]string)}
	r.free = r.publish("Free", map[string]any{"access": "free", "max_attendees": 1, "platform_url": "https://meet.example.com/room"})
	r.paid = r.publish("Paid", map[string]any{"access": "paid"})
	r.none = r.publish("None", nil)
	r.over = r.publish("Over", map[string]any{"access": "free", "event_date": "2020-05-01"})
	r.jane, r.john = signInReader(r.Homepage, "jane@"+p.Domain, false), signInReader(r.Homepage, "john@"+p.Domain, true)
	return r
}

// publish publishes an event, and returns the path of its registration.
func (r *readers) publish(name string, values map[string]any) string {
	r.T.Helper()
	all := map[string]any{"name": name + " " + r.Unique, "event_date": "2031-05-01", "speaker": "Ada"}
	maps.Copy(all, values)
	draft, _ := r.Events(201, "POST", "", r.EventBody(all))
	published, _ := r.Events(200, "POST", "/"+draft.ID+"/publish", "")
	path := "/ghost/lychgate/events/" + published.Values["slug"].(string) + "/registration"
	r.ids[path] = draft.ID
	return path
}

// told is what a reader is told, with how the event stands for them.
type told struct {
	edgetest.Response
	State string
}

func (r *readers) ask(method, path, cookie string, header ...string) told {
	r.T.Helper()
	got := told{Response: r.Do(method, path, append([]string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Origin", r.Base}, header...)...)}
	if method != "HEAD" && got.Status != http.StatusNoContent && !strings.HasPrefix(got.Header["Content-Type"], "text/calendar") {
		r.Decode(got.Body, &struct{ State *string }{&got.State})
	}
	return got
}

func (r *readers) expect(status int, what string, got edgetest.Response) {
	r.T.Helper()
	if got.Status != status {
		r.T.Errorf("%s: %v, want %d", what, got, status)
	}
}

// registrationMethods are those of an event's registration, and of a registrant's calendar file, by what the
// path ends with.
var registrationMethods = map[string][]string{"": {"GET", "HEAD", "PUT", "POST", "DELETE"}, ".ics": {"GET", "HEAD"}}

// Through Caddy and with a real Ghost, a reader is told how an event stands for them and
// registers, a stranger has Ghost asked a bounded number of times, and who was known a moment
// ago is served while Ghost hangs.
func TestReadersRegisterWithGhost(t *testing.T) {
	r := newReaders(t)
	r.register()
	r.areRefusedFromElsewhere()
	r.areListedForStaff()
	r.haveLabels()
	r.arePrivate()
	r.areKnownWhileGhostHangs()
	r.askForMail()
	r.askTooMuch()
}

// register is about what each is told, in their language. In the end nobody is registered for the event that is free.
func (r *readers) register() {
	free, paid, none, over, jane, john := r.free, r.paid, r.none, r.over, r.jane, r.john
	for _, step := range []struct {
		name, method, path, cookie string
		status                     int
		state                      string
	}{
		{"a guest", "GET", free, "", 200, "login_required_free"},
		{"a guest, without the body", "HEAD", free, "", 200, ""},
		{"a guest who registers", "PUT", free, "", 401, "login_required_free"},
		{"a free member where members pay", "PUT", paid, jane, 403, "upgrade_required"},
		{"a free member", "GET", free, jane, 200, "can_register"},
		{"a free member's own calendar file", "GET", free + ".ics", jane, 403, ""},
		{"a guest's", "GET", free + ".ics", "", 401, ""},
		{"a guest's, without the body", "HEAD", free + ".ics", "", 401, ""},
		{"a free member who registers", "PUT", free, jane, 200, "registered"},
		{"the calendar file then", "GET", free + ".ics", jane, 200, ""},
		{"without the body", "HEAD", free + ".ics", jane, 200, ""},
		{"the calendar file, another method", "PUT", free + ".ics", jane, 405, ""},
		{"its methods", "OPTIONS", free + ".ics", "", 204, ""},
		{"again", "PUT", free, jane, 200, "registered"},
		{"by the event's ID", "PUT", "/ghost/lychgate/events/" + r.ids[free] + "/registration", jane, 200, "registered"},
		{"another, who is late", "PUT", free, john, 409, "registration_closed"},
		{"whose calendar file it is not", "GET", free + ".ics", john, 403, ""},
		{"without the body", "HEAD", free + ".ics", john, 403, ""},
		{"who has a gift", "PUT", paid, john, 200, "registered"},
		{"who cancels", "DELETE", free, jane, 200, "can_register"},
		{"a guest who cancels", "DELETE", free, "", 401, "login_required_free"},
		{"an event that is over", "PUT", over, jane, 409, "event_passed"},
		{"who cancels when it is over", "DELETE", over, jane, 409, "event_passed"},
		{"an event that takes none", "GET", none, jane, 404, ""},
		{"another method", "PATCH", free, jane, 405, ""},
		{"who is signed in asks for a mail", "POST", free, jane, 200, "can_register"},
		{"the methods", "OPTIONS", free, "", 204, ""},
	} {
		if got := r.ask(step.method, step.path, step.cookie); got.Status != step.status || got.State != step.state {
			r.T.Errorf("%s: %v, want %d %s", step.name, got, step.status, step.state)
		}
	}
	r.ask("PUT", free, jane)
	if got := r.Do("GET", free+".ics", "Cookie", jane, "Sec-Fetch-Site", "same-origin"); !strings.Contains(got.Body, "CONFERENCE;VALUE=URI:https://meet.example.com/room") ||
		got.Header["Cache-Control"] != "private, no-store" {
		r.T.Errorf("the calendar file of who is registered: %v, want the link, and that no cache keeps it", got)
	}
	if got := r.Do("GET", strings.TrimSuffix(free, "/registration")+".ics"); got.Status != 200 || strings.Contains(got.Body, "meet.example.com") {
		r.T.Errorf("the calendar file of everybody: %v, want it without the link", got)
	}
	r.ask("DELETE", free, jane)
	if got := r.ask("GET", r.free+"?lang=de", ""); !strings.Contains(got.Body, `"Melde dich mit deiner E-Mail-Adresse an.`) {
		r.T.Errorf("in German: %v, want the German message", got)
	}
	if got := r.ask("GET", r.free, "", "Accept-Language", "fr-CA,en;q=0.5"); !strings.Contains(got.Body, `"Inscrivez-vous avec votre adresse e-mail.`) {
		r.T.Errorf("in a browser in French: %v, want the French message", got)
	}
}

// areRefusedFromElsewhere is about pages of other sites, and about what is not at this one.
func (r *readers) areRefusedFromElsewhere() {
	for end, methods := range registrationMethods {
		for _, method := range methods {
			what := method + " of registration" + end
			r.expect(403, what+" by a page of another site", r.Do(method, r.free+end, "Sec-Fetch-Site", "cross-site", "Cookie", r.jane))
			r.expect(404, what+" of no event", r.ask(method, "/ghost/lychgate/events/none/registration"+end, r.jane).Response)
			r.expect(404, what+" at another site", r.Do(method, r.free+end, "Host", "elsewhere.example.com"))
		}
		r.expect(404, "the methods of registration"+end+" at another site", r.Do("OPTIONS", r.free+end, "Host", "elsewhere.example.com"))
	}
	r.expect(403, "a page of a subdomain", r.Do("PUT", r.free, "Sec-Fetch-Site", "same-site", "Cookie", r.jane))
}

// areListedForStaff says that staff see who has registered, and who has cancelled.
func (r *readers) areListedForStaff() {
	path := "/ghost/lychgate/desk/events/" + r.ids[r.free] + "/registrations"
	var list struct {
		Registrations []struct {
			Email       string
			CancelledAt *string `json:"cancelled_at"`
		}
		Registered, Cancelled int
		MaxAttendees          *int `json:"max_attendees"`
	}
	r.Decode(r.Do("GET", path+"?q=JANE", "Cookie", r.Owner, "Origin", r.Base).Body, &list)
	if len(list.Registrations) != 1 || list.Registrations[0].Email != "jane@"+r.p.Domain || list.Registrations[0].CancelledAt == nil ||
		list.Registered != 0 || list.Cancelled != 1 || list.MaxAttendees == nil || *list.MaxAttendees != 1 {
		r.T.Errorf("the registrations: %+v, want Jane's, which she has cancelled, and one place", list)
	}
	if got := r.Do("HEAD", path, "Cookie", r.Owner, "Origin", r.Base); got.Status != 200 || got.Body != "" {
		r.T.Errorf("without the body: %v, want 200 and no body", got)
	}
	changesRegistrations(r.Homepage, path, "added@"+r.p.Domain)
	r.expect(401, "a reader lists registrations", r.Do("GET", path, "Cookie", r.jane, "Sec-Fetch-Site", "same-origin"))
}

// haveLabels says that the labels of an event are in Ghost within seconds, beside those of staff, and gone after
// cancelling.
func (r *readers) haveLabels() {
	guest, party, ofStaff := "Guest "+r.Unique, "Party "+r.Unique, "Staff's "+r.Unique
	labelled := r.publish("Labels", map[string]any{"access": "free", "rsvp_labels": []any{guest, party}})
	r.T.Cleanup(func() {
		for _, id := range r.IDs("labels", "name:~'"+r.Unique+"'") {
			r.Ghost("DELETE", "/labels/"+id+"/", "")
		}
	})
	id := r.IDs("members", "email:'jane@"+r.p.Domain+"'")[0]
	r.Ghost("PUT", "/members/"+id+"/", `{"members":[{"labels":[{"name":"`+ofStaff+`"}]}]}`)
	r.ask("PUT", labelled, r.jane)
	r.untilLabelled("registered", guest, party, ofStaff)
	r.ask("DELETE", labelled, r.jane)
	r.untilLabelled("cancelled", ofStaff)

	// Staff edit the member at the same moments, and nothing of that is lost.
	for n := range 12 {
		method, want := "PUT", []string{guest, party, ofStaff}
		if n%2 == 1 {
			method, want = "DELETE", want[2:]
		}
		note := fmt.Sprint("round ", n)
		var staff sync.WaitGroup
		staff.Go(func() { r.Ghost("PUT", "/members/"+id+"/", `{"members":[{"note":"`+note+`"}]}`) })
		r.ask(method, labelled, r.jane, "X-Forwarded-For", "198.51.100.9")
		staff.Wait()
		r.untilLabelled(note, want...)
		var found struct {
			Members []struct{ Note, Email string }
		}
		r.Decode(r.Ghost("GET", "/members/"+id+"/", ""), &found)
		if m := found.Members[0]; m.Note != note || m.Email != "jane@"+r.p.Domain {
			r.T.Fatalf("the member is %+v, want the note %q as staff wrote it", m, note)
		}
	}
}

// untilLabelled waits until Ghost has just those labels of Jane.
func (r *readers) untilLabelled(what string, want ...string) {
	r.T.Helper()
	wait.Until(r.T, func() string {
		var found struct {
			Members []struct{ Labels []struct{ Name string } }
		}
		r.Decode(r.Ghost("GET", "/members/?filter="+url.QueryEscape("email:'jane@"+r.p.Domain+"'"), ""), &found)
		var names []string
		for _, label := range found.Members[0].Labels {
			names = append(names, label.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(want, names); diff != "" {
			return what + ", want -, got +: " + diff
		}
		return ""
	})
}

// areKnownWhileGhostHangs says that Ghost's word of a moment ago counts then. Whom it has not been asked about is to
// come again, and is no guest.
func (r *readers) areKnownWhileGhostHangs() {
	r.ask("GET", r.free, r.john) // who was asked about before, which may be long ago on a loaded machine
	r.p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/members/") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p.Ghost.ServeHTTP(w, request)
	})
	defer r.p.Fix()
	if got := r.ask("PUT", r.free, r.john); got.Status != 200 || got.State != "registered" {
		r.T.Errorf("known a moment ago: %v, want that it is registered", got)
	}
	for end, methods := range registrationMethods {
		for _, method := range methods {
			got := r.ask(method, r.free+end, "ghost-members-ssr=new; ghost-members-ssr.sig=new")
			r.expect(503, method+" of registration"+end+" of who is not known", got.Response)
			if end == "" && got.Header["Retry-After"] != "5" {
				r.T.Errorf("%s of who is not known: %v, want Retry-After 5", method, got)
			}
		}
	}
}

// askForMail is about guests, to whom Ghost sends a mail.
func (r *readers) askForMail() {
	free, over, open := r.free, r.over, r.publish("Open", map[string]any{"access": "free"})
	r.p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/send-magic-link/") { // there is no mail server
			w.WriteHeader(http.StatusCreated)
			return
		}
		p.Ghost.ServeHTTP(w, request)
	})
	defer r.p.Fix()
	const isJSON = "application/json"
	for _, step := range []struct {
		name, method, path, contentType, body string
		status                                int
		state                                 string // or the reason
	}{
		{"a guest", "POST", open, isJSON, `{"email":"guest@example.com"}`, 202, "login_required_free"},
		{"no email", "POST", free + "?lang=de", isJSON, `{"email":"guest"}`, 422, "invalid_email"},
		{"no JSON", "POST", free, isJSON, `guest`, 422, ""},
		{"a form", "POST", free, "application/x-www-form-urlencoded", `email=guest@example.com`, 415, ""},
		{"a long body", "POST", free, isJSON, strings.Repeat(" ", 5000), 413, ""},
		{"an event that is over", "POST", over, isJSON, `{"email":"guest@example.com"}`, 409, "event_passed"},
		{"a guest with a token", "PUT", open, isJSON, `{"token":"x"}`, 401, "login_required_free"},
		{"no JSON", "PUT", free, isJSON, `x`, 422, ""},
		{"a form", "PUT", free, "text/plain", `token=x`, 415, ""},
		{"a long body", "PUT", free, isJSON, strings.Repeat(" ", 5000), 413, ""},
	} {
		got, err := r.SendBody(step.method, step.path, step.body, "Sec-Fetch-Site", "same-origin", "Content-Type", step.contentType)
		if err != nil {
			r.T.Fatalf("r.SendBody: %v", err)
		}
		var answered struct{ State, Reason string }
		r.Decode(got.Body, &answered)
		if got.Status != step.status || answered.State+answered.Reason != step.state {
			r.T.Errorf("a mail, %s: %v, want %d %s", step.name, got, step.status, step.state)
		}
	}
}

func (r *readers) askTooMuch() {
	for range 120 {
		r.ask("HEAD", r.free, "", "X-Forwarded-For", "198.51.100.8")
	}
	for end, methods := range registrationMethods {
		for _, method := range slices.Concat(methods, []string{"PATCH"}) {
			got := r.ask(method, r.free+end, "", "X-Forwarded-For", "198.51.100.8")
			r.expect(429, method+" of registration"+end+" of who asks too much", got.Response)
			if end == "" && got.Header["Retry-After"] == "" {
				r.T.Errorf("%s of who asks too much: %v, want Retry-After", method, got)
			}
		}
	}
	for _, page := range []string{"cancel", "mails"} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			got := r.ask(method, "/ghost/lychgate/events/"+r.ids[r.free]+"/"+page+"?token=x", "", "X-Forwarded-For", "198.51.100.8")
			r.expect(429, method+" of the page "+page+" of who asks too much", got.Response)
		}
	}
}
