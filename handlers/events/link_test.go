package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// send sends a body.
func (d *door) send(method, cookie, contentType, body string) told {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, "https://news.example.com/events/party/registration", strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", contentType)
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	w := httptest.NewRecorder()
	outcome := d.handler.Serve(w, r, d.site, netip.MustParseAddr(d.address))
	return told{w.Code, outcome, strings.TrimSpace(w.Body.String())}
}

// A guest gets a mail, and registers by its link. Whatever is wrong with a request is said, and
// nobody gets a mail then.
func TestMailsToGuests(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
	const isJSON = "application/json; charset=utf-8"
	failure := func(message, reason string) string { return fmt.Sprintf(`{"message":%q,"reason":%q}`, message, reason) }
	refused := told{422, api.Rejected, failure("This is not an email address. Check it for typos.", "invalid_email")}
	unreadable := told{422, api.Other, "{\"message\":\"Write a body such as {\\\"email\\\": \\\"jane@example.com\\\"}.\"}"}
	for _, step := range []struct {
		name, cookie, contentType, body string
		want                            told
	}{
		{"a form of another page", "", "application/x-www-form-urlencoded", "email=jane@example.com", told{415, api.Other, `{"message":"Send the header Content-Type: application/json."}`}},
		{"no JSON", "", isJSON, "{", unreadable},
		{"half a character", "", isJSON, `{"email":"\ud800@example.com"}`, unreadable},
		{"no email", "", isJSON, `{}`, refused},
		{"no address", "", isJSON, `{"email":"jane"}`, refused},
		{"two addresses", "", isJSON, `{"email":"jane@example.com, john@example.com"}`, refused},
		{"a header of a mail", "", isJSON, `{"email":"jane@example.com\r\nBcc: john@example.com"}`, refused},
		{"an address that is too long", "", isJSON, `{"email":"` + strings.Repeat("x", 243) + `@example.com"}`, refused},
		{"a body that is too long", "", isJSON, `{"email":"` + strings.Repeat("x", 5000) + `@example.com"}`, told{413, api.Other, `{"message":"The request's body is too large."}`}},
		{"somebody who is signed in", "session=jane", isJSON, `{"email":"john@example.com"}`, told{200, api.Done, `{"state":"can_register","message":"You can register for this event.","places_left":1,"deadline":null,"registered_at":null}`}},
	} {
		if diff := cmp.Diff(step.want, d.send("POST", step.cookie, step.contentType, step.body)); diff != "" {
			t.Errorf("%s, want -, got +: %s", step.name, diff)
		}
	}
	if len(d.members.mails) > 0 {
		t.Fatalf("mails are sent: %v, want none", d.members.mails)
	}
	if diff := cmp.Diff(told{202, api.Done, guestTold}, d.send("POST", "", isJSON, `{"email":" jane@example.com "}`)); diff != "" {
		t.Errorf("a guest, want -, got +: %s", diff)
	}
	mail := d.members.mails[0]
	page, token, _ := strings.Cut(mail.Page, "=")
	mail.Page = page
	if diff := cmp.Diff(platform.SignInLink{Email: "jane@example.com", Page: "https://news.example.com/party/?lychgate-registration", MaySignUp: true, Sender: netip.MustParseAddr("192.0.2.1")}, mail, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("the mail, want -, got +: %s", diff)
	}
	body := fmt.Sprintf(`{"token":%q}`, token)
	if got := d.send("PUT", "session=john", isJSON, body); got.Status != 409 || !strings.Contains(got.Body, "can_register") {
		t.Errorf("somebody else with the link: %+v, want 409 and can_register", got)
	}
	if got := d.send("PUT", "session=jane", isJSON, body); got.Status != 200 || !strings.Contains(got.Body, `"registered"`) {
		t.Errorf("the reader with the link: %+v, want 200 and registered", got)
	}
	if got := d.send("POST", "", isJSON, `{"email":"john@example.com"}`); got.Status != 409 || !strings.Contains(got.Body, `"full"`) || len(d.members.mails) != 1 {
		t.Errorf("where it is full: %+v, %d mails; want 409, full, 1", got, len(d.members.mails))
	}
}

// A guest is asked for their name where the theme says so, and the platform gets it with the email.
func TestGuestsSayTheirName(t *testing.T) {
	const isJSON, noName = "application/json", `{"message":"Enter your name.","reason":"invalid_name"}`
	asked := func(question string) string {
		if question == "" {
			return guestTold
		}
		return strings.TrimSuffix(guestTold, "}") + `,"ask_name":"` + question + `"}`
	}
	for question, steps := range map[string]map[string]told{
		"":         {"": {202, api.Done, asked("")}, "Jane": {202, api.Done, asked("")}},
		"optional": {"": {202, api.Done, asked("optional")}, "Jane": {202, api.Done, asked("optional")}},
		"required": {"": {422, api.Rejected, noName}, " ": {422, api.Rejected, noName}, "Jane": {202, api.Done, asked("required")}, strings.Repeat("x", 192): {422, api.Rejected, noName}, "a\\r\\nb": {422, api.Rejected, noName}},
	} {
		db := dbtest.SQLite(t)
		d := newDoor(t, db, `{"name":"Party","access":"free","max_attendees":1}`)
		dbtest.Exec(t, db, `UPDATE events SET shape = '{"fields":["name","access","max_attendees"],"ask_name":"`+question+`"}'`)
		for name, want := range steps {
			d.members.mails = nil
			if diff := cmp.Diff(want, d.send("POST", "", isJSON, `{"email":"jane@example.com","name":"`+name+`"}`)); diff != "" {
				t.Errorf("%q, %q, want -, got +: %s", question, name, diff)
			}
			if want.Status == 202 && (len(d.members.mails) != 1 || d.members.mails[0].Name != name) {
				t.Errorf("%q, %q: the mail is %+v, want one with the name", question, name, d.members.mails)
			}
		}
	}
}

// A guest is asked whether they want the newsletters that who signs up gets. Who says no gets none, and is not
// registered before that is so. Who says yes where nobody gets them unasked gets all.
func TestGuestsSayWhetherTheyWantNews(t *testing.T) {
	const isJSON = "application/json"
	for name, c := range map[string]struct {
		has      platform.Newsletters
		box, say string // what the page shows, and what it sends
		names    []string
		leaves   bool
	}{
		"none":                       {platform.Newsletters{}, "", "", nil, false},
		"by default":                 {platform.Newsletters{Names: []string{"Weekly"}, AreDefault: true}, `,"newsletters":true`, `,"newsletters":true`, nil, false},
		"by default, unticked":       {platform.Newsletters{Names: []string{"Weekly"}, AreDefault: true}, `,"newsletters":true`, `,"newsletters":false`, []string{}, true},
		"a script that does not ask": {platform.Newsletters{Names: []string{"Weekly"}, AreDefault: true}, `,"newsletters":true`, "", nil, false},
		"unasked nothing":            {platform.Newsletters{Names: []string{"Weekly", "Daily"}}, `,"newsletters":false`, `,"newsletters":false`, []string{}, true},
		"wanted":                     {platform.Newsletters{Names: []string{"Weekly", "Daily"}}, `,"newsletters":false`, `,"newsletters":true`, []string{"Weekly", "Daily"}, false},
	} {
		d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
		d.members.newsletters, d.members.since = c.has, time.Now()
		if diff := cmp.Diff(told{202, api.Done, strings.TrimSuffix(guestTold, "}") + c.box + "}"}, d.send("POST", "", isJSON, `{"email":"jane@example.com"`+c.say+`}`)); diff != "" {
			t.Errorf("%s, want -, got +: %s", name, diff)
		}
		mail := d.members.mails[0]
		if diff := cmp.Diff(c.names, mail.Newsletters); diff != "" {
			t.Errorf("%s: the mail's newsletters, want -, got +: %s", name, diff)
		}
		_, token, _ := strings.Cut(mail.Page, "=")
		put := func() told {
			return d.send("PUT", "session=jane", isJSON, `{"token":"`+token+`","pressed":true}`)
		}
		if d.members.leaveErr = errors.New("connection refused"); c.leaves {
			if got := put(); got.Status != 503 {
				t.Errorf("%s: with a platform that is away: %+v, want 503", name, got)
			}
		}
		d.members.left, d.members.leaveErr = nil, nil
		if got := put(); got.Status != 200 || !strings.Contains(got.Body, `"registered"`) || len(d.members.left) == 1 != c.leaves {
			t.Errorf("%s: %+v, left by %q; want 200, registered, %t", name, got, d.members.left, c.leaves)
		}
	}
}

// A platform that never takes a member off newsletters keeps nobody from registering.
func TestNewslettersThatStay(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
	d.members.since, d.members.leaveErr = time.Now(), platform.ErrNewslettersStay
	d.send("POST", "", "application/json", `{"email":"jane@example.com","newsletters":false}`)
	_, token, _ := strings.Cut(d.members.mails[0].Page, "=")
	if got := d.send("PUT", "session=jane", "application/json", `{"token":"`+token+`"}`); got.Status != 200 || len(d.members.left) != 1 || d.log.Len() != 1 {
		t.Errorf("%+v, asked %q, %d lines in the log; want 200, once, one line", got, d.members.left, d.log.Len())
	}
}

// Who presses the button is registered, whatever link led them to the page.
func TestPressWithAnothersLink(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	if got := d.send("PUT", "session=jane", "application/json", `{"token":"another","pressed":true}`); got.Status != 200 || !strings.Contains(got.Body, `"registered"`) {
		t.Errorf("%+v, want 200 and registered", got)
	}
}

// What becomes of a mail that the platform does not send.
func TestMailsThatAreNotSent(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	for _, step := range []struct {
		name string
		err  error
		want told
	}{
		{"no member, where nobody can sign up", platform.ErrNoReader, told{422, api.Rejected, `{"message":"No member has this address. Check it for typos.","reason":"unknown_email"}`}},
		{"too many mails", platform.ErrTooManyMails, told{429, api.TooMany, `{"message":"Too many attempts. Try again later.","reason":"too_many"}`}},
		{"a platform that is away", errors.New("connection refused"), told{503, api.Failed, `{"message":"Ghost could not send the mail. Try again in a moment."}`}},
		{"a mail server that hangs", fmt.Errorf("asking: %w", context.DeadlineExceeded), told{503, api.Failed, `{"message":"Ghost did not answer in time. The mail may still arrive."}`}},
	} {
		d.members.mailErr = step.err
		if diff := cmp.Diff(step.want, d.send("POST", "", "application/json", `{"email":"jane@example.com"}`)); diff != "" {
			t.Errorf("%s, want -, got +: %s", step.name, diff)
		}
	}
	for _, entry := range d.log.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "jane") {
			t.Errorf("logged: %s, want no personal data", text)
		}
	}
}

// Browsers ask again by themselves. Where a mail may be on its way, they wait, so that the reader does
// not get one mail for each try.
func TestMailsOfAServerThatHangs(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	for err, want := range map[error]string{errors.New("connection refused"): "5", fmt.Errorf("asking: %w", context.DeadlineExceeded): "60"} {
		d.members.mailErr = err
		r := httptest.NewRequestWithContext(t.Context(), "POST", "https://news.example.com/events/party/registration", strings.NewReader(`{"email":"jane@example.com"}`))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.handler.Serve(w, r, d.site, netip.MustParseAddr("192.0.2.1"))
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%v: again after %q s, want %q", err, got, want)
		}
	}
}

// A stranger who leaves in the middle of a body writes no line of the log.
func TestBodyThatEndsEarly(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	for _, method := range []string{"PUT", "POST"} {
		r := httptest.NewRequestWithContext(t.Context(), method, "https://news.example.com/events/party/registration", io.MultiReader(strings.NewReader(`{"email":`), iotest.ErrReader(io.ErrUnexpectedEOF)))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		outcome := d.handler.Serve(w, r, d.site, netip.MustParseAddr(d.address))
		if w.Code != 422 || outcome != api.Other {
			t.Errorf("%s: %d %s, want 422 %s", method, w.Code, outcome, api.Other)
		}
	}
	if n := d.log.Len(); n > 0 {
		t.Errorf("%d lines are logged, want none: %v", n, d.log.All())
	}
}

// A hall registers on one Wi-Fi. A stranger has few mails sent to one recipient, wherever they ask from, and from one
// network no more than a hall needs.
func TestMailsAreBounded(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	d.handler.Recipients = memoryOf(t, RecipientLimit)
	d.handler.Networks = memoryOf(t, NetworkLimit)
	send := func(from, email string) int {
		d.address = from
		return d.send("POST", "", "application/json", `{"email":"`+email+`"}`).Status
	}
	counts := make(map[string]map[int]int)
	count := func(what string, status int) {
		if counts[what] == nil {
			counts[what] = make(map[int]int)
		}
		counts[what][status]++
	}
	for n := range 200 {
		count("a hall", send("192.0.2.1", fmt.Sprintf("guest%d@example.com", n)))
	}
	for n := range 20 {
		count("one recipient", send(fmt.Sprintf("198.51.%d.1", n), []string{"jane@example.com", "Jane@Example.com"}[n%2]))
	}
	for n := range 1000 {
		count("one network", send(fmt.Sprintf("203.0.113.%d", n%256), fmt.Sprintf("jane%d@example.com", n)))
		count("one network of IPv6", send(fmt.Sprintf("2001:db8:1:%x::1", n), fmt.Sprintf("john%d@example.com", n)))
	}
	for range 10 { // by a network that has no mails left
		send("203.0.113.1", "victim@example.com")
	}
	count("the recipient of mails that were not sent", send("198.51.100.7", "victim@example.com"))
	want := map[string]map[int]int{
		"a hall": {202: 200},
		"the recipient of mails that were not sent": {202: 1},
		"one recipient":       {202: 5, 429: 15},
		"one network":         {202: 300, 429: 700},
		"one network of IPv6": {202: 300, 429: 700},
	}
	if diff := cmp.Diff(want, counts); diff != "" || len(d.members.mails) != 806 {
		t.Errorf("%d mails, want 806; statuses (-want +got): %s", len(d.members.mails), diff)
	}
}

func memoryOf(t *testing.T, limit ratelimit.Limit) ratelimit.Limiter {
	t.Helper()
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: limit})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	return limiter
}
