package eventsapi_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// withMail is a Caddyfile whose site daily has a mail server.
func withMail(config string, server *smtptest.Server) string {
	return strings.Replace(config, "platform ghost", "mail smtp://"+server.Address+" {\nfrom \"The Daily <events@example.com>\"\n}\nplatform ghost", 1)
}

// readMail is what a mail has, by the names of headers and the types of parts.
func readMail(t testing.TB, m smtptest.Mail) map[string]string {
	t.Helper()
	parsed, err := netmail.ReadMessage(strings.NewReader(m.Data))
	if err != nil {
		t.Fatalf("netmail.ReadMessage: %v", err)
	}
	got := make(map[string]string)
	for key := range parsed.Header {
		got[key], _ = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get(key))
	}
	readPart(t, parsed.Header.Get("Content-Type"), "", parsed.Body, got)
	return got
}

func readPart(t testing.TB, contentType, encoding string, body io.Reader, into map[string]string) {
	t.Helper()
	kind, parameters, err := mime.ParseMediaType(contentType)
	if err != nil {
		t.Fatalf("mime.ParseMediaType: %v", err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		for reader := multipart.NewReader(body, parameters["boundary"]); ; {
			part, err := reader.NextPart()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("NextPart: %v", err)
			}
			readPart(t, part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"), part, into)
		}
	}
	if encoding == "base64" {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Fatalf("reading a part: %v", err)
	}
	into[kind] = strings.ReplaceAll(string(text), "\r\n", "\n")
	if method := parameters["method"]; method != "" {
		into["method"] = method
	}
}

// mailWalk is a site with an event for one, whom it tells by mail.
type mailWalk struct {
	*edgetest.Homepage
	smtp       *smtptest.Server
	ghost      string // its address
	store      string
	id, path   string // of the event and of its registration
	values     map[string]any
	jane, john string // their cookies
}

// newMailWalk starts an edge with what also makes of its Caddyfile.
func newMailWalk(t *testing.T, also func(caddyfile string) string) *mailWalk {
	ghost, key := ghosttest.Real(t)
	w := &mailWalk{smtp: smtptest.Start(t, smtptest.Options{}), ghost: strings.TrimSuffix(ghost, "/"), store: edgetest.SQLiteStore(t)}
	w.Homepage = edgetest.NewEvents(t, edgetest.StartEdge(t, nil, also(withMail(edgetest.EventsConfig(w.store, ghost, key, "600 1m"), w.smtp))), key)
	w.brand("#aa0055", w.ghost+"/content/images/icon.png")
	t.Cleanup(func() { w.brand("#FF1A75", "") })
	w.values = map[string]any{
		"name": "Party " + w.Unique, "event_date": "2031-05-01", "event_time_start": "19:00", "location": "The Pier", "speaker": "Ada",
		"access": "free", "max_attendees": 1, "platform_url": "https://meet.example.com/room",
	}
	draft, _ := w.Events(201, "POST", "", w.EventBody(w.values))
	published, _ := w.Events(200, "POST", "/"+draft.ID+"/publish", "")
	w.id, w.path = draft.ID, "/ghost/lychgate/events/"+published.Values["slug"].(string)
	w.jane, w.john = signInReader(w.Homepage, "jane"+w.Unique+"@example.com", false), signInReader(w.Homepage, "john"+w.Unique+"@example.com", false)
	return w
}

// brand gives the publication a colour and an icon, until the test ends.
func (w *mailWalk) brand(colour, icon string) {
	w.T.Helper()
	body := fmt.Sprintf(`{"settings":[{"key":"accent_color","value":%q},{"key":"icon","value":%q}]}`, colour, icon)
	if got, err := w.SendBody("PUT", "/ghost/api/admin/settings/", body, "Cookie", w.Owner, "Origin", w.Base, "Content-Type", "application/json"); err != nil || got.Status != 200 {
		w.T.Fatalf("PUT settings: %v, %v, want 200", got, err)
	}
}

// register registers a reader, or puts them on the waiting list.
func (w *mailWalk) register(cookie string) {
	w.T.Helper()
	got, err := w.SendBody("PUT", w.path+"/registration", `{"waiting":true}`, "Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Origin", w.Base, "Content-Type", "application/json")
	if err != nil || got.Status != 200 && got.Status != 409 {
		w.T.Fatalf("registering: %v, %v", got, err)
	}
}

// next waits for the n-th mail, and reads it.
func (w *mailWalk) next(n int) map[string]string {
	w.T.Helper()
	wait.Until(w.T, func() string {
		if got := len(w.smtp.Mails()); got < n {
			return fmt.Sprintf("%d mails, want %d", got, n)
		}
		return ""
	})
	got := readMail(w.T, w.smtp.Mails()[n-1])
	if !strings.HasPrefix(got["Message-Id"], "<") || got["Date"] == "" || !strings.HasPrefix(got["Content-Type"], "multipart/mixed") {
		w.T.Errorf("the headers are %q", got)
	}
	for _, key := range []string{"Message-Id", "Date", "Content-Type", "Mime-Version", "application/ics"} {
		delete(got, key)
	}
	return got
}

var (
	hrefs = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	tags  = regexp.MustCompile(`(?s)<style>.*?</style>|<title>.*?</title>|<[^>]*>`)
)

// expect compares a mail with what it is to say. Of the HTML it compares the texts, and that each link of the plain text is in it.
func (w *mailWalk) expect(what string, got, want map[string]string) {
	w.T.Helper()
	html := got["text/html"]
	for _, link := range hrefs.FindAllStringSubmatch(html, -1) {
		if address := strings.ReplaceAll(link[1], "&amp;", "&"); !strings.Contains(got["text/plain"], address) && !strings.HasSuffix(address, ".png") {
			w.T.Errorf("%s: the plain text has no %s", what, address)
		}
	}
	var texts []string
	for line := range strings.SplitSeq(tags.ReplaceAllString(html, "\n"), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			texts = append(texts, line)
		}
	}
	shown := maps.Clone(got)
	shown["text/html"] = strings.Join(texts, " | ")
	if diff := cmp.Diff(want, shown); diff != "" {
		w.T.Errorf("%s, want -, got +: %s", what, diff)
	}
}

// calendar is the registrant's own calendar file at the edge, as a mail has it.
func (w *mailWalk) calendar(method string) string {
	w.T.Helper()
	got := w.Do("GET", w.path+"/registration.ics", "Cookie", w.jane, "Sec-Fetch-Site", "same-origin")
	if got.Status != 200 {
		w.T.Fatalf("the calendar file: %v, want 200", got)
	}
	return inMail(got.Body, method)
}

// inMail is a calendar file with what that of a mail has beside.
func inMail(file, method string) string {
	file = strings.ReplaceAll(file, "\r\n", "\n")
	file = regexp.MustCompile(`(?m)^METHOD:.*\n`).ReplaceAllString(file, "")
	file = strings.Replace(file, "BEGIN:VEVENT", "METHOD:"+method+"\nBEGIN:VEVENT", 1)
	return strings.Replace(file, "END:VEVENT", "ORGANIZER;CN=The Daily:mailto:events@example.com\nEND:VEVENT", 1)
}

// Through Caddy and with a real Ghost, registrants are told by mail that they are registered, what has changed, and that the event is
// cancelled. Who cancels by a mail's link makes room for the first in line, who is told.
func TestRegistrantsAreMailed(t *testing.T) {
	w := newMailWalk(t, func(caddyfile string) string { return caddyfile })
	var site struct{ Site struct{ Title string } }
	w.Decode(w.Ghost("GET", "/site/", ""), &site)
	w.register(w.jane)
	got := w.next(1)
	if !strings.Contains(got["text/html"], "#aa0055") || !regexp.MustCompile(`src="`+w.ghost+`/content/images/[^"]*icon.png"`).MatchString(got["text/html"]) {
		t.Errorf("the mail has not the publication's colour and icon: %s", got["text/html"])
	}
	cancel := regexp.MustCompile(`Cancel registration: (\S+)`).FindStringSubmatch(got["text/plain"])[1]
	want := map[string]string{"Content-Language": "en", "From": `"The Daily" <events@example.com>`, "To": "<jane" + w.Unique + "@example.com>", "Auto-Submitted": "auto-generated"}
	when, page := "Thursday, May 1, 2031 at 7:00 PM (UTC)", w.ghost+strings.TrimSuffix(w.path[strings.LastIndex(w.path, "/"):], "/")+"/"
	say := func(subject, lead, when, was, method, calendar string, isOver bool) map[string]string {
		all := maps.Clone(want)
		all["Subject"], all["method"], all["text/calendar"] = subject, method, calendar
		all["text/plain"] = site.Site.Title + "\n\nParty " + w.Unique + "\n\n" + lead + "\n\nWhen: " + when + "\nWhere: The Pier\n" + was + "\n"
		all["text/html"] = site.Site.Title + " | " + lead + " | Party " + w.Unique + " | When | " + when + " | Where | The Pier | "
		if was != "" {
			all["text/html"] += strings.TrimSpace(was) + " | "
		}
		if !isOver {
			all["text/plain"] += "Join online: https://meet.example.com/room\n\n"
			all["text/html"] += "Join online | "
		}
		all["text/plain"] += "View event: " + page + "\n\n"
		all["text/html"] += "View event | "
		if !isOver {
			all["text/plain"] += "Can’t make it? Please cancel.\nCancel registration: " + cancel + "\n\n"
			all["text/html"] += "Can’t make it? Please cancel. | Cancel registration | "
		}
		all["text/plain"] += "-- \nYou are receiving this email because you are registered for this event.\n" + w.ghost + "/\n"
		all["text/html"] += "You are receiving this email because you are registered for this event."
		return all
	}
	w.expect("the confirmation", got, say("You are registered: Party "+w.Unique, "You are registered.", when, "", "PUBLISH", w.calendar("PUBLISH"), false))

	w.values["event_date"] = "2031-05-08"
	w.Events(200, "PUT", "/"+w.id, w.EventBody(w.values))
	moved := "Thursday, May 8, 2031 at 7:00 PM (UTC)"
	w.expect("the change", w.next(2), say("Changed: Party "+w.Unique, "The date or place of this event has changed.", moved, "Moved from: "+when+", The Pier\n", "PUBLISH", w.calendar("PUBLISH"), false))

	w.register(w.john)
	link, err := url.Parse(cancel)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	w.cancelByLink(link.RequestURI())
	got = w.next(3)
	if to, subject := got["To"], got["Subject"]; to != "<john"+w.Unique+"@example.com>" || subject != "You have a place: Party "+w.Unique {
		t.Errorf("the third mail is %q to %s, want that there is a place to who waited", subject, to)
	}

	w.Events(200, "POST", "/"+w.id+"/cancel", "")
	got = w.next(4)
	if !strings.Contains(got["text/calendar"], "METHOD:CANCEL") || !strings.Contains(got["text/calendar"], "STATUS:CANCELLED") {
		t.Errorf("the calendar file is %s, want it to cancel", got["text/calendar"])
	}
	want["To"] = "<john" + w.Unique + "@example.com>"
	w.expect("the cancellation", got, say("Cancelled: Party "+w.Unique, "This event is cancelled.", moved, "", "CANCEL", got["text/calendar"], true))
	if n := len(w.smtp.Mails()); n != 4 {
		t.Errorf("%d mails, want 4", n)
	}
}

// cancelByLink opens the link of a mail without a session, which changes nothing, and presses the button.
func (w *mailWalk) cancelByLink(target string) {
	w.T.Helper()
	registered := func() string {
		var body struct {
			RegisteredAt *string `json:"registered_at"`
			State        string
		}
		w.Decode(w.Do("GET", w.path+"/registration", "Cookie", w.jane, "Sec-Fetch-Site", "same-origin").Body, &body)
		text, _ := json.Marshal(body.RegisteredAt != nil)
		return string(text)
	}
	type step struct {
		method, target string
		status         int
		registered     string
	}
	stop := strings.Replace(target, "/cancel?", "/mails?", 1)
	var steps []step
	for _, page := range []string{stop, target} {
		steps = append(steps, step{"GET", page, 200, "true"}, step{"HEAD", page, 200, "true"}, step{"OPTIONS", page, 204, "true"}, step{"PUT", page, 405, "true"},
			step{"GET", page + "x", 404, "true"}, step{"HEAD", page + "x", 404, "true"}, step{"POST", page + "x", 404, "true"})
	}
	for _, step := range append(steps, step{"POST", stop, 200, "true"}, step{"POST", target, 200, "false"}, step{"POST", target, 200, "false"}) {
		if got, is := w.Do(step.method, step.target), registered(); got.Status != step.status || is != step.registered {
			w.T.Errorf("%s %s: %v, registered: %s, want %d and %s", step.method, step.target, got, is, step.status, step.registered)
		}
	}
}
