package themes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/limiter"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// aGhost is a site whose platform is Ghost.
var aGhost = &api.Site{Kind: ghost.Kind, Platform: new(ghost.Client)}

func TestChangesOfThemesAreDetected(t *testing.T) {
	for path, want := range map[string]bool{
		"/ghost/api/admin/themes/upload/":                                   true,
		"/ghost/api/admin/themes/upload":                                    true,
		"/ghost/api/admin/themes/Upload/":                                   true,
		"/GHOST/api/v4/ADMIN/themes/upload/":                                true,
		"/ghost/api/canary/admin/themes/upload/":                            true,
		"/ghost/api//admin/themes/upload/":                                  true,
		"/ghost//api/admin//themes//upload//":                               true,
		"/ghost/api/v9/admin/themes/upload/":                                false,
		"/ghost/api/admin/themes/install/":                                  false,
		"/ghost/api/admin/themes/upload/x/":                                 false,
		"/ghost/api/admin/themes/":                                          false,
		"/ghost/api/admin/images/upload/":                                   false,
		"/blog/ghost/api/admin/themes/upload/":                              false,
		"/ghost":                                                            false,
		"/ghost" + strings.Repeat("/", 16000) + "api/admin/themes/upload/":  true,
		"/ghost" + strings.Repeat("/", 16<<10) + "api/admin/themes/upload/": false,
		"/": false,
	} {
		h := &API{Path: "/ghost"}
		if _, got := h.Changes(httptest.NewRequest(http.MethodPost, path, nil), aGhost); got != want {
			t.Errorf("%s: Changes = %v, want %v", path, got, want)
		}
		if _, got := h.Changes(httptest.NewRequest(http.MethodGet, path, nil), aGhost); got {
			t.Errorf("reading %s", path)
		}
	}
	h := &API{Path: "/blog/ghost"}
	if change, _ := h.Changes(httptest.NewRequest(http.MethodDelete, "/blog/ghost/api/admin/themes/nightly/", nil), aGhost); change.Deleted != "nightly" {
		t.Errorf("Changes of a Ghost below /blog: got %+v, want the theme nightly deleted", change)
	}
}

// aStore keeps nothing, and remembers what was saved.
type aStore struct {
	themes.Store
	saved []string
}

func (*aStore) Find(context.Context, string, string) (themes.Theme, error) {
	return themes.Theme{}, nil
}

func (*aStore) Begin(context.Context, string, string) (themes.Sequence, error) { return 1, nil }

func (s *aStore) Save(_ context.Context, _ themes.Sequence, t themes.Theme) error {
	s.saved = append(s.saved, t.Name)
	return nil
}

func (s *aStore) Clear(_ context.Context, _ themes.Sequence, _, name string) error {
	s.saved = append(s.saved, "not "+name)
	return nil
}

// A response of Ghost's that is not what is expected goes through as it is, and
// nothing is stored.
func TestOddAnswers(t *testing.T) {
	response := func(status int, contentType, body string) api.Next {
		return func(w http.ResponseWriter, r *http.Request) error {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Etag", `"ghost"`)
			w.WriteHeader(status)
			http.NewResponseController(w).Flush()
			w.Write([]byte(body[:len(body)/2]))
			w.Write([]byte(body[len(body)/2:]))
			return nil
		}
	}
	const taken = `{"themes":[{"name":"nightly"}]}`
	header := map[string]string{"Content-Type": "application/json", "Etag": `"ghost"`}
	for _, test := range []struct {
		name  string
		next  api.Next
		want  recorded
		saved []string
	}{
		{"taken", response(200, "application/json; charset=utf-8", taken), recorded{200, map[string]string{
			"Content-Type": "application/json; charset=utf-8", "Content-Length": "44",
		}, `{"themes":[{"name":"nightly"}],"_errors":[]}`}, []string{"not nightly"}},
		{"taken, with spaces", response(201, "application/json", " "+taken+"\n"), recorded{201, map[string]string{
			"Content-Type": "application/json", "Content-Length": "44",
		}, `{"themes":[{"name":"nightly"}],"_errors":[]}`}, []string{"not nightly"}},
		{"refused", response(422, "application/json", `{"errors":[]}`), recorded{422, header, `{"errors":[]}`}, nil},
		{"no theme", response(200, "application/json", `{"themes":[]}`), recorded{200, header, `{"themes":[]}`}, nil},
		{"a theme without name", response(200, "application/json", `{"themes":[{}]}`), recorded{200, header, `{"themes":[{}]}`}, nil},
		{"not JSON", response(200, "application/json", taken[:20]), recorded{200, header, taken[:20]}, nil},
		{"a list", response(200, "application/json", `[1]`), recorded{200, header, `[1]`}, nil},
		{"a page", response(200, "text/html", taken), recorded{200, map[string]string{"Content-Type": "text/html", "Etag": `"ghost"`}, taken}, nil},
		{"a redirect", response(301, "application/json", taken), recorded{301, header, taken}, nil},
		{"very long", response(200, "application/json", taken+strings.Repeat(" ", api.MaxBuffered)), recorded{200, header, taken + strings.Repeat(" ", api.MaxBuffered)}, nil},
		{"compressed", func(w http.ResponseWriter, r *http.Request) error {
			if got := r.Header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Ghost is asked for %q", got)
			}
			w.Header().Set("Content-Encoding", "gzip")
			return response(200, "application/json", taken)(w, r)
		}, recorded{200, map[string]string{"Content-Type": "application/json", "Etag": `"ghost"`, "Content-Encoding": "gzip"}, taken}, nil},
		{"a hint first", func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			return response(422, "application/json", "{}")(w, r)
		}, recorded{422, header, "{}"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &aStore{}
			got, err := watch(t, store, test.next)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("watch: error %v, want none (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.saved, store.saved); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	away := errors.New("no upstream")
	if got, err := watch(t, &aStore{}, func(http.ResponseWriter, *http.Request) error { return away }); !errors.Is(err, away) || got.Body != "" {
		t.Errorf("watch = %v, %v, want error %v, no body", got, err, away)
	}
}

// recorded is what a client sees of a response.
type recorded struct {
	Status int
	Header map[string]string
	Body   string
}

// finalAnswer leaves out what comes before the response.
type finalAnswer struct{ *httptest.ResponseRecorder }

func (w finalAnswer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.ResponseRecorder.WriteHeader(status)
	}
}

// A platform may take an upload whose boundary is not clear. That it was not read is said.
func TestUploadsWithoutAClearBoundary(t *testing.T) {
	const unread = `"_errors":[{"field":"manifest","message":"the theme's zip is not read: ` +
		`the request's Content-Type is not multipart/form-data with one boundary; upload it again with one","severity":"error"}]}`
	for _, contentType := range []string{"multipart/form-data; boundary=b; boundary=c", "multipart/form-data", "multipart/form-data; boundary=b c", ""} {
		got, err := watchAs(t, contentType, &aStore{}, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			_, err := w.Write([]byte(`{"themes":[{"name":"nightly"}]}`))
			return err
		})
		if err != nil || !strings.HasSuffix(got.Body, unread) {
			t.Errorf("%q: %s, %v, want …%s", contentType, got.Body, err, unread)
		}
	}
}

// watch uploads a theme without a manifest.
func watch(t testing.TB, store themes.Store, next api.Next) (recorded, error) {
	return watchAs(t, "multipart/form-data; boundary=b", store, next)
}

func watchAs(t testing.TB, contentType string, store themes.Store, next api.Next) (recorded, error) {
	const zip = "PK\x05\x06" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	body := "--b\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"nightly.zip\"\r\n\r\n" + zip + "\r\n--b--\r\n"
	r := httptest.NewRequest(http.MethodPost, "/ghost/api/admin/themes/upload/", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("Authorization", "token")
	h := &API{Path: "/ghost", FileName: "lychgate-manifest.yaml", Scans: limiter.New(8, 4), Unknown: limiter.New(64, 8), Logger: zap.NewNop()}
	site := &api.Site{
		Kind:     ghost.Kind,
		Platform: new(ghost.Client),
		Staff:    api.NewStaff("daily", "Ghost", platformtest.New(), api.NewAuthLimiter(platformtest.StaffLimiter(t))),
		Themes: func() (*themes.Service, error) {
			return &themes.Service{Site: "daily", Store: store, Now: time.Now}, nil
		},
	}
	w := httptest.NewRecorder()
	change, _ := h.Changes(r, site)
	_, err := h.Watch(finalAnswer{w}, r, site, change, netip.Addr{}, next)
	got := recorded{w.Code, map[string]string{}, w.Body.String()}
	for name, values := range w.Header() {
		got.Header[name] = strings.Join(values, "; ")
	}
	return got, err
}
