package events

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/eventstest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

type unlimited struct{ ratelimit.Limiter }

func (unlimited) Take(context.Context, ratelimit.Key) time.Duration { return 0 }

// Text that no database keeps is nothing that a store fails at.
func TestReadersWithOddText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *database.DB) {
		store, err := events.NewSQL(t.Context(), db)
		if err != nil {
			t.Fatalf("events.NewSQL: %v", err)
		}
		of := events.NewFeed(store)
		h := Readers{Path: "/events", Limiter: unlimited{}, Logger: zap.NewNop()}
		got := make(map[string]api.Outcome)
		wanted := map[string]api.Outcome{
			"/events/%ff": api.NotFound, "/events/a%00b": api.NotFound, "/events/%c3.ics": api.NotFound,
			"/events?type=%00": api.Rejected, "/events?type=a%ff": api.Rejected, "/events.ics?type=%00": api.Rejected,
		}
		for target := range wanted {
			w := httptest.NewRecorder()
			got[target] = h.Serve(w, httptest.NewRequest(http.MethodGet, target, nil), "daily", nil, func() (*events.Feed, error) { return of, nil }, netip.Addr{})
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// Readers get lists of what is published, and each event by its slug and its ID, also as calendars, and are told what
// is wrong with what they ask. What they have is not sent again.
func TestReadersGetEvents(t *testing.T) {
	db := dbtest.SQLite(t)
	if err := eventstest.Fill(t.Context(), db, "daily", 1, 500); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	store, err := events.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: ratelimit.Limit{Requests: 200, Window: time.Hour}})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	of := events.NewFeed(store)
	h := Readers{Path: "/ghost/lychgate/events", Limiter: limiter, Logger: zap.NewNop()}
	site := exchange.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		h.Serve(w, r, "daily", nil, func() (*events.Feed, error) { return of, nil }, netip.MustParseAddr(r.Header.Get("X-Forwarded-For")))
	})
	ask := func(method, path string, header ...string) exchange.Response {
		t.Helper()
		return site.Ask("", method, h.Path+path, "", append([]string{"X-Forwarded-For", "192.0.2.1"}, header...)...)
	}
	byID := "/" + strings.Repeat("a", 26)
	const own = `attachment; filename="Event 0.ics"`
	saved := map[string]string{"": "", ".ics": `attachment; filename="events.ics"`, "/event-0": "", "/event-0.ics": own, byID: "", byID + ".ics": own}
	for path, want := range saved {
		for _, method := range []string{"GET", "HEAD"} {
			got := ask(method, path)
			if got.Status != 200 || got.Header["Cache-Control"] != "public, max-age=30" || (method == "GET") != (got.Body != "") {
				t.Errorf(`%s %s: got %v, want status 200, Cache-Control "public, max-age=30", a body for GET alone`, method, path, got)
			}
			if got.Header["Content-Disposition"] != want {
				t.Errorf("%s %s is saved as %s, want %s", method, path, got.Header["Content-Disposition"], want)
			}
			if again := ask(method, path, "If-None-Match", `"x", W/`+got.Header["Etag"]); again.Status != 304 || again.Body != "" {
				t.Errorf("%s %s again: %v, want 304", method, path, again)
			}
		}
		if got := ask("OPTIONS", path); got.Status != 204 || got.Header["Access-Control-Allow-Origin"] != "*" {
			t.Errorf("OPTIONS %s: %v, want 204 for any origin", path, got)
		}
		if got := ask("POST", path); got.Status != 405 {
			t.Errorf("POST %s: %v, want 405", path, got)
		}
	}
	for _, path := range []string{"/event-0.html", byID + ".html"} { // where the page is, whatever its slug is by then
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(method, path); got.Status != 302 || got.Header["Location"] != "https://news.example.com/event-0/" || got.Header["Cache-Control"] != "public, max-age=30" {
				t.Errorf("%s %s: got %v, want a redirect to the page", method, path, got)
			}
		}
	}
	for query, want := range map[string]int{
		"?type=webinar": 1, "?type=ball": 0, "?past": 0, "?from=1": 0, "?limit=1": 1, "?from=0&limit=1000&type=webinar": 1,
	} {
		if got := ask("GET", query); strings.Count(got.Body, `"slug":`) != want || !strings.Contains(got.Body, `"next":null`) {
			t.Errorf("%s: got %v, want %d events, no next", query, got, want)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?from=-1", "?from=1000001", "?type=" + strings.Repeat("x", 201), "?%zz"} {
		for _, path := range []string{query, ".ics" + query} {
			if got := ask("GET", path); got.Status != 422 || !strings.Contains(got.Body, `"errors":{"`) {
				t.Errorf("%s: got %v, want status 422, and what is wrong", path, got)
			}
			if got := ask("HEAD", path); got.Status != 422 || got.Body != "" {
				t.Errorf("HEAD %s: %v, want 422 without a body", path, got)
			}
		}
	}
	for _, path := range []string{"/none", "/none.ics", "/none.html", ".html", "/a/b", "/%00", "/" + strings.Repeat("x", 1000)} {
		if got := ask("GET", path); got.Status != 404 || got.Body != `{"message":"There is no event at this address."}` {
			t.Errorf("%.20s: got %v, want status 404, and that there is no event", path, got)
		}
		if got := ask("HEAD", path); got.Status != 404 || got.Body != "" {
			t.Errorf("HEAD %.20s: %v, want 404 without a body", path, got)
		}
	}
	for range 200 {
		ask("HEAD", "", "X-Forwarded-For", "203.0.113.1")
	}
	for path := range saved {
		for _, method := range []string{"GET", "HEAD"} {
			if got := ask(method, path, "X-Forwarded-For", "203.0.113.1"); got.Status != 429 || got.Header["Retry-After"] == "" {
				t.Errorf("%s %s of who asks too much: got %v, want status 429, a Retry-After", method, path, got)
			}
		}
	}
}

// slowWriter takes each chunk after a time, unless its deadline is over before.
type slowWriter struct {
	http.ResponseWriter
	each     time.Duration
	deadline time.Time
	taken    int
}

func (w *slowWriter) SetWriteDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func (w *slowWriter) Write(chunk []byte) (int, error) {
	if time.Now().Add(w.each).After(w.deadline) {
		time.Sleep(time.Until(w.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(w.each)
	w.taken += len(chunk)
	return len(chunk), nil
}

// A reader who takes a response slowly is cut off, and one on a slow line gets all of it.
func TestSlowReaders(t *testing.T) {
	tests := map[string]struct {
		each     time.Duration // for 32 KB
		isUrgent bool
		all      bool
		longest  time.Duration
	}{
		"at once":                      {0, false, true, 0},
		"on a slow line":               {1900 * time.Millisecond, false, true, time.Minute},
		"on a slow line, while urgent": {1900 * time.Millisecond, true, false, 10 * time.Second},
		"just within each deadline":    {9 * time.Second, false, false, 50 * time.Second},
		"one who takes nothing":        {time.Hour, false, false, 10 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 256 << 10
				w := &slowWriter{ResponseWriter: httptest.NewRecorder(), each: test.each}
				began := time.Now()
				http.ServeContent(&pacedWriter{w, size, func() bool { return test.isUrgent }, began},
					httptest.NewRequest(http.MethodGet, "/", nil), "", time.Time{}, strings.NewReader(strings.Repeat("x", size)))
				if took := time.Since(began); took > test.longest || (w.taken == size) != test.all {
					t.Errorf("%d bytes in %v, want all: %v, in at most %v", w.taken, took, test.all, test.longest)
				}
			})
		})
	}
}

// Whatever else a request says, what is kept of it is bounded: a kept list does not keep the
// line of its request in memory.
func TestKeptListsAreSmall(t *testing.T) {
	store, err := events.NewSQL(t.Context(), dbtest.SQLite(t))
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	of := events.NewFeed(store)
	h := Readers{Path: "/events", Limiter: unlimited{}, Logger: zap.NewNop()}
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	const requests, most = 2000, 4 << 10
	for n := range requests {
		target := fmt.Sprintf("/events?type=z%d&j=%s", n, strings.Repeat("x", 16<<10))
		if got := h.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil), "daily", nil, func() (*events.Feed, error) { return of, nil }, netip.Addr{}); got != api.Done {
			t.Fatalf("request %d: %v, want %v", n, got, api.Done)
		}
	}
	if used := heap() - before; used > requests*most {
		t.Errorf("%d kept lists take %d KB, want at most %d KB each", requests, used>>10, most>>10)
	}
	runtime.KeepAlive(of)
}

// One range of a response is served. Of many, each of which would cost more than it asks for,
// nothing is but the whole.
func TestRangesOfEvents(t *testing.T) {
	store, err := events.NewSQL(t.Context(), dbtest.SQLite(t))
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	of := events.NewFeed(store)
	h := Readers{Path: "/events", Limiter: unlimited{}, Logger: zap.NewNop()}
	got := make(map[string]string)
	for _, ranges := range []string{"bytes=2-7", "bytes=0-0,2-7", "bytes=0-0" + strings.Repeat(",0-0", 3000)} {
		r, w := httptest.NewRequest(http.MethodGet, "/events", nil), httptest.NewRecorder()
		r.Header.Set("Range", ranges)
		h.Serve(w, r, "daily", nil, func() (*events.Feed, error) { return of, nil }, netip.Addr{})
		got[ranges[:min(len(ranges), 13)]] = fmt.Sprintf("%d %s", w.Code, w.Body)
	}
	const whole = `200 {"events":[],"total":0,"next":null,"messages":{}}`
	if diff := cmp.Diff(map[string]string{"bytes=2-7": "206 events", "bytes=0-0,2-7": whole, "bytes=0-0,0-0": whole}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A page is compressed once for all readers who take that, and each gets a response that says which
// of the two it is.
func TestCompressedEvents(t *testing.T) {
	db := dbtest.SQLite(t)
	if err := eventstest.Fill(t.Context(), db, "daily", 50, 2000); err != nil {
		t.Fatalf("eventstest.Fill: %v", err)
	}
	store, err := events.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("events.NewSQL: %v", err)
	}
	of := events.NewFeed(store)
	h := Readers{Path: "/events", Limiter: unlimited{}, Logger: zap.NewNop()}
	ask := func(url string, header ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(http.MethodGet, url, nil), httptest.NewRecorder()
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		h.Serve(w, r, "daily", nil, func() (*events.Feed, error) { return of, nil }, netip.Addr{})
		if got := w.Header().Get("Vary"); got != "Accept-Encoding" {
			t.Errorf("%s %q: Vary %q, want %q", url, header, got, "Accept-Encoding")
		}
		return w
	}
	for _, url := range []string{"/events", "/events.ics", "/events?limit=3"} {
		plain := ask(url)
		tag := strings.Trim(plain.Header().Get("Etag"), `"`)
		for accept, isCompressed := range map[string]bool{
			"": false, "br": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "gzip;q=x": false, "gzipped": false,
			"gzip": true, "br, gzip": true, "GZIP;q=0.5": true, "deflate,gzip;q=1.0,*;q=0.5": true,
		} {
			got := ask(url, "Accept-Encoding", accept)
			want, coding, body := tag, "", got.Body.String()
			if isCompressed {
				want, coding = tag+".gz", "gzip"
				if got.Body.Len() > plain.Body.Len()/2 {
					t.Errorf("%s %q: %d bytes of %d, want less than half", url, accept, got.Body.Len(), plain.Body.Len())
				}
				body = gunzip(t, got.Body)
			}
			if header := got.Header(); header.Get("Etag") != `"`+want+`"` || header.Get("Content-Encoding") != coding || body != plain.Body.String() {
				t.Errorf("%s %q: tag %s, coding %q, %d bytes, want %s, %q and the page", url, accept, header.Get("Etag"), header.Get("Content-Encoding"), len(body), want, coding)
			}
		}
		for known, want := range map[string]int{`"` + tag + `"`: 200, `"` + tag + `.gz"`: 304, `"x", W/"` + tag + `.gz"`: 304} {
			if got := ask(url, "Accept-Encoding", "gzip", "If-None-Match", known); got.Code != want {
				t.Errorf("%s: a reader who has %s gets %d, want %d", url, known, got.Code, want)
			}
		}
		if got := ask(url, "Accept-Encoding", "gzip", "Range", "bytes=0-9"); got.Code != 206 || got.Body.String() != plain.Body.String()[:10] {
			t.Errorf("%s: a range: %d %q, want 206, and of the text", url, got.Code, got.Body)
		}
	}
	if got := ask("/events?type=none", "Accept-Encoding", "gzip"); got.Header().Get("Content-Encoding") != "" {
		t.Errorf("a page of %d bytes is compressed, want none below 512", got.Body.Len())
	}
}

func gunzip(t *testing.T, from io.Reader) string {
	t.Helper()
	r, err := gzip.NewReader(from)
	if err != nil {
		t.Fatalf("gzip.NewReader: %v", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	return string(text)
}
