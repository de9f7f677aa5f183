package admin_test

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
)

// handshake asks an edge for a host's certificate.
func handshake(t *testing.T, edge *caddytest.Edge, host string) error {
	t.Helper()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(t.Context(), "tcp", "127.0.0.1:"+edge.Port)
	if err != nil {
		return err
	}
	return conn.Close()
}

// certificates lists the hosts that have a certificate in a storage.
func certificates(t *testing.T, storage string) (hosts []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(storage, "certificates"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".crt") {
			hosts = append(hosts, strings.TrimSuffix(entry.Name(), ".crt"))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatalf("filepath.WalkDir: %v, want no error or a missing folder", err)
	}
	return hosts
}

// Strangers who ask for names that are nobody's over TLS cause neither certificates nor
// lines in the log, and sites have theirs at the first visit.
func TestOnlyHostsOfSitesGetCertificates(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("domain") != "shop.example.com" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(elsewhere.Close)
	for _, test := range []struct {
		name, block string
		want        []string // with a certificate
		asked       int64
	}{
		{"sites alone", "", []string{"news.example.com", "xn--bcher-kva.example"}, 0},
		{"sites and others", " {\n else http " + elsewhere.URL + "/ask\n }", []string{"news.example.com", "shop.example.com", "xn--bcher-kva.example"}, 202},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked.Store(0)
			edge := caddytest.New(t, `
{
	{{global}}
	skip_install_trust
	auto_https disable_redirects
	on_demand_tls {
		permission lychgate`+test.block+`
	}
	lychgate {
		site daily {
			hosts news.example.com bücher.example
		}
	}
}
https://:{{port}} {
	tls internal {
		on_demand
	}
	inbox_provider
}
`, nil)
			before := edgetest.ReadLog(t, edge.LogFile)
			for i := range 200 {
				if err := handshake(t, edge, fmt.Sprintf("nobody-%d.example.com", i)); err == nil {
					t.Fatalf("nobody-%d.example.com: got a certificate, want none for a host of no site", i)
				}
			}
			after := edgetest.ReadLog(t, edge.LogFile)
			if n := strings.Count(after[len(before):], "nobody-"); n > 0 {
				t.Errorf("%d lines of the log are about names that are nobody's", n)
			}
			for _, host := range []string{"news.example.com", "NEWS.example.com", "xn--bcher-kva.example"} {
				if err := handshake(t, edge, host); err != nil {
					t.Errorf("%s: handshake: %v", host, err)
				}
			}
			if err := handshake(t, edge, "shop.example.com"); (err == nil) != (test.asked > 0) {
				t.Errorf("another's host: %v", err)
			}
			_ = handshake(t, edge, "other.example.com")
			if diff := cmp.Diff(test.want, certificates(t, filepath.Join(edge.Folder, "data"))); diff != "" {
				t.Errorf("certificates (-want +got):\n%s", diff)
			}
			if n := asked.Load(); n != test.asked {
				t.Errorf("the other was asked %d times, want %d", n, test.asked)
			}
		})
	}
}

// ghostKey is an Admin API key that no Ghost knows.
const ghostKey = " {\n admin_key 1:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n }\n"

// backend answers with its name and what it was asked for.
func backend(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, name+" for "+r.Host+r.URL.Path)
	})
}

// visit gets /about at an edge, as somebody does who asks for a host.
func visit(t *testing.T, client *http.Client, edge *caddytest.Edge, host string) edgetest.Response {
	t.Helper()
	got, err := exchange.Send(client, "GET", "http://127.0.0.1:"+edge.Port+"/about", nil, "Host", host)
	if err != nil {
		t.Fatalf("exchange.Send: %v", err)
	}
	return edgetest.Response{Status: got.Status, Body: got.Body}
}

// One block passes each request on to the platform of its site, and nothing of one
// site is seen at another.
func TestRequestsReachThePlatformOfTheirSite(t *testing.T) {
	t.Parallel()
	server := func(name string) string {
		server := httptest.NewServer(backend(name))
		t.Cleanup(server.Close)
		return server.URL
	}
	// In a process of its own: Caddy keeps a goroutine for dynamic upstreams.
	edge := caddytest.New(t, "{\n{{global}}\nlychgate {\n"+
		"\n site daily {\n hosts news.example.com www.example.com\n platform ghost "+server("daily")+ghostKey+" }"+
		"\n site weekly {\n hosts weekly.example.org\n platform ghost "+server("weekly")+"/blog"+ghostKey+" }"+
		"\n site demo {\n hosts localhost\n platform none\n }\n}\n}\n"+
		"http://:{{port}} {\n inbox_provider\n reverse_proxy {\n dynamic lychgate\n }\n}\n", nil)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for host, want := range map[string]edgetest.Response{
		"news.example.com":      {Status: 200, Body: "daily for news.example.com/about"},
		"WWW.example.com:8080":  {Status: 200, Body: "daily for WWW.example.com:8080/about"},
		"weekly.example.org":    {Status: 200, Body: "weekly for weekly.example.org/about"},
		"localhost":             {Status: 503},
		"nobody.example.com":    {Status: 503},
		"news.example.com.evil": {Status: 503},
	} {
		if diff := cmp.Diff(want, visit(t, client, edge, host)); diff != "" {
			t.Errorf("%s: visit (-want +got):\n%s", host, diff)
		}
	}
}

// One block serves Ghosts behind HTTP and HTTPS. What readers send never goes in plain
// text to a Ghost behind HTTPS, and never to a server that only says it is that Ghost.
func TestUpstreamsOverHTTPS(t *testing.T) {
	plain := httptest.NewServer(backend("daily"))
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(backend("weekly"))
	t.Cleanup(secure.Close)
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	trusted := edgetest.Response{Status: 200, Body: "weekly for weekly.example.org/about"}
	for _, test := range []struct {
		name, systemRoots, options string
		want                       edgetest.Response // of the Ghost behind HTTPS
	}{
		{"an authority that the system trusts", authority, "", trusted},
		{"an authority of the operator's", "/dev/null", "transport http {\n tls_trust_pool file " + authority + "\n }\n header_up Host {host}", trusted},
		{"an authority that nobody trusts", "/dev/null", "", edgetest.Response{Status: 502, Body: "from " + secure.Listener.Addr().String()}},
		{"a port for which the transport has no TLS", authority, "transport http {\n tls_except_ports " + port(t, secure.URL) + "\n }\n header_up Host {host}", trusted},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SSL_CERT_FILE", test.systemRoots)
			t.Setenv("SSL_CERT_DIR", t.TempDir())
			edge := caddytest.New(t, "{\n{{global}}\nlychgate {\n"+
				"\n site daily {\n hosts news.example.com\n platform ghost "+plain.URL+ghostKey+" }"+
				"\n site weekly {\n hosts weekly.example.org\n platform ghost "+secure.URL+ghostKey+" }"+
				"\n site monthly {\n hosts monthly.example.net\n platform ghost https://127.0.0.1"+ghostKey+" }\n}\n}\n"+
				"http://:{{port}} {\n inbox_provider\n reverse_proxy {\n dynamic lychgate\n "+test.options+"\n }\n"+
				" handle_errors {\n respond \"from {http.reverse_proxy.upstream.hostport}\"\n }\n}\n", nil)
			client := &http.Client{Transport: new(http.Transport)}
			defer client.CloseIdleConnections()
			for host, want := range map[string]edgetest.Response{
				"news.example.com":    {Status: 200, Body: "daily for news.example.com/about"},
				"weekly.example.org":  test.want,
				"monthly.example.net": {Status: 502, Body: "from 127.0.0.1:443"}, // where no Ghost is
			} {
				for range 2 { // on a connection that is there the second time
					if diff := cmp.Diff(want, visit(t, client, edge, host)); diff != "" {
						t.Errorf("%s: visit (-want +got):\n%s", host, diff)
					}
				}
			}
		})
	}
}

func port(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	return u.Port()
}

// A mistake in the two modules is found before Caddy starts.
func TestTLSMistakes(t *testing.T) {
	const lychgate = "\nlychgate {\n site daily {\n hosts news.example.com\n platform ghost https://ghost.example.com {\n admin_key 1:"
	options := lychgate + strings.Repeat("a", 64) + "\n }\n }\n}\n"
	for name, test := range map[string]struct{ config, want string }{
		"an unknown option":     {"{\non_demand_tls {\n permission lychgate {\n other\n }\n}\n}", `permission lychgate has no option "other": known are else, at Caddyfile:4`},
		"an argument":           {"{\non_demand_tls {\n permission lychgate news.example.com\n}\n}", `permission lychgate: unexpected "news.example.com": it has a block only, at Caddyfile:3`},
		"else alone":            {"{\non_demand_tls {\n permission lychgate {\n else\n }\n}\n}", "permission lychgate: else has the wrong number of arguments: write it as in: else http http://127.0.0.1:9123/ask, at Caddyfile:4"},
		"else twice":            {"{\non_demand_tls {\n permission lychgate {\n else http http://127.0.0.1:1\n else http http://127.0.0.1:2\n }\n}\n}", "permission lychgate: else is given twice: write it once, at Caddyfile:5"},
		"no site":               {"{\non_demand_tls {\n permission lychgate\n}\n}\nhttps://localhost {\n tls internal {\n on_demand\n }\n}", "no site is configured, so there is nothing to answer for"},
		"dynamic with a block":  {"{" + options + "}\nhttp://localhost {\n reverse_proxy {\n dynamic lychgate {\n x\n }\n }\n}", `dynamic lychgate has no options: take "x" out, at Caddyfile:14`},
		"a Ghost behind HTTPS":  {"{" + options + "}\nhttp://localhost {\n reverse_proxy {\n dynamic lychgate\n }\n}", ""},
		"with TLS options":      {"{" + options + "}\nhttp://localhost {\n reverse_proxy {\n dynamic lychgate\n transport http {\n tls\n tls_except_ports 443\n }\n }\n}", ""},
		"over FastCGI":          {"{" + options + "}\nhttp://localhost {\n reverse_proxy {\n dynamic lychgate\n transport fastcgi\n }\n}", "site daily: platform ghost: dynamic lychgate cannot reach an https:// address over this transport: write transport http, or none, into its reverse_proxy, at Caddyfile:5"},
		"no site for upstreams": {"{\nlychgate {\n site daily {\n hosts a.example\n }\n}\n}\nhttp://localhost {\n reverse_proxy {\n dynamic lychgate\n }\n}", ""},
	} {
		err := edgetest.Validate(test.config)
		if text := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(text, test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
