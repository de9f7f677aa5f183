package ghost

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Ghost is looked for where the configuration has it, and in the folders that it
// may be in.
func TestGhostIsLookedForInItsFolders(t *testing.T) {
	key := "1:" + strings.Repeat("0", 64)
	ghostIn := func(folder string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && r.URL.Path == folder+"/ghost/api/admin/site/" {
				_, _ = io.WriteString(w, `{"site":{"title":"Daily","url":"https://example.com`+folder+`/"}}`)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<pre>Cannot GET "+r.URL.Path+"</pre>")
		}
	}
	response := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const nobody = "Ghost answers"
	for _, c := range []struct {
		name   string
		server http.HandlerFunc
		path   string // of the address in the configuration
		want   string // the location, or the error
	}{
		{"at the root", ghostIn(""), "", "BASE for https://example.com/"},
		{"at the root, with a slash", ghostIn(""), "/", "BASE for https://example.com/"},
		{"in a folder", ghostIn("/blog"), "/blog", "BASE/blog for https://example.com/blog/"},
		{"in another folder", ghostIn("/blog"), "", "BASE/blog for https://example.com/blog/"},
		{"at the root, not in a folder", ghostIn(""), "/blog", "BASE for https://example.com/"},
		{"in a folder that nobody names", ghostIn("/news"), "", "BASE answers 404 and is not the platform"},
		{"a redirect", response(301, "", "Location", "https://admin.example.com/blog/ghost/api/admin/site/?a=b"), "", "BASE answers 301 and is not the platform: https://admin.example.com/blog"},
		{"a redirect to elsewhere", response(302, "", "Location", "/login?next=jane@example.com"), "", "BASE answers 302 and is not the platform"},
		{"another server", response(200, "<!DOCTYPE html>"), "", "BASE answers 200 and is not the platform"},
		{"other JSON", response(200, `{"site":{}}`), "", "BASE answers 200 and is not the platform"},
		{"a Ghost that starts", response(503, "{}"), "", nobody},
		{"a Ghost that is busy", response(429, "{}"), "", nobody},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.server)
			defer server.Close()
			client := newClient(t, Config{URL: server.URL + c.path, AdminKey: key})
			location, err := client.Locate(t.Context(), []string{"", "/blog"})
			var got string
			elsewhere, answered := errors.AsType[*platform.ElsewhereError](err)
			switch {
			case err == nil:
				got = location.Found.String() + " for " + location.Public.String()
			case answered && elsewhere.Redirect != nil:
				got = elsewhere.Error() + ": " + elsewhere.Redirect.String()
			case answered:
				got = elsewhere.Error()
			case strings.Contains(err.Error(), nobody):
				got = nobody
			default:
				got = err.Error()
			}
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "BASE", server.URL), got); diff != "" {
				t.Errorf("got (-want +got):\n%s", diff)
			}
		})
	}
}

// The real one answers as the stand-ins of TestGhostIsLookedForInItsFolders do.
func TestLocateGhost(t *testing.T) {
	config := realConfig(t)
	want, err := url.Parse(config.URL)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	for _, at := range []string{config.URL, config.URL + "/blog"} {
		config.URL = at
		location, err := newClient(t, config).Locate(t.Context(), []string{"", "/blog"})
		if err != nil || location.Found.String() != want.String() || location.Public.Host == "" {
			t.Errorf("Locate at %s: got %v, %v, want it found at %s, with a public URL", at, location, err, want)
		}
	}
}

// A Ghost tells where it is. What it says is logged, shown to operators, and written into commands that they paste, so what is
// no server's address counts as nothing.
func TestToldAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"https://news.example.com/blog/": true,
		"http://127.0.0.1:2368/":         true,
		"http://[::1]:2368/":             true,
		"https://bücher.example/":        true,
		"https://my_ghost:8080/":         true,
		"":                               false,
		"/blog/":                         false,
		"ftp://news.example.com/":        false,
		"https://$(id>x)/":               false,
		"https://a';id;'/":               false,
		"https://`id`/":                  false,
		"https://<b>/":                   false,
		"https://news.example.com/" + strings.Repeat("a", maxHeader): false,
		"https://" + strings.Repeat("a.", 2000) + "example/":         false,
	} {
		body, err := json.Marshal(map[string]any{"site": map[string]string{"url": address}})
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
		if got := publicURL(body); (got != nil) != want {
			t.Errorf("%.60s: %v, want an address: %t", address, got, want)
		}
		from := &url.URL{Scheme: "http", Host: "ghost:2368"}
		to := strings.TrimSuffix(address, "/") + adminAPI + sitePath
		if got := redirect(from, to); want && got == nil || !want && got != nil && got.Host != from.Host {
			t.Errorf("a redirect to %.60s: %v, want an address: %t", address, got, want)
		}
	}
}
