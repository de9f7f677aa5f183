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
	"sync/atomic"
	"testing"
	"time"

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

// Through Caddy and with a real Ghost, a reader is told how an event stands for them and
// registers, a stranger has Ghost asked a bounded number of times, and who was known a moment
// ago is served while Ghost hangs.
func TestReadersRegisterWithGhost(t *testing.T) {
	p := edgetest.StartGhostProxy(t, "registration")
	h := edgetest.NewEvents(t, edgetest.StartEdge(t, nil, edgetest.EventsConfig(edgetest.SQLiteStore(t), "http://"+p.Address, p.Key, "120 1m")), p.Key)
	ids := make(map[string]string) // by path
	publish := func(name string, values map[string]any) string {
		t.Helper()
		all := map[string]any{"name": name + " " + h.Unique, "event_date": "2031-05-01", "speaker": "Ada"}
		maps.Copy(all, values)
		draft, _ := h.Events(201, "POST", "", h.EventBody(all))
		published, _ := h.Events(200, "POST", "/"+draft.ID+"/publish", "")
		path := "/ghost/lychgate/events/" + published.Values["slug"].(string) + "/registration"
		ids[path] = draft.ID
		return path
	}
	free := publish("Free", map[string]any{"access": "free", "max_attendees": 1, "platform_url": "https://meet.example.com/room"})
	paid := publish("Paid", map[string]any{"access": "paid"})
	none := publish("None", nil)
	over := publish("Over", map[string]any{"access": "free", "event_date": "2020-05-01"})
	jane, john := signInReader(h, "jane@"+p.Domain, false), signInReader(h, "john@"+p.Domain, true)

	type told struct {
		Status int
		State  string
	}
	ask := func(method, path, cookie string, header ...string) (told, edgetest.Response) {
		t.Helper()
		got := h.Do(method, path, append([]string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Origin", h.Base}, header...)...)
		var body struct{ State string }
		if method != "HEAD" && got.Status != http.StatusNoContent && !strings.HasPrefix(got.Header["Content-Type"], "text/calendar") {
			h.Decode(got.Body, &body)
		}
		return told{got.Status, body.State}, got
	}
	for _, step := range []struct {
		name, method, path, cookie string
		want                       told
	}{
		{"a guest", "GET", free, "", told{200, "login_required_free"}},
		{"a guest, without the body", "HEAD", free, "", told{200, ""}},
		{"a guest who registers", "PUT", free, "", told{401, "login_required_free"}},
		{"a free member where members pay", "PUT", paid, jane, told{403, "upgrade_required"}},
		{"a free member", "GET", free, jane, told{200, "can_register"}},
		{"a free member's own calendar file", "GET", free + ".ics", jane, told{403, ""}},
		{"a guest's", "GET", free + ".ics", "", told{401, ""}},
		{"a guest's, without the body", "HEAD", free + ".ics", "", told{401, ""}},
		{"a free member who registers", "PUT", free, jane, told{200, "registered"}},
		{"the calendar file then", "GET", free + ".ics", jane, told{200, ""}},
		{"without the body", "HEAD", free + ".ics", jane, told{200, ""}},
		{"the calendar file, another method", "PUT", free + ".ics", jane, told{405, ""}},
		{"its methods", "OPTIONS", free + ".ics", "", told{204, ""}},
		{"again", "PUT", free, jane, told{200, "registered"}},
		{"by the event's ID", "PUT", "/ghost/lychgate/events/" + ids[free] + "/registration", jane, told{200, "registered"}},
		{"another, who is late", "PUT", free, john, told{409, "registration_closed"}},
		{"whose calendar file it is not", "GET", free + ".ics", john, told{403, ""}},
		{"without the body", "HEAD", free + ".ics", john, told{403, ""}},
		{"who has a gift", "PUT", paid, john, told{200, "registered"}},
		{"who cancels", "DELETE", free, jane, told{200, "can_register"}},
		{"a guest who cancels", "DELETE", free, "", told{401, "login_required_free"}},
		{"an event that is over", "PUT", over, jane, told{409, "event_passed"}},
		{"who cancels when it is over", "DELETE", over, jane, told{409, "event_passed"}},
		{"an event that takes none", "GET", none, jane, told{404, ""}},
		{"another method", "PATCH", free, jane, told{405, ""}},
		{"who is signed in asks for a mail", "POST", free, jane, told{200, "can_register"}},
		{"the methods", "OPTIONS", free, "", told{204, ""}},
	} {
		if got, reply := ask(step.method, step.path, step.cookie); got != step.want {
			t.Errorf("%s: %v, want %v", step.name, reply, step.want)
		}
	}
	ask("PUT", free, jane)
	if got := h.Do("GET", free+".ics", "Cookie", jane, "Sec-Fetch-Site", "same-origin"); !strings.Contains(got.Body, "CONFERENCE;VALUE=URI:https://meet.example.com/room") ||
		got.Header["Cache-Control"] != "private, no-store" {
		t.Errorf("the calendar file of who is registered: %v, want the link, and that no cache keeps it", got)
	}
	if got := h.Do("GET", strings.TrimSuffix(free, "/registration")+".ics"); got.Status != 200 || strings.Contains(got.Body, "meet.example.com") {
		t.Errorf("the calendar file of everybody: %v, want it without the link", got)
	}
	ask("DELETE", free, jane)
	if _, text := ask("GET", free+"?lang=de", ""); !strings.Contains(text.Body, `"Diese Veranstaltung ist für Mitglieder.`) {
		t.Errorf("in German: %v, want the German message", text)
	}
	if _, text := ask("GET", free, "", "Accept-Language", "fr-CA,en;q=0.5"); !strings.Contains(text.Body, `"Cet événement est réservé aux membres.`) {
		t.Errorf("in a browser in French: %v, want the French message", text)
	}
	methods := []string{"GET", "HEAD", "PUT", "POST", "DELETE"}
	for _, method := range methods {
		if got := h.Do(method, free, "Sec-Fetch-Site", "cross-site", "Cookie", jane); got.Status != 403 {
			t.Errorf("%s by a page of another site: %v, want 403", method, got)
		}
		if got, reply := ask(method, "/ghost/lychgate/events/none/registration", jane); got.Status != 404 {
			t.Errorf("%s of no event: %v, want 404", method, reply)
		}
		if got := h.Do(method, free, "Host", "elsewhere.example.com"); got.Status != 404 {
			t.Errorf("%s at another site: %v, want 404", method, got)
		}
	}
	if got := h.Do("PUT", free, "Sec-Fetch-Site", "same-site", "Cookie", jane); got.Status != 403 {
		t.Errorf("a page of a subdomain: %v, want 403", got)
	}
	for _, path := range []string{free, free + ".ics"} {
		if got := h.Do("OPTIONS", path, "Host", "elsewhere.example.com"); got.Status != 404 {
			t.Errorf("the methods of %s at another site: %v, want 404", path, got)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		if got := h.Do(method, free+".ics", "Sec-Fetch-Site", "cross-site", "Cookie", jane); got.Status != 403 {
			t.Errorf("%s of a calendar file by a page of another site: %v, want 403", method, got)
		}
		if got, reply := ask(method, "/ghost/lychgate/events/none/registration.ics", jane); got.Status != 404 {
			t.Errorf("%s of the calendar file of no event: %v, want 404", method, reply)
		}
		if got := h.Do(method, free+".ics", "Host", "elsewhere.example.com"); got.Status != 404 {
			t.Errorf("%s of a calendar file at another site: %v, want 404", method, got)
		}
	}

	// Staff see who has registered, and who has cancelled.
	var list struct {
		Registrations []struct {
			Email       string
			CancelledAt *string `json:"cancelled_at"`
		}
		Registered, Cancelled int
		MaxAttendees          *int `json:"max_attendees"`
	}
	h.Decode(h.Do("GET", "/ghost/lychgate/desk/events/"+ids[free]+"/registrations?q=JANE", "Cookie", h.Owner, "Origin", h.Base).Body, &list)
	if len(list.Registrations) != 1 || list.Registrations[0].Email != "jane@"+p.Domain || list.Registrations[0].CancelledAt == nil ||
		list.Registered != 0 || list.Cancelled != 1 || list.MaxAttendees == nil || *list.MaxAttendees != 1 {
		t.Errorf("the registrations: %+v, want Jane's, which she has cancelled, and one place", list)
	}
	if got := h.Do("HEAD", "/ghost/lychgate/desk/events/"+ids[free]+"/registrations", "Cookie", h.Owner, "Origin", h.Base); got.Status != 200 || got.Body != "" {
		t.Errorf("without the body: %v, want 200 and no body", got)
	}
	changesRegistrations(h, "/ghost/lychgate/desk/events/"+ids[free]+"/registrations", "added@"+p.Domain)
	if got := h.Do("GET", "/ghost/lychgate/desk/events/"+ids[free]+"/registrations", "Cookie", jane, "Sec-Fetch-Site", "same-origin"); got.Status != 401 {
		t.Errorf("a reader lists registrations: %v, want 401", got)
	}

	// The labels of the event are in Ghost within seconds, beside those of staff, and gone after
	// cancelling.
	labelled := publish("Labels", map[string]any{"access": "free", "rsvp_labels": []any{"Guest " + h.Unique, "Party " + h.Unique}})
	t.Cleanup(func() {
		for _, id := range h.IDs("labels", "name:~'"+h.Unique+"'") {
			h.Ghost("DELETE", "/labels/"+id+"/", "")
		}
	})
	labels := func() (names []string) {
		t.Helper()
		var found struct {
			Members []struct{ Labels []struct{ Name string } }
		}
		h.Decode(h.Ghost("GET", "/members/?filter="+url.QueryEscape("email:'jane@"+p.Domain+"'"), ""), &found)
		for _, label := range found.Members[0].Labels {
			names = append(names, label.Name)
		}
		slices.Sort(names)
		return names
	}
	has := func(what string, want ...string) {
		t.Helper()
		wait.Until(t, func() string {
			if diff := cmp.Diff(want, labels()); diff != "" {
				return what + ", want -, got +: " + diff
			}
			return ""
		})
	}
	h.Ghost("PUT", "/members/"+h.IDs("members", "email:'jane@"+p.Domain+"'")[0]+"/", `{"members":[{"labels":[{"name":"Staff's `+h.Unique+`"}]}]}`)
	ask("PUT", labelled, jane)
	has("registered", "Guest "+h.Unique, "Party "+h.Unique, "Staff's "+h.Unique)
	ask("DELETE", labelled, jane)
	has("cancelled", "Staff's "+h.Unique)

	// Staff edit the member at the same moments, and nothing of that is lost.
	id := h.IDs("members", "email:'jane@"+p.Domain+"'")[0]
	for n := range 40 {
		method, want := "PUT", []string{"Guest " + h.Unique, "Party " + h.Unique, "Staff's " + h.Unique}
		if n%2 == 1 {
			method, want = "DELETE", want[2:]
		}
		note := fmt.Sprint("round ", n)
		var staff sync.WaitGroup
		staff.Go(func() { h.Ghost("PUT", "/members/"+id+"/", `{"members":[{"note":"`+note+`"}]}`) })
		ask(method, labelled, jane, "X-Forwarded-For", "198.51.100.9")
		staff.Wait()
		has(note, want...)
		var found struct {
			Members []struct{ Note, Email string }
		}
		h.Decode(h.Ghost("GET", "/members/"+id+"/", ""), &found)
		if m := found.Members[0]; m.Note != note || m.Email != "jane@"+p.Domain {
			t.Fatalf("the member is %+v, want the note %q as staff wrote it", m, note)
		}
	}

	// While Ghost hangs, its word of a moment ago counts. Whom it has not been asked about is to
	// come again, and is no guest.
	ask("GET", free, john) // who was asked about before, which may be long ago on a loaded machine
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/members/") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p.Ghost.ServeHTTP(w, r)
	})
	if got, reply := ask("PUT", free, john); got != (told{200, "registered"}) {
		t.Errorf("known a moment ago: %v, want that it is registered", reply)
	}
	for _, method := range methods {
		if _, text := ask(method, free, "ghost-members-ssr=new; ghost-members-ssr.sig=new"); text.Status != 503 || text.Header["Retry-After"] != "5" {
			t.Errorf("%s of who is not known: %v, want 503 and Retry-After 5", method, text)
		}
	}
	for _, method := range []string{"GET", "HEAD"} {
		if _, text := ask(method, free+".ics", "ghost-members-ssr=new; ghost-members-ssr.sig=new"); text.Status != 503 {
			t.Errorf("%s of the calendar file of who is not known: %v, want 503", method, text)
		}
	}
	p.Fix()

	// A guest asks for a mail, which Ghost sends.
	open := publish("Open", map[string]any{"access": "free"})
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/send-magic-link/") { // there is no mail server
			w.WriteHeader(http.StatusCreated)
			return
		}
		p.Ghost.ServeHTTP(w, r)
	})
	send := func(method, path, contentType, body string) (told, edgetest.Response) {
		t.Helper()
		got, err := h.SendBody(method, path, body, "Sec-Fetch-Site", "same-origin", "Content-Type", contentType)
		if err != nil {
			t.Fatalf("h.sendBody: %v", err)
		}
		var answered struct{ State, Reason string }
		h.Decode(got.Body, &answered)
		return told{got.Status, answered.State + answered.Reason}, got
	}
	const isJSON = "application/json"
	for _, step := range []struct {
		name, method, path, contentType, body string
		want                                  told
	}{
		{"a guest", "POST", open, isJSON, `{"email":"guest@example.com"}`, told{202, "login_required_free"}},
		{"no email", "POST", free + "?lang=de", isJSON, `{"email":"guest"}`, told{422, "invalid_email"}},
		{"no JSON", "POST", free, isJSON, `guest`, told{422, ""}},
		{"a form", "POST", free, "application/x-www-form-urlencoded", `email=guest@example.com`, told{415, ""}},
		{"a long body", "POST", free, isJSON, strings.Repeat(" ", 5000), told{413, ""}},
		{"an event that is over", "POST", over, isJSON, `{"email":"guest@example.com"}`, told{409, "event_passed"}},
		{"a guest with a token", "PUT", open, isJSON, `{"token":"x"}`, told{401, "login_required_free"}},
		{"no JSON", "PUT", free, isJSON, `x`, told{422, ""}},
		{"a form", "PUT", free, "text/plain", `token=x`, told{415, ""}},
		{"a long body", "PUT", free, isJSON, strings.Repeat(" ", 5000), told{413, ""}},
	} {
		if got, reply := send(step.method, step.path, step.contentType, step.body); got != step.want {
			t.Errorf("a mail, %s: %v, want %v", step.name, reply, step.want)
		}
	}
	p.Fix()

	// A stranger makes up sessions: 30 a minute are asked about for an address.
	var asked atomic.Int64
	p.Begin(func(p *edgetest.GhostProxy, w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/members/") {
			asked.Add(1)
		}
		p.Ghost.ServeHTTP(w, r)
	})
	refused, began := 0, time.Now()
	for n := range 100 {
		session := fmt.Sprintf("ghost-members-ssr=x%d; ghost-members-ssr.sig=y", n)
		if got, _ := ask("GET", free, session, "X-Forwarded-For", "198.51.100.7"); got.Status == 429 {
			refused++
		}
	}
	most := 30 * (1 + int(time.Since(began)/time.Minute))
	if asked.Load() > int64(most) || refused < 100-most {
		t.Errorf("Ghost was asked %d times, and %d requests were refused; want %d at most, and the others", asked.Load(), refused, most)
	}
	if got, reply := ask("GET", free, "", "X-Forwarded-For", "198.51.100.7"); got.Status != 200 {
		t.Errorf("a guest at that address: %v, want 200", reply)
	}
	p.Fix()

	for range 120 {
		ask("HEAD", free, "", "X-Forwarded-For", "198.51.100.8")
	}
	for _, method := range append(methods, "PATCH") {
		if got, reply := ask(method, free, "", "X-Forwarded-For", "198.51.100.8"); got.Status != 429 || reply.Header["Retry-After"] == "" {
			t.Errorf("%s of who asks too much: %v, want 429 and Retry-After", method, reply)
		}
	}
	for _, method := range []string{"GET", "HEAD", "PATCH"} {
		if _, text := ask(method, free+".ics", "", "X-Forwarded-For", "198.51.100.8"); text.Status != 429 {
			t.Errorf("%s of a calendar file of who asks too much: %v, want 429", method, text)
		}
	}
}
