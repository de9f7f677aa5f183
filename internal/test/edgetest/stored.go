package edgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// This file starts edges with sites in the store.

// Secrets that seal those of sites.
const (
	FirstSecret  = "0123456789abcdef0123456789abcdef"
	SecondSecret = "fedcba9876543210fedcba9876543210"
)

// StoredEdge is an edge whose sites are in the store.
type StoredEdge struct {
	*caddytest.Edge
	T      testing.TB
	Client *http.Client
	Admin  *http.Client
}

// StartStored starts an edge with a store, and more options.
func StartStored(t testing.TB, store string, options ...string) *StoredEdge {
	t.Helper()
	e := &StoredEdge{
		Edge: caddytest.New(t, StoredConfig(store, options...), nil), T: t,
		Client: &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second},
	}
	e.Admin = caddytest.Admin(e.AdminSocket)
	t.Cleanup(e.Client.CloseIdleConnections)
	t.Cleanup(e.Admin.CloseIdleConnections)
	return e
}

// StoredConfig is the Caddyfile of a [StoredEdge].
func StoredConfig(store string, options ...string) string {
	return "{\n{{global}}\nhttp_port {{port}}\nlychgate {\nstore " + store + "\n" + strings.Join(options, "\n") + "\n}\n}\n" +
		"http://:{{port}} {\nevents_api {\nlimit 60000 1m\n}\ninbox_provider {\nlimit 60000 1m\n}\nmembers_api {\nlimit 60000 1m\n}\ntheme_manifest\nstaff_desk\nreverse_proxy {\ndynamic lychgate\n}\n}\n"
}

// Manage sends a request to the admin API, and returns what it answers.
func (e *StoredEdge) Manage(method, path, body string) (int, string) {
	e.T.Helper()
	return e.send(e.Admin, method, "http://caddy/lychgate/sites"+path, body)
}

func (e *StoredEdge) send(client *http.Client, method, url, body string, header ...string) (int, string) {
	e.T.Helper()
	got, err := exchange.Send(client, method, url, strings.NewReader(body), header...)
	for tries := 0; IsCutByReload(err) && method == http.MethodGet && tries < 3; tries++ {
		got, err = exchange.Send(client, method, url, nil, header...)
	}
	if err != nil {
		e.T.Fatalf("exchange.Send: %v", err)
	}
	return got.Status, got.Body
}

// Must is manage for what has to be answered with a status.
func (e *StoredEdge) Must(status int, method, path, body string) string {
	e.T.Helper()
	got, text := e.Manage(method, path, body)
	if got != status {
		e.T.Fatalf("%s %s: manage = %d %s, want %v", method, path, got, text, status)
	}
	return text
}

// AddNone adds a site without a platform.
func (e *StoredEdge) AddNone(name string, hosts ...string) {
	e.T.Helper()
	list, err := json.Marshal(hosts)
	if err != nil {
		e.T.Fatalf("json.Marshal: %v", err)
	}
	e.Must(http.StatusCreated, "POST", "", fmt.Sprintf(`{"name":%q,"hosts":%s,"platform":{"kind":"none"}}`, name, list))
}

// AddKey adds an integration to a site, and returns its key.
func (e *StoredEdge) AddKey(site string) string {
	e.T.Helper()
	var made struct{ Key string }
	text := e.Must(http.StatusCreated, "POST", "/"+site+"/integrations", `{"name":"crm"}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Key == "" {
		e.T.Fatalf("got %s: %v, want no error, a key", text, err)
	}
	return made.Key
}

// AdminGet asks Caddy's admin API.
func (e *StoredEdge) AdminGet(path string) (int, string) {
	e.T.Helper()
	return e.send(e.Admin, "GET", "http://caddy"+path, "")
}

// Get asks for a path at a host, and returns the status and the body.
func (e *StoredEdge) Get(host, path string, header ...string) (int, string) {
	e.T.Helper()
	return e.Send("GET", host, path, "", header...)
}

// Send sends a request for a host, and again if a reload cut it.
func (e *StoredEdge) Send(method, host, path, body string, header ...string) (int, string) {
	e.T.Helper()
	return e.send(e.Client, method, "http://127.0.0.1:"+e.Port+path, body, append(header, "Host", host)...)
}

// Serves reports whether a site is served at a host.
func (e *StoredEdge) Serves(host string) bool {
	e.T.Helper()
	status, _ := e.Get(host, LookupPath)
	return status == http.StatusOK
}

// UntilServed waits until sites are served at hosts.
func (e *StoredEdge) UntilServed(hosts ...string) {
	e.T.Helper()
	wait.Until(e.T, func() string {
		for _, host := range hosts {
			if !e.Serves(host) {
				return host + " is not served"
			}
		}
		return ""
	})
}

// EachStore runs a test with a store of each kind.
func EachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLiteStore(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, "postgres "+dbtest.PostgresSource(t)) })
}

// PostgresProxy is the option store for a new database of PostgreSQL, directly and by a proxy that can be cut.
func PostgresProxy(t testing.TB) (direct, store string, proxy *tcpproxy.Proxy) {
	t.Helper()
	direct = dbtest.PostgresSource(t)
	source, err := url.Parse(direct)
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	proxy = tcpproxy.Start(t, source.Host)
	source.Host = proxy.Address
	return "postgres " + direct, "postgres " + source.String(), proxy
}

// Load gives the running Caddy another Caddyfile.
func (e *StoredEdge) Load(config string) error {
	got, err := exchange.Send(e.Admin, "POST", "http://caddy/load", strings.NewReader(config),
		"Content-Type", "text/caddyfile", "Cache-Control", "must-revalidate") // loads one that is the same, too
	if err == nil && got.Status != http.StatusOK {
		err = fmt.Errorf("loading: %d", got.Status)
	}
	return err
}

// LoadAndAsk loads another Caddyfile, while lookups at a host are answered all the time.
func (e *StoredEdge) LoadAndAsk(config, host string) {
	e.T.Helper()
	loaded := make(chan error, 1)
	go func() { loaded <- e.Load(config) }()
	for isLoading := true; isLoading; {
		select {
		case err := <-loaded:
			if isLoading = false; err != nil {
				e.T.Fatalf("loading the configuration: %v", err)
			}
		default:
		}
		got, err := exchange.Send(e.Client, "GET", "http://127.0.0.1:"+e.Port+LookupPath, nil, "Host", host)
		if err != nil {
			continue // Caddy closes a listener, as it does on any reload
		}
		if got.Status != http.StatusOK {
			e.T.Fatalf("a lookup: %d", got.Status)
		}
	}
}
