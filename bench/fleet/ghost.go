package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ghostTime is how long a stand-in takes for each answer.
const ghostTime = 5 * time.Millisecond

// adminKey is the key of all stand-ins.
var adminKey = "0123456789abcdef01234567:" + strings.Repeat("0f", 32)

// ghosts are stand-ins for the Ghosts of many sites, each in a subdirectory with
// the site's name. They list no members, take those that are created, and take
// webhooks.
type ghosts struct {
	server   *httptest.Server
	requests atomic.Int64
	unknown  atomic.Pointer[string] // a request that a stand-in does not know

	mu      sync.Mutex
	created map[string]int       // members, by site
	last    map[string]time.Time // when the last one was created, by site
	total   int
}

func newGhosts() *ghosts {
	g := &ghosts{created: make(map[string]int), last: make(map[string]time.Time)}
	g.server = httptest.NewServer(g)
	return g
}

// csv writes a file of sites for `caddy lychgate site add --from-csv`. The options are
// those for webhooks and for reconcile, with a comma between them.
func (g *ghosts) csv(sites int, options string) string {
	var text strings.Builder
	fmt.Fprintln(&text, "name,hosts,platform,url,admin_key,webhooks,reconcile")
	for n := range sites {
		fmt.Fprintf(&text, "%[1]s,%[1]s.example,ghost,%[2]s/%[1]s,%[3]s,%[4]s\n", siteName(n), g.server.URL, adminKey, options)
	}
	return text.String()
}

func siteName(n int) string { return fmt.Sprintf("site-%d", n) }

// ServeHTTP answers as Ghost's Admin API does.
func (g *ghosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.requests.Add(1)
	time.Sleep(ghostTime)
	site, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w.Header().Set("Content-Type", "application/json")
	switch request := r.Method + " " + strings.TrimPrefix(path, "ghost/api/admin"); request {
	case "GET /site/":
		fmt.Fprintf(w, `{"site":{"url":"%s/%s/"}}`, g.server.URL, site)
	case "GET /members/":
		w.Write([]byte(`{"members":[],"meta":{"pagination":{"total":0}}}`))
	case "POST /members/":
		g.create(w, r, site)
	case "POST /webhooks/":
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(`{"webhooks":[]}`))
	default:
		g.unknown.Store(&request)
		http.NotFound(w, r)
	}
}

func (g *ghosts) create(w http.ResponseWriter, r *http.Request, site string) {
	var body struct {
		Members []map[string]any `json:"members"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Members) != 1 {
		http.Error(w, "not a member", http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	g.total++
	g.created[site]++
	g.last[site] = time.Now()
	id := fmt.Sprintf("%024x", g.total)
	g.mu.Unlock()
	member := body.Members[0]
	member["id"], member["status"], member["created_at"], member["updated_at"] = id, "free", time.Now().UTC(), time.Now().UTC()
	member["newsletters"] = []any{}
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(body)
}

func (g *ghosts) createdTotal() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total
}

// The result is in order of time, not of sites.
func (g *ghosts) doneAt() []time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Values(g.last), time.Time.Compare)
}

// problem tells of a request that a stand-in does not know.
func (g *ghosts) problem() error {
	if request := g.unknown.Load(); request != nil {
		return fmt.Errorf("a stand-in for Ghost does not know %s", *request)
	}
	return nil
}
