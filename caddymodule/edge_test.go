package caddymodule_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/goleak"

	_ "github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest/inprocess"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// faults matches the tests of faults. They wait more than they work, and take half of the time of all.
const faults = "(While|Killed|Faults|Died|Away|FleetLoses|Slow)"

// TestMain runs the tests of faults alone where LYCHGATE_TEST_FAULTS is "only", and all others where it is
// "not", so that both can run at the same time.
func TestMain(m *testing.M) {
	flags := map[string]string{"only": "test.run", "not": "test.skip"}
	if name, ok := flags[os.Getenv("LYCHGATE_TEST_FAULTS")]; ok {
		if err := flag.Set(name, faults); err != nil {
			panic(err)
		}
	}
	// What Caddy logs before it has a configuration goes into the log of the
	// first one, and not between the tests' output.
	caddy.BufferedLog()
	wait.Goroutines(caddytest.M{M: m},
		// CertMagic looks every 5 seconds whether its lock file is still its.
		goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
	)
}

// edge is a Caddy that runs in this process: its own config loader, a real
// listener, real connections. There is one at a time.
type edge struct {
	t       testing.TB
	base    string // http://localhost:<port>, or where it is for Ghost's staff
	logFile string

	// adminSocket is where the admin API listens, if the Caddyfile has {{admin}}
	// among its global options.
	adminSocket string

	socket *socket
	vars   caddytest.Values
	client *http.Client

	atOnce int // how many calls of write Ghost had at once
}

// startEdge starts Caddy with a Caddyfile. In it, {{base}} is the address that
// it listens at, {{dns}} the DNS server's, and {{global}} what belongs into the
// global options of every test.
func startEdge(t testing.TB, dns *dnstest.Server, config string) *edge {
	t.Helper()
	socket, port := newSocket(t)
	dnsAddress := "127.0.0.1:53"
	if dns != nil {
		dnsAddress = dns.Addr.String()
	}
	e := &edge{
		t:           t,
		socket:      socket,
		base:        "http://localhost:" + port,
		logFile:     filepath.Join(t.TempDir(), "caddy.log"),
		adminSocket: filepath.Join(caddytest.Folder(t), "admin.sock"),
		client: &http.Client{
			Transport:     recorder{newConnections("127.0.0.1:" + port)},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	admin := "admin off"
	if strings.Contains(config, "{{admin}}") {
		admin = ""
	}
	e.vars = caddytest.Values{
		"admin": "admin unix/" + e.adminSocket,
		"base":  e.base,
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
			}`, admin, t.TempDir(), e.logFile),
	}
	caddytest.ShowLog(t, e.logFile)
	e.load(config)
	caddytest.UntilStoreOpens(t, e.logFile)
	t.Cleanup(func() {
		if admin == "" { // Caddy's admin API outlives its configuration until another has none
			e.load("{\n{{global}}\nadmin off\n}\n")
		}
		e.client.CloseIdleConnections()
		if err := e.socket.replace(caddy.Stop); err != nil {
			t.Errorf("e.socket.replace: %v", err)
		}
	})
	return e
}

// load gives the running Caddy another Caddyfile.
func (e *edge) load(config string) {
	e.t.Helper()
	if err := e.tryLoad(config); err != nil {
		e.t.Fatalf("e.tryLoad: %v", err)
	}
}

// fill puts the edge's values into a Caddyfile.
func (e *edge) fill(config string) string {
	e.t.Helper()
	filled, err := e.vars.Fill(config)
	if err != nil {
		e.t.Fatalf("e.vars.Fill: %v", err)
	}
	return filled
}

func (e *edge) tryLoad(config string) error {
	// The old configuration closes the connections that are not in use.
	defer e.client.CloseIdleConnections()
	return e.socket.replace(func() error { return inprocess.Load(e.fill(config)) })
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

// validate does what `caddy validate` does.
func validate(config string) error {
	adapted, err := inprocess.Adapt(config)
	if err != nil {
		return err
	}
	return validateJSON(adapted)
}

func validateJSON(config []byte) error {
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

// response is what a client sees of a response.
type response struct {
	Status int
	Header map[string]string // without Date, Server, Content-Length
	Body   string
}

// do sends a request. Headers are name and value in turn; "Host" sets the host.
func (e *edge) do(method, target string, header ...string) response {
	e.t.Helper()
	r, err := e.send(method, target, header...)
	if err != nil {
		e.t.Fatalf("e.send: %v", err)
	}
	return r
}

func (e *edge) send(method, target string, header ...string) (response, error) {
	return e.sendBody(method, target, "", header...)
}

func (e *edge) sendBody(method, target, body string, header ...string) (response, error) {
	return e.sendStream(method, target, strings.NewReader(body), header...)
}

func (e *edge) sendStream(method, target string, body io.Reader, header ...string) (response, error) {
	request, err := http.NewRequest(method, e.base+target, body)
	if err != nil {
		return response{}, err
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		} else {
			request.Header.Add(header[i], header[i+1])
		}
	}
	got, err := e.client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	r := response{Status: got.StatusCode, Header: map[string]string{}, Body: string(text)}
	for name, values := range got.Header {
		if name != "Date" && name != "Server" && name != "Content-Length" {
			r.Header[name] = strings.Join(values, "; ")
		}
	}
	return r, err
}

// lookup asks for a domain's provider, as a theme does, from a reader's address.
func (e *edge) lookup(domain, reader string) response {
	e.t.Helper()
	return e.do("GET", "/ghost/inbox-provider?domain="+domain, "Accept", "application/json", "X-Forwarded-For", reader)
}

// metric is "" if there is no such series. The Caddyfile must serve /metrics.
func (e *edge) metric(series string) string {
	e.t.Helper()
	for line := range strings.Lines(e.do("GET", "/metrics").Body) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// logged has the log's lines that came from Lychgate or name it, and all lines of access logs.
func (e *edge) logged() string {
	e.t.Helper()
	all, err := os.ReadFile(e.logFile)
	if err != nil {
		e.t.Fatalf("os.ReadFile: %v", err)
	}
	var lines bytes.Buffer
	for line := range bytes.Lines(all) {
		if bytes.Contains(line, []byte(`"logger":"admin"`)) { // which ends after its test, and has the test's name in its path
			continue
		}
		if bytes.Contains(line, []byte("lychgate")) || bytes.Contains(line, []byte("inbox_provider")) || bytes.Contains(line, []byte("theme_manifest")) || bytes.Contains(line, []byte("http.log.access")) {
			lines.Write(line)
		}
	}
	return lines.String()
}

// isRest reports whether a Retry-After is what remains of a window that began
// with a request after start, in whole seconds, rounded up.
func isRest(retryAfter string, window time.Duration, start time.Time) bool {
	seconds, err := strconv.Atoi(retryAfter)
	rest := time.Duration(seconds) * time.Second
	return err == nil && rest <= window && rest >= window-time.Since(start)
}

func linesWith(log, text string) string {
	var found strings.Builder
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found.WriteString(line)
		}
	}
	return found.String()
}

func startDNS(t testing.TB, handler dnstest.Handler) *dnstest.Server {
	t.Helper()
	server, err := dnstest.Start(handler)
	if err != nil {
		t.Fatalf("dnstest.Start: %v", err)
	}
	t.Cleanup(server.Close)
	return server
}
