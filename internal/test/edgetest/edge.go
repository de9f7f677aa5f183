// Package edgetest runs Caddy with Lychgate in the process of a test, and has what tests of directives share: sites,
// responses, staff of a real Ghost, and a proxy in front of it that fails on request.
package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/goleak"

	_ "github.com/lychgate/caddy-lychgate"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// Main runs the tests of a package, and fails them if they leave goroutines behind.
func Main(m *testing.M) {
	// What Caddy logs before it has a configuration goes into the log of the
	// first one, and not between the tests' output.
	caddy.BufferedLog()
	wait.Goroutines(caddytest.M{M: m},
		// CertMagic looks every 5 seconds whether its lock file is still its.
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
	)
}

// Edge is a Caddy that runs in this process: its own config loader, a real
// listener, real connections. There is one at a time.
type Edge struct {
	T       testing.TB
	Base    string // http://localhost:<port>, or where it is for Ghost's staff
	LogFile string

	// adminSocket is where the admin API listens, if the Caddyfile has {{admin}}
	// among its global options.
	AdminSocket string

	socket *socket
	Vars   caddytest.Values
	Client *http.Client

	AtOnce int // how many calls of write Ghost had at once
}

// StartEdge starts Caddy with a Caddyfile. In it, {{base}} is the address that
// it listens at, {{dns}} the DNS server's, and {{global}} what belongs into the
// global options of every test.
func StartEdge(t testing.TB, dns *dnstest.Server, config string) *Edge {
	t.Helper()
	socket, port := newSocket(t)
	dnsAddress := "127.0.0.1:53"
	if dns != nil {
		dnsAddress = dns.Addr.String()
	}
	e := &Edge{
		T:           t,
		socket:      socket,
		Base:        "http://localhost:" + port,
		LogFile:     filepath.Join(t.TempDir(), "caddy.log"),
		AdminSocket: filepath.Join(caddytest.Folder(t), "admin.sock"),
		Client: &http.Client{
			Transport:     exchange.Recorder{Transport: newConnections("127.0.0.1:" + port)},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	admin := "admin off"
	if strings.Contains(config, "{{admin}}") {
		admin = ""
	}
	e.Vars = caddytest.Values{
		"admin": "admin unix/" + e.AdminSocket,
		"base":  e.Base,
		"port":  port,
		"dns":   dnsAddress,
		"global": fmt.Sprintf(`
			%s
			persist_config off
			default_bind handed/127.0.0.1
			grace_period 10s
			storage file_system %s
			log {
				output file %s {
					roll_disabled
				}
				level INFO
			}
			servers {
				trusted_proxies static 127.0.0.1/32
			}`, admin, t.TempDir(), e.LogFile),
	}
	caddytest.ShowLog(t, e.LogFile)
	e.Load(config)
	caddytest.UntilStoreOpens(t, e.LogFile)
	t.Cleanup(func() {
		if admin == "" { // Caddy's admin API outlives its configuration until another has none
			e.Load("{\n{{global}}\nadmin off\n}\n")
		}
		e.Client.CloseIdleConnections()
		if err := e.socket.replace(caddy.Stop); err != nil {
			t.Errorf("e.socket.replace: %v", err)
		}
	})
	return e
}

// Load gives the running Caddy another Caddyfile.
func (e *Edge) Load(config string) {
	e.T.Helper()
	if err := e.TryLoad(config); err != nil {
		e.T.Fatalf("e.tryLoad: %v", err)
	}
}

// Fill puts the edge's values into a Caddyfile.
func (e *Edge) Fill(config string) string {
	e.T.Helper()
	filled, err := e.Vars.Fill(config)
	if err != nil {
		e.T.Fatalf("e.vars.Fill: %v", err)
	}
	return filled
}

// TryLoad is Load for a Caddyfile that may be refused.
func (e *Edge) TryLoad(config string) error {
	// The old configuration closes the connections that are not in use.
	defer e.Client.CloseIdleConnections()
	err := e.socket.replace(func() error { return inprocess.Load(e.Fill(config)) })
	wait.Until(e.T, func() string { // the old admin endpoint would close a connection that it has just accepted
		stacks := make([]byte, 8<<20)
		if strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "created by github.com/caddyserver/caddy/v2.replaceLocalAdminServer.func1") {
			return "the admin endpoint of before is being stopped"
		}
		return ""
	})
	return err
}

// connections is a transport that sends all requests to one address, and uses no
// connection again once CloseIdleConnections was called. [http.Transport] may: a connection becomes
// idle a moment after the response was read, and is not closed if that comes later.
type connections struct {
	address string
	current atomic.Pointer[http.Transport]
}

func newConnections(address string) *connections {
	c := &connections{address: address}
	c.current.Store(c.newTransport())
	return c
}

func (c *connections) newTransport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, c.address)
		},
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     time.Second, // for requests that began just before CloseIdleConnections
	}
}

func (c *connections) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().RoundTrip(request)
}

func (c *connections) CloseIdleConnections() { c.current.Swap(c.newTransport()).CloseIdleConnections() }

// Validate does what `caddy validate` does.
func Validate(config string) error {
	adapted, err := inprocess.Adapt(config)
	if err != nil {
		return err
	}
	return ValidateJSON(adapted)
}

// ValidateJSON is [Validate] for JSON.
func ValidateJSON(config []byte) error {
	var parsed *caddy.Config
	if err := json.Unmarshal(config, &parsed); err != nil {
		return err
	}
	quiet(parsed)
	return caddy.Validate(parsed)
}

// quiet has a configuration log nothing to standard error.
func quiet(config *caddy.Config) {
	if config.Logging == nil {
		config.Logging = new(caddy.Logging)
	}
	if config.Logging.Logs == nil {
		config.Logging.Logs = make(map[string]*caddy.CustomLog)
	}
	if config.Logging.Logs[caddy.DefaultLoggerName] == nil {
		config.Logging.Logs[caddy.DefaultLoggerName] = new(caddy.CustomLog)
	}
	if log := config.Logging.Logs[caddy.DefaultLoggerName]; log.WriterRaw == nil {
		log.WriterRaw = json.RawMessage(`{"output":"discard"}`)
	}
}

// Response is what a client sees of a response.
type Response = exchange.Response

// Do sends a request. Headers are name and value in turn; "Host" sets the host.
func (e *Edge) Do(method, target string, header ...string) Response {
	e.T.Helper()
	r, err := e.Send(method, target, header...)
	if err != nil {
		e.T.Fatalf("e.send: %v", err)
	}
	return r
}

// Send is Do for a request that may get no response.
func (e *Edge) Send(method, target string, header ...string) (Response, error) {
	return e.SendBody(method, target, "", header...)
}

// SendBody is Send with a body.
func (e *Edge) SendBody(method, target, body string, header ...string) (Response, error) {
	return e.sendStream(method, target, strings.NewReader(body), header...)
}

func (e *Edge) sendStream(method, target string, body io.Reader, header ...string) (Response, error) {
	return exchange.Send(e.Client, method, e.Base+target, body, header...)
}

// Lookup asks for a domain's provider, as a theme does, from a reader's address.
func (e *Edge) Lookup(domain, reader string) Response {
	e.T.Helper()
	return e.Do("GET", "/ghost/inbox-provider?domain="+domain, "Accept", "application/json", "X-Forwarded-For", reader)
}

// Metric is "" if there is no such series. The Caddyfile must serve /metrics.
func (e *Edge) Metric(series string) string {
	e.T.Helper()
	for line := range strings.Lines(e.Do("GET", "/metrics").Body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Logged has the log's lines that came from Lychgate or name it, and all lines of access logs.
func (e *Edge) Logged() string {
	e.T.Helper()
	var lines strings.Builder
	for line := range strings.Lines(ReadLog(e.T, e.LogFile)) {
		if strings.Contains(line, `"logger":"admin"`) { // which ends after its test, and has the test's name in its path
			continue
		}
		if strings.Contains(line, "lychgate") || strings.Contains(line, "inbox_provider") || strings.Contains(line, "theme_manifest") || strings.Contains(line, "http.log.access") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// ReadLog reads the log of an edge.
func ReadLog(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	return string(text)
}

// IsRest reports whether a Retry-After is what remains of a window that began
// with a request after start, in whole seconds, rounded up.
func IsRest(retryAfter string, window time.Duration, start time.Time) bool {
	seconds, err := strconv.Atoi(retryAfter)
	rest := time.Duration(seconds) * time.Second
	return err == nil && rest <= window && rest >= window-time.Since(start)
}

// LinesWith has the lines of a log that contain a text.
func LinesWith(log, text string) string {
	var found strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}

// StartDNS starts a DNS server until the test ends.
func StartDNS(t testing.TB, handler dnstest.Handler) *dnstest.Server {
	t.Helper()
	server, err := dnstest.Start(handler)
	if err != nil {
		t.Fatalf("dnstest.Start: %v", err)
	}
	t.Cleanup(server.Close)
	return server
}

// IsCutByReload reports whether a connection was closed before its response. New ones
// are as well, if they come while the old configuration stops listening: of 800 reloads
// of a Caddy with nothing but respond, two did that.
func IsCutByReload(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

// NothingLeft waits until there are no more goroutines and no more heap than
// there were.
func NothingLeft(t testing.TB, goroutines int, heap uint64) {
	t.Helper()
	wait.Until(t, func() string {
		if n := runtime.NumGoroutine(); n > goroutines+5 {
			return fmt.Sprintf("%d goroutines, were %d", n, goroutines)
		}
		return ""
	})
	wait.Until(t, func() string {
		if now := HeapInUse(); now > heap+8<<20 {
			return fmt.Sprintf("%d bytes of heap, were %d", now, heap)
		}
		return ""
	})
}

// HeapInUse is in bytes, after a collection.
func HeapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
