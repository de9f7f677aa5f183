package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
	"github.com/lychgate/caddy-lychgate/internal/test/platformtest"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// changing is what differs each time.
var changing = regexp.MustCompile(`[0-9.]+ (?:[KMGTP]iB|B) |[0-9.]+(?:m|µ)?s$|127\.0\.0\.1:[0-9]+(?:->)?`)

// results runs all checks, and returns the results without what differs each time.
func results(t *testing.T, c Config) (all []Result) {
	t.Helper()
	Run(t.Context(), c, func(string) {}, func(r Result) {
		r.Subject, r.Message = changing.ReplaceAllString(r.Subject, "#"), changing.ReplaceAllString(r.Message, "#")
		all = append(all, r)
	})
	return all
}

// Without a DNS server readers get no button, and nobody tells them why.
func TestUnusableResolversAreReported(t *testing.T) {
	start := func(handler dnstest.Handler) netip.AddrPort {
		server, err := dnstest.Start(handler)
		if err != nil {
			t.Fatalf("dnstest.Start: %v", err)
		}
		t.Cleanup(server.Close)
		return server.Addr
	}
	responses := start(dnstest.Zone(map[string][]string{"gmail.com": {"gmail.com. 300 IN MX 5 gmail-smtp-in.l.google.com."}}))
	refuses := start(func(w dns.ResponseWriter, query *dns.Msg, _ string) {
		reply := dnstest.Reply(query)
		reply.Rcode = dns.RcodeRefused
		w.WriteMsg(reply)
	})
	knowsNobody := start(dnstest.Zone(nil))
	closed, err := dnstest.Start(dnstest.Zone(nil))
	if err != nil {
		t.Fatalf("dnstest.Start: %v", err)
	}
	closed.Close()
	want := []Result{
		{"resolver #", OK, "answers in #", ""},
		{"resolver #", Failed, "answers, but not for gmail.com: no result: REFUSED", "name a recursive DNS server in resolvers that answers for all domains"},
		{"resolver #", Failed, "answers, but does not know the mail servers of gmail.com", "name a recursive DNS server in resolvers that answers for all domains"},
		{"resolver #", Failed, "does not answer: reading a response from # over udp: read udp ##: read: connection refused", "name a DNS server in resolvers that this machine can reach"},
	}
	if diff := cmp.Diff(want, results(t, Config{Resolvers: []netip.AddrPort{responses, refuses, knowsNobody, closed.Addr}})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func address(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

func healthy() *platformtest.Platform {
	at := address("http://ghost:2368")
	p := platformtest.New()
	p.Location = platform.Location{Configured: at, Found: at, Public: address("https://News.example.com/")}
	p.Examination = platform.Examination{Name: "Ghost 6.22.0", Ahead: time.Second}
	return p
}

// What is wrong with a publication is said once, and what follows from it is not.
func TestProblemsOfAPlatformAreReportedOnce(t *testing.T) {
	for _, test := range []faultyPlatform{
		{"healthy", func(*platformtest.Platform) {}, []Result{good, arrive}},
		{
			"cannot be reached", func(p *platformtest.Platform) { p.BreakCalls(errors.New("connection refused"), "locate") },
			[]Result{{"site daily", Failed, "cannot be reached: connection refused", "start it, or write its address into the site's platform"}},
		},
		{
			"in a subdirectory", func(p *platformtest.Platform) { p.Location.Found = address("http://ghost:2368/blog") },
			[]Result{{"site daily", Failed, "is not at the address of the configuration, http://ghost:2368", "write http://ghost:2368/blog into the site's platform"}},
		},
		{
			"another server", func(p *platformtest.Platform) {
				p.BreakCalls(&platform.ElsewhereError{Configured: address("http://me:pw@ghost:2368"), Status: 404}, "locate")
			},
			[]Result{{"site daily", Failed, "http://me:xxxxx@ghost:2368 answers 404 and is not the platform", "write the platform's own address into the site's platform, with the folder if it is in one, such as http://me:xxxxx@ghost:2368/blog"}},
		},
		{
			"a redirect", func(p *platformtest.Platform) {
				p.BreakCalls(&platform.ElsewhereError{Configured: address("http://ghost:2368"), Status: 301, Redirect: address("http://ghost:2368/blog")}, "locate")
			},
			[]Result{{"site daily", Failed, "http://ghost:2368 redirects to another address", "write http://ghost:2368/blog into the site's platform"}},
		},
		{
			"a wrong key", func(p *platformtest.Platform) { p.BreakCalls(errors.New("admin_key is not accepted"), "examine") },
			[]Result{{"site daily", Failed, "admin_key is not accepted", ""}},
		},
		{
			"a fast clock", func(p *platformtest.Platform) { p.Examination.Ahead = 90 * time.Second },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but its clock is 1m30s ahead of this machine's", "let both machines set their clocks by NTP"}, arrive},
		},
		{
			"a slow clock", func(p *platformtest.Platform) { p.Examination.Ahead = -time.Hour },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but its clock is 1h0m0s behind this machine's", "let both machines set their clocks by NTP"}, arrive},
		},
		{
			"another publication", func(p *platformtest.Platform) { p.Location.Public = address("https://weekly.example.org") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key; its own address is weekly.example.org, which is none of the site's hosts (news.example.com, www.example.com)", "add the host to the site's hosts, or set url in the platform's own configuration"}, arrive},
		},
		{
			"another publication's name in another script", func(p *platformtest.Platform) { p.Location.Public = address("https://bücher.example") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key; its own address is xn--bcher-kva.example, which is none of the site's hosts (news.example.com, www.example.com)", "add the host to the site's hosts, or set url in the platform's own configuration"}, arrive},
		},
		{
			"an admin that theme_manifest does not watch", func(p *platformtest.Platform) { p.Location.Public = address("https://news.example.com/blog/") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but uploads of themes are read at /ghost alone", "write path /blog/ghost into theme_manifest"}, arrive},
		},
		{
			"an admin of its own that is not written", func(p *platformtest.Platform) { p.Location.Admin = address("https://admin.example.com") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but its admin is at another host, as it says when it is asked", "write admin_url https://admin.example.com into its block"}, arrive},
		},
		{
			"an admin of its own that has moved", func(p *platformtest.Platform) {
				p.Location.Admin, p.Location.ConfiguredAdmin = address("https://admin.example.com"), address("https://old.example.com")
			},
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but its admin is not at https://old.example.com", "write admin_url https://admin.example.com into its block"}, arrive},
		},
		{
			"an admin that has no host of its own", func(p *platformtest.Platform) { p.Location.ConfiguredAdmin = address("https://admin.example.com") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key, but its admin is at https://News.example.com/, not at https://admin.example.com", "take admin_url out, or set admin:url in the platform's own configuration"}, arrive},
		},
		{
			"an admin of its own that is none of the hosts", func(p *platformtest.Platform) {
				p.Location.Admin, p.Location.ConfiguredAdmin = address("https://admin.example.com"), address("https://admin.example.com")
			},
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key; its staff are at admin.example.com, which is none of the site's hosts (news.example.com, www.example.com)", "add the host to the site's hosts, and write theme_manifest and staff_desk into its block"}, arrive},
		},
		{
			"an admin of its own", func(p *platformtest.Platform) {
				p.Location.Admin, p.Location.ConfiguredAdmin = address("https://www.example.com"), address("https://www.example.com")
			},
			[]Result{good, arrive},
		},
		{
			"pages with Ghost's own port", func(p *platformtest.Platform) { p.Location.Public = address("http://news.example.com:2368/") },
			[]Result{{"site daily", Warning, "Ghost 6.22.0 answers and accepts the key; its own address is http://news.example.com:2368/, with the port at which it is asked, so its pages lead past Caddy", "set url in the platform's own configuration to https://news.example.com/"}, arrive},
		},
		{
			"a certificate that nobody knows", func(p *platformtest.Platform) {
				p.BreakCalls(&tls.CertificateVerificationError{Err: errors.New("signed by unknown authority")}, "locate")
			},
			[]Result{{"site daily", Failed, "cannot be reached: tls: failed to verify certificate: signed by unknown authority", "give it a certificate that this machine trusts, or write its address with http:// into the site's platform"}},
		},
	} {
		t.Run(test.name, test.check)
	}
}

// So are those of its webhook events.
func TestProblemsOfEventsAreReported(t *testing.T) {
	for _, test := range []faultyPlatform{
		{
			"events that another server gets", func(p *platformtest.Platform) {
				p.BreakCalls(&platform.UndeliveredError{Reason: "it was answered with 404", Answered: true}, "testevents")
			},
			[]Result{good, {"site daily, webhook events", Failed, "do not arrive at https://news.example.com/integration/webhooks: it was answered with 404", "see that this address leads to this edge and through no matcher, or write another into webhooks"}},
		},
		{
			"events that do not arrive", func(p *platformtest.Platform) {
				p.BreakCalls(&platform.UndeliveredError{Reason: "Ghost says: Request failed: ECONNREFUSED"}, "testevents")
			},
			[]Result{good, {"site daily, webhook events", Failed, "do not arrive at https://news.example.com/integration/webhooks: Ghost says: Request failed: ECONNREFUSED", "see that Caddy runs, and that the platform's machine reaches this address, over HTTPS with a valid certificate if it is https; or write another into webhooks"}},
		},
		{
			"events that the platform sends nowhere", func(p *platformtest.Platform) {
				p.BreakCalls(&platform.UndeliveredError{Reason: "Ghost sends none to a private or loopback address", Remedy: "write a public address into webhooks"}, "testevents")
			},
			[]Result{good, {"site daily, webhook events", Failed, "do not arrive at https://news.example.com/integration/webhooks: Ghost sends none to a private or loopback address", "write a public address into webhooks"}},
		},
		{
			"events that cannot be tried", func(p *platformtest.Platform) { p.BreakCalls(errors.New("Ghost answers 500"), "testevents") },
			[]Result{good, {"site daily, webhook events", Failed, "cannot be tried: Ghost answers 500", ""}},
		},
		{
			"a webhook that was removed", func(p *platformtest.Platform) { p.EventsMissing = true },
			[]Result{good, {"site daily, webhook events", Warning, "arrive, but some were not registered any more", "see that nobody removes them from the integration on the platform; they are registered again"}},
		},
	} {
		t.Run(test.name, test.check)
	}
}

// faultyPlatform is what is wrong with the platform of a site, and what the doctor says.
type faultyPlatform struct {
	name  string
	fault func(*platformtest.Platform)
	want  []Result
}

// good and arrive are the results of a platform with which nothing is wrong.
var (
	good   = Result{"site daily", OK, "Ghost 6.22.0 answers and accepts the key", ""}
	arrive = Result{"site daily, webhook events", OK, "arrive at https://news.example.com/integration/webhooks", ""}
)

func (f faultyPlatform) check(t *testing.T) {
	p := healthy()
	f.fault(p)
	store := storeWith(t, inbound.Webhook{Site: "daily", URL: "https://news.example.com/integration/webhooks/token"})
	got := results(t, Config{Store: store, AdminPaths: []string{"/ghost"}, Sites: []Site{{
		Name: "daily", Hosts: []string{"news.example.com", "www.example.com"}, Platform: p, UsesEvents: true, AdminPath: "/ghost", WebhookURL: "https://news.example.com/integration/webhooks",
		Target: "it may be that none come", // which the test of events knows better
	}}})
	if diff := cmp.Diff(f.want, got[1:]); diff != "" {
		t.Errorf("got[1:] (-want +got):\n%s", diff)
	}
}

// storeWith registers the webhook in the store alone.
func storeWith(t *testing.T, w inbound.Webhook) *Store {
	t.Helper()
	store := &Store{Kind: database.SQLite, Source: filepath.Join(t.TempDir(), "lychgate.db"), Members: true}
	db, err := database.Open(t.Context(), store.Kind, store.Source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	kept, err := memberstore.NewSQL(t.Context(), db)
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	if err := kept.ClaimWebhook(t.Context(), w, ""); err != nil {
		t.Fatalf("kept.ClaimWebhook: %v", err)
	}
	if err := kept.MarkWebhookRegistered(t.Context(), w.Site, w.URL, time.Now()); err != nil {
		t.Fatalf("kept.MarkWebhookRegistered: %v", err)
	}
	return store
}

// Events that nobody waits for are not tried.
func TestEventsThatAreNotTried(t *testing.T) {
	const url = "https://news.example.com/integration/webhooks"
	elsewhere := storeWith(t, inbound.Webhook{Site: "daily", URL: "https://old.example.com/integration/webhooks/token"})
	other := storeWith(t, inbound.Webhook{Site: "weekly", URL: url + "/token"})
	broken := &Store{Kind: database.SQLite, Source: filepath.Join(t.TempDir(), "a", "b"), Members: true}
	if err := os.WriteFile(filepath.Dir(broken.Source), nil, 0o600); err != nil {
		t.Fatalf("os.WriteFile: %v", err)
	}
	missing := &Store{Kind: database.SQLite, Source: filepath.Join(t.TempDir(), "lychgate.db"), Members: true}
	older := storeWith(t, inbound.Webhook{Site: "daily", URL: url + "/token"})
	db, err := database.Open(t.Context(), older.Kind, older.Source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	defer db.Close()
	dbtest.Exec(t, db, "DELETE FROM migrations_members WHERE version_id > 1")
	for name, test := range map[string]struct {
		url   string
		off   bool
		store *Store
		want  Result
	}{
		"an older store":       {url, false, older, Result{Status: Warning, Message: "cannot be tried: the store is of an older Lychgate", Fix: "start Caddy, which brings it up to date, and run this again"}},
		"webhooks off":         {"", true, elsewhere, Result{Status: OK, Message: "are off, so what is changed on the platform is seen at the next comparison"}},
		"nowhere to send them": {"", false, elsewhere, Result{Status: Warning, Message: "are off, so what is changed on the platform is seen late", Fix: "write webhooks into the site's platform, with an address at which the platform reaches this edge"}},
		"another address":      {url, false, elsewhere, Result{Status: Warning, Message: "are registered for another address than " + url, Fix: "start Caddy with this configuration, which registers them anew, and run this again"}},
		"not registered":       {url, false, other, Result{Status: Warning, Message: "are not registered yet", Fix: "start Caddy, which registers them, and run this again"}},
		"no store yet":         {url, false, missing, Result{Status: Warning, Message: "are not registered yet", Fix: "start Caddy, which registers them, and run this again"}},
		"store cannot be used": {url, false, broken, Result{Status: Warning, Message: "cannot be tried: the store cannot be used", Fix: "fix the store first"}},
	} {
		p := healthy()
		got := results(t, Config{Store: test.store, Sites: []Site{{Name: "daily", Hosts: []string{"news.example.com"}, Platform: p, UsesEvents: true, EventsOff: test.off, WebhookURL: test.url}}})
		test.want.Subject = "site daily, webhook events"
		if diff := cmp.Diff(test.want, got[len(got)-1]); diff != "" || p.Tested != nil {
			t.Errorf("%s: tested %q, %s", name, p.Tested, diff)
		}
	}
}

func TestThemesWithoutValidManifestAreReported(t *testing.T) {
	source := func(text string, err error) themes.Source {
		return func(context.Context) ([]byte, error) { return []byte(text), err }
	}
	got := results(t, Config{Sites: []Site{{Name: "daily", Themes: []Theme{
		{"good", source("manifest_version: 1\n", nil)},
		{"bad", source("manifest_version: 1\nevents:\n", nil)},
		{"none", source("", themes.ErrNoManifest)},
		{"away", source("", errors.New("the repository cannot be reached: no route"))},
	}}}})
	want := []Result{
		{"site daily, theme good", OK, "its repository can be read, and its manifest is valid", ""},
		{"site daily, theme bad", Warning, "its repository can be read, and its manifest has 1 finding", "run caddy lychgate manifest validate on the theme"},
		{"site daily, theme none", Warning, "its repository can be read and has no manifest", "add one, or take the theme out of the configuration"},
		{"site daily, theme away", Failed, "the repository cannot be reached: no route", "correct the url, branch or token of its repository"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
}

// Readers behind a proxy that is not trusted lock each other out.
func TestUntrustedProxiesAreReported(t *testing.T) {
	const write = "write trusted_proxies static private_ranges, and trusted_proxies_strict, into the global option servers"
	alone := func(addresses string) Result {
		return Result{"server srv0", Warning, "listens at " + addresses + " alone; if a proxy stands in front, all readers share one rate limit", write}
	}
	connection := Result{"server srv0", OK, "takes the address of the connection for the reader's", ""}
	for name, test := range map[string]struct {
		server Server
		want   Result
	}{
		"everywhere":           {Server{Name: "srv0"}, connection},
		"loopback":             {Server{Name: "srv0", Addresses: []string{"127.0.0.1", "::1", "localhost"}}, alone("127.0.0.1, ::1, localhost")},
		"a private network":    {Server{Name: "srv0", Addresses: []string{"10.0.0.1"}}, alone("10.0.0.1")},
		"a socket":             {Server{Name: "srv0", Addresses: []string{"/run/caddy.sock"}, TrustsProxies: true, Strict: true}, Result{"server srv0", Warning, "listens at a socket, so all readers share one rate limit", "write trusted_proxies_unix, and trusted_proxies_strict, into the global option servers"}},
		"a socket, trusted":    {Server{Name: "srv0", Addresses: []string{"/run/caddy.sock"}, TrustsUnix: true, Strict: true}, Result{"server srv0", OK, "takes the reader's address from the proxies that it trusts", ""}},
		"a public address too": {Server{Name: "srv0", Addresses: []string{"10.0.0.1", "192.0.2.1"}}, connection},
		"trusted":              {Server{Name: "srv0", Addresses: []string{"127.0.0.1"}, TrustsProxies: true, Strict: true}, Result{"server srv0", OK, "takes the reader's address from the proxies that it trusts", ""}},
		"not strictly":         {Server{Name: "srv0", TrustsProxies: true}, Result{"server srv0", Warning, "trusts the first address in X-Forwarded-For, which readers can make up to get around the rate limit", "write trusted_proxies_strict beside trusted_proxies"}},
	} {
		if diff := cmp.Diff([]Result{test.want}, results(t, Config{Servers: []Server{test.server}})); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, diff)
		}
	}
}

// What Caddy would log when it starts is said before.
func TestWarningsAreReportedBeforeTheStart(t *testing.T) {
	want := []Result{{"configuration", Warning, "no site has the host of a server block (host: a.example)", ""}}
	if diff := cmp.Diff(want, results(t, Config{Warnings: []string{"no site has the host of a server block (host: a.example)"}})); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// One who does not want to wait any longer is not made to.
func TestRunEndsEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Run(ctx, Config{Servers: []Server{{Name: "srv0"}, {Name: "srv1"}}}, func(string) {}, func(Result) {
		n++
		cancel()
	})
	if n != 1 {
		t.Errorf("%d results", n)
	}
}

// A theme in a subdirectory asks below that, and Ghost answers where a directive stands elsewhere.
func TestDirectivesOutsideOfTheSubdirectoryAreReported(t *testing.T) {
	p := healthy()
	p.Location.Public = address("https://news.example.com/blog/")
	at := func(path string) []Server {
		return []Server{{Name: "srv0", Get: func(context.Context, *url.URL) Response { return Response{Status: 200, Body: []byte("page")} }, Directives: []Directive{{
			Name: "events_api", At: "Caddyfile:12", Path: path, Serves: func(host string) bool { return host == "news.example.com" },
		}}}}
	}
	const why = "Ghost 6.22.0 answers and accepts the key; its pages and its theme ask below https://news.example.com/blog/, but events_api answers at /ghost/lychgate/events (Caddyfile:12)"
	for path, want := range map[string]Result{
		"/ghost/lychgate/events":      {"site daily", Warning, why, "write path /blog/ghost/lychgate/events into events_api"},
		"/blog/ghost/lychgate/events": {"site daily", OK, "Ghost 6.22.0 answers and accepts the key", ""},
		"/events":                     {"site daily", OK, "Ghost 6.22.0 answers and accepts the key", ""},
	} {
		got := results(t, Config{Servers: at(path), Sites: []Site{{Name: "daily", Hosts: []string{"news.example.com"}, Platform: p}}})
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// Whose pages lead past Caddy reads which address to write: that at which Caddy serves the host.
func TestAddressThroughCaddy(t *testing.T) {
	p := healthy()
	p.Location.Public = address("http://news.example.com:2368/")
	for name, test := range map[string]struct {
		server Server
		want   string
	}{
		"over HTTPS":                    {Server{Listens: []string{":8443"}, HTTPS: "127.0.0.1:8443"}, "https://news.example.com/"},
		"over HTTP":                     {Server{Listens: []string{":8080"}}, "http://news.example.com:8080/"},
		"over HTTP at its port":         {Server{Listens: []string{":80"}}, "http://news.example.com/"},
		"over HTTP, behind a TLS proxy": {Server{Listens: []string{":8080"}, TrustsProxies: true}, "https://news.example.com/"},
	} {
		test.server.Get = func(context.Context, *url.URL) Response { return Response{Status: 200, Body: []byte("page")} }
		test.server.Directives = []Directive{{Name: "members_api", Serves: func(host string) bool { return host == "news.example.com" }}}
		got := results(t, Config{Servers: []Server{test.server}, Sites: []Site{{Name: "daily", Hosts: []string{"news.example.com"}, Platform: p}}})
		if want := "set url in the platform's own configuration to " + test.want; got[0].Fix != want {
			t.Errorf("%s: %q, want %q", name, got[0].Fix, want)
		}
	}
}

// Who starts Caddy beside another web server reads why it cannot listen.
func TestTakenPortsAreReported(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	defer taken.Close()
	const fine = "takes the address of the connection for the reader's"
	for name, test := range map[string]struct {
		isRunning func(context.Context) (bool, error)
		want      Result
	}{
		"Caddy does not run": {
			func(context.Context) (bool, error) { return false, nil },
			Result{"server srv0", Warning, "cannot listen at #: another program does, and no Caddy with Lychgate runs", "stop that program, which sudo ss -ltnp names, before Caddy starts, or give the server block another port"},
		},
		"Caddy runs":          {func(context.Context) (bool, error) { return true, nil }, Result{"server srv0", OK, fine, ""}},
		"nobody knows":        {func(context.Context) (bool, error) { return false, errors.New("admin is off") }, Result{"server srv0", OK, fine, ""}},
		"nobody can be asked": {nil, Result{"server srv0", OK, fine, ""}},
	} {
		got := results(t, Config{IsRunning: test.isRunning, Servers: []Server{{Name: "srv0", Listens: []string{taken.Addr().String()}}}})
		if diff := cmp.Diff([]Result{test.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	want := []Result{{"admin API", Warning, "cannot listen at #: another program does, and no Caddy with Lychgate runs", "stop that program, which sudo ss -ltnp names, before Caddy starts, or write another address into the global option admin"}}
	if diff := cmp.Diff(want, results(t, Config{IsRunning: func(context.Context) (bool, error) { return false, nil }, Admin: []string{taken.Addr().String()}})); diff != "" {
		t.Errorf("the admin API (-want +got):\n%s", diff)
	}
}
