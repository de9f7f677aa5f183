package desk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// BenchmarkFirstContent measures how long an editor waits for the editor of an event, and for the list, besides
// Ghost's own time. What makes them wait is bounded by tests: how many requests and bytes a page takes.
func BenchmarkFirstContent(b *testing.B) {
	s := newSite(b, "", options{})
	before, err := benchtest.NewProxy(s.ghost.URL)
	if err != nil {
		b.Fatalf("benchtest.NewProxy: %v", err)
	}
	b.Cleanup(before.Close)
	s.ghost.URL = before.URL
	s.startEdge(options{})
	s.declare(everyField)
	staff := s.caller(owner)
	s.timeEditor(b, staff, before)
	s.timeList(b, staff, before)
}

// firstContent visits a path from a page that has nothing left to do, and returns after how
// many milliseconds the browser shows something, and how many of them without Ghost's time.
func (s *site) firstContent(p *browser.Page, before *benchtest.Proxy, path, until string) (whole, own float64) {
	s.t.Helper()
	p.Do(`for (let rests = 0, tries = 0; rests < 20 && tries < 200; tries++) {
	await new Promise(done => setTimeout(done, 50))
	rests = (await new Promise(done => requestIdleCallback(done))).timeRemaining() > 40 ? rests + 1 : 0
}`)
	p.Must(p.Navigate(s.base + path))
	p.Until(until + " && performance.getEntriesByName('first-contentful-paint').length > 0")
	times := browser.JS[[]float64](p, "[performance.timeOrigin, performance.getEntriesByType('navigation')[0].responseStart, performance.getEntriesByName('first-contentful-paint')[0].startTime]")
	began := time.UnixMicro(int64(times[0] * 1000))
	busy, _ := before.Busy(began, began.Add(time.Duration(times[1]*float64(time.Millisecond))))
	return times[2], times[2] - busy.Seconds()*1e3
}

// timeEditor reports when the editor of an event shows something, besides Ghost's own time: in a browser
// that has nothing of it yet, the second time, and beside a page that has nothing but a text.
func (s *site) timeEditor(b *testing.B, staff *caller, before *benchtest.Proxy) {
	s.t.Helper()
	status, body := staff.ask("POST", "/ghost/lychgate/desk/events", "application/json", strings.NewReader(
		`{"theme": "source", "type": "party", "values": {"name": "Lychgate day", "event_date": "2100-06-01", "description": "Two hours about what lets people in."}}`))
	var event struct{ ID string }
	if err := json.Unmarshal([]byte(body), &event); err != nil || status != http.StatusCreated {
		s.t.Fatalf("creating an event: got status %d, %s, %v, want 201", status, body, err)
	}
	editor, isThere := "/ghost/lychgate/desk/events?event="+event.ID, "document.querySelectorAll('[data-key]').length === 17 + 8"
	var first, second, text []float64
	for range 5 {
		p := s.signIn(owner) // each page has a cache of its own
		for _, visit := range []struct {
			times       *[]float64
			path, until string
		}{{&first, editor, isThere}, {&second, editor, isThere}, {&text, "/robots.txt", "document.body"}} {
			_, own := s.firstContent(p, before, visit.path, visit.until)
			*visit.times = append(*visit.times, own)
		}
		p.Close()
	}
	b.ReportMetric(benchtest.Median(first), "editor-ms")
	b.ReportMetric(benchtest.Median(second), "editor-again-ms")
	b.ReportMetric(benchtest.Median(text), "text-ms")
}

// keepDrafts keeps drafts of events: a site may make 120 in a minute.
func (s *site) keepDrafts(count int) {
	s.t.Helper()
	db, err := database.Open(s.t.Context(), database.SQLite, s.store)
	if err != nil {
		s.t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	store, err := events.NewSQL(s.t.Context(), db)
	if err != nil {
		s.t.Fatalf("events.NewSQL: %v", err)
	}
	for i := range count {
		day := time.Date(2101, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		err := store.Insert(s.t.Context(), events.Event{
			Site: "daily", ID: fmt.Sprintf("%026d", i), Theme: "source", Type: "party", Status: events.Draft, Revision: 1, CreatedAt: time.Unix(0, 0), UpdatedAt: time.Unix(0, 0),
			Values: map[string]any{"name": fmt.Sprint("Draft ", i), "event_date": day, "description": "Two hours about what lets people in."},
		}, events.Editor{})
		if err != nil {
			s.t.Fatalf("store.Insert: %v", err)
		}
	}
}

// timeList reports how long an editor waits for the list of 300 events, of which 30 have posts.
func (s *site) timeList(b *testing.B, staff *caller, before *benchtest.Proxy) {
	s.t.Helper()
	s.keepDrafts(270)
	for i := range 30 {
		status, body := staff.ask("POST", "/ghost/lychgate/desk/events", "application/json", strings.NewReader(fmt.Sprintf(
			`{"theme": "source", "type": "party", "values": {"name": "Evening %d", "event_date": "%s", "description": "Two hours about what lets people in."}}`,
			i, time.Date(2100, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly))))
		var event struct{ ID string }
		if err := json.Unmarshal([]byte(body), &event); err != nil || status != http.StatusCreated {
			s.t.Fatalf("creating event %d: got status %d, %s, %v, want 201", i, status, body, err)
		}
		if status, body := staff.ask("POST", "/ghost/lychgate/desk/events/"+event.ID+"/publish", "application/json", nil); status != http.StatusOK && status != http.StatusAccepted {
			s.t.Fatalf("publishing event %d: got status %d, %s, want 200 or 202", i, status, body)
		}
	}
	wait.Until(s.t, func() string { // a slow Ghost has them later
		_, body := staff.ask("GET", "/ghost/lychgate/desk/events?view=upcoming", "", nil)
		if strings.Contains(body, `"pending":{`) {
			return "events are pending"
		}
		return ""
	})
	lists := []struct{ name, address string }{{"upcoming", "events"}, {"drafts", "events?view=drafts"}}
	p := s.signIn(owner)
	whole, own := make(map[string][]float64), make(map[string][]float64)
	for range 7 {
		for _, list := range lists {
			took, without := s.firstContent(p, before, "/ghost/lychgate/desk/"+list.address, "document.querySelectorAll('.events tbody tr').length === 25")
			whole[list.name], own[list.name] = append(whole[list.name], took), append(own[list.name], without)
		}
	}
	for _, list := range lists {
		b.ReportMetric(benchtest.Median(whole[list.name]), list.name+"-ms")
		b.ReportMetric(benchtest.Median(own[list.name]), list.name+"-own-ms")
	}
}
