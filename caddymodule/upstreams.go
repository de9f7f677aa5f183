package caddymodule

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func init() {
	caddy.RegisterModule(Upstreams{})
}

// Upstreams are the publishing platforms of the sites: a request is passed on to that
// of the site whose host it is for, over HTTP or HTTPS as the platform's address says.
// It is for one block that serves many sites.
type Upstreams struct {
	fromCaddyfile

	app   *App
	https bool // the transport speaks it
}

// CaddyModule returns the Caddy module information.
func (Upstreams) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.reverse_proxy.upstreams.lychgate",
		New: func() caddy.Module { return new(Upstreams) },
	}
}

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	dynamic lychgate
func (u *Upstreams) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // its name
	u.setLine(lineAt(d))
	if d.NextArg() {
		return d.Errf("dynamic lychgate takes no argument, got %q: it takes the site from each request's host", d.Val())
	}
	return parseBlock(d, "dynamic lychgate", block{}, nil)
}

// Provision sets up the module.
func (u *Upstreams) Provision(ctx caddy.Context) error {
	app, err := ctx.App("lychgate")
	if err != nil {
		return err
	}
	u.app = app.(*App)
	if err := u.checkAlone(proxyAround(ctx)); err != nil {
		return err
	}
	u.https = takesScheme(ctx)
	for _, name := range slices.Sorted(maps.Keys(u.app.Sites)) {
		site := u.app.Sites[name]
		if site.address, err = site.Platform.upstream(); err == nil && !u.reaches(site.address) {
			err = site.Platform.inBlock(errTransport)
		}
		if err != nil {
			return explain(u.app.Lines, inSite(name, err))
		}
	}
	return nil
}

// reaches reports whether the transport can reach an address, nil for none.
func (u *Upstreams) reaches(address *url.URL) bool {
	return address == nil || address.Scheme != "https" || u.https
}

var errTransport = &mistake{
	text:  "dynamic lychgate cannot reach an https:// address over this transport: write transport http, or none, into its reverse_proxy",
	field: "url",
}

// checkAlone refuses a reverse_proxy with upstreams of its own, to which Caddy never passes
// a request on: it asks for them only after an error, and [Upstreams.GetUpstreams] has none.
func (u *Upstreams) checkAlone(proxy *reverseproxy.Handler) error {
	switch {
	case proxy == nil || len(proxy.Upstreams) == 0:
		return nil
	case u.Line == "":
		return fmt.Errorf(`upstreams: %q gets no request beside dynamic_upstreams: take one of the two out`, proxy.Upstreams[0].Dial)
	}
	return fmt.Errorf("dynamic lychgate: its reverse_proxy also has %s, which gets no request: take one of the two out, at %s", proxy.Upstreams[0].Dial, u.Line)
}

// proxyAround returns the reverse_proxy around a module, nil for none.
func proxyAround(ctx caddy.Context) (found *reverseproxy.Handler) {
	for _, module := range ctx.Modules() {
		if proxy, ok := module.(*reverseproxy.Handler); ok {
			found = proxy
		}
	}
	return found
}

// takesScheme reports whether the transport of the reverse_proxy around a module speaks
// HTTPS for a request whose URL says so. Caddy's transport http does.
func takesScheme(ctx caddy.Context) bool {
	var transport http.RoundTripper = new(reverseproxy.HTTPTransport) // Caddy's default
	if proxy := proxyAround(ctx); proxy != nil && proxy.Transport != nil {
		transport = proxy.Transport
	}
	setter, ok := transport.(interface{ SetScheme(*http.Request) })
	if !ok {
		return false
	}
	request := &http.Request{URL: &url.URL{Scheme: "https"}}
	setter.SetScheme(request)
	return request.URL.Scheme == "https"
}

// upstream returns where the platform of a site listens, with a port; nil for none.
func (p *Platform) upstream() (*url.URL, error) {
	kind, _ := p.kind()
	if kind.URL.IsZero() {
		return nil, nil
	}
	text, err := p.resolveURL(kind)
	if err != nil {
		return nil, p.inBlock(err)
	}
	address, err := url.Parse(text)
	if err != nil {
		return nil, p.inBlock(err)
	}
	port := address.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[address.Scheme]
	}
	return &url.URL{Scheme: address.Scheme, Host: net.JoinHostPort(address.Hostname(), port)}, nil
}

// GetUpstreams implements reverseproxy.UpstreamSource. There is none for a host that no
// site has, and for a site without a platform, which Caddy answers with 503.
func (u *Upstreams) GetUpstreams(r *http.Request) ([]*reverseproxy.Upstream, error) {
	site := u.app.siteOf(r.Host)
	if site == nil || site.address == nil || !u.reaches(site.address) {
		return nil, nil // an error would be a line in the log too
	}
	r.URL.Scheme = site.address.Scheme                              // of the request as it is passed on
	return []*reverseproxy.Upstream{{Dial: site.address.Host}}, nil // Caddy changes it
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Upstreams)(nil)
	_ reverseproxy.UpstreamSource = (*Upstreams)(nil)
	_ caddyfile.Unmarshaler       = (*Upstreams)(nil)
)
