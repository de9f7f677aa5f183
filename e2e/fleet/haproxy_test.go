package fleet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/redistest"
	"github.com/lychgate/caddy-lychgate/internal/test/tcpproxy"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

const host = "news.example.com"

// fleet is the fleet to copy on this machine: its edges at 127.0.0.11 to 13, behind HAProxy. Of its files
// addresses, secrets and the storage of certificates are others.
type fleet struct {
	t        *testing.T
	postgres *tcpproxy.Proxy
	edges    []*caddytest.Edge
	balancer string // where HAProxy passes TLS on

	mu       sync.Mutex
	failures []string
	sent     map[string]int
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	program := lookHAProxy(t)
	source, err := url.Parse(dbtest.PostgresSource(t))
	if err != nil {
		t.Fatalf("url.Parse: %v", err)
	}
	f := &fleet{t: t, postgres: tcpproxy.Start(t, source.Host), balancer: "127.0.0.1:" + freeport.New(t), sent: make(map[string]int)}
	source.Host = f.postgres.Address
	redis := redistest.Start(t)
	http, https, health := freeport.New(t), freeport.New(t), freeport.New(t)

	t.Setenv("ACME_EMAIL", "ops@example.com")
	t.Setenv("CERT_ISSUER", "internal")
	caddyfile := f.read("Caddyfile")
	caddyfile = replace(t, caddyfile, `(?s)\tstorage redis \{.*?\n\t\}`, "\t{{global}}\n\tskip_install_trust\n\thttp_port "+http+"\n\thttps_port "+https)
	caddyfile = replace(t, caddyfile, `\{file./run/secrets/lychgate_dsn\}`, source.String())
	caddyfile = replace(t, caddyfile, `\{file./run/secrets/lychgate_redis\}`, "redis://"+redis.Address)
	caddyfile = replace(t, caddyfile, `\{file./run/secrets/lychgate_secret\}`, strings.Repeat("0123456789abcdef", 4))
	caddyfile = replace(t, caddyfile, `:9080`, ":"+health)
	caddyfile = replace(t, caddyfile, `(?s)localhost:2019 \{.*?\}\n`, "unix/{{folder}}/admin.sock {\n\t\t\t\theader_up Host caddy\n\t\t\t}\n")
	for n := range 3 {
		folder := caddytest.Folder(t)
		global := fmt.Sprintf("admin unix/%s/admin.sock\n\tpersist_config off\n\tdefault_bind 127.0.0.1%d\n\tstorage file_system %s/data", folder, n+1, folder)
		e, err := caddytest.Start(folder, caddyfile, caddytest.Values{"global": global, "port": health})
		if err != nil {
			t.Fatalf("caddytest.Start: %v", err)
		}
		caddytest.ShowLog(t, e.LogFile)
		f.edges = append(f.edges, e)
		t.Cleanup(func() {
			if err := e.Stop(); err != nil {
				t.Errorf("e.Stop: %v", err)
			}
		})
	}

	config := f.read("haproxy.cfg")
	config = replace(t, config, ` resolvers docker init-addr \S+`, "")
	config = replace(t, config, `(?s)resolvers docker\n.*?\n\n`, "")
	config = replace(t, config, `port 9080`, "port "+health)
	config = replace(t, config, `edge([123]):443`, "127.0.0.1${1}:"+https)
	config = replace(t, config, `edge([123]):80`, "127.0.0.1${1}:"+http)
	config = replace(t, config, `bind :443`, "bind "+f.balancer)
	config = replace(t, config, `bind :80`, "bind 127.0.0.1:"+freeport.New(t))
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	haproxy := exec.Command(program, "-db", "-f", file)
	haproxy.Stderr = os.Stderr
	if err := haproxy.Start(); err != nil {
		t.Fatalf("haproxy.Start: %v", err)
	}
	t.Cleanup(func() {
		_ = haproxy.Process.Kill() // it may have ended
		_ = haproxy.Wait()
	})
	return f
}

func (f *fleet) read(file string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(example, file))
	if err != nil {
		f.t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

// replace fails the test if there is nothing to replace.
func replace(t *testing.T, text, pattern, by string) string {
	t.Helper()
	of := regexp.MustCompile(pattern)
	if !of.MatchString(text) {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return of.ReplaceAllString(text, by)
}

// admin sends a request to the admin API of the first edge.
func (f *fleet) admin(path, body string) string {
	f.t.Helper()
	client := caddytest.Admin(f.edges[0].AdminSocket)
	defer client.CloseIdleConnections()
	response, err := client.Post("http://caddy"+path, "application/json", strings.NewReader(body))
	if err != nil {
		f.t.Fatalf("client.Post: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated {
		f.t.Fatalf("%s: got %s, %s, %v; want 201", path, response.Status, text, err)
	}
	return string(text)
}

// newClient makes a client of readers, each connection of which is from another address.
func (f *fleet) newClient() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			from := net.IPv4(127, byte(1+rand.IntN(200)), byte(rand.IntN(250)), byte(1+rand.IntN(250)))
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, "tcp", f.balancer)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // each edge has an authority of its own
		ForceAttemptHTTP2: true,
	}}
}

// send notes a request as failed that is not answered with one of the statuses.
func (f *fleet) send(client *http.Client, what string, request *http.Request, statuses ...int) {
	response, err := client.Do(request)
	problem := ""
	if err != nil {
		problem = err.Error()
	} else {
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !slices.Contains(statuses, response.StatusCode) {
			problem = fmt.Sprint(response.Status, " ", string(text), " ", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[what]++
	if problem != "" && len(f.failures) < 20 {
		f.failures = append(f.failures, what+": "+problem)
	}
}

// noFailures fails the test if requests have failed since the last time.
func (f *fleet) noFailures(during string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff([]string(nil), f.failures); diff != "" {
		f.t.Errorf("failed requests while %s (-want +got):\n%s", during, diff)
	}
	f.failures = nil
}

func (f *fleet) request(ctx context.Context, method, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "https://"+host+path, strings.NewReader(body))
	if err != nil {
		panic(err) // of a constant
	}
	return r
}

// lookUp asks for lookups until ctx is done: over a new connection each time, and over one that is kept.
func (f *fleet) lookUp(ctx context.Context, interval time.Duration) {
	fresh, kept := f.newClient(), f.newClient()
	defer kept.CloseIdleConnections()
	for ctx.Err() == nil {
		for what, client := range map[string]*http.Client{"a lookup over a new connection": fresh, "a lookup over a kept connection": kept} {
			f.send(client, what, f.request(context.WithoutCancel(ctx), "GET", "/ghost/inbox-provider?domain=gmail.com", ""), http.StatusOK, http.StatusTooManyRequests)
		}
		fresh.CloseIdleConnections()
		pause(ctx, interval)
	}
}

// create creates members until ctx is done, over a connection that is kept.
func (f *fleet) create(ctx context.Context, key string, interval time.Duration) {
	client := f.newClient()
	defer client.CloseIdleConnections()
	for n := 0; ctx.Err() == nil; n++ {
		r := f.request(context.WithoutCancel(ctx), "POST", "/integration/members", fmt.Sprintf(`{"email":"m%d@example.com"}`, n))
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		f.send(client, "a create", r, http.StatusOK, http.StatusCreated)
		pause(ctx, interval)
	}
}

func pause(ctx context.Context, interval time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(interval):
	}
}

// Edges behind the printed load balancer are restarted one after the other without a failed request. While
// PostgreSQL hangs, which makes health checks slow, readers of all edges notice nothing.
func TestFleetBehindHAProxy(t *testing.T) {
	f := startFleet(t)
	f.admin("/lychgate/sites", `{"name":"daily","hosts":["`+host+`"],"platform":{"kind":"none"}}`)
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(f.admin("/lychgate/sites/daily/integrations", `{"name":"crm","limit":{"requests":60000,"window":"1m"}}`)), &made); err != nil || made.Key == "" {
		t.Fatalf("json.Unmarshal: %v, want a key", err)
	}
	client := f.newClient()
	wait.Until(t, func() string { // HAProxy knows that edges are healthy, and these know the site
		for range 6 {
			response, err := client.Do(f.request(t.Context(), "GET", "/ghost/inbox-provider?domain=gmail.com", ""))
			if err != nil {
				return err.Error()
			}
			response.Body.Close()
			client.CloseIdleConnections() // the next is for another edge
			if response.StatusCode != http.StatusOK {
				return response.Status
			}
		}
		return ""
	})

	load := func(during string, do func(), callers ...func(context.Context)) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, call := range callers {
			all.Go(func() { call(ctx) })
		}
		do()
		cancel()
		all.Wait()
		f.noFailures(during)
	}
	readers := func(ctx context.Context) { f.lookUp(ctx, 50*time.Millisecond) }
	load("edges are restarted", func() {
		for _, e := range f.edges[:2] {
			if err := e.Stop(); err != nil {
				t.Errorf("e.Stop: %v", err)
			}
			if err := e.Restart(); err != nil {
				t.Fatalf("e.Restart: %v", err)
			}
			f.untilHealthy(e)
			pause(t.Context(), 2*time.Second) // HAProxy asks each second
		}
	}, readers, readers, func(ctx context.Context) { f.create(ctx, made.Key, 100*time.Millisecond) })
	load("PostgreSQL hangs", func() {
		f.postgres.Hang()
		pause(t.Context(), 6*time.Second) // a few checks
	}, readers, readers)
	f.postgres.Fix()
	t.Logf("requests: %v", f.sent)
}

func (f *fleet) untilHealthy(e *caddytest.Edge) {
	f.t.Helper()
	client := caddytest.Admin(e.AdminSocket)
	defer client.CloseIdleConnections()
	wait.Until(f.t, func() string {
		response, err := client.Get("http://caddy/lychgate/health")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
}
