package button

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// assets returns a file that e2e/button/install has fetched.
func asset(t *testing.T, name string) []byte {
	t.Helper()
	cache := os.Getenv("LYCHGATE_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "lychgate")
	}
	found, err := filepath.Glob(filepath.Join(cache, "button-*", name))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		need(t, name+", which e2e/button/install fetches")
	}
	content, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// need skips a test that lacks something, or fails it where nothing may skip.
func need(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("LYCHGATE_TEST_SERVERS") != "" {
		t.Fatal("needs " + what)
	}
	t.Skip("needs " + what)
}

// sharedGhost returns the address of the Ghost that e2e/ghost/start has started,
// and notes the test as one that needs a Ghost, as internal/ghosttest does.
func sharedGhost(t *testing.T) string {
	t.Helper()
	fields := strings.Fields(strings.TrimPrefix(os.Getenv("LYCHGATE_TEST_GHOST"), "LYCHGATE_TEST_GHOST="))
	if len(fields) == 0 {
		need(t, "a Ghost: LYCHGATE_TEST_GHOST, which e2e/ghost/start prints")
	}
	if name := os.Getenv("LYCHGATE_TEST_GHOST_USERS"); name != "" {
		list, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		folder, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(list, folder, t.Name())
	}
	return fields[0]
}

// A reader signs up through the form of Ghost's own theme, on a page of a real
// Ghost, which loads the button by code injection and sends the link.
func TestRealGhost(t *testing.T) {
	ghost := sharedGhost(t)
	portal := asset(t, "portal.min.js")
	inject(t, ghost, `<script src="`+edge+`/ghost/lychgate/inbox-button.js" data-forms data-sender="noreply@127.0.0.1" defer></script>`)

	for _, test := range []struct{ address, href string }{
		{"jane@gmail.com", "https://mail.google.com/mail/?authuser=jane%40gmail.com#search/from%3A(noreply%40127.0.0.1)+in%3Aanywhere+newer_than%3A1h"},
		{"jane@company.example", "https://outlook.office.com/mail/?login_hint=jane%40company.example"},
	} {
		t.Run(test.address, func(t *testing.T) {
			p := open(t, ghost+"/", fromTheCDN(t, portal), before(listening), phoneOrDesktop(1280, 800, false))
			p.until("document.querySelector('form[data-members-form] [data-members-email]') && !!customElements.get('lychgate-inbox-button')")
			p.until("listening.size > 0 && [...document.querySelectorAll('form[data-members-form]')].every(form => listening.has(form))")
			if err := chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("form[data-members-form] [data-members-email]"), test.address+"\r")); err != nil {
				t.Fatal(err)
			}
			p.until("!!document.querySelector('form.success')")
			diff(t, "link", test.href, p.shown().Href)
			js[any](p, "document.querySelector('form.success').scrollIntoView({block: 'center'})")
			p.picture("ghost-" + strings.Split(test.address, "@")[1])
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

// fromTheCDN answers what Ghost's pages ask of a public server: Portal, and
// nothing else.
func fromTheCDN(t *testing.T, portal []byte) setting {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		paused := chromedp.Events(ctx, fetch.RequestPaused)
		done := make(chan struct{})
		t.Cleanup(func() { cancel(); <-done })
		go func() {
			defer close(done)
			for event, err := range paused {
				if err != nil {
					return
				}
				if strings.Contains(event.Request.URL, "/portal.min.js") {
					_, err = chromedp.Call(ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{
						RequestID: event.RequestID, ResponseCode: http.StatusOK, Body: portal,
						ResponseHeaders: []*fetch.HeaderEntry{
							{Name: "Content-Type", Value: "text/javascript"},
							{Name: "Access-Control-Allow-Origin", Value: "*"},
						},
					})
				} else {
					_, err = chromedp.Call(ctx, fetch.FailRequest, fetch.FailRequestParams{
						RequestID: event.RequestID, ErrorReason: network.ErrorReasonBlockedByClient,
					})
				}
				if err != nil {
					return
				}
			}
		}()
		_, err := chromedp.Call(ctx, fetch.Enable, fetch.EnableParams{Patterns: []*fetch.RequestPattern{{URLPattern: "https://*"}}})
		return err
	}
}

// inject puts code into all pages of a Ghost, as its owner does in the settings,
// and takes it out when the test ends.
func inject(t *testing.T, ghost, code string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	defer client.CloseIdleConnections()
	call := func(method, path string, body any) {
		t.Helper()
		content, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequest(method, ghost+"/ghost/api/admin/"+path, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", ghost)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		// Ghost keeps the end of the answer until it has stored the session.
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode >= 300 {
			t.Fatalf("%s %s: %v, %s: %s", method, path, err, response.Status, answer)
		}
	}
	call(http.MethodPost, "session/", map[string]string{"username": "owner@example.com", "password": "four-words-on-a-lychgate"})
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
