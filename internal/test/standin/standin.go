// Package standin stands in for Ghosts where real ones are too many, or too slow, for what is
// measured. It has as much of Ghost's API as an edge asks for members, readers, staff and
// themes, keeps members in memory, and says which of them were created twice.
package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// AdminKey is the Admin API key of all sites.
var AdminKey = "0123456789abcdef01234567:" + strings.Repeat("0f", 32)

// Theme is the active theme of all sites.
const Theme = "solo"

// Ghosts are those of many sites at one address: each in a subdirectory with the site's name,
// and one without a name, which is in none.
type Ghosts struct {
	URL string

	server   *httptest.Server
	latency  time.Duration // of each response
	requests atomic.Int64
	unknown  atomic.Pointer[string] // a request that no site knows
	hangs    func(site string) bool

	mu    sync.Mutex
	sites map[string]*site
	made  int // members, of all sites
}

// New starts Ghosts that take so long for each response.
func New(latency time.Duration) *Ghosts {
	g := &Ghosts{latency: latency, sites: make(map[string]*site), hangs: func(string) bool { return false }}
	g.server = httptest.NewServer(g)
	g.URL = g.server.URL
	return g
}

// HangIf has some sites never respond. It is called before the first request.
func (g *Ghosts) HangIf(hangs func(site string) bool) { g.hangs = hangs }

// Close ends them.
func (g *Ghosts) Close() { g.server.Close() }

// Requests is how many there were, of all sites.
func (g *Ghosts) Requests() int64 { return g.requests.Load() }

// Problem is about a request that no site knows, so that nobody measures refusals.
func (g *Ghosts) Problem() error {
	if request := g.unknown.Load(); request != nil {
		return fmt.Errorf("the stand-in for Ghost does not know %s", *request)
	}
	return nil
}

// ServeHTTP responds as Ghost does.
func (g *Ghosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.requests.Add(1)
	time.Sleep(g.latency)
	w.Header().Set("Content-Type", "application/json")
	name, path := split(r.URL.Path)
	if g.hangs(name) {
		<-r.Context().Done()
		return
	}
	switch request := r.Method + " " + path; request {
	case "GET /site/":
		fmt.Fprintf(w, `{"site":{"title":"Stand-in","url":"%s/"}}`, strings.TrimSuffix(g.URL+"/"+name, "/"))
	case "GET /settings/":
		fmt.Fprint(w, `{"settings":[{"key":"title","value":"Stand-in"},{"key":"timezone","value":"Etc/UTC"},{"key":"locale","value":"en"}]}`)
	case "GET /posts/":
		fmt.Fprint(w, `{"posts":[]}`)
	case "GET /themes/":
		fmt.Fprintf(w, `{"themes":[{"name":%q,"active":true}]}`, Theme)
	case "GET /users/me/":
		staff(w, r)
	case "POST /webhooks/":
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"webhooks":[]}`)
	case "GET " + readerPath:
		g.reader(w, r, name)
	default:
		if err := g.member(w, r, name, path); err != nil {
			request += " " + err.Error()
			g.unknown.Store(&request)
			http.NotFound(w, r)
		}
	}
}

const (
	adminAPI = "/ghost/api/admin"

	// readerPath is where a session's member is.
	readerPath = "/members/api/member/"
)

// rest is below Ghost's Admin API, or below Ghost's address for readers.
func split(path string) (site, rest string) {
	if site, rest, ok := strings.Cut(path, adminAPI); ok {
		return strings.Trim(site, "/"), rest
	}
	site, _ = strings.CutSuffix(path, readerPath)
	if site != path {
		path = readerPath
	}
	return strings.Trim(site, "/"), path
}

// staff responds with an editor, whose name is the value of the session's cookie.
func staff(w http.ResponseWriter, r *http.Request) {
	session, err := r.Cookie("ghost-admin-api-session")
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	fmt.Fprintf(w, `{"users":[{"id":%q,"name":%[1]q,"roles":[{"name":"Editor"}]}]}`, session.Value)
}

// reader responds with the member whose UUID is the value of the session's cookie.
func (g *Ghosts) reader(w http.ResponseWriter, r *http.Request, name string) {
	session, err := r.Cookie("ghost-members-ssr")
	if err != nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	g.mu.Lock()
	m := g.site(name).byUUID[session.Value]
	g.mu.Unlock()
	if m == nil {
		fmt.Fprint(w, "null")
		return
	}
	fmt.Fprintf(w, `{"uuid":%q,"email":%q,"name":%q,"paid":false}`, m.UUID, m.Email, m.Name)
}

// member responds to requests about members. Errors: those of requests that it does not know.
func (g *Ghosts) member(w http.ResponseWriter, r *http.Request, name, path string) error {
	id, ok := strings.CutPrefix(path, "/members/")
	if id = strings.TrimSuffix(id, "/"); !ok || strings.Contains(id, "/") {
		return errors.New("")
	}
	var change struct {
		Members []json.RawMessage `json:"members"`
	}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil || len(change.Members) != 1 {
			return errors.New("without one member")
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.site(name)
	status, found := http.StatusOK, s.byID[id]
	switch {
	case r.Method == http.MethodGet && id == "":
		return s.list(w, r.URL.Query())
	case r.Method == http.MethodPost && id == "":
		status, found = http.StatusCreated, &Member{}
		if err := json.Unmarshal(change.Members[0], found); err != nil {
			return err
		}
		g.keep(s, found)
	case found == nil:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"message":"Resource not found error","type":"NotFoundError"}]}`)
		return nil
	case r.Method == http.MethodPut:
		if err := s.change(found, change.Members[0]); err != nil {
			return err
		}
	case r.Method == http.MethodDelete:
		s.remove(found)
		w.WriteHeader(http.StatusNoContent)
		return nil
	case r.Method != http.MethodGet:
		return errors.New("")
	}
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(envelope{Members: []*Member{found}})
}

// site finds a site, whose Ghost is new if it was not asked for anything yet.
func (g *Ghosts) site(name string) *site {
	s := g.sites[name]
	if s == nil {
		s = &site{byID: make(map[string]*Member), byUUID: make(map[string]*Member), emails: make(map[string]int)}
		g.sites[name] = s
	}
	return s
}

// keep gives a member what Ghost gives it.
func (g *Ghosts) keep(s *site, m *Member) {
	g.made++
	m.ID = fmt.Sprintf("%024x", g.made)
	if m.UUID == "" {
		m.UUID = fmt.Sprintf("00000000-0000-4000-8000-%012x", g.made)
	}
	m.CreatedAt = time.Now().UTC().Truncate(time.Second) // as Ghost keeps times
	s.add(m)
}

// Add adds a member to a site, with an ID, and a UUID if it has none.
func (g *Ghosts) Add(site string, m Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keep(g.site(site), &m)
}

// Created is how many members were created and added, of all sites, deleted ones among them.
func (g *Ghosts) Created() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.made
}

// LastCreated are the times at which sites got their last members, in order.
func (g *Ghosts) LastCreated() (times []time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sites {
		if !s.last.IsZero() {
			times = append(times, s.last)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	return times
}

// Emails counts the members of a site by email, in lower case. A real Ghost has no two of one
// email: it refuses the second, which these take so that it is seen.
func (g *Ghosts) Emails(site string) map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := make(map[string]int)
	for email, count := range g.site(site).emails {
		if count > 0 {
			counts[email] = count
		}
	}
	return counts
}
