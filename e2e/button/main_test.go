// Package button tests the inbox button as readers meet it: in Chromium, on
// pages that the built Caddy serves, with its own lookup behind them.
package button

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/miekg/dns"
)

// edge is the built Caddy, and chromium the browser. They are started once.
var (
	edge     string          // http://localhost:<port>
	pages    string          // the folder that the edge serves
	chromium context.Context // nil without Chromium
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	browser := findChromium()
	if browser == "" {
		return m.Run(), nil // each test says that it skips
	}
	folder, err := os.MkdirTemp("", "lychgate-button-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)

	stopDNS, resolver, err := startDNS()
	if err != nil {
		return 0, err
	}
	defer stopDNS()
	stopEdge, err := startEdge(folder, resolver)
	if err != nil {
		return 0, err
	}
	defer stopEdge()

	window, stopBrowser, err := startChromium(browser, folder)
	if err != nil {
		return 0, err
	}
	chromium = window //nolint:fatcontext // set once
	defer stopBrowser()
	return m.Run(), nil
}

func findChromium() string {
	for _, name := range []string{os.Getenv("LYCHGATE_TEST_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func startChromium(browser, folder string) (window context.Context, stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser),
		chromedp.NoSandbox, // which root cannot have
		chromedp.Flag("headless", "new"),
		chromedp.UserDataDir(filepath.Join(folder, "profile")),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	window, stopBrowser := chromedp.NewContext(allocator)
	stop = func() { stopBrowser(); stopAllocator() }
	if err := chromedp.Do(window); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting %s: %w", browser, err)
	}
	return window, stop, nil
}

// startDNS starts the server that the edge asks about these domains.
func startDNS() (stop func(), address string, err error) {
	zone := map[string]string{
		"workspace.example.":    "workspace.example. 300 IN MX 1 aspmx.l.google.com.",
		"company.example.":      "company.example. 300 IN MX 0 company-example.mail.protection.outlook.com.",
		"live.example.":         "live.example. 300 IN MX 1 aspmx.l.google.com.",
		"live.company.example.": "live.company.example. 300 IN MX 0 company-example.mail.protection.outlook.com.",
		"hotmail.fr.":           "hotmail.fr. 300 IN MX 2 hotmail-com.olc.protection.outlook.com.",
		"own.example.":          "own.example. 300 IN MX 10 mail.own.example.",
		// What a browser makes of bücher.example.
		"xn--bcher-kva.example.": "xn--bcher-kva.example. 300 IN MX 10 mail.protonmail.ch.",
	}
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		reply.RecursionAvailable = true
		if record, ok := zone[strings.ToLower(query.Question[0].Name)]; ok {
			rr, err := dns.NewRR(record)
			if err != nil {
				panic(err)
			}
			reply.Answer = []dns.RR{rr}
		} else {
			reply.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(reply)
	})}
	go server.ActivateAndServe()
	return func() { server.Shutdown() }, conn.LocalAddr().String(), nil
}

const caddyfile = `{
	admin off
	persist_config off
	storage file_system {{folder}}/data
	lychgate {
		store sqlite {{folder}}/lychgate.db
		resolvers {{dns}}
		site daily {
			hosts localhost
			platform none
		}
	}
}

http://localhost:{{port}} {
	bind fd/3
	inbox_provider {
		limit 1000 1m
	}
	handle / {
		root {{web}}
		rewrite /demo.html
		file_server
	}
	handle {
		root {{pages}}
		file_server
	}
}
`

// caddyBinary is the built Caddy.
var caddyBinary string

// startEdge builds Caddy with Lychgate and starts it.
func startEdge(folder, resolver string) (stop func(), err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	caddyBinary = filepath.Join(folder, "caddy")
	build := exec.Command("go", "build", "-o", caddyBinary, "./cmd/caddy")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building Caddy: %w: %s", err, out)
	}
	dnsAddress, pages = resolver, filepath.Join(folder, "pages")
	if err := os.Mkdir(pages, 0o700); err != nil {
		return nil, err
	}
	listener, _, err := listen()
	if err != nil {
		return nil, err
	}
	edge, stop, err = runCaddy(folder, listener, strings.NewReplacer("{{web}}", filepath.Join(root, "web"), "{{pages}}", pages).Replace(caddyfile))
	return stop, err
}

// dnsAddress is where the edge asks.
var dnsAddress string

// listen opens a socket at a free port, for runCaddy.
func listen() (listener *net.TCPListener, port string, err error) {
	listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, "", err
	}
	_, port, err = net.SplitHostPort(listener.Addr().String())
	return listener, port, err
}

// runCaddy runs Caddy until it is stopped, and returns its address. Caddy is
// handed the socket, which is fd/3 in the Caddyfile.
func runCaddy(folder string, listener *net.TCPListener, config string) (address string, stop func(), err error) {
	defer listener.Close()
	socket, err := listener.File()
	if err != nil {
		return "", nil, err
	}
	defer socket.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return "", nil, err
	}
	config = strings.NewReplacer("{{folder}}", folder, "{{dns}}", dnsAddress, "{{port}}", port).Replace(config)
	path := filepath.Join(folder, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return "", nil, err
	}
	var log bytes.Buffer
	cmd := exec.Command(caddyBinary, "run", "--config", path)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.ExtraFiles = []*os.File{socket}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		cmd.Wait()
	}()
	stop = func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	// The socket is open, so Caddy answers once it runs.
	address = "http://localhost:" + port
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/ghost/inbox-provider?domain=gmail.com", nil)
	if err != nil {
		stop()
		return "", nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		stop()
		lines := strings.SplitAfter(log.String(), "\n")
		return "", nil, fmt.Errorf("caddy does not answer: %w, %v; its log ends with\n%s", err, cmd.ProcessState, strings.Join(lines[max(0, len(lines)-10):], ""))
	}
	response.Body.Close()
	return address, stop, nil
}

// page is one page in a browser window of its own, without cookies or a cache.
type page struct {
	t   *testing.T
	ctx context.Context
}

// device is what a browser says of itself.
type device struct {
	userAgent, platform string
	touchPoints         int64
}

// A setting is made before a page is loaded.
type setting func(context.Context) error

func on(d device) setting {
	return func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
			UserAgent: d.userAgent, Platform: d.platform,
		})
		if err != nil {
			return err
		}
		return property("maxTouchPoints", d.touchPoints)(ctx)
	}
}

func speaking(language string) setting { return property("language", language) }

// property sets one of the browser's window.navigator.
func property(name string, value any) setting {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return before(fmt.Sprintf("Object.defineProperty(Navigator.prototype, %q, {get: () => (%s)})", name, encoded))
}

// before runs JavaScript before any of the page's.
func before(script string) setting {
	return func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}
}

// clock makes timers wait for probe.advance, and notes each request.
const clock = `
	window.probe = {
		timeout: setTimeout.bind(window), now: 0, timers: [], fetches: [], settled: 0, errors: [],
		advance(ms) {
			for (const end = this.now + ms; ; ) {
				const [next] = this.timers.filter(t => t.at <= end).sort((a, b) => a.at - b.at || a.id - b.id);
				if (!next) { this.now = end; return this.fetches.length; }
				this.now = next.at;
				this.timers.splice(this.timers.indexOf(next), 1);
				next.run();
			}
		},
	};
	{
		let id = 0;
		window.setTimeout = (run, ms = 0) => { probe.timers.push({id: ++id, at: probe.now + ms, run}); return id; };
		window.clearTimeout = id => { probe.timers = probe.timers.filter(t => t.id !== id); };
		const send = window.fetch;
		// An answer is settled when its body has been read.
		window.fetch = async (url, options) => {
			probe.fetches.push(String(url));
			try {
				const response = await send(url, options);
				const copy = response.clone();
				await copy.text().catch(() => {});
				return response;
			} finally {
				probe.settled++;
			}
		};
		addEventListener('error', event => probe.errors.push(event.message));
		addEventListener('unhandledrejection', event => probe.errors.push(String(event.reason)));
	}`

var visits atomic.Int64

// visit opens a page with a body, at the edge.
func visit(t *testing.T, html string, settings ...setting) *page {
	t.Helper()
	name := fmt.Sprintf("%d.html", visits.Add(1))
	if chromium != nil { // else the folder is not there, and open skips
		if err := os.WriteFile(filepath.Join(pages, name), []byte("<!doctype html>"+html), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, "/"+name, settings...)
}

// open opens a page of the edge, or a whole URL.
func open(t *testing.T, url string, settings ...setting) *page {
	t.Helper()
	if chromium == nil {
		need(t, "Chromium in the PATH, or in LYCHGATE_TEST_CHROMIUM")
	}
	if strings.HasPrefix(url, "/") {
		url = edge + url
	}
	ctx, cancel := context.WithTimeout(chromium, 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	for _, set := range settings {
		if err := set(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	return &page{t, ctx}
}

// js runs JavaScript, waits for what it promises, and returns it.
func js[T any](p *page, format string, args ...any) T {
	p.t.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](format, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// until waits for what a JavaScript expression tells.
func (p *page) until(what string) {
	p.t.Helper()
	if !js[bool](p, `new Promise(done => {
		const end = performance.now() + 60000;
		(function look() {
			if (%s) done(true);
			else if (performance.now() > end) done(false);
			else (window.probe?.timeout ?? setTimeout)(look, 10);
		})();
	})`, what) {
		p.t.Fatalf("never: %s", what)
	}
}

// button is what a reader sees of a button; nil when there is none.
type button struct {
	Provider, Href, Text, Lang, Target, Rel string
}

const seen = `(() => {
	const button = document.querySelector('lychgate-inbox-button');
	const link = button?.shadowRoot?.querySelector('a');
	if (!link?.checkVisibility({visibilityProperty: true, opacityProperty: true})) return null;
	return {Provider: button.getAttribute('provider'), Href: link.href, Text: link.textContent, Lang: link.lang, Target: link.target, Rel: link.rel};
})()`

func (p *page) button() *button {
	p.t.Helper()
	return js[*button](p, seen)
}

// shown waits for a button.
func (p *page) shown() *button {
	p.t.Helper()
	p.until(seen + " !== null")
	return p.button()
}
