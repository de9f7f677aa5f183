package edgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
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
	request, err := http.NewRequest(method, "http://caddy/lychgate/sites"+path, strings.NewReader(body))
	if err != nil {
		e.T.Fatalf("http.NewRequest: %v", err)
	}
	response, err := e.Admin.Do(request)
	if err != nil {
		e.T.Fatalf("e.admin.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.T.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
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
	response, err := e.Admin.Get("http://caddy" + path)
	if err != nil {
		e.T.Fatalf("e.admin.Get: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.T.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// Get asks for a path at a host, and returns the status and the body.
func (e *StoredEdge) Get(host, path string, header ...string) (int, string) {
	e.T.Helper()
	return e.Send("GET", host, path, "", header...)
}

// Send sends a request for a host, and again if a reload cut it.
func (e *StoredEdge) Send(method, host, path, body string, header ...string) (int, string) {
	e.T.Helper()
	request, err := http.NewRequest(method, "http://127.0.0.1:"+e.Port+path, strings.NewReader(body))
	if err != nil {
		e.T.Fatalf("http.NewRequest: %v", err)
	}
	request.Host = host
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := e.Client.Do(request)
	for tries := 0; IsCutByReload(err) && method == http.MethodGet && tries < 3; tries++ {
		response, err = e.Client.Do(request)
	}
	if err != nil {
		e.T.Fatalf("e.client.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.T.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// Serves reports whether a site is served at a host.
func (e *StoredEdge) Serves(host string) bool {
	e.T.Helper()
	status, _ := e.Get(host, LookupPath)
	return status == http.StatusOK
}

// EachStore runs a test with a store of each kind.
func EachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLiteStore(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, "postgres "+dbtest.PostgresSource(t)) })
}

// Load gives the running Caddy another Caddyfile.
func (e *StoredEdge) Load(config string) error {
	request, err := http.NewRequest(http.MethodPost, "http://caddy/load", strings.NewReader(config))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate") // loads one that is the same, too
	response, err := e.Admin.Do(request)
	if err == nil && response.Body.Close() == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("loading: %d", response.StatusCode)
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
		request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+e.Port+LookupPath, nil)
		if err != nil {
			e.T.Fatalf("http.NewRequest: %v", err)
		}
		request.Host = host
		response, err := e.Client.Do(request)
		if err != nil {
			continue // Caddy closes a listener, as it does on any reload
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			e.T.Fatalf("a lookup: %d", response.StatusCode)
		}
	}
}
