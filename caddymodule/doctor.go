package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/doctor"
)

// Needs loads a configuration, in JSON, as Caddy does before it starts it, and
// returns what it needs of the world. Nothing is asked yet, and nothing is logged.
func Needs(text []byte) (doctor.Config, error) {
	var parsed caddy.Config
	if err := caddy.StrictUnmarshalJSON(text, &parsed); err != nil {
		return doctor.Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	parsed.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {
		BaseLog: caddy.BaseLog{WriterRaw: caddyconfig.JSONModuleObject(caddy.DiscardWriter{}, "output", "discard", nil)},
	}}}
	ctx, err := caddy.ProvisionContext(&parsed)
	if err != nil {
		return doctor.Config{}, err
	}
	configured, err := ctx.AppIfConfigured("lychgate")
	if errors.Is(err, caddy.ErrNotConfigured) {
		err = config.ErrNoSite
	}
	if err != nil {
		return doctor.Config{}, err
	}
	a := configured.(*App)
	checked, err := a.Edge.Needs()
	if err != nil {
		return doctor.Config{}, err
	}
	var ofAdmin []config.Warning
	if admin := cmp.Or(parsed.Admin, new(caddy.AdminConfig)); !admin.Disabled {
		address := caddy.NewReplacer().ReplaceAll(cmp.Or(admin.Listen, caddy.DefaultAdminListen), "")
		ofAdmin = a.warningsOfAdmin(address)
		if at, err := caddy.ParseNetworkAddress(address); err == nil && !at.IsUnixNetwork() && !at.IsFdNetwork() {
			checked.Admin = []string{at.JoinHostPort(0)}
		}
	}
	for _, w := range slices.Concat(a.Warnings(Placeholders(), a.Lines), ofAdmin, a.warningsOfHosts(), a.arrivals.Warnings(&a.Config, a.Edge.ConfiguredHosts())) {
		checked.Warnings = append(checked.Warnings, w.String())
	}
	for i, site := range checked.Sites {
		for _, w := range a.WarningsOfTarget(site.Name, Placeholders(), a.Lines) {
			checked.Sites[i].Target = w.String()
		}
	}
	if !a.Edge.KnowsAllSites() {
		checked.UnknownHosts = func(stored []string) (warnings []string) {
			for _, w := range a.arrivals.WarningsOfHosts(slices.Concat(a.Edge.Hosts(), stored), a.Edge.ConfiguredHosts()) {
				warnings = append(warnings, w.String())
			}
			return warnings
		}
	}
	a.Probes = true
	checked.Servers, err = a.servers(ctx, text)
	return checked, err
}

func (a *App) servers(ctx caddy.Context, text []byte) (list []doctor.Server, err error) {
	app, err := ctx.AppIfConfigured("http")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var raw struct { // which Caddy forgets when it has loaded it
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					TrustedProxies json.RawMessage `json:"trusted_proxies"`
				} `json:"servers"`
			} `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	servers := app.(*caddyhttp.App).Servers
	for _, name := range slices.Sorted(maps.Keys(a.arrivals)) {
		server := doctor.Server{
			Name: name, TrustsProxies: raw.Apps.HTTP.Servers[name].TrustedProxies != nil, Strict: servers[name].TrustedProxiesStrict > 0 || hasOwnHeader(servers[name]), TrustsUnix: servers[name].TrustedProxiesUnix,
		}
		at := routed{servers[name], len(servers[name].TLSConnPolicies) > 0}
		server.Get, server.Directives = at.get, a.arrivals.Directives(name, &a.Config)
		for i, of := range server.Directives {
			server.Directives[i].Gets = func(ctx context.Context, to *url.URL) (bool, doctor.Response) { return at.gets(ctx, of.Name, to) }
		}
		for _, listen := range servers[name].Listen {
			address, err := caddy.ParseNetworkAddress(caddy.NewReplacer().ReplaceKnown(listen, ""))
			if err != nil {
				return nil, err
			}
			if address.IsUnixNetwork() {
				server.Addresses = append(server.Addresses, "/"+strings.TrimPrefix(address.Host, "/"))
				continue
			}
			for port := address.StartPort; port <= address.EndPort; port++ {
				server.Listens = append(server.Listens, net.JoinHostPort(address.Host, strconv.Itoa(int(port))))
			}
			if server.HTTPS == "" && len(servers[name].TLSConnPolicies) > 0 {
				server.HTTPS = net.JoinHostPort(cmp.Or(address.Host, "127.0.0.1"), strconv.Itoa(int(address.StartPort)))
			}
			if address.Host == "" {
				server.Addresses = nil
				break
			}
			server.Addresses = append(server.Addresses, address.Host)
		}
		list = append(list, server)
	}
	return list, nil
}

// hasOwnHeader reports whether a server takes the reader's address from a header that
// proxies set themselves, and do not add to.
func hasOwnHeader(server *caddyhttp.Server) bool {
	return len(server.ClientIPHeaders) > 0 && !slices.ContainsFunc(server.ClientIPHeaders, func(header string) bool {
		return strings.EqualFold(header, "X-Forwarded-For")
	})
}
