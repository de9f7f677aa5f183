package edge_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Where Ghost's url is a mistake, the log says so in the doctor's words. Of one that may be meant it says nothing.
func TestGhostsURL(t *testing.T) {
	const (
		another  = "Ghost is reached, but its own address is %s, which is none of the site's hosts (%s): add the host to the site's hosts, or set url in the platform's own configuration"
		pastEdge = "Ghost is reached, but its own address is %s, with the port at which it is asked, so its pages lead past Caddy: set url in the platform's own configuration to the address at which readers reach Caddy"
	)
	readers := edge.Paths{Lookup: []string{"/ghost/inbox-provider"}}
	for name, test := range map[string]struct {
		url, admin, hosts string // "{port}" is Ghost's
		paths             edge.Paths
		want              string
	}{
		"as it should be":            {"https://news.example.com", "", "news.example.com", readers, ""},
		"in a subdirectory":          {"https://news.example.com/blog/", "", "news.example.com", readers, ""},
		"at another port":            {"http://localhost:8080", "", "localhost 127.0.0.1", readers, ""},
		"www beside the apex":        {"https://www.example.com", "", "example.com", readers, ""},
		"the apex beside www":        {"https://example.com", "", "www.example.com", readers, ""},
		"the admin's host alone":     {"https://news.example.com", "https://admin.example.com", "admin.example.com", readers, ""},
		"hosts for CRMs":             {"https://news.example.com", "", "api.example.com", edge.Paths{}, ""},
		"another publication":        {"https://weekly.example.org", "", "news.example.com daily.example", readers, fmt.Sprintf(another, "weekly.example.org", "news.example.com, daily.example")},
		"what Ghost has without url": {"http://localhost:{port}", "", "news.example.com", readers, fmt.Sprintf(another, "localhost", "news.example.com")},
		"its own port":               {"http://localhost:{port}", "", "localhost 127.0.0.1", readers, fmt.Sprintf(pastEdge, "http://localhost:{port}")},
	} {
		t.Run(name, func(t *testing.T) {
			var port string
			ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/ghost/api/admin/site/":
					fmt.Fprintf(w, `{"site":{"url":%q}}`, strings.ReplaceAll(test.url, "{port}", port))
				case r.URL.Path == "/ghost/" && test.admin != "":
					http.Redirect(w, r, test.admin+"/ghost/", http.StatusMovedPermanently)
				default: // what is logged of the key is the last of a check
					http.Error(w, `{"errors":[{"type":"UnauthorizedError"}]}`, http.StatusUnauthorized)
				}
			}))
			defer ghost.Close()
			_, port, _ = net.SplitHostPort(ghost.Listener.Addr().String())
			core, log := observer.New(zap.WarnLevel)
			site := &config.Site{Hosts: strings.Fields(test.hosts), Platform: &config.Platform{
				Kind: "ghost", URL: ghost.URL, AdminURL: test.admin, AdminKey: "0123456789abcdef01234567:" + strings.Repeat("0f", 32), Webhooks: "off",
			}}
			e, err := edge.New(edge.Options{
				Config: &config.Config{Sites: map[string]*config.Site{"daily": site}}, StoreFile: filepath.Join(t.TempDir(), "lychgate.db"),
				Logger: zap.New(core), Registry: prometheus.NewPedanticRegistry(),
			})
			if err == nil {
				_, err = e.UseMembers(config.DefaultAPIPath)
			}
			e.Paths = test.paths
			if err == nil {
				err = e.Start()
			}
			if err != nil {
				t.Fatalf("starting the edge: %v", err)
			}
			defer func() {
				e.Stop()
				if err := e.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			wait.Until(t, func() string {
				if log.FilterLevelExact(zap.ErrorLevel).Len() == 0 {
					return "Ghost was not asked"
				}
				return ""
			})
			var got []string
			for _, entry := range log.All() {
				if fix, ok := entry.ContextMap()["fix"]; ok {
					got = append(got, fmt.Sprint(entry.Message, ": ", fix))
				}
			}
			if diff := cmp.Diff(strings.ReplaceAll(test.want, "{port}", port), strings.Join(got, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
