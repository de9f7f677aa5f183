package versions

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const (
	emailKey  = "a-key-for-emails-0123456789abcdef"
	customKey = "a-key-for-own-ids-0123456789abcde"

	themeFolder = "../../examples/events-theme"
	themeName   = "lychgate-events"

	caddyfile = `{
	{{global}}
	lychgate {
		store postgres {{store}}
		secret 0123456789abcdef0123456789abcdef
		site daily {
			hosts localhost
			platform ghost {{ghost}} {
				admin_key {{key}}
				webhooks off
			}
			{{themes}}
			integration crm {
				key ` + emailKey + `
			}
			integration shop {
				key ` + customKey + `
				mode custom_id
			}
		}
	}
}

http://:{{port}} {
	inbox_provider {
		limit 60000 1m
	}
	members_api {
		limit 60000 1m
	}
	theme_manifest
	staff_desk
	events_api {
		limit 60000 1m
	}
	reverse_proxy {{upstream}}
}
`
)

// fleet is the edges of a publication, on one store.
type fleet struct {
	t     *testing.T
	base  string // the address that Ghost knows itself by; nobody listens there
	store string
	db    *database.DB
	ghost *ghosttest.Process
	edges []*caddytest.Edge
	ports []string // of the edges
	owner *caller

	platform *httptest.Server // what edges reach Ghost by when they deliver
	isAway   atomic.Bool      // whether it says that Ghost is away

	asked     sync.Map     // the edges that the load balancer asks, by their numbers
	next      atomic.Int64 // the edge that is asked next, modulo their number
	isRefused atomic.Int64 // how many connections were
	isLost    atomic.Int64 // how many requests ended without a response
}

// newFleet starts a Ghost, and an edge. The theme of examples is active.
func newFleet(t *testing.T, binary string) *fleet {
	t.Helper()
	port := freeport.New(t)
	f := &fleet{t: t, base: "http://localhost:" + port, store: dbtest.PostgresSource(t), ghost: ghosttest.New(t)}
	t.Setenv("LYCHGATE_GHOST_URL", f.base)
	f.ghost.Start()
	f.platform = f.newPlatform()
	db, err := database.Open(t.Context(), database.Postgres, f.store)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the schema is dropped after it
	f.db = db
	f.add(binary)
	t.Cleanup(func() {
		for n := range f.edges {
			f.stop(n)
		}
	})
	f.owner = f.newCaller()
	f.owner.do(0, "POST", "/ghost/api/admin/session/", map[string]string{"username": "owner@example.com", "password": "four-words-on-a-lychgate"}, nil)
	wait.Until(t, func() string { // Ghost keeps a session a moment after it has said so
		if status, text := f.owner.try(t.Context(), 0, "GET", "/ghost/api/admin/users/me/", nil, nil); status != http.StatusOK {
			return text
		}
		return ""
	})
	f.uploadTheme(0, themeName, os.DirFS(themeFolder))
	f.owner.do(0, "PUT", "/ghost/api/admin/themes/"+themeName+"/activate/", nil, nil)
	return f
}

// newPlatform starts a proxy before Ghost.
func (f *fleet) newPlatform() *httptest.Server {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(f.ghost.URL, "http://")
		},
		ErrorLog: log.New(io.Discard, "", 0), // edges that stop end what they do in the background
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.isAway.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	f.t.Cleanup(server.Close)
	return server
}

// add starts one more edge.
func (f *fleet) add(binary string) {
	f.t.Helper()
	f.edges = append(f.edges, nil)
	f.start(len(f.edges)-1, binary)
}

// start starts an edge, at the port that it had before. The load balancer asks it once it is
// healthy: the store is opened in the background.
func (f *fleet) start(n int, binary string) {
	f.t.Helper()
	f.run(n, binary)
	admin := caddytest.Admin(f.edges[n].AdminSocket)
	defer admin.CloseIdleConnections()
	wait.Until(f.t, func() string {
		response, err := admin.Get("http://caddy/lychgate/health")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			return fmt.Sprintf("the health of edge %d: %s, %s, %v; want 200", n, response.Status, text, err)
		}
		return ""
	})
	f.asked.Store(n, true)
}

// run starts an edge, and returns when it listens.
func (f *fleet) run(n int, binary string) {
	f.t.Helper()
	values := caddytest.Values{"store": f.store, "ghost": f.platform.URL, "key": f.ghost.Key, "upstream": strings.TrimPrefix(f.ghost.URL, "http://")}
	for _, mark := range marks {
		values["themes"] += "theme " + swapped(mark) + " {\nrepository http://127.0.0.1:1/none.git\n}\n"
	}
	folder := f.t.TempDir()
	if e := f.edges[n]; e != nil {
		folder, values["port"] = e.Folder, e.Port
	}
	e, err := caddytest.StartBinary(binary, folder, caddyfile, values)
	if err != nil {
		f.t.Fatalf("caddytest.StartBinary: %v", err)
	}
	if f.edges[n] == nil {
		caddytest.ShowLog(f.t, e.LogFile)
		f.ports = append(f.ports, e.Port)
	}
	f.edges[n] = e
}

// stop ends an edge as a service manager does.
func (f *fleet) stop(n int) {
	f.t.Helper()
	if f.edges[n] == nil {
		return
	}
	if err := f.edges[n].Stop(); err != nil {
		f.t.Errorf("f.edges[%d].Stop: %v", n, err)
	}
	f.asked.Delete(n)
}

func (f *fleet) uploadTheme(edge int, name string, files fs.FS) {
	f.t.Helper()
	var file, body bytes.Buffer
	z := zip.NewWriter(&file)
	if err := errors.Join(z.AddFS(files), z.Close()); err != nil {
		f.t.Fatalf("zip: %v", err)
	}
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", name+".zip")
	if err == nil {
		_, err = part.Write(file.Bytes())
	}
	if err := errors.Join(err, form.Close()); err != nil {
		f.t.Fatalf("form: %v", err)
	}
	f.owner.header.Set("Content-Type", form.FormDataContentType())
	status, text := f.owner.try(f.t.Context(), edge, "POST", "/ghost/api/admin/themes/upload/", body.Bytes(), nil)
	f.owner.header.Del("Content-Type")
	if status != http.StatusOK {
		f.t.Fatalf("uploading the theme %s: got %d, %s, want 200", name, status, text)
	}
}

// anyEdge has the load balancer choose.
const anyEdge = -1

// edgeKey is the key of a context's value: which edge is asked.
type edgeKey struct{}

// RoundTrip sends a request to the edge of its context, or is a load balancer: in turn to all
// edges that are healthy, and to the next one where a connection is refused or there is no response.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	edge, _ := r.Context().Value(edgeKey{}).(int)
	if edge != anyEdge {
		return f.send(r, edge)
	}
	err := errors.New("no edge is healthy")
	start := int(f.next.Add(1))
	for n := range f.edges {
		edge := (start + n) % len(f.edges)
		if _, isAsked := f.asked.Load(edge); !isAsked {
			continue
		}
		var response *http.Response
		if response, err = f.send(r, edge); err == nil {
			return response, nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.isRefused.Add(1)
		} else {
			f.isLost.Add(1)
		}
	}
	return nil, err
}

func (f *fleet) send(r *http.Request, edge int) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.Host, sent.URL.Host = cmp.Or(r.Host, r.URL.Host), "127.0.0.1:"+f.ports[edge]
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	return http.DefaultTransport.RoundTrip(sent)
}

// caller is a browser, or a program with a key.
type caller struct {
	fleet  *fleet
	client *http.Client
	header http.Header
	host   string // that is asked for, empty for that of the fleet
}

func (f *fleet) newCaller(header ...string) *caller {
	f.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatalf("cookiejar.New: %v", err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // of redirections only the cookies matter
	c := &caller{fleet: f, client: &http.Client{Transport: f, Jar: jar, CheckRedirect: stay}, header: http.Header{"Origin": {f.base}, "Sec-Fetch-Site": {"same-origin"}}}
	for n := 0; n < len(header); n += 2 {
		c.header.Set(header[n], header[n+1])
	}
	return c
}

// try sends a request to an edge, with JSON, bytes or nothing. The status is 0 if there is no
// response. It may be called by any goroutine.
func (c *caller) try(ctx context.Context, edge int, method, path string, body any, header http.Header) (status int, text string) {
	var content []byte
	contentType := ""
	switch body := body.(type) {
	case nil:
	case []byte:
		content = body
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, err.Error()
		}
		contentType = "application/json"
	}
	request, err := http.NewRequestWithContext(context.WithValue(ctx, edgeKey{}, edge), method, c.fleet.base+path, bytes.NewReader(content))
	if err != nil {
		return 0, err.Error()
	}
	request.Host = cmp.Or(c.host, request.Host)
	request.Header = c.header.Clone()
	maps.Copy(request.Header, header)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(all)
}

// do is try for a request that succeeds. into, unless it is nil, is what JSON is decoded into.
func (c *caller) do(edge int, method, path string, body, into any) {
	c.fleet.t.Helper()
	status, text := c.try(c.fleet.t.Context(), edge, method, path, body, nil)
	if status < 200 || status >= 300 {
		c.fleet.t.Fatalf("%s %s at edge %d: got %d, %s, want a status below 300", method, path, edge, status, text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		c.fleet.t.Fatalf("decoding the response to %s %s, %s: %v", method, path, text, err)
	}
}

// newReader makes a member of Ghost's, who signs in at an edge.
func (f *fleet) newReader(edge int, email string) *caller {
	f.t.Helper()
	var made struct{ Members []struct{ ID string } }
	f.owner.do(edge, "POST", "/ghost/api/admin/members/", map[string]any{"members": []any{map[string]string{"email": email}}}, &made)
	var links struct {
		URLs []struct{ URL string } `json:"member_signin_urls"`
	}
	f.owner.do(edge, "GET", "/ghost/api/admin/members/"+made.Members[0].ID+"/signin_urls/", nil, &links)
	reader := f.newCaller()
	if status, text := reader.try(f.t.Context(), edge, "GET", strings.TrimPrefix(links.URLs[0].URL, f.base), nil, nil); status != http.StatusFound {
		f.t.Fatalf("signing %s in at edge %d: got %d, %s, want 302", email, edge, status, text)
	}
	return reader
}
