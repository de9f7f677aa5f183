package button

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// asset reads a file that e2e/button/install has fetched.
func asset(t *testing.T, name string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(harness.Cache(t), "button-*", name))
	if err != nil {
		t.Fatalf("filepath.Glob: %v", err)
	}
	if len(found) == 0 {
		harness.Need(t, name+", which e2e/button/install fetches")
	}
	content, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return content
}

// A reader signs up through the form of Ghost's own theme, on a page of a real
// Ghost, which loads the button by code injection and sends the link.
func TestRealGhost(t *testing.T) {
	ghost, _ := ghosttest.Real(t)
	harness.NeedBrowser(t)
	site := front(t, ghost, asset(t, "portal.min.js"))
	inject(t, ghost, `<script src="`+edge+`/ghost/lychgate/inbox-button.js" data-forms data-sender="noreply@127.0.0.1" defer></script>`)

	for _, test := range []struct{ address, href string }{
		{"jane@gmail.com", "https://mail.google.com/mail/?authuser=jane%40gmail.com#search/from%3A(noreply%40127.0.0.1)+in%3Aanywhere+newer_than%3A1h"},
		{"jane@company.example", "https://outlook.office.com/mail/?login_hint=jane%40company.example"},
	} {
		t.Run(test.address, func(t *testing.T) {
			p := open(t, site+"/", phoneOrDesktop(1280, 800, false))
			p.Until("document.querySelector('form[data-members-form] [data-members-email]') && !!customElements.get('lychgate-inbox-button')")
			p.Until("listening.size > 0 && [...document.querySelectorAll('form[data-members-form]')].every(form => listening.has(form))")
			p.Keys("form[data-members-form] [data-members-email]", test.address+"\r")
			p.Until("!!document.querySelector('form.success')")
			diff(t, "link", test.href, p.shown().Href)
			p.Do("document.querySelector('form.success').scrollIntoView({block: 'center'})")
			p.Picture("ghost-" + strings.Split(test.address, "@")[1])
		})
	}
}

// listening notes the forms that Portal has found.
const listening = `
	window.listening = new Set();
	const add = EventTarget.prototype.addEventListener;
	EventTarget.prototype.addEventListener = function (type, ...rest) {
		if (type === 'submit' && this instanceof HTMLFormElement) window.listening.add(this);
		return add.call(this, type, ...rest);
	};`

// front passes a Ghost on at an address of its own, which it returns. Its pages
// load Portal from there instead of a public server, and nothing from anywhere
// else, and note the forms that Portal has found.
func front(t *testing.T, ghost string, portal []byte) string {
	t.Helper()
	target, err := url.Parse(ghost)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Accept-Encoding") // so that the response can be read
		},
		ModifyResponse: func(response *http.Response) error {
			kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
			if kind != "text/html" && kind != "application/json" {
				return nil
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(string(body), ghost, "http://"+response.Request.Host)
			if kind == "text/html" {
				response.Header.Set("Content-Security-Policy", "default-src 'self' http://localhost:* http://127.0.0.1:* data: 'unsafe-inline' 'unsafe-eval'")
				text = publicPortal.ReplaceAllString(text, "/portal.min.js")
				text = strings.Replace(text, "<head>", "<head><script>"+listening+"</script>", 1)
			}
			response.Header.Del("Content-Length")
			response.ContentLength = int64(len(text))
			response.Body = io.NopCloser(strings.NewReader(text))
			return nil
		},
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/portal.min.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(portal)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

var publicPortal = regexp.MustCompile(`https://[^"']*/portal\.min\.js`)

// inject puts code into all pages of a Ghost, as its owner does in the settings,
// and takes it out when the test ends.
func inject(t *testing.T, ghost, code string) {
	t.Helper()
	call := asOwner(t, ghost)
	set := func(code string) {
		type setting struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		}
		call(http.MethodPut, "settings/", map[string][]setting{"settings": {{"codeinjection_foot", code}}})
	}
	set(code)
	t.Cleanup(func() { set("") })
}

// asOwner signs in to a Ghost, and returns how its Admin API is asked until the test ends.
func asOwner(t *testing.T, ghost string) func(method, path string, body any) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatalf("cookiejar.New: %v", err)
	}
	client := &http.Client{Jar: jar}
	t.Cleanup(client.CloseIdleConnections)
	call := func(method, path string, body any) {
		t.Helper()
		content, err := json.Marshal(body)
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
		request, err := http.NewRequest(method, ghost+"/ghost/api/admin/"+path, bytes.NewReader(content))
		if err != nil {
			t.Fatalf("http.NewRequest: %v", err)
		}
		request.Header.Set("Origin", ghost)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatalf("client.Do: %v", err)
		}
		// Ghost keeps the end of the response until it has stored the session.
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode >= 300 {
			t.Fatalf("%s %s: io.ReadAll = %v, %s: %s, want no error, status below 300", method, path, err, response.Status, text)
		}
	}
	call(http.MethodPost, "session/", map[string]string{"username": "owner@example.com", "password": "four-words-on-a-lychgate"})
	return call
}
