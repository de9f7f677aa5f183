package caddymodule_test

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

const (
	firstSecret  = "0123456789abcdef0123456789abcdef"
	secondSecret = "fedcba9876543210fedcba9876543210"
)

// storedEdge is an edge whose sites are in the store.
type storedEdge struct {
	*caddytest.Edge
	t      testing.TB
	client *http.Client
	admin  *http.Client
}

// startStored starts an edge with a store, and more options.
func startStored(t testing.TB, store string, options ...string) *storedEdge {
	t.Helper()
	e := &storedEdge{
		Edge: caddytest.New(t, storedConfig(store, options...), nil), t: t,
		client: &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second},
	}
	e.admin = caddytest.Admin(e.AdminSocket)
	t.Cleanup(e.client.CloseIdleConnections)
	t.Cleanup(e.admin.CloseIdleConnections)
	return e
}

func storedConfig(store string, options ...string) string {
	return "{\n{{global}}\nhttp_port {{port}}\nlychgate {\nstore " + store + "\n" + strings.Join(options, "\n") + "\n}\n}\n" +
		"http://:{{port}} {\nevents_api {\nlimit 60000 1m\n}\ninbox_provider {\nlimit 60000 1m\n}\nmembers_api {\nlimit 60000 1m\n}\ntheme_manifest\nstaff_desk\nreverse_proxy {\ndynamic lychgate\n}\n}\n"
}

// manage sends a request to the admin API, and returns what it answers.
func (e *storedEdge) manage(method, path, body string) (int, string) {
	e.t.Helper()
	request, err := http.NewRequest(method, "http://caddy/lychgate/sites"+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatalf("http.NewRequest: %v", err)
	}
	response, err := e.admin.Do(request)
	if err != nil {
		e.t.Fatalf("e.admin.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// must is manage for what has to be answered with a status.
func (e *storedEdge) must(status int, method, path, body string) string {
	e.t.Helper()
	got, text := e.manage(method, path, body)
	if got != status {
		e.t.Fatalf("%s %s: manage = %d %s, want %v", method, path, got, text, status)
	}
	return text
}

// addNone adds a site without a platform.
func (e *storedEdge) addNone(name string, hosts ...string) {
	e.t.Helper()
	list, err := json.Marshal(hosts)
	if err != nil {
		e.t.Fatalf("json.Marshal: %v", err)
	}
	e.must(http.StatusCreated, "POST", "", fmt.Sprintf(`{"name":%q,"hosts":%s,"platform":{"kind":"none"}}`, name, list))
}

// addKey adds an integration to a site, and returns its key.
func (e *storedEdge) addKey(site string) string {
	e.t.Helper()
	var made struct{ Key string }
	text := e.must(http.StatusCreated, "POST", "/"+site+"/integrations", `{"name":"crm"}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.Key == "" {
		e.t.Fatalf("got %s: %v, want no error, a key", text, err)
	}
	return made.Key
}

// adminGet asks Caddy's admin API.
func (e *storedEdge) adminGet(path string) (int, string) {
	e.t.Helper()
	response, err := e.admin.Get("http://caddy" + path)
	if err != nil {
		e.t.Fatalf("e.admin.Get: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// get asks for a path at a host, and returns the status and the body.
func (e *storedEdge) get(host, path string, header ...string) (int, string) {
	e.t.Helper()
	return e.send("GET", host, path, "", header...)
}

func (e *storedEdge) send(method, host, path, body string, header ...string) (int, string) {
	e.t.Helper()
	request, err := http.NewRequest(method, "http://127.0.0.1:"+e.Port+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatalf("http.NewRequest: %v", err)
	}
	request.Host = host
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := e.client.Do(request)
	for tries := 0; isCutByReload(err) && method == http.MethodGet && tries < 3; tries++ {
		response, err = e.client.Do(request)
	}
	if err != nil {
		e.t.Fatalf("e.client.Do: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatalf("io.ReadAll: %v", err)
	}
	return response.StatusCode, string(text)
}

// serves reports whether a site is served at a host.
func (e *storedEdge) serves(host string) bool {
	e.t.Helper()
	status, _ := e.get(host, lookupPath)
	return status == http.StatusOK
}

// eachStore runs a test with a store of each kind.
func eachStore(t *testing.T, test func(t *testing.T, store string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteStore(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, "postgres "+dbtest.PostgresSource(t)) })
}

// load gives the running Caddy another Caddyfile.
func (e *storedEdge) load(config string) error {
	request, err := http.NewRequest(http.MethodPost, "http://caddy/load", strings.NewReader(config))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate") // loads one that is the same, too
	response, err := e.admin.Do(request)
	if err == nil && response.Body.Close() == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("loading: %d", response.StatusCode)
	}
	return err
}

// loadAndAsk loads another Caddyfile, while lookups at a host are answered all the time.
func (e *storedEdge) loadAndAsk(config, host string) {
	e.t.Helper()
	loaded := make(chan error, 1)
	go func() { loaded <- e.load(config) }()
	for isLoading := true; isLoading; {
		select {
		case err := <-loaded:
			if isLoading = false; err != nil {
				e.t.Fatalf("loading the configuration: %v", err)
			}
		default:
		}
		request, err := http.NewRequest(http.MethodGet, "http://127.0.0.1:"+e.Port+lookupPath, nil)
		if err != nil {
			e.t.Fatalf("http.NewRequest: %v", err)
		}
		request.Host = host
		response, err := e.client.Do(request)
		if err != nil {
			continue // Caddy closes a listener, as it does on any reload
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			e.t.Fatalf("a lookup: %d", response.StatusCode)
		}
	}
}
