package ghost

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Events of a private publication stay private while Ghost does not take the key, those of a public one public, and
// nobody guesses.
func TestPrivacyIsAsGhostSays(t *testing.T) {
	const rejected = `{"errors":[{"message":"Unknown Admin API Key","type":"UnauthorizedError","code":"UNKNOWN_ADMIN_API_KEY"}]}`
	for name, c := range map[string]struct {
		status   int // of the settings
		settings string
		form     int // the status of the form for the password
		location string
		want     platform.Privacy
		fails    bool
	}{
		"private":                      {200, `{"settings":[{"key":"is_private","value":true},{"key":"public_hash","value":"d167"}]}`, 500, "", platform.Privacy{IsPrivate: true, FeedToken: "d167"}, false},
		"public":                       {200, `{"settings":[{"key":"public_hash","value":"d167"},{"key":"is_private","value":false}]}`, 500, "", platform.Privacy{FeedToken: "d167"}, false},
		"no setting":                   {200, `{"settings":[]}`, 500, "", platform.Privacy{}, true},
		"another type":                 {200, `{"settings":[{"key":"is_private","value":"false"}]}`, 500, "", platform.Privacy{}, true},
		"a key of another, private":    {401, rejected, 200, "", platform.Privacy{IsPrivate: true}, false},
		"a key of another, public":     {401, rejected, 302, "/", platform.Privacy{}, false},
		"a key of another, and broken": {401, rejected, 500, "", platform.Privacy{}, true},
		"at another host":              {401, rejected, 301, "https://news.example.com/blog/private/", platform.Privacy{}, true},
		"broken":                       {500, `{}`, 302, "/", platform.Privacy{}, true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/ghost/api/admin/settings/":
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.settings)
			case privatePath:
				w.Header().Set("Location", c.location)
				w.WriteHeader(c.form)
			default:
				http.NotFound(w, r)
			}
		}))
		got, err := newClient(t, Config{URL: server.URL, AdminKey: testKey}).Privacy(t.Context())
		if (err != nil) != c.fails || !c.fails && got != c.want {
			t.Errorf("%s: %s", name, fmt.Sprint(got, err))
		}
		server.Close()
	}
}
