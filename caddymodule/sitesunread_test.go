package caddymodule_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// operations are all that docs/openapi.yaml has: methods by path.
func operations(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/openapi.yaml")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var document struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("yaml.Unmarshal: %v", err)
	}
	found := make(map[string][]string)
	for path, item := range document.Paths {
		for _, method := range []string{"get", "head", "post", "put", "delete", "options"} {
			if item[method] != nil {
				found[path] = append(found[path], strings.ToUpper(method))
			}
		}
	}
	if len(found) < 20 {
		t.Fatalf("docs/openapi.yaml has %d paths, want all", len(found))
	}
	return found
}

// addStored adds a site without a platform to a store, as another edge does.
func addStored(t *testing.T, source, name, host string) {
	t.Helper()
	db := edgetest.OpenDatabase(t, source)
	store, err := sites.NewSQL(t.Context(), db, new(seal.Keyring))
	if err == nil {
		err = store.Add(t.Context(), sites.Site{Name: name, Hosts: []string{host}, Settings: json.RawMessage(`{"platform":{"kind":"none"}}`)})
	}
	if err != nil {
		t.Fatalf("adding site %s: %v", name, err)
	}
}

const unreadMessage = "The sites of this server are not read yet. Try again in a moment."

// An edge that starts while its store is away cannot say which site a host is. Readers, CRMs and
// calendars that were told 404 would take the site for gone. Once the store was there, the edge
// goes on with what it has read.
func TestStoreIsAwayAtStart(t *testing.T) {
	direct, source, w := edgetest.PostgresProxy(t)
	addStored(t, direct, "daily", "daily.example")
	w.Cut()
	config := healthGlobal + "lychgate {\nstore " + source + "\n}\n}\nhttp://:{{port}} {\ninbox_provider\nmembers_api\ntheme_manifest\nstaff_desk\nevents_api\nreverse_proxy {\ndynamic lychgate\n}\n}\n"
	e := edgetest.StartEdge(t, nil, config)
	admin := edgetest.AdminOf(t, e.AdminSocket)
	eachIsUnread(e, operations(t))
	pagesAreUnread(e)
	want := healthResponse{Status: 503, Store: "postgres", Sites: []string{}}
	got, problem := health(t, admin)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("health before the store is there (-want +got):\n%s", diff)
	}
	if want := "the sites in the store are not read yet: the store is away"; problem != want {
		t.Errorf("got problem %q, want %q", problem, want)
	}

	w.Fix()
	healthy := healthResponse{Status: 200, Healthy: true, Store: "postgres", Sites: []string{}, StoredSites: 1}
	wait.Until(t, func() string {
		got, _ := health(t, admin)
		return cmp.Diff(healthy, got)
	})
	knowsOnly(e, "daily.example")

	w.Cut()
	want = healthResponse{Status: 503, Store: "postgres", Sites: []string{}, StoredSites: 1, FromMemory: []string{"sites", "events"}}
	wait.Until(t, func() string {
		got, _ := health(t, admin)
		return cmp.Diff(want, got)
	})
	knowsOnly(e, "daily.example")
	e.Load(config + "\n# changed\n")
	knowsOnly(e, "daily.example")
	if got, _ := health(t, admin); got.Status != 503 || !slices.Contains(got.FromMemory, "sites") {
		t.Errorf("health after a reload while the store is away: got %+v, want status 503 and sites from memory", got)
	}
}

// eachIsUnread holds all operations to the same response, of which each has the shape of its own.
func eachIsUnread(e *edgetest.Edge, operations map[string][]string) {
	e.T.Helper()
	parameter := regexp.MustCompile(`\{[a-z]+\}`)
	for _, path := range slices.Sorted(maps.Keys(operations)) {
		for _, method := range operations[path] {
			got, err := e.SendBody(method, parameter.ReplaceAllString(path, "x"), "{}", "Host", "daily.example", "Content-Type", "application/json")
			if err != nil {
				e.T.Fatalf("%s %s: %v", method, path, err)
			}
			var body struct{ Message string }
			if method != "HEAD" && json.Unmarshal([]byte(got.Body), &body) != nil {
				e.T.Errorf("%s %s: got %q, want JSON", method, path, got.Body)
			}
			want := edgetest.Response{Status: http.StatusServiceUnavailable, Header: map[string]string{"Retry-After": "5"}, Body: unreadMessage}
			if method == "HEAD" {
				want.Body = ""
			}
			if diff := cmp.Diff(want, edgetest.Response{got.Status, map[string]string{"Retry-After": got.Header["Retry-After"]}, body.Message}); diff != "" {
				e.T.Errorf("%s %s: status, Retry-After and message (-want +got):\n%s", method, path, diff)
			}
		}
	}
}

// pagesAreUnread looks at what docs/openapi.yaml does not have. Staff see a page with its style.
func pagesAreUnread(e *edgetest.Edge) {
	e.T.Helper()
	for _, path := range []string{
		"/ghost/lychgate/inbox-button.js", "/ghost/lychgate/event.js", "/ghost/lychgate/manifest.schema.json", "/ghost/lychgate/desk/themes", "/ghost/lychgate/desk/admin.json",
	} {
		got := e.Do("GET", path, "Host", "daily.example")
		if got.Status != http.StatusServiceUnavailable || got.Header["Retry-After"] != "5" || !strings.Contains(got.Body, unreadMessage) {
			e.T.Errorf("%s: got %v, want status 503, Retry-After 5 and %q", path, got, unreadMessage)
		}
	}
	if got := e.Do("GET", "/", "Host", "daily.example"); got.Status != http.StatusServiceUnavailable || got.Header["Retry-After"] != "5" {
		e.T.Errorf("a page of the platform: got %v, want status 503 and Retry-After 5", got)
	}
	page := e.Do("GET", "/ghost/lychgate/desk/themes", "Host", "daily.example").Body
	style := regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)"`).FindStringSubmatch(page)
	if style == nil {
		e.T.Fatalf("the page has no style: %s", page)
	}
	if got := e.Do("GET", style[1], "Host", "daily.example"); got.Status != http.StatusOK {
		e.T.Errorf("the page's style: got %v, want status 200", got)
	}
}

// knowsOnly checks that lookups are answered at a host, and that another is no site's.
func knowsOnly(e *edgetest.Edge, host string) {
	e.T.Helper()
	for at, want := range map[string]int{host: 200, "other.example": 404} {
		if got := e.Do("GET", "/ghost/inbox-provider?domain=gmail.com", "Host", at); got.Status != want {
			e.T.Errorf("a lookup at %s: got %v, want status %d", at, got, want)
		}
		if got := e.Do("GET", "/", "Host", at); got.Status != http.StatusServiceUnavailable || got.Header["Retry-After"] != "" { // neither has a platform
			e.T.Errorf("a page at %s: got %v, want status 503 without Retry-After", at, got)
		}
	}
}
