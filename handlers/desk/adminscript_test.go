package desk

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
)

func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write([]byte(text))
	w.Close()
	return out.String()
}

// recorded is what a client sees of a response.
type recorded struct {
	Status int
	Header map[string]string
	Body   string
}

// Ghost's configuration gets the script; what is not Ghost's configuration, or cannot be
// read within bounds, goes through byte for byte, with its own headers.
func TestAddAdminScript(t *testing.T) {
	const (
		settings = `{"config":{"version":"6","clientExtensions":{}}}`
		changed  = `{"config":{"version":"6","clientExtensions":{"script":{"src":"/ghost/admin.js?v=1"}}}}`
	)
	long := `{"config":{"version":"` + strings.Repeat("6", maxAdminSettings) + `","clientExtensions":{}}}`
	type header = map[string]string
	length := func(text string) string { return strconv.Itoa(len(text)) }
	for _, test := range []struct {
		name     string
		method   string
		response recorded
		want     recorded // the same as the response if it has no status
	}{
		{
			"plain", "GET",
			recorded{200, header{"Content-Type": "application/json; charset=utf-8", "Content-Length": length(settings), "Etag": `W/"a"`, "X-Ghost": "1"}, settings},
			recorded{200, header{"Content-Type": "application/json; charset=utf-8", "Content-Length": length(changed), "X-Ghost": "1"}, changed},
		},
		{
			"gzip", "GET",
			recorded{200, header{"Content-Type": "application/json", "Content-Encoding": "gzip", "Etag": `"a"`}, gzipped(settings)},
			recorded{200, header{"Content-Type": "application/json", "Content-Length": length(changed)}, changed},
		},
		{
			"HEAD", "HEAD",
			recorded{200, header{"Content-Type": "application/json", "Content-Length": "47", "Etag": `"a"`}, ""},
			recorded{200, header{"Content-Type": "application/json"}, ""},
		},
		{"brotli", "GET", recorded{200, header{"Content-Type": "application/json", "Content-Encoding": "br", "Etag": `"a"`}, settings}, recorded{}},
		{"not gzip", "GET", recorded{200, header{"Content-Type": "application/json", "Content-Encoding": "gzip", "Etag": `"a"`}, settings}, recorded{}},
		{"cut off gzip", "GET", recorded{200, header{"Content-Type": "application/json", "Content-Encoding": "gzip"}, gzipped(settings)[:30]}, recorded{}},
		{"a gzip bomb", "GET", recorded{200, header{"Content-Type": "application/json", "Content-Encoding": "gzip"}, gzipped(strings.Repeat(" ", 64<<20) + settings)}, recorded{}},
		{"too long", "GET", recorded{200, header{"Content-Type": "application/json", "Content-Length": length(long), "Etag": `"a"`}, long}, recorded{}},
		{"a page", "GET", recorded{200, header{"Content-Type": "text/html", "Etag": `"a"`}, settings}, recorded{}},
		{"not JSON", "GET", recorded{200, header{"Content-Type": "application/json", "Etag": `"a"`}, settings[:30]}, recorded{}},
		{"something else", "GET", recorded{200, header{"Content-Type": "application/json", "Etag": `"a"`}, `{"users":[]}`}, recorded{}},
		{"signed out", "GET", recorded{403, header{"Content-Type": "application/json", "Etag": `"a"`}, settings}, recorded{}},
		{"not modified", "GET", recorded{304, header{"Etag": `"a"`}, ""}, recorded{}},
		{"made", "GET", recorded{201, header{"Content-Type": "application/json", "Etag": `"a"`}, settings}, recorded{}},
		{"elsewhere", "GET", recorded{302, header{"Content-Type": "application/json", "Location": "/x"}, settings}, recorded{}},
		{"broken", "GET", recorded{500, header{"Content-Type": "application/json"}, settings}, recorded{}},
		{"no content", "GET", recorded{204, header{}, ""}, recorded{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/ghost/api/admin/config/", nil)
			r.Header.Set("Accept-Encoding", "gzip, br")
			r.Header.Set("If-None-Match", `"a"`)
			r.Header.Set("X-Admin", "1")
			w := httptest.NewRecorder()
			var asked http.Header
			err := AddAdminScript(w, r, ghost.Kind.AdminScript, "/ghost/admin.js?v=1", func(w http.ResponseWriter, r *http.Request) error {
				asked = r.Header
				for name, value := range test.response.Header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.response.Status)
				half := len(test.response.Body) / 2
				w.Write([]byte(test.response.Body[:half]))
				http.NewResponseController(w).Flush()
				w.Write([]byte(test.response.Body[half:]))
				return nil
			})
			if diff := cmp.Diff(http.Header{"Accept-Encoding": {"identity"}, "X-Admin": {"1"}}, asked); diff != "" || err != nil {
				t.Errorf("Ghost is asked: %s, %v", diff, err)
			}
			want := test.want
			if want.Status == 0 {
				want = test.response
			}
			got := recorded{w.Code, map[string]string{}, w.Body.String()}
			for name, values := range w.Header() {
				got.Header[name] = strings.Join(values, "; ")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("response (-want +got):\n%.2000s", diff)
			}
			if got := r.Header.Get("Accept-Encoding"); got != "gzip, br" {
				t.Errorf("the one who compresses the response is told %q", got)
			}
		})
	}
	away := errors.New("no upstream")
	w := httptest.NewRecorder()
	err := AddAdminScript(w, httptest.NewRequest(http.MethodGet, "/", nil), ghost.Kind.AdminScript, "/x", func(http.ResponseWriter, *http.Request) error { return away })
	if !errors.Is(err, away) || w.Body.Len() > 0 {
		t.Errorf("AddAdminScript: got %v, response %v, want %v and an empty response", err, w, away)
	}
}

// Nothing else is looked at: not what a stranger or an integration asks, and not what
// changes anything.
func TestAsksForSettings(t *testing.T) {
	const path = "/api/admin/config/"
	staff := map[string]string{"Cookie": "a=b; ghost-admin-api-session=s"}
	for _, test := range []struct {
		method, path string
		header       map[string]string
		want         bool
	}{
		{"GET", path, staff, true},
		{"HEAD", path, staff, true},
		{"GET", path, nil, false},
		{"GET", path, map[string]string{"Cookie": "ghost-admin-api-session="}, false},
		{"GET", path, map[string]string{"Cookie": "ghost-admin-api-session=s", "Authorization": "Ghost abc"}, false},
		{"GET", path, map[string]string{"Cookie": "ghost-admin-api-session=s", "Range": "bytes=0-1"}, false},
		{"POST", path, staff, false},
		{"GET", "/api/admin/config", staff, false},
		{"GET", "/api/admin/settings/", staff, false},
		{"GET", "", staff, false},
	} {
		r := httptest.NewRequest(test.method, "/ghost"+test.path, nil)
		for name, value := range test.header {
			r.Header.Set(name, value)
		}
		if got := AsksForSettings(r, &api.Site{Kind: ghost.Kind, Platform: new(ghost.Client)}, test.path); got != test.want {
			t.Errorf("AsksForSettings of %s %s %v: got %v, want %v", test.method, test.path, test.header, got, test.want)
		}
	}
}
