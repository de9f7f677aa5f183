package button

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The five rules for building an inbox button (docs/inbox_button.md, "When it
// is shown" and "What leaves the page").

const script = `<script src="/ghost/lychgate/inbox-button.js" defer></script>`

// element is a page with one button and nothing else.
const element = script + `<lychgate-inbox-button></lychgate-inbox-button>`

func (p *page) recipient(address string) {
	p.T.Helper()
	p.Do("find().recipient = %q", address)
}

// advance moves the clock by milliseconds and returns how many requests there
// were up to then.
func (p *page) advance(ms int) int {
	p.T.Helper()
	return js[int](p, "probe.advance(%d)", ms)
}

// settled waits for the responses to all requests, or their failures, and for
// what the page makes of them.
func (p *page) settled() {
	p.T.Helper()
	p.Until("probe.fetches.length === probe.settled")
	p.Do("for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame)")
}

func TestRule1BuiltInDomainsNeedNoRequest(t *testing.T) {
	want := make(map[string]string)
	for provider, domains := range map[string]string{
		"gmail":   "gmail.com googlemail.com google.com",
		"yahoo":   "yahoo.com myyahoo.com yahoo.co.uk yahoo.fr yahoo.it ymail.com rocketmail.com",
		"outlook": "outlook.com live.com live.de hotmail.com hotmail.co.uk hotmail.de msn.com passport.com passport.net",
		"proton":  "proton.me pm.me protonmail.com protonmail.ch",
		"icloud":  "icloud.com me.com mac.com",
		"hey":     "hey.com",
		"aol":     "aol.com",
		"mailru":  "mail.ru",
		"feedbin": "feedb.in",
		"":        "example.com mail.google.com", // subdomains are not on the list
	} {
		for domain := range strings.FieldsSeq(domains) {
			want[domain] = provider
		}
	}
	p := visit(t, element, before(clock))
	got := make(map[string]string)
	for domain := range want {
		p.recipient("Jane@" + strings.ToUpper(domain[:1]) + domain[1:])
		got[domain] = ""
		if b := p.button(); b != nil {
			got[domain] = b.Provider
		}
	}
	diff(t, "providers", want, got)
	p.recipient("jane@gmail.com")
	if n := p.advance(10_000); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestRule2WaitsForTheEndOfTyping(t *testing.T) {
	p := visit(t, element, before(clock))
	for _, typed := range []string{"jane@workspace.ex", "jane@workspace.exampl", "jane@workspace.example", "jan@workspace.example", "joan@workspace.example"} {
		p.recipient(typed)
		if n := p.advance(399); n != 0 {
			t.Fatalf("%d requests 399 ms after %q was typed", n, typed)
		}
	}
	p.Do("find().sender = 'news@daily.example'") // no key
	if n := p.advance(1); n != 1 {
		t.Fatalf("%d requests 400 ms after the last key", n)
	}
	if b := p.shown(); b.Provider != "gmail" {
		t.Errorf("shown: %+v", b)
	}
}

// Anyone who has gone on typing does not see what was meant for an earlier domain.
func TestLateAnswerIsForItsOwnDomain(t *testing.T) {
	release := make(chan struct{})
	s := newStandIn(t, element, func(w http.ResponseWriter, r *http.Request) {
		<-release
		answering(`{"provider":"gmail"}`)(w, r)
	})
	p := open(t, s.URL+"/page", before(clock))
	p.recipient("jane@workspace.example")
	p.advance(400)
	p.recipient("jane@elsewhere.example")
	close(release)
	p.settled()
	diff(t, "shown", (*button)(nil), p.button())
}

func TestRule2AsksOnceForEachDomain(t *testing.T) {
	for name, test := range map[string]struct {
		lookup http.HandlerFunc
		shown  bool
	}{
		"placed":   {answering(`{"provider":"gmail"}`), true},
		"unplaced": {answering(`{"provider":null}`), false},
		"failed":   {status(http.StatusInternalServerError), false},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			s := newStandIn(t, element+"<lychgate-inbox-button></lychgate-inbox-button>", func(w http.ResponseWriter, r *http.Request) {
				<-release
				test.lookup(w, r)
			})
			p := open(t, s.URL+"/page", before(clock))
			ask := func(address string) {
				p.Do("for (const button of findAll()) button.recipient = %q", address)
				p.advance(400)
			}
			ask("jane@workspace.example")
			ask("jane@other.example")
			ask("joan@workspace.example") // while it is under way
			ask("joan@other.example")
			close(release)
			p.settled()
			ask("jane@WORKSPACE.example") // when it is answered
			p.settled()
			diff(t, "lookups", 2, p.advance(10_000))
			diff(t, "shown", test.shown, p.button() != nil)
			diff(t, "requests", 2, len(s.asked()))
		})
	}
}

// A domain that has been answered is shown again without a pause.
func TestKnownDomainIsShownAtOnce(t *testing.T) {
	p := visit(t, element, before(clock))
	p.recipient("jane@workspace.example")
	p.advance(400)
	p.shown()
	p.recipient("jane@elsewhere.example")
	diff(t, "elsewhere", (*button)(nil), p.button())
	p.recipient("joan@workspace.example")
	if p.button() == nil {
		t.Error("got no button for another address, want one")
	}
}

func TestRule3FailureIsSilence(t *testing.T) {
	refused := "http://localhost:1/ghost/inbox-provider"
	if harness.Engine != nil {
		refused = strings.Replace(edge, "localhost", "127.0.0.2", 1) + "/ghost/inbox-provider" // where the edge does not listen
	}
	tests := []struct {
		name     string
		endpoint string
		lookup   http.HandlerFunc
		offline  bool // once the page is there
		shown    bool
	}{
		{name: "control", lookup: answering(`{"provider":"gmail"}`), shown: true},
		{name: "null", lookup: answering(`{"provider":null}`)},
		{name: "refused", endpoint: refused},
		{name: "no URL", endpoint: "http://["},
		{name: "offline", lookup: answering(`{"provider":"gmail"}`), offline: true},
		{name: "404", lookup: status(http.StatusNotFound)},
		{name: "422", lookup: status(http.StatusUnprocessableEntity)},
		{name: "429", lookup: status(http.StatusTooManyRequests)},
		{name: "500", lookup: status(http.StatusInternalServerError)},
		{name: "redirect to a page", lookup: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/page", http.StatusFound) }},
		{name: "no CORS header", lookup: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Del("Access-Control-Allow-Origin")
			answering(`{"provider":"gmail"}`)(w, r)
		}},
		{name: "cut off", lookup: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte(`{"provider":"gmail"}`))
		}},
		{name: "slower than 3 s", lookup: func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(30 * time.Second):
				answering(`{"provider":"gmail"}`)(w, r)
			case <-r.Context().Done():
			}
		}},
		{name: "empty", lookup: answering("")},
		{name: "bad JSON", lookup: answering(`{"provider":"gmail"`)},
		{name: "HTML", lookup: answering("<!doctype html>gmail")},
		{name: "a null", lookup: answering("null")},
		{name: "a string", lookup: answering(`"gmail"`)},
		{name: "no provider", lookup: answering("{}")},
		{name: "unknown value", lookup: answering(`{"provider":"gmx"}`)},
		{name: "value in capitals", lookup: answering(`{"provider":"Gmail"}`)},
		{name: "what each object has", lookup: answering(`{"provider":"constructor"}`)},
		{name: "a list", lookup: answering(`{"provider":["gmail"]}`)},
		{name: "a number", lookup: answering(`{"provider":1}`)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.endpoint == "" {
				test.endpoint = newStandIn(t, "", test.lookup).URL + "/ghost/inbox-provider"
			}
			p := visit(t, "<body><p>The plain notice.</p>"+element, before(clock))
			if test.offline {
				p.Must(p.Offline())
			}
			p.Do("find().endpoint = %q", test.endpoint)
			p.recipient("jane@company.example")
			diff(t, "requests", 1, p.advance(400))
			if test.shown {
				p.shown()
				return
			}
			p.settled()
			diff(t, "shown", (*button)(nil), p.button())
			diff(t, "text", "The plain notice.", strings.TrimSpace(js[string](p, "document.body.innerText")))
			diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
			diff(t, "requests in all", 1, p.advance(60_000))
		})
	}
}

// A reader who leaves the page during a lookup, and comes back to it as it was,
// has the button: what was broken off is no response.
func TestLookupThatIsBrokenOff(t *testing.T) {
	const breakOff = `{
		const send = window.fetch;
		let first = true;
		window.fetch = (...all) => first ? (first = false, Promise.reject(new TypeError('Load failed'))) : send(...all);
	}`
	for name, then := range map[string]string{
		"comes back":  "dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))",
		"types again": "find().recipient = 'joan@workspace.example'",
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, element, before(breakOff), before(clock))
			p.recipient("jane@workspace.example")
			diff(t, "requests", 1, p.advance(400))
			p.settled()
			diff(t, "shown", (*button)(nil), p.button())
			diff(t, "requests while nothing happens", 1, p.advance(60_000))
			p.Do(then)
			diff(t, "requests then", 2, p.advance(400))
			diff(t, "provider", "gmail", p.shown().Provider)
			diff(t, "uncaught", []string{}, js[[]string](p, "probe.errors"))
		})
	}
}

// The same with the engine's own cache of pages, while a lookup is under way. An
// engine that loads the page anew has nothing to remember.
func TestComingBack(t *testing.T) {
	var lookups atomic.Int64
	asked, left := make(chan struct{}), make(chan struct{})
	s := newStandIn(t, element, func(w http.ResponseWriter, r *http.Request) {
		if lookups.Add(1) > 1 {
			answering(`{"provider":"gmail"}`)(w, r)
			return
		}
		close(asked)
		select {
		case <-left:
		case <-r.Context().Done():
		}
	})
	defer close(left)
	p := open(t, s.URL+"/page")
	p.Do("addEventListener('pageshow', ({persisted}) => { window.cached = persisted })")
	p.recipient("jane@workspace.example")
	<-asked
	p.Do("setTimeout(() => { location.href = '/elsewhere' })")
	p.arrives("location.pathname === '/elsewhere' && document.readyState === 'complete'")
	p.Do("setTimeout(() => history.back())")
	p.arrives("location.pathname === '/page' && document.readyState === 'complete' && !!customElements.get('lychgate-inbox-button')")
	if !js[bool](p, "window.cached ?? false") {
		t.Logf("%s has loaded the page anew", browser.Name())
		p.recipient("jane@workspace.example")
	}
	diff(t, "provider", "gmail", p.shown().Provider)
	diff(t, "lookups", int64(2), lookups.Load())
}

// arrives waits for another page, in which something is true.
func (p *page) arrives(what string) {
	p.T.Helper()
	wait.Until(p.T, func() string {
		// While the pages change, there is none that could answer.
		if result, err := p.Evaluate("(async () => String(" + what + "))()"); err != nil || result != "true" {
			return fmt.Sprintf("never: %s: %s, %v", what, result, err)
		}
		return ""
	})
}

var devices = map[string]struct {
	device
	shown bool
}{
	"iPhone":            {device{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1", "iPhone", 5}, false},
	"iPhone, Chrome":    {device{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/138.0.7204.33 Mobile/15E148 Safari/604.1", "iPhone", 5}, false},
	"iPad as desktop":   {device{macSafari, "MacIntel", 5}, false},
	"iPad as mobile":    {device{"Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1", "iPad", 5}, false},
	"iPhone as desktop": {device{macSafari, "iPhone", 5}, false},
	"Mac":               {device{macSafari, "MacIntel", 0}, true},
	"Mac, Chrome":       {device{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36", "MacIntel", 0}, true},
	"Windows, touch":    {windows, true},
	"Android":           {androidPhone, true},
	"Linux":             {device{"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Linux x86_64", 0}, true},
}

const macSafari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15"

var (
	windows      = device{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36", "Win32", 10}
	androidPhone = device{"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36", "Linux armv81", 5}
	androidView  = device{"Mozilla/5.0 (Linux; Android 15; Pixel 9 Build/AP4A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/138.0.0.0 Mobile Safari/537.36", "Linux armv81", 5}
)

func TestRule4NothingOnIOS(t *testing.T) {
	for name, test := range devices {
		t.Run(name, func(t *testing.T) {
			p := visit(t, element, before(clock), on(test.device))
			p.recipient("jane@gmail.com")
			diff(t, "shown for a built-in domain", test.shown, p.button() != nil)
			p.recipient("jane@workspace.example")
			requests := 0
			if test.shown {
				requests = 1
			}
			diff(t, "requests for another", requests, p.advance(10_000))
			height := js[float64](p, "find().offsetHeight")
			diff(t, "place is kept", test.shown, height > 0)
		})
	}
}

func TestRule5OnlyTheDomainIsSent(t *testing.T) {
	s := newStandIn(t, element, answering(`{"provider":null}`))
	p := open(t, s.URL+"/page", before(clock))
	addresses := []struct{ address, domain string }{
		{"Jane.Doe+news@Company.Example", "company.example"},
		{" jane@spaces.example ", "spaces.example"},
		{`"jane@home"@quoted.example`, "quoted.example"},
		{"jane@a@two.example", "two.example"},
		{"jane&domain=x@parameter.example", "parameter.example"},
		{"jané@BÜCHER.example", "xn--bcher-kva.example"},
		{"jane@full。stop.example", "full.stop.example"},
		{"jane@" + strings.Repeat(strings.Repeat("a", 60)+".", 4) + "example", strings.Repeat(strings.Repeat("a", 60)+".", 4) + "example"},
	}
	var want []string
	for _, a := range addresses {
		p.recipient(a.address)
		p.advance(400)
		want = append(want, "GET /ghost/inbox-provider?domain="+a.domain+" HTTP/1.1")
	}
	for _, address := range []string{
		"", "jane", "jane@", "@company.example", "jane@localhost", "jane@company.", "jane@.example", "jane@company..example",
		"jane@company.example.", "jane@-company.example", "jane@company-.example", "jane@1.2.3.4", "jane@[::1]", "jane@company.1",
		"jane@company.example/path", "jane@company.example?jane", "jane@company.example#jane", "jane@company.example:80",
		"jane@user:password@company.example:80", "jane@com pany.example", "Jane <jane@company.example>", "jane@ex%61mple.example",
		"jane@under_score.example", "jane@" + strings.Repeat("a", 64) + ".example", "jane@" + strings.Repeat("a.", 124) + "example",
	} {
		p.recipient(address)
		if b := p.button(); b != nil {
			t.Errorf("%q: shown: %+v", address, b)
		}
		if n := p.advance(400); n != len(addresses) {
			t.Errorf("%q: sent: %s", address, js[string](p, "probe.fetches.pop()"))
		}
	}
	p.settled()
	got := s.asked() // in the order of their connections
	slices.Sort(got)
	slices.Sort(want)
	diff(t, "requests", want, got)

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lookup := range s.lookups {
		lower := strings.ToLower(lookup)
		for _, no := range []string{"jan", "cookie", "secret", "referer", "%40", "authorization"} {
			if strings.Contains(lower, no) {
				t.Errorf("%q is in %s", no, lookup)
			}
		}
		if !strings.Contains(lookup, "\r\nAccept: application/json\r\n") {
			t.Errorf("does not accept JSON: %s", lookup)
		}
	}
}

// A page of another origin may call, without credentials: the real edge lets it.
func TestFromAnotherOrigin(t *testing.T) {
	for name, html := range map[string]string{
		"endpoint given":         script + fmt.Sprintf(`<lychgate-inbox-button endpoint="%s/ghost/inbox-provider"></lychgate-inbox-button>`, edge),
		"endpoint of the script": fmt.Sprintf(`<script src="%s/ghost/lychgate/inbox-button.js" defer></script><lychgate-inbox-button></lychgate-inbox-button>`, edge),
		"endpoint for the page":  fmt.Sprintf(`<script src="/assets/js/inbox-button.js" data-endpoint="%s/ghost/inbox-provider" defer></script><lychgate-inbox-button></lychgate-inbox-button>`, edge),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t, html, status(http.StatusInternalServerError))
			p := open(t, s.URL+"/page", before(clock))
			p.recipient("jane@workspace.example")
			p.advance(400)
			diff(t, "provider", "gmail", p.shown().Provider)
			diff(t, "requests elsewhere", []string(nil), s.asked())
		})
	}
}
