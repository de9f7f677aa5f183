package command

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// An operator reads in one line why the Caddy that runs does not say what it alone knows.
func TestRunningCaddyRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		body, want string
	}{
		"no Lychgate":       {404, "404 page not found\n", errNotRunning.Error()},
		"another program":   {200, "<html>", errNotRunning.Error()},
		"no token":          {401, `{"error":"send an admin token"}` + "\n", errNoToken.Error()},
		"the store is away": {503, `{"error":"the store is away"}` + "\n", `asking Caddy at ADDRESS: caddy responded with error: HTTP 503: {"error":"the store is away"}`},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			t.Cleanup(server.Close)
			address := strings.TrimPrefix(server.URL, "http://")
			c, err := runningWith([]byte(`{"admin":{"listen":"` + address + `"}}`))
			if err != nil {
				t.Fatalf("runningWith: %v", err)
			}
			want := strings.Replace(test.want, "ADDRESS", address, 1)
			if _, err := c.inState(t.Context(), trouble.CertificateFailing); err == nil || err.Error() != want {
				t.Errorf("inState: %v, want %s", err, want)
			}
		})
	}
}
