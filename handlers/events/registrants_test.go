package events_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/desktest"
	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
	"github.com/lychgate/caddy-lychgate/manifest"
)

const partyManifest = `
manifest_version: 1
events: {types: {party: {post_template: custom-party}}}
`

// list is the API of an event's list of registrants.
type list struct {
	*desktest.Harness

	t     *testing.T
	event events.Event
}

func openList(t *testing.T, values map[string]any) *list {
	t.Helper()
	h := desktest.New(t)
	party, ok := events.NewType(manifest.Parse([]byte(partyManifest)).Manifest.Events, "party")
	if !ok {
		t.Fatal("NewType: got false, want the type party")
	}
	all := map[string]any{"name": "Party", "access": "free", "event_date": "2100-05-01"}
	maps.Copy(all, values)
	e, err := h.Events.Create(t.Context(), "daily", events.Edit{Theme: "nightly", Type: "party", Values: all})
	if err != nil {
		t.Fatalf("h.Events.Create: %v", err)
	}
	if e, err = h.Events.Publish(t.Context(), "daily", e.ID, 0, party); err != nil {
		t.Fatalf("h.Events.Publish: %v", err)
	}
	return &list{h, t, e}
}

// ask sends a request to what is below the event, as somebody with a role.
func (l *list) ask(role, method, path, body string, header ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequestWithContext(l.t.Context(), method, "https://news.example.com/ghost/lychgate/desk/events/"+l.event.ID+path, strings.NewReader(body))
	r.Header.Set("Cookie", role)
	r.Header.Set("Origin", "https://news.example.com")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response := httptest.NewRecorder()
	api := eventhandlers.StaffAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
	api.Serve(response, r, l.Site.Events, netip.MustParseAddr("192.0.2.1"))
	return response
}

func (l *list) add(n int, name string) {
	l.t.Helper()
	if _, _, err := l.Guests.Add(l.t.Context(), l.Ghost, "daily", l.event.ID, registration.Addition{Email: fmt.Sprintf("guest%d@example.com", n), Name: name, By: "Ed"}); err != nil {
		l.t.Fatalf("l.Guests.Add: %v", err)
	}
}

// walkIn adds a guest without an email, and returns their UUID.
func (l *list) walkIn(name string) string {
	l.t.Helper()
	added, _, err := l.Guests.Add(l.t.Context(), l.Ghost, "daily", l.event.ID, registration.Addition{Name: name, OverLimit: true})
	if err != nil {
		l.t.Fatalf("l.Guests.Add: %v", err)
	}
	return added.Member
}

// insert puts n registrations into the store.
func (l *list) insert(n int, name string) {
	l.t.Helper()
	const insert = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $2)
		INSERT INTO registrations (site, event, member, email, name, search, registered_at, changed)
		SELECT 'daily', $1, 'uuid-' || n, 'reader' || n || '@example.com', $3, 'reader' || n || '@example.com', 1000 + n, n FROM numbers`
	dbtest.Exec(l.t, l.DB, insert, l.event.ID, n, name)
	dbtest.Exec(l.t, l.DB, `INSERT INTO registrations_taken (site, event, taken, version) VALUES ('daily', $1, $2, $2)`, l.event.ID, n)
}

// Staff's programs add, check in, remove and take back; each response says what is so then.
func TestRegistrantsOfPrograms(t *testing.T) {
	l := openList(t, map[string]any{"max_attendees": 1.0})
	jane := l.Ghost.EditMember("m1", func(m *platform.Member) { m.UUID, m.Email, m.Name = "uuid-jane", "jane@example.com", "Jane" })
	one := "/registrations/" + jane.UUID
	for _, step := range []struct {
		name, method, path, body string
		want                     int
		says                     string // a part of the body
	}{
		{"none", "GET", "/registrations", "", 200, `{"registrations":[],"registered":0,"cancelled":0,"checked_in":0,"max_attendees":1,"next":null,"changes":"1."}`},
		{"nobody", "POST", "/registrations", "{}", 422, "Send JSON"},
		{"both", "POST", "/registrations", `{"email":"jane@example.com","member":"uuid-jane"}`, 422, "Send JSON"},
		{"a list", "POST", "/registrations", `[]`, 422, "Send JSON"},
		{"a member", "POST", "/registrations", `{"email":"JANE@example.com","name":"J."}`, 201, `"member":"uuid-jane","email":"jane@example.com","name":"Jane"`},
		{"again", "POST", "/registrations", `{"email":"jane@example.com"}`, 200, `"member":"uuid-jane"`},
		{"over the limit", "POST", "/registrations", `{"email":"joe@example.com"}`, 409, `{"message":"The one place is taken.","reason":"full"}`},
		{"over the limit, meant so", "POST", "/registrations", `{"email":"joe@example.com","over_limit":true}`, 201, `"email":"joe@example.com"`},
		{"check-in", "PUT", one + "/check-in?at=2026-05-04T15:00:00Z", "", 200, `"checked_in_at":"`},
		{"undone", "DELETE", one + "/check-in", "", 200, `"checked_in_at":null`},
		{"removed", "DELETE", one, "", 204, ""},
		{"removed again", "DELETE", one, "", 204, ""},
		{"check-in of who has cancelled", "PUT", one + "/check-in", "", 409, "has cancelled"},
		{"listed", "GET", "/registrations?q=jane", "", 200, `"cancelled_by":"`},
		{"taken back without a place", "POST", "/registrations", `{"member":"uuid-jane"}`, 409, `"reason":"full"`},
		{"taken back", "POST", "/registrations", `{"member":"uuid-jane","over_limit":true}`, 201, `"cancelled_at":null`},
		{"a walk-in without a place", "POST", "/registrations", `{"name":"Max"}`, 409, `"reason":"full"`},
		{"a walk-in", "POST", "/registrations", `{"name":" Max ","over_limit":true}`, 201, `"email":"","name":"Max"`},
		{"a walk-in without a name", "POST", "/registrations", `{"name":" "}`, 422, "Write an email, or a name for somebody without one."},
		{"another path", "PUT", one + "/check-in/x", "", 404, ""},
		{"another action", "PUT", one + "/badge", "", 404, ""},
	} {
		got := l.ask("editor", step.method, step.path, step.body)
		if got.Code != step.want || !strings.Contains(got.Body.String(), step.says) {
			t.Errorf("%s: %d %s, want %d with %s", step.name, got.Code, got.Body, step.want, step.says)
		}
		if cache := got.Header().Get("Cache-Control"); cache != "no-store" {
			t.Errorf("%s: Cache-Control %q, want no-store", step.name, cache)
		}
	}
	eve := l.walkIn("Eve")
	for _, step := range []struct {
		method, path string
		want         int
	}{{"DELETE", "/name", 409}, {"DELETE", "", 204}, {"DELETE", "/name", 204}, {"DELETE", "/name", 204}, {"GET", "/name", 405}} {
		if got := l.ask("editor", step.method, "/registrations/"+eve+step.path, ""); got.Code != step.want {
			t.Errorf("%s of a walk-in%s: %d %s, want %d", step.method, step.path, got.Code, got.Body, step.want)
		}
	}
	if got := l.ask("editor", "GET", "/registrations", ""); strings.Contains(got.Body.String(), "Eve") || !strings.Contains(got.Body.String(), eve) {
		t.Errorf("once the name is erased: %s, want the guest without it", got.Body)
	}
	if got := l.ask("editor", "DELETE", one+"/name", ""); got.Code != 409 {
		t.Errorf("the name of a member: %d %s, want 409", got.Code, got.Body)
	}
	for _, want := range []int{201, 200} {
		if got := l.ask("editor", "POST", "/registrations", `{"name":"Max","over_limit":true}`, "Idempotency-Key", "1"); got.Code != want {
			t.Errorf("a walk-in, sent twice: %d %s, want %d", got.Code, got.Body, want)
		}
	}
	if got := l.ask("editor", "POST", "/registrations", `{"name":"Max"}`, "Idempotency-Key", strings.Repeat("x", 256)); got.Code != 422 {
		t.Errorf("a long Idempotency-Key: %d %s, want 422", got.Code, got.Body)
	}
	l.Ghost.BreakCalls(errors.New("no answer"), "find")
	if got := l.ask("editor", "POST", "/registrations", `{"email":"max@example.com","over_limit":true}`); got.Code != 502 {
		t.Errorf("while Ghost is away: %d %s, want 502", got.Code, got.Body)
	}
	l.Ghost.Fix()
	l.Ghost.BreakCalls(&platform.Refusal{Reason: "Not this one."}, "create")
	if got := l.ask("editor", "POST", "/registrations", `{"email":"max@example.com","over_limit":true}`); got.Code != 422 || !strings.Contains(got.Body.String(), "Ghost refuses the member: Not this one.") {
		t.Errorf("Ghost refuses: %d %s, want 422 and why", got.Code, got.Body)
	}
}

// A program that has a list is told so, until something changes; then it reads what has.
func TestETagOfRegistrants(t *testing.T) {
	l := openList(t, nil)
	l.add(1, "Jane")
	l.add(2, "Joe")
	first := l.ask("editor", "GET", "/registrations?changed_after=", "")
	var page struct {
		Registrations []struct{ Email string }
		Changes       string
	}
	if err := json.Unmarshal(first.Body.Bytes(), &page); err != nil || len(page.Registrations) != 2 {
		t.Fatalf("json.Unmarshal: %v, %s", err, first.Body)
	}
	tag := first.Header().Get("Etag")
	for _, sent := range []string{tag, "W/" + tag, strings.TrimSuffix(tag, `"`) + `-gzip"`, `"other", ` + tag} {
		if got := l.ask("editor", "GET", "/registrations?changed_after="+page.Changes, "", "If-None-Match", sent); got.Code != 304 || got.Body.Len() != 0 || got.Header().Get("Etag") != tag {
			t.Errorf("If-None-Match: %s: %d %s, want 304 and %s", sent, got.Code, got.Body, tag)
		}
	}
	l.add(3, "Max")
	got := l.ask("editor", "GET", "/registrations?changed_after="+page.Changes, "", "If-None-Match", tag)
	if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil || got.Code != 200 || len(page.Registrations) != 1 || page.Registrations[0].Email != "guest3@example.com" {
		t.Errorf("after one was added: %d %s, want that one", got.Code, got.Body)
	}
}

// A guest whose last mail the server refused is marked, where the site sends mails.
func TestRefusedMails(t *testing.T) {
	l := openList(t, nil)
	jane := l.Ghost.EditMember("m1", func(m *platform.Member) { m.UUID, m.Email = "uuid-jane", "guest1@example.com" })
	l.add(1, "Jane")
	l.add(2, "Joe")
	const insert = `INSERT INTO mails (site, event, member, reason, sent_at, told, refusal) VALUES ('daily', $1, $2, $3, $4, '', $5)`
	dbtest.Exec(t, l.DB, insert, l.event.ID, jane.UUID, "confirmation 1", 1_000_000, "")
	dbtest.Exec(t, l.DB, insert, l.event.ID, jane.UUID, "moved 2", 2_000_000, "550 5.1.1 <b>no</b>\nsuch user")
	for sends, want := range map[bool][]string{
		true:  {`"mail_refused":{"kind":"moved","at":"1970-01-01T00:33:20Z","reason":"550 5.1.1 <b>no</b>\nsuch user"}`, "Waiting since (UTC),Not delivered\r\n", "\"moved: 550 5.1.1 <b>no</b>\nsuch user\"\r\n"},
		false: {`"mail_refused":null}],`, "Waiting since (UTC)\r\n", "\"Ed\",\"\",\"\",\"\",\"\"\r\n"},
	} {
		l.Site.Events.SendsMail = sends
		got := l.ask("editor", "GET", "/registrations", "").Body.String() + l.ask("editor", "GET", "/registrations.csv", "").Body.String()
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("mails are sent: %t: got %s, want %s in it", sends, got, part)
			}
		}
	}
	dbtest.Exec(t, l.DB, insert, l.event.ID, jane.UUID, "reminder 3", 3_000_000, "")
	l.Site.Events.SendsMail = true
	if got := l.ask("editor", "GET", "/registrations", "").Body.String(); strings.Contains(got, "no such user") {
		t.Errorf("after a mail that was taken: %s, want no refusal", got)
	}
}

// What strangers call themselves is text in a spreadsheet, and whole.
func TestRegistrantsAsCSV(t *testing.T) {
	l := openList(t, nil)
	names := []string{
		`=HYPERLINK("https://example.com","x")`, "+1", "-1", "@SUM(1)", "<script>alert(1)</script>", `"quoted", and; more`, strings.Repeat("🎩", 191), "Özlem", "",
	}
	for n, name := range names {
		l.add(n, name)
	}
	got := l.ask("editor", "GET", "/registrations.csv", "")
	if got.Code != 200 || got.Header().Get("Content-Type") != "text/csv; charset=utf-8" || got.Header().Get("Content-Disposition") != `attachment; filename="Party guests.csv"` {
		t.Fatalf("%d %v, want a CSV file", got.Code, got.Header())
	}
	text, hasMark := strings.CutPrefix(got.Body.String(), "\ufeff")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !hasMark || len(rows) != len(names)+1 {
		t.Fatalf("csv.ReadAll: %v, %t, %d rows, want a byte order mark and %d", err, hasMark, len(rows), len(names)+1)
	}
	for n, name := range names {
		want := name
		switch n {
		case 0:
			want = `'=HYPERLINK("https://example.com","x")`
		case 1, 2, 3:
			want = "'" + name
		}
		row := rows[n+1]
		if _, err := time.Parse(time.DateTime, row[2]); err != nil {
			t.Errorf("the time of %q: %v", name, err)
		}
		row[2] = ""
		if diff := cmp.Diff([]string{fmt.Sprintf("guest%d@example.com", n), want, "", "Ed", "", "", "", ""}, row); diff != "" {
			t.Errorf("%q, want -, got +: %s", name, diff)
		}
	}
	l.event.ID = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	if got := l.ask("editor", "GET", "/registrations.csv", ""); got.Code != 404 || got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("of no event: %d %v, want 404 as JSON", got.Code, got.Header())
	}
}

// discard counts what is written, and measures memory now and then.
type discard struct {
	http.ResponseWriter
	written int
	peak    uint64
	next    int
	err     error // of writes, after some
}

func (d *discard) Write(b []byte) (int, error) {
	d.written += len(b)
	if d.err != nil && d.written > 1<<20 {
		return 0, d.err
	}
	if d.written > d.next {
		d.next = d.written + 1<<20
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		d.peak = max(d.peak, m.HeapAlloc)
	}
	return len(b), nil
}

// A list of 100,000 is downloaded with little memory. One that is broken off is seen to be no whole file.
func TestLongCSV(t *testing.T) {
	lineartest.Volume(t)
	l := openList(t, nil)
	l.insert(100_000, strings.Repeat("Donaudampfschifffahrt", 9))
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	download := func(to *discard) {
		r := httptest.NewRequestWithContext(context.Background(), "GET", "https://news.example.com/ghost/lychgate/desk/events/"+l.event.ID+"/registrations.csv", nil)
		r.Header.Set("Cookie", "editor")
		api := eventhandlers.StaffAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
		api.Serve(to, r, l.Site.Events, netip.MustParseAddr("192.0.2.1"))
	}
	to := &discard{ResponseWriter: httptest.NewRecorder()}
	began := lineartest.ProcessTime()
	download(to)
	if took := lineartest.ProcessTime() - began; took > 30*time.Second {
		t.Errorf("it took %s of CPU time, want 30 s at most", took)
	}
	const mb = 1 << 20
	if grown := int64(to.peak) - int64(before.HeapAlloc); to.written < 20*mb || grown > 8*mb {
		t.Errorf("%d MB with %d MB of memory, want more than %d with 8 at most", to.written/mb, grown/mb, 20)
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("a reader who leaves: %v, want %v", err, http.ErrAbortHandler)
		}
		for range 20 { // each request has ended
			if got := l.ask("editor", "GET", "/registrations?limit=1", ""); got.Code != 200 {
				t.Fatalf("after it: %d %s, want 200", got.Code, got.Body)
			}
		}
	}()
	download(&discard{ResponseWriter: httptest.NewRecorder(), err: errors.New("connection reset")})
}

// slow is a client that takes ten seconds of the test's clock for each piece.
type slow struct{ *httptest.ResponseRecorder }

func (s slow) Write(b []byte) (int, error) {
	time.Sleep(10 * time.Second)
	return s.ResponseRecorder.Write(b)
}

// A client may take minutes for a whole list, if it takes each piece of it.
func TestSlowDownloadIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openList(t, nil)
		const guests = 3000
		l.insert(guests, "Jane")
		r := httptest.NewRequestWithContext(t.Context(), "GET", "https://news.example.com/ghost/lychgate/desk/events/"+l.event.ID+"/registrations.csv", nil)
		r.Header.Set("Cookie", "editor")
		to := slow{httptest.NewRecorder()}
		began := time.Now()
		(&eventhandlers.StaffAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}).Serve(to, r, l.Site.Events, netip.MustParseAddr("192.0.2.1"))
		if lines := strings.Count(to.Body.String(), "\n"); lines != guests+1 || time.Since(began) < 2*time.Minute {
			t.Errorf("got %d lines in %s, want %d in minutes", lines, time.Since(began), guests+1)
		}
	})
}

// A page of a list of 5,000, a search in it, and the response that nothing has changed are quick.
func TestLongListIsQuick(t *testing.T) {
	lineartest.Volume(t)
	l := openList(t, nil)
	l.insert(5000, "Jane")
	tag := l.ask("editor", "GET", "/registrations", "").Header().Get("Etag")
	for _, test := range []struct {
		path, tag string
		most      time.Duration
	}{
		{"/registrations", "", 100 * time.Millisecond},
		{"/registrations?q=reader4999", "", 100 * time.Millisecond},
		{"/registrations?after=5900.", "", 100 * time.Millisecond},
		{"/registrations?changed_after=4990.", "", 100 * time.Millisecond},
		{"/registrations", tag, 20 * time.Millisecond},
	} {
		best := time.Hour // of CPU time, of some, as the collector runs in others
		for range 10 {
			began := lineartest.ProcessTime()
			l.ask("editor", "GET", test.path, "", "If-None-Match", test.tag)
			best = min(best, lineartest.ProcessTime()-began)
		}
		if best > test.most {
			t.Errorf("%s %s: %s of CPU time, want %s at most", test.path, test.tag, best, test.most)
		}
	}
}
