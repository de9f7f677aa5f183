package button

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// standIn is another origin: it serves a page and the script, and answers
// lookups as badly as a test wants.
type standIn struct {
	*httptest.Server
	mu      sync.Mutex
	before  string   // runs before all other scripts of the page
	lookups []string // whole requests
}

// standIns are those that run, by the URL of their page.
var standIns sync.Map

// standInAt is nil if no stand-in serves the page.
func standInAt(url string) *standIn {
	s, _ := standIns.Load(url)
	found, _ := s.(*standIn)
	return found
}

func (s *standIn) begin(before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func newStandIn(t *testing.T, html string, lookup http.HandlerFunc) *standIn {
	t.Helper()
	s := new(standIn)
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Write(written(s.before, html))
	})
	for _, path := range []string{"/ghost/lychgate/inbox-button.js", "/assets/js/inbox-button.js"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			script, err := os.ReadFile("../../internal/web/inbox-button.js")
			if err != nil {
				t.Errorf("os.ReadFile: %v", err)
			}
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			w.Write(script)
		})
	}
	mux.HandleFunc("/ghost/inbox-provider", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodGet {
			dump, err := httputil.DumpRequest(r, true)
			if err != nil {
				t.Errorf("httputil.DumpRequest: %v", err)
			}
			s.mu.Lock()
			s.lookups = append(s.lookups, string(dump))
			s.mu.Unlock()
		}
		lookup(w, r)
	})
	s.Server = httptest.NewServer(mux)
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) // cookies of the edge's host are its as well
	standIns.Store(s.URL+"/page", s)
	t.Cleanup(func() { standIns.Delete(s.URL + "/page"); s.Close() })
	return s
}

// asked has the first line of each lookup.
func (s *standIn) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, lookup := range s.lookups {
		line, _, _ := strings.Cut(lookup, "\r\n")
		lines = append(lines, line)
	}
	return lines
}

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(body))
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		w.Write([]byte(`{"provider":"gmail"}`)) // not to be believed
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: mismatch (-want +got):\n%s", what, diff)
	}
}
