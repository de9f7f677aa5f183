package thememanifest_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
)

// adminConfig has two ways to one Ghost: through staff_desk, with an option, and past it.
func adminConfig(store, upstream, option string) string {
	return `
{
	{{global}}
	lychgate {
		store ` + store + `
		site daily {
			hosts localhost
			platform ghost http://` + upstream + ` {
				admin_key ` + edgetest.AnAdminKey + `
				webhooks off
			}
		}
		site bare {
			hosts bare.example.com
			platform none
		}
	}
}
http://:{{port}} {
	route /desk/* {
		uri strip_prefix /desk
		staff_desk {
			` + option + `
		}
		reverse_proxy ` + upstream + `
	}
	route /past/* {
		uri strip_prefix /past
		reverse_proxy ` + upstream + `
	}
}
`
}

// received is a Ghost, and what it was sent.
type received struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *received) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

// take has what was sent since the last call.
func (h *received) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.text.Reset()
	return h.text.String()
}

// settings are what Ghost tells its admin.
const settings = `{"config":{"version":"6.22.0","clientExtensions":{},"mail":"SMTP"}}`

// ServeHTTP answers with the settings, in the way that the request names.
func (h *received) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/site/") { // the edge asks that by itself
		return
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(h, "%s %s %s\nHost: %s\n", r.Method, r.RequestURI, r.Proto, r.Host)
	r.Header.Write(h)
	h.Write(body)
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Cache-Control", "no-cache, private, no-store")
	header.Set("Etag", `W/"2ab-x"`)
	header.Set("Vary", "Accept-Version, Origin, Accept-Encoding")
	header.Add("Set-Cookie", "a=b")
	text := settings
	switch kind := r.URL.Query().Get("answer"); kind {
	case "304":
		w.WriteHeader(http.StatusNotModified)
		return
	case "403":
		w.WriteHeader(http.StatusForbidden)
		text = `{"errors":[{}]}`
	case "br", "zstd":
		header.Set("Content-Encoding", kind)
	case "html":
		header.Set("Content-Type", "text/html")
	case "huge":
		text = `{"config":{"version":"` + strings.Repeat("6", 300<<10) + `"}}`
	case "chunked":
		io.WriteString(w, settings[:20])
		http.NewResponseController(w).Flush()
		text = settings[20:]
	case "broken":
		text = settings[:20]
	}
	io.WriteString(w, text)
}

// exchanged is what Ghost was sent and what the client got, byte for byte but for what
// differs at each request: the date, and the pieces that a body of unknown length comes in.
func exchanged(t *testing.T, address, request string, seen *received) string {
	t.Helper()
	seen.take()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatalf("net.Dial: %v", err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatalf("io.WriteString: %v", err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("io.ReadAll: %v", err)
	}
	head, body, _ := strings.Cut(string(text), "\r\n\r\n")
	if strings.Contains(head, "Transfer-Encoding: chunked") {
		whole, err := io.ReadAll(httputil.NewChunkedReader(strings.NewReader(body)))
		body = fmt.Sprintf("%s\nits end: %v", whole, err)
	}
	var lines []string
	for line := range strings.SplitSeq(seen.take()+"\n-- answered\n"+head+"\r\n\r\n"+body, "\n") {
		if !strings.HasPrefix(line, "Date: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Ghost's admin notices nothing of staff_desk: of its requests, and of Ghost's responses, each
// byte is as without it. One response gets a script, for who is signed in.
func TestGhostAdminIsLetThrough(t *testing.T) {
	var seen received
	ghost := httptest.NewServer(&seen)
	t.Cleanup(ghost.Close)
	upstream := strings.TrimPrefix(ghost.URL, "http://")
	config := func(option string) string {
		return adminConfig(edgetest.SQLiteStore(t), upstream, option)
	}
	e := edgetest.StartEdge(t, nil, config(""))
	address := strings.TrimPrefix(e.Base, "http://")
	const (
		staff  = "Cookie: ghost-admin-api-session=s%3Aabc; other=1\r\nAccept-Encoding: gzip, br\r\nIf-None-Match: W/\"2ab-x\"\r\n"
		wanted = "/ghost/api/admin/config/"
	)
	ask := func(way, method, path, header, body string) string {
		t.Helper()
		if body != "" {
			header += fmt.Sprintf("Content-Length: %d\r\n", len(body))
		}
		if !strings.Contains(header, "Host: ") {
			header += "Host: localhost\r\n"
		}
		return exchanged(t, address, method+" "+way+path+" HTTP/1.1\r\n"+header+"Connection: close\r\n\r\n"+body, &seen)
	}
	for _, test := range []struct{ name, method, path, header, body string }{
		{"Ghost's admin", "GET", "/ghost/", staff, ""},
		{"its files", "GET", "/ghost/assets/ghost.js?v=1", staff + "Range: bytes=0-3\r\n", ""},
		{"its API", "GET", "/ghost/api/admin/posts/?limit=30&answer=chunked", staff, ""},
		{"saving a post", "PUT", "/ghost/api/admin/posts/1/", staff + "Content-Type: application/json\r\n", `{"posts":[{}]}`},
		{"uploading a picture", "POST", "/ghost/api/admin/images/upload/", staff + "Content-Type: multipart/form-data; boundary=b\r\n", "--b\r\n\r\n\xff\xfe\r\n--b--\r\n"},
		{"deleting", "DELETE", "/ghost/api/admin/posts/1/", staff, ""},
		{"a settings page", "GET", "/ghost/api/admin/settings/?group=site", staff, ""},
		{"a longer path", "GET", wanted + "x/", staff, ""},
		{"a shorter path", "GET", "/ghost/api/admin/config", staff, ""},
		{"another Ghost's path", "GET", "/blog" + wanted, staff, ""},
		{"the configuration, for a stranger", "GET", wanted, "Accept-Encoding: gzip\r\n", ""},
		{"for a signed-out browser", "GET", wanted, "Cookie: other=1\r\n", ""},
		{"for an integration", "GET", wanted, "Authorization: Ghost abc\r\n", ""},
		{"for an integration with cookies", "GET", wanted, staff + "Authorization: Ghost abc\r\n", ""},
		{"a part of it", "GET", wanted, staff + "Range: bytes=0-3\r\n", ""},
		{"changing it", "POST", wanted, staff, "{}"},
		{"asking what may be done", "OPTIONS", wanted, staff, ""},
		{"of a site without a Ghost", "GET", wanted, staff + "Host: bare.example.com\r\n", ""},
		{"of no site", "GET", wanted, staff + "Host: nobody.example.com\r\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			past, through := ask("/past", test.method, test.path, test.header, test.body), ask("/desk", test.method, test.path, test.header, test.body)
			if diff := cmp.Diff(past, through); diff != "" {
				t.Errorf("mismatch (-want +got):\n%.3000s", diff)
			}
		})
	}
	// What cannot be changed is answered as Ghost answers it.
	_, plain, _ := strings.Cut(ask("/past", "GET", wanted, "Cookie: ghost-admin-api-session=s\r\nAccept-Encoding: identity\r\n", ""), "-- answered")
	for _, kind := range []string{"304", "403", "br", "zstd", "html", "huge", "broken"} {
		t.Run(kind, func(t *testing.T) {
			_, past, _ := strings.Cut(ask("/past", "GET", wanted+"?answer="+kind, staff, ""), "-- answered")
			_, through, _ := strings.Cut(ask("/desk", "GET", wanted+"?answer="+kind, staff, ""), "-- answered")
			if diff := cmp.Diff(past, through); diff != "" {
				t.Errorf("response (-want +got):\n%.3000s", diff)
			}
		})
	}
	// And the one that is changed differs in nothing but the script, its length and its tag.
	script := e.Do("GET", "/desk/ghost/lychgate/desk/admin.js")
	version := strings.Trim(script.Header["Etag"], `"`)
	if script.Status != http.StatusOK || version == "" {
		t.Fatalf("got %v, want status 200, a version", script)
	}
	extension := fmt.Sprintf(`"clientExtensions":{"script":{"src":"/ghost/lychgate/desk/admin.js?v=%s"}}`, version)
	want := strings.NewReplacer("Etag: W/\"2ab-x\"\r\n", "", `"clientExtensions":{}`, extension,
		fmt.Sprintf("Content-Length: %d", len(settings)), fmt.Sprintf("Content-Length: %d", len(settings)-len(`"clientExtensions":{}`)+len(extension))).Replace(plain)
	for _, way := range []string{"", "?answer=chunked"} {
		_, got, _ := strings.Cut(ask("/desk", "GET", wanted+way, staff, ""), "-- answered")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", way, diff)
		}
	}
	for query, want := range map[string]string{"?v=" + version: "public, max-age=31536000, immutable", "": "public, max-age=3600", "?v=old": "public, max-age=3600"} {
		if got := e.Do("GET", "/desk/ghost/lychgate/desk/admin.js"+query); got.Header["Cache-Control"] != want || got.Header["Content-Type"] != "text/javascript; charset=utf-8" {
			t.Errorf(`%s: got %v, want Cache-Control %v, Content-Type "text/javascript; charset=utf-8"`, query, got.Header, want)
		}
	}
	if got := e.Do("GET", "/desk/ghost/lychgate/desk/admin.js", "If-None-Match", script.Header["Etag"]); got.Status != http.StatusNotModified {
		t.Errorf("asked for again: %v", got)
	}

	e.Load(config("ghost_admin off"))
	if diff := cmp.Diff(ask("/past", "GET", wanted, staff, ""), ask("/desk", "GET", wanted, staff, "")); diff != "" {
		t.Errorf("when it is off: %s", diff)
	}
}
