package events

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const (
	// themeFolder is the example.
	themeFolder = "../../examples/events-theme"
	themeName   = "lychgate-events"

	// anyTheme is what needs no theme of ours.
	anyTheme = "../../examples/events-any-theme"
)

const caddyfile = `{
	{{global}}
	lychgate {
		store sqlite {{store}}
		fallback_manifest {{fallback}}
		site daily {
			hosts localhost
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
		}
	}
}

http://localhost:{{port}} {
	inbox_provider {
		path {{path}}/ghost/inbox-provider
	}
	theme_manifest {
		path {{path}}/ghost
	}
	staff_desk {
		path {{path}}/ghost
	}
	events_api {
		path {{path}}/ghost/lychgate/events
		limit 60000 1m
	}
	reverse_proxy {{upstream}}
}
`

// site is a publication with the example theme, whose owner is signed in.
type site struct {
	t      *testing.T
	base   string // http://localhost:<port>, with the path of a Ghost in a subdirectory
	admin  string // base, or that of the staff
	origin string // of the staff
	store  string
	ghost  *ghosttest.Process
	client *http.Client
}

// newSite starts a Ghost below a path, empty for none, and an edge in front of it, and
// uploads the theme.
func newSite(t *testing.T, path string) *site {
	t.Helper()
	s, _ := startSite(t, path, caddyfile)
	s.uploadTheme()
	return s
}

// startSite starts a Ghost below a path, and an edge in front of it.
func startSite(t *testing.T, path, caddyfile string) (*site, *caddytest.Edge) {
	t.Helper()
	harness.NeedBrowser(t)
	installed(t)
	jar, err := cookiejar.New(nil)
	port := freeport.New(t)
	s := &site{
		t: t, base: "http://localhost:" + port + path, admin: "http://localhost:" + port + path, origin: "http://localhost:" + port, store: filepath.Join(t.TempDir(), "lychgate.db"),
		ghost: ghosttest.New(t), client: &http.Client{Jar: must(t, jar, err)},
	}
	t.Setenv("LYCHGATE_GHOST_URL", s.base)
	fallback, err := filepath.Abs(filepath.Join(anyTheme, "events.yaml"))
	s.ghost.Start()
	t.Setenv("GHOST_ADMIN_KEY", s.ghost.Key)
	edge := caddytest.New(t, caddyfile, caddytest.Values{
		"port": port, "path": path, "store": s.store, "fallback": must(t, fallback, err), "ghost": s.ghost.URL, "key": s.ghost.Key,
		"upstream": strings.TrimSuffix(strings.TrimPrefix(s.ghost.URL, "http://"), path),
	})
	s.signIn()
	return s, edge
}

// signIn signs the owner in.
func (s *site) signIn() {
	s.t.Helper()
	s.send("POST", "/ghost/api/admin/session/", map[string]string{"username": "owner@example.com", "password": "four-words-on-a-lychgate"}, nil)
}

// do sends a request of the owner's. The test ends unless the status is below 300.
func (s *site) do(method, path, contentType string, body io.Reader) (content string, header http.Header) {
	s.t.Helper()
	base := s.base
	if strings.HasPrefix(path, "/ghost/") {
		base = s.admin
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, base+path, body)
	if err != nil {
		s.t.Fatalf("http.NewRequestWithContext: %v", err)
	}
	request.Header.Set("Origin", s.origin)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatalf("s.client.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		s.t.Fatalf("%s %s: got status %s, %s, %v, want less than 300", method, path, response.Status, text, err)
	}
	return string(text), response.Header
}

// send sends JSON, nil for none, and reads the response, unless into is nil.
func (s *site) send(method, path string, body, into any) {
	s.t.Helper()
	var content io.Reader
	contentType := ""
	if body != nil {
		text, err := json.Marshal(body)
		content, contentType = bytes.NewReader(must(s.t, text, err)), "application/json"
	}
	response, _ := s.do(method, path, contentType, content)
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(response), into); err != nil {
		s.t.Fatalf("decoding the response to %s %s, %s: %v", method, path, response, err)
	}
}

func (s *site) get(path string) string {
	s.t.Helper()
	response, _ := s.do("GET", path, "", nil)
	return response
}

// uploadTheme uploads the example through the edge, and activates it. Neither Ghost nor we
// find anything in it.
func (s *site) uploadTheme() {
	s.t.Helper()
	if got := s.upload(themeName, os.DirFS(themeFolder)); len(got.Themes) != 1 || got.Themes[0].Name != themeName || len(got.Themes[0].Errors)+len(got.Themes[0].Warnings)+len(got.Errors) > 0 {
		s.t.Fatalf("the upload: %+v", got)
	}
	s.send("PUT", "/ghost/api/admin/themes/"+themeName+"/activate/", nil, nil)
}

// uploaded is what an upload of a theme is answered with.
type uploaded struct {
	Themes []struct {
		Name             string
		Errors, Warnings []any
	}
	Errors []any `json:"_errors"`
}

// upload uploads a theme.
func (s *site) upload(name string, theme fs.FS) (got uploaded) {
	s.t.Helper()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	if err := z.AddFS(theme); err != nil {
		s.t.Fatalf("z.AddFS: %v", err)
	}
	if err := z.Close(); err != nil {
		s.t.Fatalf("z.Close: %v", err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name+".zip")
	if _, err := must(s.t, part, err).Write(file.Bytes()); err != nil {
		s.t.Fatalf("must(s.t, part, err).Write: %v", err)
	}
	form.Close()
	response, _ := s.do("POST", "/ghost/api/admin/themes/upload/", form.FormDataContentType(), &body)
	if err := json.Unmarshal([]byte(response), &got); err != nil {
		s.t.Fatalf("uploading the theme: %s: %v", response, err)
	}
	return got
}

// download are the files of a theme that Ghost has.
func (s *site) download(name string) fstest.MapFS {
	s.t.Helper()
	zipped := s.get("/ghost/api/admin/themes/" + name + "/download/")
	theme, err := zip.NewReader(strings.NewReader(zipped), int64(len(zipped)))
	files := make(fstest.MapFS)
	for _, file := range must(s.t, theme, err).File {
		content, err := fs.ReadFile(theme, file.Name)
		if !file.FileInfo().IsDir() {
			files[file.Name] = &fstest.MapFile{Data: must(s.t, content, err)}
		}
	}
	return files
}

// event is what the staff's JSON says of an event.
type event struct {
	ID, Status string
	Values     map[string]any
	Post       *struct{ ID string }
	Pending    *struct{ Problem string }
	Problems   []struct{ Field, Message string }
}

// slug is that of the event's page.
func (e event) slug() string { return e.Values["slug"].(string) }

// publish makes an event of the example's, and publishes it.
func (s *site) publish(kind string, values map[string]any) event {
	s.t.Helper()
	return s.publishOf(themeName, kind, values)
}

// publishOf makes an event of a theme's, and publishes it.
func (s *site) publishOf(theme, kind string, values map[string]any) event {
	s.t.Helper()
	var e event
	s.send("POST", "/ghost/lychgate/desk/events", map[string]any{"theme": theme, "type": kind, "values": values}, &e)
	if len(e.Problems) > 0 {
		s.t.Fatalf("creating an event: got problems %v, want none", e.Problems)
	}
	return s.change(e, "publish")
}

// change publishes an event, or cancels it, and waits until Ghost has its post: one that has much to do
// may take longer than the desk waits.
func (s *site) change(e event, action string) (changed event) {
	s.t.Helper()
	s.send("POST", "/ghost/lychgate/desk/events/"+e.ID+"/"+action, nil, &changed)
	wait.Until(s.t, func() string {
		if changed.Post != nil && changed.Pending == nil {
			return ""
		}
		changed = event{}
		s.send("GET", "/ghost/lychgate/desk/events/"+e.ID, nil, &changed)
		return fmt.Sprintf("%s: got %+v, want a post and nothing pending", action, changed)
	})
	return changed
}

// keepMessages keeps the texts of messaging states.
func (s *site) keepMessages(messages map[string]string) {
	s.t.Helper()
	db, err := database.Open(s.t.Context(), database.SQLite, s.store)
	defer must(s.t, db, err).Close()
	kept, err := events.NewSQL(s.t.Context(), db)
	err = must(s.t, kept, err).SaveSettings(s.t.Context(), "daily", events.Settings{Messages: messages})
	if err != nil {
		s.t.Fatalf("must(s.t, kept, err).SaveSettings: %v", err)
	}
}

// helpers are for all scripts of these tests: what is seen of an element.
const helpers = `
	const seen = element => !!element && element.checkVisibility({visibilityProperty: true, opacityProperty: true});
	const text = element => seen(element) ? element.innerText.replaceAll(/[^\S\n]+/g, ' ').replaceAll(' at ', ', ').trim() : null;
	const find = (selector, within = document) => within.querySelector(selector);
	const shownIn = list => [...list.shadowRoot.querySelectorAll('[part~=item]')].map(item => [...item.querySelectorAll('a, p')].map(text).filter(Boolean));
	const message = () => text([...document.querySelectorAll('.message')].find(seen) ?? find('lychgate-event:not(script)')?.shadowRoot.querySelector('[part=message]'));
	const rows = () => Object.fromEntries([...document.querySelectorAll('.facts dl > div')].filter(seen)
		.map(row => [text(find('dt', row)), text(find('dd', row))]));
`

// open opens a page as a reader.
func (s *site) open(path string) *browser.Page {
	s.t.Helper()
	return browser.Open(s.t, harness.Engine, s.base+path, browser.Look{Width: 1280, Height: 900}, helpers)
}
