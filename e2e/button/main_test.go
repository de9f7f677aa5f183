// Package button tests the inbox button as readers meet it: in the engines of
// Chrome, Firefox and Safari, on pages that the built Caddy serves, with its own
// lookup behind them.
package button

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// An engine is a browser that has been started.
type engine interface {
	// open opens a page in a window of its own, which shares no cookies and no
	// cache with others if the engine can do that. It returns when the page is
	// loaded. The tab ends with ctx.
	open(ctx context.Context, url string, how look) (tab, error)
	stop()
}

// look is how a page is shown. Zero values are the engine's own.
type look struct {
	width, height int64 // CSS pixels
	phone         bool
	media         map[string]string // media features, such as prefers-color-scheme, and the type
}

// A tab is a page that has been opened. Only the last one of an engine is used.
type tab interface {
	// evaluate runs a JavaScript expression and returns the string of its promise.
	evaluate(expression string) (string, error)
	// press types into the element that has the focus; "\t" and "\r" are keys too.
	press(keys string) error
	// picture returns what is seen, as a PNG.
	picture() ([]byte, error)
	// offline cuts the page off from all servers.
	offline() error
	close()
}

// engines start a browser, by the values of LYCHGATE_TEST_ENGINE. What they keep
// is kept in the folder.
var engines = map[string]func(folder string) (engine, error){
	"chromium": startChromium,
	"firefox":  startFirefox,
	"webkit":   startWebKit,
}

// notInstalled says what an engine needs on this computer.
type notInstalled string

func (n notInstalled) Error() string { return string(n) + " is not installed" }

// unable says what an engine cannot do, and why. A test that needs it skips.
type unable string

func (u unable) Error() string { return string(u) }

// edge is the built Caddy, and browser the engine. They are started once.
var (
	edge    string // http://localhost:<port>
	pages   string // the folder that the edge serves
	browser engine // nil if it is not installed
	lacks   string // what is not installed
)

// engineName is the engine that the tests run in.
func engineName() string {
	if name := os.Getenv("LYCHGATE_TEST_ENGINE"); name != "" {
		return name
	}
	return "chromium"
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	start, ok := engines[engineName()]
	if !ok {
		return 0, fmt.Errorf("LYCHGATE_TEST_ENGINE=%s: not one of chromium, firefox and webkit", engineName())
	}
	folder, err := os.MkdirTemp("", "lychgate-button-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)

	browser, err = start(folder)
	if missing, ok := errors.AsType[notInstalled](err); ok {
		lacks = string(missing)
		return m.Run(), nil // each test says that it skips
	}
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", engineName(), err)
	}
	defer browser.stop()
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
	return m.Run(), nil
}

// page is one page in the browser.
type page struct {
	t   *testing.T
	tab tab
}

// must ends the test after an error, and skips it where the engine is unable.
func (p *page) must(err error) {
	p.t.Helper()
	must(p.t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if reason, ok := errors.AsType[unable](err); ok {
		t.Skip(reason)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// device is what a browser says of itself.
type device struct {
	userAgent, platform string
	touchPoints         int64
}

// settings are made before a page is loaded.
type settings struct {
	look

	before string // JavaScript
}

type setting func(*settings)

func on(d device) setting {
	return func(s *settings) {
		property("userAgent", d.userAgent)(s)
		property("platform", d.platform)(s)
		property("maxTouchPoints", d.touchPoints)(s)
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

// before runs JavaScript before any of the page's. The page is one that visit or
// a stand-in writes, for the script is written into it.
func before(script string) setting {
	return func(s *settings) { s.before += script + ";\n" }
}

// media sets media features, given as name and value in turn.
func media(features ...string) setting {
	return func(s *settings) {
		s.media = make(map[string]string)
		for i := 0; i < len(features); i += 2 {
			s.media[features[i]] = features[i+1]
		}
	}
}

func phoneOrDesktop(width, height int64, phone bool) setting {
	return func(s *settings) { s.width, s.height, s.phone = width, height, phone }
}

func all(list []setting) settings {
	var s settings
	for _, set := range list {
		set(&s)
	}
	return s
}

// written is a page with a script before all of its own.
func written(before, html string) []byte {
	if before != "" {
		before = "<script>" + before + "</script>"
	}
	return []byte("<!doctype html>" + before + html)
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
func visit(t *testing.T, html string, list ...setting) *page {
	t.Helper()
	s := all(list)
	name := fmt.Sprintf("%d.html", visits.Add(1))
	if browser != nil { // else the folder is not there, and load skips
		if err := os.WriteFile(filepath.Join(pages, name), written(s.before, html), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return load(t, edge+"/"+name, s.look)
}

// open opens a page of the edge, or a whole URL.
func open(t *testing.T, url string, list ...setting) *page {
	t.Helper()
	if strings.HasPrefix(url, "/") {
		url = edge + url
	}
	s := all(list)
	if s.before != "" {
		standIn := standInAt(url)
		if standIn == nil {
			t.Fatalf("%s is not written here, so nothing can run before its scripts", url)
		}
		standIn.begin(s.before)
	}
	return load(t, url, s.look)
}

func load(t *testing.T, url string, how look) *page {
	t.Helper()
	if browser == nil {
		need(t, lacks)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	tab, err := browser.open(ctx, url, how)
	must(t, err)
	t.Cleanup(tab.close)
	return &page{t, tab}
}

// finders find buttons wherever they are: in the document or, at any depth, in a
// shadow root.
const finders = `
	const findAll = (root = document) => [...root.querySelectorAll('*')].flatMap(element =>
		[...element.localName === 'lychgate-inbox-button' ? [element] : [], ...element.shadowRoot ? findAll(element.shadowRoot) : []]);
	const find = () => findAll()[0] ?? null;
`

func (p *page) evaluate(body, format string, args ...any) string {
	p.t.Helper()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	result, err := p.tab.evaluate("(async () => {" + finders + fmt.Sprintf(body, format) + "})()")
	p.must(err)
	return result
}

// js evaluates a JavaScript expression, in which find() is the page's first
// button and findAll() are all of them. It returns what the expression promises.
func js[T any](p *page, format string, args ...any) (result T) {
	p.t.Helper()
	text := p.evaluate("return JSON.stringify(await (%s\n) ?? null)", format, args...)
	p.must(json.Unmarshal([]byte(text), &result))
	return result
}

// do runs JavaScript statements, with find and findAll.
func (p *page) do(format string, args ...any) {
	p.t.Helper()
	p.evaluate("%s\nreturn ''", format, args...)
}

// keys types into an element.
func (p *page) keys(selector, keys string) {
	p.t.Helper()
	p.do("document.querySelector(%q).focus()", selector)
	p.must(p.tab.press(keys))
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
	const button = find();
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
