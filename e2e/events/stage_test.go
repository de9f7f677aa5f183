package events

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	eventhandlers "github.com/lychgate/caddy-lychgate/handlers/events"
	"github.com/lychgate/caddy-lychgate/internal/web"
)

// strictPolicy lets a page load what its own server has, and nothing inline.
const strictPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// stage is a page of an event, whose server says of the reader what the test wants.
type stage struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	html      string
	css       string
	responses []response // about the reader; the last one is repeated
	asked     []string

	events map[string]map[string]any // other events, by their slugs
	away   bool                      // those cannot be read
	lists  []response                // of events; the last one is repeated
}

// response is what the server says of the reader.
type response struct {
	status int
	body   map[string]any
	header http.Header
}

var english = map[string]any{
	"register": "Register", "cancel": "Cancel registration", "ask": "Cancel your registration?", "email": "Email address", "name": "Name", "sign_in": "Sign in", "sent": "Sent to *.", "places": "Places left: *", "plans": "See membership options", "keep": "Stay registered", "another": "Use another address",
	"news": "Also send me the newsletter", "moved": "Moved from: *",
}

// told is a response with a state.
func told(status int, state, message string, more map[string]any) response {
	body := map[string]any{"state": state, "message": message, "places_left": nil, "deadline": nil, "registered_at": nil, "labels": english}
	maps.Copy(body, more)
	return response{status, body, nil}
}

func newStage(t *testing.T, registration bool, responses ...response) *stage {
	t.Helper()
	harness.NeedBrowser(t)
	s := &stage{t: t, responses: responses}
	page := &eventhandlers.Page{Path: "/ghost/lychgate/events"}
	mux := http.NewServeMux()
	for _, script := range []string{page.Script(), page.Lists()} {
		mux.HandleFunc(script, func(w http.ResponseWriter, r *http.Request) {
			page.Serve(w, r, web.EventOptions{Registration: registration, Fields: true})
		})
	}
	mux.HandleFunc(page.Path, s.list)
	mux.HandleFunc(page.Path+"/{slug}", s.event)
	mux.HandleFunc("/ghost/lychgate/events/{id}/registration", s.register)
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", strictPolicy)
		io.WriteString(w, s.html)
	})
	mux.HandleFunc("/theme.css", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "text/css")
		io.WriteString(w, s.css)
	})
	mux.HandleFunc("/nowhere.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		io.WriteString(w, "Intl.DateTimeFormat.prototype.resolvedOptions = () => ({timeZone: 'Etc/Nowhere'})")
	})
	for _, picture := range []string{"size/w600/2031/small", "2031/small", "2031/large"} {
		mux.HandleFunc("/content/images/"+picture+".png", func(w http.ResponseWriter, _ *http.Request) {
			png.Encode(w, image.NewRGBA(image.Rect(0, 0, 300, 200)))
		})
	}
	mux.HandleFunc("/axe.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(installed(t), "axe-core", "axe.min.js"))
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *stage) event(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	event, ok := s.events[r.PathValue("slug")]
	if s.away {
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	if !ok {
		http.Error(w, `{"message": "There is no event at this address."}`, http.StatusNotFound)
		return
	}
	json.NewEncoder(w).Encode(event)
}

func (s *stage) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, "list "+r.URL.RawQuery)
	a := s.lists[0]
	if len(s.lists) > 1 {
		s.lists = s.lists[1:]
	}
	w.WriteHeader(a.status)
	json.NewEncoder(w).Encode(a.body)
}

func (s *stage) register(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.PathValue("id")+" "+r.URL.RawQuery+" "+string(text)))
	a := s.responses[0]
	if len(s.responses) > 1 {
		s.responses = s.responses[1:]
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	json.NewEncoder(w).Encode(a.body)
}

// answer has the server say something else of the reader.
func (s *stage) answer(responses ...response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.responses = responses
}

// requests are those about the reader, without what was looked at before.
func (s *stage) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// party is an event as its page has it.
func party(more map[string]any) map[string]any {
	values := map[string]any{
		"id": "aaaaaaaaaaaaaaaaaaaaaaaaaa", "type": "webinar", "status": "published", "name": "Party & <b>more</b>", "description": "An evening",
		"event_date": "2031-05-01", "event_time_start": "19:00", "event_time_end": "21:00", "event_time_zone": "Europe/Berlin",
		"start": "2031-05-01T19:00:00+02:00", "end": "2031-05-01T21:00:00+02:00", "all_day": false, "deadline": nil,
		"location": "The Pier", "max_attendees": 120, "access": "free", "fields": map[string]any{},
	}
	maps.Copy(values, more)
	return values
}

// page puts an event on the stage, in a theme whose body is given.
func (s *stage) page(lang string, event map[string]any, css, body string) {
	s.t.Helper()
	text, err := json.Marshal(event)
	s.home(lang, css, fmt.Sprintf(`<script type="application/json" id="lychgate-event">%s</script><script src="/ghost/lychgate/event.js?en" async blocking="render"></script>`, must(s.t, text, err)), body)
}

// home puts a page on the stage that is of no event.
func (s *stage) home(lang, css, head, body string) {
	dir := "ltr"
	if lang == "ar" || lang == "he" {
		dir = "rtl"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.css = css
	s.html = fmt.Sprintf(`<!doctype html><html lang="%s" dir="%s"><head><title>Party</title><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/theme.css">
		%s</head><body>%s</body></html>`, lang, dir, head, body)
}

const plainTheme = `<main><article><h1>Party</h1><section class="gh-content"><p>The text of the post. It goes on for a while, so that it has some lines of its own below what is drawn above it.</p></section></article></main>`

// parts are what a reader sees, by parts.
const partsHelper = helpers + `
	const element = document.querySelector('lychgate-event:not(script)');
	const part = name => element.shadowRoot.querySelector('[part~="' + name + '"]');
	const parts = () => Object.fromEntries([...element.shadowRoot.querySelectorAll('[part]')].filter(e => text(e) && ![...e.querySelectorAll('[part]')].some(text))
		.map(e => [e.getAttribute('part'), text(e)]));
`

func (s *stage) open(look browser.Look) *browser.Page {
	s.t.Helper()
	return browser.Open(s.t, harness.Engine, s.URL+"/page", look, partsHelper)
}
