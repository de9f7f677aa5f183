package caddymodule

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

func init() {
	caddy.RegisterModule(Upstreams{})
}

// name is what a Caddyfile calls the module.
const upstreamsName = "dynamic lychgate"

// Upstreams are the publishing platforms of the sites: a request is passed on to that
// of the site whose host it is for, over HTTP or HTTPS as the platform's address says.
// It is for one block that serves many sites.
type Upstreams struct {
	app   *App
	https bool // the transport speaks it
}

// CaddyModule registers the source as http.reverse_proxy.upstreams.lychgate.
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
	rememberDirective(upstreamsName, u, config.Lines{"": lineAt(d)})
	if d.NextArg() {
		return d.Errf("dynamic lychgate takes no argument, got %q: it takes the site from each request's host", d.Val())
	}
	return parseBlock(d, block{Name: upstreamsName, Lines: make(config.Lines)}, nil)
}

// UnmarshalJSON names the field in its errors.
func (u *Upstreams) UnmarshalJSON(data []byte) error {
	type plain Upstreams
	return config.ReadJSON(data, (*plain)(u))
}

// Provision sets up the module.
func (u *Upstreams) Provision(ctx caddy.Context) error {
	var err error
	if u.app, err = appOf(ctx); err != nil {
		return err
	}
	if err := u.checkAlone(proxyAround(ctx)); err != nil {
		return err
	}
	u.https = takesScheme(ctx)
	for _, name := range u.app.Names() {
		site, of := u.app.Edge.SiteOf(name), u.app.Sites[name].Platform
		if site.Upstream, err = of.Upstream(Placeholders()); err == nil && !u.canReach(site.Upstream) {
			err = of.ErrTransport()
		}
		if err != nil {
			return u.app.Lines.Explain(config.In("site "+name, "sites."+name, err))
		}
	}
	return nil
}

// canReach reports whether the transport can reach an address, nil for none.
func (u *Upstreams) canReach(address *url.URL) bool {
	return address == nil || address.Scheme != "https" || u.https
}

// checkAlone refuses a reverse_proxy with upstreams of its own, to which Caddy never passes
// a request on: it asks for them only after an error, and [Upstreams.GetUpstreams] has none.
func (u *Upstreams) checkAlone(proxy *reverseproxy.Handler) error {
	line := placeOf(upstreamsName, u)
	switch {
	case proxy == nil || len(proxy.Upstreams) == 0:
		return nil
	case line == "":
		return fmt.Errorf(`upstreams: %q gets no request beside dynamic_upstreams: take one of the two out`, proxy.Upstreams[0].Dial)
	}
	return fmt.Errorf("dynamic lychgate: its reverse_proxy also has %s, which gets no request: take one of the two out, at %s", proxy.Upstreams[0].Dial, line)
}

// proxyAround finds the reverse_proxy that has the module, nil for none.
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

// GetUpstreams finds the platform of the request's site. There is none for a host that no
// site has, and for a site without a platform; Caddy answers these with 503.
func (u *Upstreams) GetUpstreams(r *http.Request) ([]*reverseproxy.Upstream, error) {
	site := u.app.Edge.Site(r.Host)
	if site == nil || site.Upstream == nil || !u.canReach(site.Upstream) {
		return nil, nil // an error would be a line in the log too
	}
	r.URL.Scheme = site.Upstream.Scheme                              // of the request as it is passed on
	return []*reverseproxy.Upstream{{Dial: site.Upstream.Host}}, nil // Caddy changes it
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Upstreams)(nil)
	_ reverseproxy.UpstreamSource = (*Upstreams)(nil)
	_ caddyfile.Unmarshaler       = (*Upstreams)(nil)
)
