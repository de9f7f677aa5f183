package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
)

// testDomain has mail servers as long as anybody needs the response.
const testDomain = "gmail.com"

func checkResolver(ctx context.Context, server netip.AddrPort) Result {
	resolver := classifier.NewResolver(classifier.ResolverConfig{Servers: []netip.AddrPort{server}})
	start := time.Now()
	records, err := resolver.LookupMX(ctx, testDomain, netip.Prefix{})
	switch {
	case err == nil && len(records) == 0:
		return fail("answers, but does not know the mail servers of "+testDomain, "name a recursive DNS server in resolvers that answers for all domains")
	case errors.Is(err, classifier.ErrRefused):
		return fail(fmt.Sprintf("answers, but not for %s: %v", testDomain, err), "name a recursive DNS server in resolvers that answers for all domains")
	case err != nil:
		return fail(strings.Replace(err.Error(), classifier.ErrNoAnswer.Error(), "does not answer", 1), "name a DNS server in resolvers that this machine can reach")
	}
	return ok("answers in %s", rounded(time.Since(start)))
}

func rounded(took time.Duration) time.Duration {
	return max(took.Round(time.Millisecond), time.Millisecond)
}

func checkRedis(ctx context.Context, address string) Result {
	if err := redis.Try(ctx, redis.Config{URL: address, Timeout: time.Second}); err != nil {
		return warn("does not answer, so each edge goes on by itself: "+err.Error(), "start it, or correct its address, user or password in redis")
	}
	return ok("can be written")
}

// checkMail sends nothing.
func checkMail(ctx context.Context, server *mail.Server) Result {
	if err := server.Check(ctx); err != nil {
		return fail(err.Error(), "correct the address, user or password in mail, or ask the provider of the server")
	}
	return ok("%s is ready to send; mails are from %s", server.Host(), server.From())
}

// problem is something that is not as it should be, as the end of a sentence, and how to fix it.
type problem struct{ text, fix string }

// wrongPlace finds what is wrong about where a platform is, though it is reached; nil for nothing.
func (c Config) wrongPlace(site Site, location platform.Location) *problem {
	if text, fix := location.AdminProblem(); text != "" {
		return &problem{", but " + text, fix}
	}
	admin := strings.TrimRight(location.Public.Path, "/") + site.AdminPath
	isWrong := func(paths []string) bool {
		return site.AdminPath != "" && len(paths) > 0 && !slices.ContainsFunc(paths, func(p string) bool { return strings.EqualFold(p, admin) })
	}
	listens := func(s Server) bool {
		return slices.ContainsFunc(s.Listens, func(address string) bool { return strings.HasSuffix(address, ":"+location.Public.Port()) })
	}
	ofHost, hostFix := location.HostProblem(site.Hosts)
	ofPort := location.PortProblem()
	outside := c.outside(location.Public.Path, site)
	switch {
	case outside != nil:
		return &problem{
			fmt.Sprintf("; its pages and its theme ask below %s, but %s answers at %s (%s)", location.Public.Redacted(), outside.Name, outside.Path, outside.At),
			"write path " + strings.TrimRight(location.Public.Path, "/") + outside.Path + " into " + outside.Name,
		}
	case isWrong(c.AdminPaths):
		return &problem{", but uploads of themes are read at " + strings.Join(c.AdminPaths, ", ") + " alone", "write path " + admin + " into theme_manifest"}
	case isWrong(c.DeskPaths):
		return &problem{", but the staff's pages are below " + strings.Join(c.DeskPaths, ", ") + " alone, where nobody is signed in", "write path " + admin + " into staff_desk"}
	case ofHost != "":
		return &problem{"; " + ofHost, hostFix}
	case ofPort != "" && !slices.ContainsFunc(c.Servers, listens):
		return &problem{"; " + ofPort, "set url in the platform's own configuration to " + c.throughCaddy(location.Public)}
	case site.AdminPath != "" && location.Admin != nil:
		if ofAdmin := platform.NoneOf(site.Hosts, location.Admin); ofAdmin != "" {
			return &problem{"; its staff are at " + ofAdmin, "add the host to the site's hosts, and write theme_manifest and staff_desk into its block"}
		}
	}
	return nil
}

// throughCaddy is a public address as Caddy serves its host: over HTTPS, unless no server that has it does, and no proxy in
// front of one may.
func (c Config) throughCaddy(public *url.URL) string {
	address := url.URL{Scheme: "https", Host: public.Hostname(), Path: public.Path}
	for _, server := range c.Servers {
		serves := slices.ContainsFunc(server.Directives, func(d Directive) bool { return d.Serves(public.Hostname()) })
		if !serves || len(server.Listens) == 0 {
			continue
		}
		if server.HTTPS != "" || server.TrustsProxies {
			break
		}
		address.Scheme = "http"
		if _, port, err := net.SplitHostPort(server.Listens[0]); err == nil && port != "80" {
			address.Host = net.JoinHostPort(public.Hostname(), port)
		}
	}
	return address.String()
}

// outside finds a directive for readers with the path that is right for a publication in no folder, though it is in one.
func (c Config) outside(folder string, site Site) *Directive {
	for _, server := range c.Servers {
		for i, d := range server.Directives {
			if folder = strings.TrimRight(folder, "/"); folder != "" && slices.ContainsFunc(site.Hosts, d.Serves) &&
				(d.Name == "events_api" || d.Name == "inbox_provider") && strings.HasPrefix(d.Path, "/ghost/") {
				return &server.Directives[i]
			}
		}
	}
	return nil
}

// locate asks a site's platform where it is, nil if it cannot be asked. The result is why it is not there, nil if it is.
func (c Config) locate(ctx context.Context, site Site) (*platform.Location, *Result) {
	locator, ok := site.Platform.(platform.Locator)
	if !ok {
		return nil, nil
	}
	location, err := locator.Locate(ctx, c.Folders)
	elsewhere, isElsewhere := errors.AsType[*platform.ElsewhereError](err)
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	var r Result
	switch {
	case isElsewhere:
		r = elsewhereResult(elsewhere)
	case err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		r = fail("cannot be reached: "+err.Error(), "write its address with http:// into the site's platform")
	case isUntrusted:
		r = fail("cannot be reached: "+err.Error(), "give it a certificate that this machine trusts, or write its address with http:// into the site's platform")
	case err != nil:
		r = fail("cannot be reached: "+err.Error(), "start it, or write its address into the site's platform")
	case location.Found.String() != location.Configured.String():
		r = fail("is not at the address of the configuration, "+location.Configured.Redacted(), "write "+location.Found.Redacted()+" into the site's platform")
	default:
		return &location, nil
	}
	return nil, &r
}

// checkPlatform checks whether the platform takes the key, and is the publication of the site's hosts.
func (c Config) checkPlatform(ctx context.Context, site Site, at *platform.Location) Result {
	r := ok("its platform answers")
	if examiner, ok := site.Platform.(platform.Examiner); ok {
		found, err := examiner.Examine(ctx)
		if err != nil {
			return fail(err.Error(), "")
		}
		r = clocks(Result{Status: OK, Message: found.Name + " answers and accepts the key"}, found.Ahead)
	} else if _, _, err := site.Platform.Count(ctx); err != nil {
		return fail(err.Error(), "")
	}
	if at == nil {
		return r
	}
	if wrong := c.wrongPlace(site, *at); wrong != nil {
		return warn(r.Message+wrong.text, wrong.fix)
	}
	return r
}

func elsewhereResult(e *platform.ElsewhereError) Result {
	if e.Redirect != nil {
		return fail(e.Configured.Redacted()+" redirects to another address", "write "+e.Redirect.Redacted()+" into the site's platform")
	}
	return fail(e.Error(), "write the platform's own address into the site's platform, with the folder if it is in one, such as "+e.Configured.JoinPath("blog").Redacted())
}

// checkEvents checks whether the platform's events arrive.
func (c Config) checkEvents(ctx context.Context, site Site, tester platform.EventTester, store openedStore) Result {
	if site.EventsOff {
		return ok("are off, so what is changed on the platform is seen at the next comparison")
	}
	if site.WebhookURL == "" {
		return warn("are off, so what is changed on the platform is seen late", "write webhooks into the site's platform, with an address at which the platform reaches this edge")
	}
	url, err := store.webhook(ctx, site.Name)
	switch {
	case errors.Is(err, errOlderStore):
		return warn("cannot be tried: "+err.Error(), "start Caddy, which brings it up to date, and run this again")
	case err != nil:
		return warn("cannot be tried: "+err.Error(), "fix the store first")
	case url == "" && c.isRunning(ctx) == yes:
		return warn("are not registered yet, though Caddy runs", "wait a minute, and run this again; of a platform that it does not reach, its log tells")
	case url == "" && site.Target != "":
		return warn("are not registered yet; "+site.Target, "start Caddy, which registers them, and run this again")
	case url == "":
		return warn("are not registered yet", "start Caddy, which registers them, and run this again")
	case !strings.HasPrefix(url, site.WebhookURL+"/"):
		return warn("are registered for another address than "+site.WebhookURL, "start Caddy with this configuration, which registers them anew, and run this again")
	}
	missing, err := tester.TestEvents(ctx, url)
	if undelivered, ok := errors.AsType[*platform.UndeliveredError](err); ok {
		message := strings.Replace(err.Error(), "the event did not arrive", "do not arrive at "+site.WebhookURL, 1)
		if undelivered.Answered {
			return fail(message, "see that this address leads to this edge and through no matcher, or write another into webhooks")
		}
		return fail(message, cmp.Or(undelivered.Remedy,
			"see that Caddy runs, and that the platform's machine reaches this address, over HTTPS with a valid certificate if it is https; or write another into webhooks"))
	}
	if err != nil {
		return fail("cannot be tried: "+err.Error(), "")
	}
	if missing {
		return warn("arrive, but some were not registered any more", "see that nobody removes them from the integration on the platform; they are registered again")
	}
	return ok("arrive at %s", site.WebhookURL)
}

func checkTheme(ctx context.Context, theme Theme) Result {
	report, err := themes.Read(ctx, theme.Source)
	switch {
	case err != nil:
		return fail(err.Error(), "correct the url, branch or token of its repository")
	case report.Status == themes.NoManifest:
		return warn("its repository can be read and has no manifest", "add one, or take the theme out of the configuration")
	case len(report.Findings) > 0:
		return warn("its repository can be read, and its manifest has "+english.Plural(len(report.Findings), "finding", ""), "run caddy lychgate manifest validate on the theme")
	}
	return ok("its repository can be read, and its manifest is valid")
}

// checkServer checks whether a server can listen, and then its proxies.
func (c Config) checkServer(ctx context.Context, server Server) Result {
	if r := c.findTaken(ctx, server.Listens, "give the server block another port"); r != nil {
		return *r
	}
	return checkProxies(server)
}

// findTaken looks for another program at addresses, if Caddy does not run yet; nil for none.
func (c Config) findTaken(ctx context.Context, addresses []string, orElse string) *Result {
	if c.isRunning(ctx) != no {
		return nil
	}
	for _, address := range addresses {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return new(warn("cannot listen at "+address+": another program does, and no Caddy with Lychgate runs", "stop that program, which sudo ss -ltnp names, before Caddy starts, or "+orElse))
		}
		if err == nil {
			_ = listener.Close()
		}
	}
	return nil
}

// answer is one to a question that may have none.
type answer int

const (
	unknown answer = iota
	no
	yes
)

func (c Config) isRunning(ctx context.Context) answer {
	if c.IsRunning == nil {
		return unknown
	}
	switch is, err := c.IsRunning(ctx); {
	case err != nil:
		return unknown
	case is:
		return yes
	}
	return no
}

// checkProxies looks for a server behind a proxy that it does not trust, so that
// all readers have the proxy's address, and for one that trusts what readers say.
func checkProxies(server Server) Result {
	const write = "write trusted_proxies static private_ranges, and trusted_proxies_strict, into the global option servers"
	reachable := slices.ContainsFunc(server.Addresses, func(address string) bool { return !isPrivate(address) })
	switch {
	case !server.TrustsUnix && slices.ContainsFunc(server.Addresses, isSocket):
		return warn("listens at a socket, so all readers share one rate limit", "write trusted_proxies_unix, and trusted_proxies_strict, into the global option servers")
	case server.TrustsProxies && !server.Strict:
		return warn("trusts the first address in X-Forwarded-For, which readers can make up to get around the rate limit", "write trusted_proxies_strict beside trusted_proxies")
	case server.TrustsProxies, server.TrustsUnix:
		return ok("takes the reader's address from the proxies that it trusts")
	case len(server.Addresses) > 0 && !reachable:
		return warn("listens at "+strings.Join(server.Addresses, ", ")+" alone; if a proxy stands in front, all readers share one rate limit", write)
	}
	return ok("takes the address of the connection for the reader's")
}

// isSocket reports whether an address is that of a Unix socket.
func isSocket(address string) bool { return strings.HasPrefix(address, "/") }

// isPrivate reports whether only this machine or network reaches an address.
func isPrivate(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address == "localhost" || isSocket(address)
	}
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
}
