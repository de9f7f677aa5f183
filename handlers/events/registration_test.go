package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// membership is a platform on which the cookie names the member.
type membership struct {
	isAway bool
	asked  int
	paid   bool

	mails   []platform.SignInLink
	mailErr error

	since       time.Time // that members are members
	newsletters platform.Newsletters
	left        []string // the sessions of who left them
	leaveErr    error

	privacy    platform.Privacy
	privacyErr error
}

func (*membership) AccessSession(cookie string) string { return cookie }

func (m *membership) Privacy(context.Context) (platform.Privacy, error) {
	return m.privacy, m.privacyErr
}

func (*membership) HasAccess(_ context.Context, session string) (bool, error) {
	return strings.Contains(session, "password=right"), nil
}

func (*membership) LinkKey() []byte { return []byte("a key") }

func (m *membership) SendLink(_ context.Context, link platform.SignInLink) (isSent bool, err error) {
	m.mails = append(m.mails, link)
	return link.MaySignUp, m.mailErr
}

func (*membership) LinkPage(*url.URL, http.Header) string { return "" }

func (m *membership) Newsletters(context.Context) (platform.Newsletters, error) {
	return m.newsletters, nil
}

func (m *membership) LeaveNewsletters(_ context.Context, session string) error {
	m.left = append(m.left, session)
	return m.leaveErr
}

func (*membership) ReaderSession(cookie string) string {
	if session, ok := strings.CutPrefix(cookie, "session="); ok {
		return session
	}
	return ""
}

func (m *membership) Reader(_ context.Context, session string) (platform.Reader, error) {
	m.asked++
	switch {
	case m.isAway:
		return platform.Reader{}, errors.New("connection refused")
	case strings.HasPrefix(session, "ended"):
		return platform.Reader{}, nil
	}
	return platform.Reader{UUID: session, Email: session + "@example.com", Name: "Jane", IsPaid: m.paid, Since: m.since}, nil
}

// door is the registration of a site's event with the slug party.
type door struct {
	t       *testing.T
	handler Registration
	site    RegistrationSite
	members *membership
	log     *observer.ObservedLogs
	address string // of who sends
}

// partyBody is what all readers get of the event, which lacks the link.
const partyBody = `{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaa","slug":"party","type":"webinar","status":"published","name":"The party","description":"","feature_image":"",` +
	`"event_date":"2031-05-01","event_time_start":"","event_time_end":"","event_time_zone":"","start":"2031-05-01","end":null,"all_day":true,"deadline":null,` +
	`"location":"","max_attendees":null,"access":"free","fields":{},"updated_at":"2031-03-02T10:11:12Z"}`

func newDoor(t *testing.T, db *database.DB, values string) *door {
	t.Helper()
	store, err := events.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	dbtest.Exec(t, db, `INSERT INTO events (site, id, slug, public, starts_at, over_at, updated_at, created_at, theme, type, content, status, revision,
			shape, post, late_at, post_id, name)
		VALUES ('daily', 'aaaaaaaaaaaaaaaaaaaaaaaaaa', 'party', '`+partyBody+`', 0, 0, 0, 0, 'solo', 'webinar', $1, 'published', 1,
			'{"fields":["name","access","max_attendees","registration_deadline","deadline_time_end","event_date","event_time_zone","platform_url"]}', '{"url":"https://news.example.com/party/"}', 0, 'p1', 'event')`, values)
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: ratelimit.Limit{Requests: 30, Window: time.Minute}})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	queue, err := work.New(t.Context(), db, zap.NewNop(), nil)
	if err != nil {
		t.Fatalf("work.New: %v", err)
	}
	feed := events.NewFeed(store)
	registrations := registration.New(db, store, feed, queue, func(string) platform.MemberLabeler { return nil }, func(string) platform.MemberFinder { return nil }, nil, zap.NewNop())
	core, log := observer.New(zapcore.DebugLevel)
	d := &door{t: t, members: new(membership), log: log, address: "192.0.2.1"}
	d.handler = Registration{Path: "/events", Limiter: unlimited{}, Recipients: unlimited{}, Networks: unlimited{}, Logger: zap.New(core)}
	d.site = RegistrationSite{
		Name: "daily", Readers: api.NewReaders("daily", "Ghost", d.members, api.NewAuthLimiter(limiter), api.NewPublications()),
		Registrations: func() (*registration.Readers, error) { return registrations.Readers, nil },
		Feed:          func() (*events.Feed, error) { return feed, nil },
	}
	return d
}

// told is what a reader's browser gets.
type told struct {
	Status  int
	Outcome api.Outcome
	Body    string
}

func (d *door) ask(method, target, cookie string, header ...string) (told, http.Header) {
	d.t.Helper()
	r := httptest.NewRequestWithContext(d.t.Context(), method, "https://news.example.com"+target, nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	w := httptest.NewRecorder()
	outcome := d.handler.Serve(w, r, d.site, netip.MustParseAddr("192.0.2.1"))
	return told{w.Code, outcome, strings.TrimSpace(w.Body.String())}, w.Header()
}

const guestTold = `{"state":"login_required_free","message":"Register with your email address.","places_left":1,"deadline":null,"registered_at":null}`

// Each of a reader's questions has its response: whether they may, are, or why not.
func TestReadersLearnWhetherTheyMayRegister(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1,"platform_url":"https://example.com/room"}`)
	const party = "/events/party/registration"
	const jane = "session=jane"
	can := func(left int) string {
		return fmt.Sprintf(`{"state":"can_register","message":"You can register for this event.","places_left":%d,"deadline":null,"registered_at":null}`, left)
	}
	full := func(joinAs string) string {
		return `{"state":"registration_closed","message":"All places are taken.","reason":"full","places_left":0,"deadline":null,"registered_at":null,"waiting":{"since":null,"ahead":0,"join_as":"` + joinAs + `"}}`
	}
	const is = `{"state":"registered","message":"You are registered.","places_left":0,"deadline":null,"registered_at":"NOW","platform_url":"https://example.com/room","calendars":{"ics":"/events/party/registration.ics"}}`
	failure := func(message string) string { return fmt.Sprintf(`{"message":%q}`, message) }
	for _, step := range []struct {
		name, method, target, cookie string
		want                         told
	}{
		{"a guest asks", "GET", party, "", told{200, api.Done, guestTold}},
		{"whose session has ended asks", "GET", party, "session=ended", told{200, api.Done, guestTold}},
		{"a guest registers", "PUT", party, "", told{401, api.Unauthorized, guestTold}},
		{"a guest cancels", "DELETE", party, "", told{401, api.Unauthorized, guestTold}},
		{"a member asks", "GET", party, jane, told{200, api.Done, can(1)}},
		{"a member asks at a path with a slash", "GET", party + "/", jane, told{200, api.Done, can(1)}},
		{"registers", "PUT", party, jane, told{200, api.Done, is}},
		{"registers again", "PUT", party, jane, told{200, api.Done, is}},
		{"asks again", "GET", party, jane, told{200, api.Done, is}},
		{"another registers", "PUT", party, "session=john", told{409, api.Rejected, full("can_register")}},
		{"another cancels", "DELETE", party, "session=john", told{200, api.Done, full("can_register")}},
		{"a guest asks, and it is full", "GET", party, "", told{200, api.Done, full("login_required_free")}},
		{"cancels", "DELETE", party, jane, told{200, api.Done, can(1)}},
		{"cancels again", "DELETE", party, jane, told{200, api.Done, can(1)}},
		{"another event", "PUT", "/events/x/registration", jane, told{404, api.NotFound, failure("There is no such event. Somebody may have deleted it.")}},
		{"a longer path", "PUT", "/events/x/y/registration", jane, told{404, api.NotFound, failure("There is no such event. Somebody may have deleted it.")}},
		{"a slug that is no text", "GET", "/events/%ff%00/registration", jane, told{404, api.NotFound, failure("There is no such event. Somebody may have deleted it.")}},
		{"a long slug", "GET", "/events/" + strings.Repeat("x", 765) + "/registration", jane, told{404, api.NotFound, failure("There is no such event. Somebody may have deleted it.")}},
		{"another method", "PATCH", party, jane, told{405, api.Other, failure("The method is not allowed here.")}},
		{"a preflight", "OPTIONS", party, "", told{204, api.Done, ""}},
	} {
		got, header := d.ask(step.method, step.target, step.cookie)
		if at := strings.Index(got.Body, `"registered_at":"`); at >= 0 { // the clock's
			at += len(`"registered_at":"`)
			got.Body = got.Body[:at] + "NOW" + got.Body[at+len("2026-05-04T15:00:00Z"):]
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s, want -, got +: %s", step.name, diff)
		}
		if got.Status != 204 && header.Get("Cache-Control") != "no-store" || header.Get("Access-Control-Allow-Origin") != "" || header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v, want it to be for pages of the site alone, and never kept", step.name, header)
		}
	}
	if n := d.log.Len(); n > 0 {
		t.Errorf("%d lines are logged, want none: %v", n, d.log.All())
	}
}

// Readers learn that an event is full, also where staff have written a text for whatever reason registration is closed.
func TestFullEventSaysSo(t *testing.T) {
	db := dbtest.SQLite(t)
	d := newDoor(t, db, `{"name":"Party","access":"free","max_attendees":1}`)
	store, err := events.NewSQL(t.Context(), db)
	if err == nil {
		err = store.SaveSettings(t.Context(), "daily", events.Settings{Messages: map[string]string{"registration_closed": "Write to us."}})
	}
	if err != nil {
		t.Fatalf("keeping the text: %v", err)
	}
	d.ask("PUT", "/events/party/registration", "session=jane")
	got, _ := d.ask("GET", "/events/party/registration", "session=john")
	want := told{200, api.Done, `{"state":"registration_closed","message":"All places are taken.\nWrite to us.","reason":"full","places_left":0,"deadline":null,"registered_at":null,"waiting":{"since":null,"ahead":0,"join_as":"can_register"}}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +: %s", diff)
	}
}

// Who was registered for an event that was cancelled reads so, and gets no link to it any more.
func TestRegisteredReaderOfACancelledEvent(t *testing.T) {
	db := dbtest.SQLite(t)
	d := newDoor(t, db, `{"name":"Party","access":"free","platform_url":"https://example.com/room"}`)
	d.ask("PUT", "/events/party/registration", "session=jane")
	dbtest.Exec(t, db, `UPDATE events SET status = 'cancelled', revision = revision + 1`)
	for session, want := range map[string]string{"jane": "You were registered.", "john": "This event is cancelled."} {
		wait.Until(t, func() string { // what was read a moment ago counts for a second
			got, _ := d.ask("GET", "/events/party/registration", "session="+session)
			if !strings.Contains(got.Body, `"message":"`+want+`","reason":"cancelled"`) || strings.Contains(got.Body, "example.com/room") {
				return fmt.Sprintf("%s: got %s, want %q and no link", session, got.Body, want)
			}
			return ""
		})
	}
}

// While readers can register, they are told until when, unless staff wrote the message.
func TestReadersLearnTheDeadline(t *testing.T) {
	const timed = `"registration_deadline":"2031-04-30","deadline_time_end":"12:00","event_time_zone":"Europe/Berlin"`
	for _, test := range []struct{ name, values, query, cookie, staff, want string }{
		{"a member", timed, "", "session=jane", "", "You can register for this event. Registration is open until Wednesday, April 30, 2031 at 12:00 PM (Europe/Berlin)."},
		{"with the text of staff", timed, "", "session=jane", "Come in.", "Come in."},
		{"a guest, in German", timed, "?lang=de", "", "", "Melde dich mit deiner E-Mail-Adresse an. Die Anmeldung ist bis Mittwoch, 30. April 2031 um 12:00 (Europe/Berlin) möglich."},
		{
			"on a British page, by the end of a day", `"registration_deadline":"2031-04-30"`, "?lang=en-GB", "session=jane", "",
			"You can register for this event. Registration is open until Wednesday, 30 April 2031.",
		},
		{"after it", `"registration_deadline":"2020-04-30"`, "", "session=jane", "", "Registration is closed."},
		{"without one", `"event_date":"2031-05-01"`, "", "session=jane", "", "You can register for this event."},
	} {
		db := dbtest.SQLite(t)
		d := newDoor(t, db, `{"name":"Party","access":"free",`+test.values+`}`)
		if test.staff != "" {
			store, err := events.NewSQL(t.Context(), db)
			if err == nil {
				err = store.SaveSettings(t.Context(), "daily", events.Settings{Messages: map[string]string{"can_register": test.staff}})
			}
			if err != nil {
				t.Fatalf("keeping the text: %v", err)
			}
		}
		got, _ := d.ask("GET", "/events/party/registration"+test.query, test.cookie)
		var told struct{ Message string }
		if err := json.Unmarshal([]byte(got.Body), &told); err != nil || told.Message != test.want {
			t.Errorf("%s reads %q, %v, want %q", test.name, told.Message, err, test.want)
		}
	}
}

// Who registered before an event was moved is told what they knew, and nobody else is.
func TestRegisteredReaderOfAMovedEvent(t *testing.T) {
	db := dbtest.SQLite(t)
	d := newDoor(t, db, `{"name":"Party","access":"free","event_date":"2031-05-01"}`)
	d.ask("PUT", "/events/party/registration", "session=jane")
	dbtest.Exec(t, db, `UPDATE events SET wanted = '{"moves":[{"at":"2231-04-01T00:00:00Z","from":{"start":"2031-04-30","end":"2031-05-01","all_day":true,"event_time_end":"","location":"The Pier"}}]}'`)
	const moved = `"moved_from":{"start":"2031-04-30","end":"2031-05-01","all_day":true,"event_time_end":"","location":"The Pier"}`
	for session, want := range map[string]bool{"session=jane": true, "session=john": false, "": false} {
		wait.Until(t, func() string { // what was read a moment ago counts for a second
			if got, _ := d.ask("GET", "/events/party/registration", session); strings.Contains(got.Body, moved) != want {
				return fmt.Sprintf("%q: got %s, want that it has %s: %t", session, got.Body, moved, want)
			}
			return ""
		})
	}
}

// Nobody registers, or learns anything, from a page of another origin, or by naming a member.
func TestRegistrationFromElsewhere(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
	refused := told{403, api.Forbidden, `{"message":"The request must come from a page of this site: its Origin header must name this site."}`}
	for name, c := range map[string]struct {
		method string
		header []string
		want   told
	}{
		"a page of another site reads":           {"GET", []string{"Sec-Fetch-Site", "cross-site"}, refused},
		"a page of another site registers":       {"PUT", []string{"Sec-Fetch-Site", "cross-site"}, refused},
		"a page of a subdomain registers":        {"PUT", []string{"Sec-Fetch-Site", "same-site"}, refused},
		"an old browser from another origin":     {"PUT", []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, refused},
		"no browser":                             {"PUT", []string{"Sec-Fetch-Site", ""}, refused},
		"a browser that says two things":         {"PUT", []string{"Origin", "https://evil.example"}, refused},
		"an old browser on this site":            {"GET", []string{"Sec-Fetch-Site", ""}, told{200, api.Done, guestTold}},
		"a header that names a member":           {"PUT", []string{"X-Member", "jane", "Authorization", "Bearer jane", "Cookie", "member=jane"}, told{401, api.Unauthorized, guestTold}},
		"a request that says it was a form":      {"POST", []string{"X-HTTP-Method-Override", "PUT"}, told{422, api.Rejected, `{"message":"This is not an email address. Check it for typos.","reason":"invalid_email"}`}},
		"a page of another site has mails sent":  {"POST", []string{"Sec-Fetch-Site", "cross-site"}, refused},
		"a link that is followed registers none": {"GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, told{200, api.Done, guestTold}},
	} {
		cookie := ""
		if c.want == refused {
			cookie = "session=jane"
		}
		got, _ := d.ask(c.method, "/events/party/registration?member=jane", cookie, c.header...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, want -, got +: %s", name, diff)
		}
	}
	if d.members.asked != 0 {
		t.Errorf("the platform was asked %d times, want never", d.members.asked)
	}
}

// While the platform, the store or the key is not there, a reader is told to try again, and not
// that they are a guest. What the platform said a moment ago counts.
func TestRegistrationWhileSomethingIsAway(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"paid"}`)
	const party = "/events/party/registration"
	ask := func(what, cookie string, want told, retry string) {
		t.Helper()
		got, header := d.ask("PUT", party, cookie)
		if diff := cmp.Diff(want, got); diff != "" || header.Get("Retry-After") != retry {
			t.Errorf("%s: Retry-After %q, want %q; want -, got +: %s", what, header.Get("Retry-After"), retry, diff)
		}
	}
	unavailable := func(message string) told { return told{503, api.Failed, fmt.Sprintf(`{"message":%q}`, message)} }
	ask("known before", "session=jane", told{403, api.Forbidden, `{"state":"upgrade_required","message":"This event is for paying members. Upgrade your membership to register.","places_left":null,"deadline":null,"registered_at":null}`}, "")
	d.members.isAway = true
	ask("known", "session=jane", told{403, api.Forbidden, `{"state":"upgrade_required","message":"This event is for paying members. Upgrade your membership to register.","places_left":null,"deadline":null,"registered_at":null}`}, "")
	ask("not known", "session=john", unavailable("Ghost could not be asked who you are. Try again in a moment."), "5")
	ask("a guest", "", told{401, api.Unauthorized, `{"state":"login_required_paid","message":"This event is for paying members. Sign in to register.","places_left":null,"deadline":null,"registered_at":null}`}, "")
	d.members.isAway, d.members.paid = false, true
	d.site.Registrations = func() (*registration.Readers, error) { return nil, errors.New("the store is away") }
	ask("without the store", "session=john", unavailable("Registrations are not available now. Try again in a moment."), "5")
	d.site.Readers = nil
	ask("without the key", "session=john", unavailable("Registrations are not available on this site now."), "60")
	d.site.IsOff = true
	ask("where there are none", "session=john", told{404, api.NotFound, `{"message":"This event takes no registrations."}`}, "")
	for _, entry := range d.log.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "john") || strings.Contains(text, "jane") {
			t.Errorf("logged: %s, want no personal data", text)
		}
	}
}

// The platform is asked about random cookies a bounded number of times.
func TestInvalidReaderSessionsAreBounded(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free"}`)
	refused := 0
	for n := range 200 {
		if got, _ := d.ask("GET", "/events/party/registration", fmt.Sprint("session=ended-", n)); got.Status == 429 {
			refused++
		}
	}
	if d.members.asked > 30 || refused != 170 {
		t.Errorf("the platform was asked %d times, %d requests were refused; want 30 at most, 170", d.members.asked, refused)
	}
	if got, _ := d.ask("GET", "/events/party/registration", ""); got.Status != 200 {
		t.Errorf("a guest: %d, want 200", got.Status)
	}
	if got, _ := d.ask("GET", "/events/party/registration", "session=ended-0"); got.Status != 200 {
		t.Errorf("whose session has ended, which a browser sends with each page: %d, want 200", got.Status)
	}
}
