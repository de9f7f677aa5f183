// Package button tests the inbox button as readers meet it: in the engines of
// Chrome, Firefox and Safari, on pages that the built Caddy serves, with its own
// lookup behind them.
package button

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
)

// edge is the built Caddy, which is started once.
var (
	edge     string // http://localhost:<port>
	pages    string // the folder that the edge serves
	resolver string // the DNS server that the edge asks
)

func TestMain(m *testing.M) {
	harness.MainWithBrowser(m, func(folder string) (func() error, error) {
		dns, err := dnstest.Start(dnstest.Zone(zone))
		if err != nil {
			return nil, err
		}
		resolver = dns.Addr.String()
		stop, err := startEdge(folder)
		return func() error {
			dns.Close()
			return stop()
		}, err
	})
}

// page is one page in the browser.
type page struct{ *browser.Page }

// device is what a browser says of itself.
type device struct {
	userAgent, platform string
	touchPoints         int64
}

// settings are made before a page is loaded.
type settings struct {
	browser.Look

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
		s.Media = make(map[string]string)
		for i := 0; i < len(features); i += 2 {
			s.Media[features[i]] = features[i+1]
		}
	}
}

func phoneOrDesktop(width, height int64, phone bool) setting {
	return func(s *settings) { s.Width, s.Height, s.Phone = width, height, phone }
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
		// A response is settled when its body has been read.
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
	if harness.Engine != nil { // else the folder is not there, and load skips
		if err := os.WriteFile(filepath.Join(pages, name), written(s.before, html), 0o600); err != nil {
			t.Fatalf("os.WriteFile: %v", err)
		}
	}
	return load(t, edge+"/"+name, s.Look)
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
	return load(t, url, s.Look)
}

func load(t *testing.T, url string, how browser.Look) *page {
	t.Helper()
	harness.NeedBrowser(t)
	return &page{browser.Open(t, harness.Engine, url, how, prelude)}
}

// prelude finds buttons wherever they are: in the document or, at any depth, in a
// shadow root.
const prelude = `
	const findAll = (root = document) => [...root.querySelectorAll('*')].flatMap(element =>
		[...element.localName === 'lychgate-inbox-button' ? [element] : [], ...element.shadowRoot ? findAll(element.shadowRoot) : []]);
	const find = () => findAll()[0] ?? null;
`

// js evaluates a JavaScript expression, in which find() is the page's first
// button and findAll() are all of them. It returns what the expression promises.
func js[T any](p *page, format string, args ...any) T {
	p.T.Helper()
	return browser.JS[T](p.Page, format, args...)
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
	p.T.Helper()
	return js[*button](p, seen)
}

// shown waits for a button.
func (p *page) shown() *button {
	p.T.Helper()
	p.Until(seen + " !== null")
	return p.button()
}
