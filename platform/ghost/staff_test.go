package ghost

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/platform"
)

// signIn begins a session as the owner that e2e/ghost/start makes, and returns
// the cookie.
func signIn(t *testing.T, address, origin string) string {
	t.Helper()
	body := `{"username": "owner@example.com", "password": "four-words-on-a-lychgate"}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/ghost/api/admin/session/", bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", origin)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated || len(answer.Cookies()) == 0 {
		t.Fatalf("signing in: %s", answer.Status)
	}
	cookie := answer.Cookies()[0]
	return cookie.Name + "=" + cookie.Value
}

// Only those who are signed in to Ghost are staff, and only from where they
// signed in.
func TestStaff(t *testing.T) {
	config := realConfig(t)
	client := newClient(t, config)
	cookie := signIn(t, config.URL, config.URL)
	for range 100 { // Ghost keeps a session a moment after it has said so
		if _, err := client.Staff(t.Context(), platform.Visitor{Cookie: cookie, Origin: config.URL}); err == nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	for name, visitor := range map[string]platform.Visitor{
		"from a page": {Cookie: cookie, Referer: config.URL + "/ghost/"},
		"by a script": {Cookie: cookie, Origin: config.URL},
		"with others": {Cookie: "theme=dark; " + cookie, Origin: config.URL},
	} {
		roles, err := client.Staff(t.Context(), visitor)
		if diff := cmp.Diff([]string{"Owner"}, roles); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
	}
	for name, visitor := range map[string]platform.Visitor{
		"nobody":         {Origin: config.URL},
		"a forged one":   {Cookie: strings.Replace(cookie, "s%3A", "s%3Ax", 1), Origin: config.URL},
		"another origin": {Cookie: cookie, Origin: "https://elsewhere.example"},
	} {
		if roles, err := client.Staff(t.Context(), visitor); !errors.Is(err, platform.ErrNotStaff) {
			t.Errorf("%s: %v, %v", name, roles, err)
		}
	}
	away := newClient(t, Config{URL: "http://127.0.0.1:1", AdminKey: testKey})
	if _, err := away.Staff(t.Context(), platform.Visitor{Cookie: cookie}); err == nil || errors.Is(err, platform.ErrNotStaff) || strings.Contains(err.Error(), cookie) {
		t.Errorf("Ghost is away: %v", err)
	}
}
