package doctor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file asks for what a publication has as its readers and staff do, through the routes of the configuration.

// server is the one that serves a URL over HTTPS, or else any that serves its host; nil for none. One that serves any host
// over HTTP may be for something else.
func (c Config) server(to *url.URL) (found *Server) {
	for i := range c.Servers {
		s := &c.Servers[i]
		serves := slices.ContainsFunc(s.Directives, func(d Directive) bool {
			return d.Serves(to.Hostname()) && (!d.IsForAll || s.HTTPS != "" || to.Scheme == "http")
		})
		if serves && (found == nil || found.HTTPS == "" && s.HTTPS != "") {
			found = s
		}
	}
	return found
}

// serverOf is the server of a URL at one of a site's hosts, nil for none.
func (c Config) serverOf(site Site, to *url.URL) *Server {
	if !slices.ContainsFunc(site.Hosts, func(host string) bool { return strings.EqualFold(host, to.Hostname()) }) {
		return nil
	}
	return c.server(to)
}

// ascii is a URL whose host is as requests have it.
func ascii(u *url.URL) *url.URL {
	u.Host = strings.Replace(u.Host, u.Hostname(), hostname.Requested(u.Hostname()), 1)
	return u
}

// hasDirectives reports whether any is for one of a site's hosts.
func (c Config) hasDirectives(site Site) bool {
	return slices.ContainsFunc(c.Servers, func(s Server) bool {
		return slices.ContainsFunc(s.Directives, func(d Directive) bool { return slices.ContainsFunc(site.Hosts, d.Serves) })
	})
}

// checkDirectives checks whether requests for a host of a site arrive at each directive, for each path that it needs.
func (c Config) checkDirectives(ctx context.Context, site Site) Result {
	var missed []string
	tried := make(map[[2]string]bool) // by name and path
	for _, server := range c.Servers {
		for _, d := range server.Directives {
			key := [2]string{d.Name, d.Path}
			if tried[key] || !slices.ContainsFunc(site.Hosts, d.Serves) {
				continue
			}
			tried[key] = true
			for _, paths := range d.Needs {
				if at := c.tryFor(ctx, site, key, paths); at != nil {
					missed = append(missed, fmt.Sprintf("%s at %s (%s)", d.Name, d.At, at.Path))
					break
				}
			}
		}
	}
	if len(missed) > 0 {
		return fail("no request arrives at "+strings.Join(missed, ", "),
			"write it in front of what answers this path, with no handle_path, matcher or redirect around it that keeps the path from it")
	}
	return ok("get the requests that they answer")
}

// tryFor tries the directives of a name and path with each host that it is written for. The result is a URL that does not arrive, nil
// if one does, if there is no such host, and if it depends on who asks.
func (c Config) tryFor(ctx context.Context, site Site, of [2]string, paths []string) (missed *url.URL) {
	for _, server := range c.Servers {
		for _, d := range server.Directives {
			if of != [2]string{d.Name, d.Path} {
				continue
			}
			for _, host := range site.Hosts {
				if !d.Serves(host) {
					continue
				}
				if d.IsPartial {
					return nil
				}
				for _, path := range paths {
					to := &url.URL{Scheme: "https", Host: host, Path: path}
					if arrived, got := d.Gets(ctx, to); arrived || isKept(got, to) {
						return nil
					}
					missed = cmp.Or(missed, to)
				}
			}
		}
	}
	return missed
}

// checkThrough asks for the front page as a reader, and for the admin's API as staff.
func (c Config) checkThrough(ctx context.Context, site Site, at platform.Location) Result {
	const unknown = "its pages are not judged, since the server trusts a proxy in front whose address this request does not have"
	switch r, isKnown := c.checkPage(ctx, at, ascii(at.Public.JoinPath("/"))); {
	case r != nil:
		return *r
	case !isKnown:
		return ok(unknown)
	}
	admin := ascii(at.Staff().JoinPath(at.TellsAt))
	server := c.serverOf(site, admin)
	if at.TellsAt == "" || site.AdminPath == "" || server == nil {
		return ok("its pages are reached")
	}
	switch r, isKnown := c.checkPage(ctx, at, admin); {
	case r != nil:
		return *r
	case !isKnown:
		return ok(unknown)
	}
	got := server.Get(ctx, admin)
	if isKept(got, admin) {
		return ok("its pages are reached, and its admin is kept from this machine")
	}
	if !bytes.Equal(got.Body, at.Told) {
		return fail(fmt.Sprintf("%s is not answered by %s, but %s", admin.Redacted(), at.Found.Redacted(), describe(got)),
			"see that no handle_path or rewrite changes the paths of Ghost's admin, and write reverse_proxy "+at.Found.Host+" behind the directives")
	}
	return ok("its pages and its admin are reached")
}

// checkPage looks for what is wrong with any page of the platform's. isKnown is false where it depends on the address of a
// trusted proxy.
func (c Config) checkPage(ctx context.Context, at platform.Location, page *url.URL) (found *Result, isKnown bool) {
	server := c.server(page)
	got := server.Get(ctx, page)
	var r Result
	switch to, err := page.Parse(got.Location); {
	case got.IsAborted:
		return nil, true
	case got.Status == 0 || got.Status == 200 && len(got.Body) == 0:
		r = fail("nothing answers "+page.Redacted(), "write reverse_proxy "+at.Found.Host+" behind the directives of this host")
	case got.Status >= 502 && got.Status <= 504:
		r = fail(fmt.Sprintf("%s is answered with %d, though its platform answers", page.Redacted(), got.Status), "write reverse_proxy "+at.Found.Host+" behind the directives of this host")
	case got.Status >= 300 && got.Status < 400 && err == nil && to.Scheme == page.Scheme && to.Host == page.Host && to.Path == page.Path:
		if page.Scheme != "https" || server.HTTPS != "" {
			r = fail(page.Redacted()+" redirects to itself", "see which of redir, reverse_proxy and the platform does that")
			break
		}
		if server.TrustsProxies || server.TrustsUnix {
			return nil, false // only the proxy itself can tell whether it is trusted
		}
		r = fail(page.Redacted()+" redirects to itself, since the platform takes readers to come over HTTP: Caddy serves this host over HTTP, and trusts no proxy in front that says X-Forwarded-Proto: https",
			"write "+page.Hostname()+" without http:// as the address of the server block; or if TLS ends before Caddy, write trusted_proxies with that proxy's addresses into the global option servers")
	default:
		return nil, true
	}
	return &r, true
}

// isKept reports whether something in front lets in only whom the operator wants, for all that is known: by a password, a
// page of another host, or as if nothing were there.
func isKept(got Response, asked *url.URL) bool {
	to, err := asked.Parse(got.Location)
	return got.IsAborted || got.Status == 401 || got.Status == 403 || got.Status == 404 && len(got.Body) == 0 ||
		got.Status >= 300 && got.Status < 400 && err == nil && !strings.EqualFold(to.Hostname(), asked.Hostname())
}

// describe says what a response is, without its content.
func describe(got Response) string {
	kind, _, err := mime.ParseMediaType(got.Type)
	if err != nil {
		kind = "without a type"
	}
	if to := got.Location; to != "" && len(to) < 200 {
		return fmt.Sprintf("with %d, a redirect to %s", got.Status, to)
	}
	return fmt.Sprintf("with %d, %s", got.Status, kind)
}
