package caddymodule

import (
	"maps"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
)

func init() {
	caddy.RegisterModule(App{})
}

// App holds the sites that Lychgate serves and what its directives share.
type App struct {
	config.Config

	// Edge is what runs. It is there once the app is provisioned.
	Edge *edge.Edge `json:"-"`

	// Lines are where a Caddyfile has the configuration, if this process has read it.
	Lines config.Lines `json:"-"`

	// Probes tells that this is the doctor's, whose requests may be probes. What serves readers does not look.
	Probes bool `json:"-"`

	logger        *zap.Logger
	ctx           caddy.Context
	hasTLS        *atomic.Bool // Caddy has certificates in memory
	warnedOfProxy *atomic.Bool // that is not trusted

	readRoutes func() (servers, error)
	readOnce   *sync.Once // of readRoutes
	arrivals   servers
}

// CaddyModule registers the global option as the app lychgate.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lychgate",
		New: func() caddy.Module { return new(App) },
	}
}

// appOf provisions the app first if it is not yet.
func appOf(ctx caddy.Context) (*App, error) {
	loaded, err := ctx.App("lychgate")
	if err != nil {
		return nil, err
	}
	return loaded.(*App), nil
}

// StoreFile is the default path of the store.
func StoreFile() string { return filepath.Join(caddy.AppDataDir(), "lychgate", "lychgate.db") }

// Placeholders replaces Caddy's placeholders.
func Placeholders() config.Placeholders {
	return config.Placeholders{Replacer: caddy.NewReplacer()}
}

// Provision sets up the app.
func (a *App) Provision(ctx caddy.Context) (err error) {
	a.logger = ctx.Logger()
	a.ctx, a.warnedOfProxy, a.hasTLS = ctx, new(atomic.Bool), new(atomic.Bool)
	a.readRoutes, a.readOnce = func() (servers, error) { return readRoutes(ctx) }, new(sync.Once)
	a.Lines = LinesOf("lychgate", a.Config)
	a.Edge, err = edge.New(edge.Options{
		Config: &a.Config, Placeholders: Placeholders(), Lines: a.Lines, StoreFile: StoreFile(),
		Logger: a.logger, Registry: ctx.GetMetricsRegistry(), Certificate: a.certificateOf,
	})
	if err != nil {
		return err
	}
	a.log(a.Warnings(Placeholders(), a.Lines))
	for _, name := range a.Names() {
		a.log(a.WarningsOfTarget(name, Placeholders(), a.Lines))
	}
	return a.followCertificates(ctx)
}

func (a *App) log(warnings []config.Warning) {
	for _, w := range warnings {
		a.logger.Sugar().Warnw(w.Message, w.Fields...)
	}
}

// Start warns of hosts that no site has, once the edge knows the sites of the store.
func (a *App) Start() error {
	a.findTLS()
	if err := a.Edge.Start(); err != nil {
		return err
	}
	a.log(a.warningsOfHosts())
	// Of the addresses at which the admin API may listen, Caddy tells of the default one alone.
	if at, err := caddy.ParseNetworkAddress(caddy.DefaultAdminListen); err == nil && caddy.ListenerUsage(at.Network, at.JoinHostPort(0)) > 0 {
		a.log(a.warningsOfAdmin(caddy.DefaultAdminListen))
	}
	return nil
}

// warningsOfAdmin are about an address of Caddy's admin API, where sites of tenants may reach it.
func (a *App) warningsOfAdmin(address string) []config.Warning {
	at, err := caddy.ParseNetworkAddress(address)
	if isOfTenant := func(name string) bool { return len(a.AdminTokens[name].Labels) > 0 }; err != nil || at.IsUnixNetwork() ||
		!slices.ContainsFunc(slices.Collect(maps.Keys(a.AdminTokens)), isOfTenant) {
		return nil
	}
	return []config.Warning{config.NewWarning("Caddy's admin API listens on TCP, where all that runs on this machine reaches it, and maybe the site of a tenant: "+
		"let it listen on a Unix socket", "address", address, "write", "admin unix//run/caddy/admin.sock")}
}

// Stop ends background work; [App.Cleanup] releases what the configurations share.
func (a *App) Stop() error {
	a.Edge.Stop()
	return nil
}

// Cleanup lets go of what outlives a configuration.
func (a *App) Cleanup() error {
	if a.Edge == nil {
		return nil
	}
	return a.Edge.Close()
}

// CheckRoutes reads the routes to the app's directives, refuses those of which one gets no
// request for what is its own, and logs what may be meant but seldom is. Each directive
// that is provisioned calls it; the first finds all of them.
func (a *App) CheckRoutes() (err error) {
	a.readOnce.Do(func() {
		if a.arrivals, err = a.readRoutes(); err != nil {
			return
		}
		if err = a.arrivals.check(); err == nil {
			a.log(a.arrivals.Warnings(&a.Config, a.Edge.ConfiguredHosts()))
		}
	})
	return err
}

// warningsOfHosts are about hosts that no site has. It takes a response of the store, if it
// may have the site.
func (a *App) warningsOfHosts() []config.Warning {
	if !a.Edge.KnowsAllSites() {
		return nil
	}
	return a.arrivals.WarningsOfHosts(a.Edge.Hosts(), a.Edge.ConfiguredHosts())
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

// ClientAddr is the address of the client according to Caddy's trusted_proxies. All whose
// address is not known share the allowance of the invalid address. It warns once if the
// address is that of a proxy, which all behind it share.
func (a *App) ClientAddr(r *http.Request) netip.Addr {
	value, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	address, err := netip.ParseAddr(value)
	if err != nil {
		address = netip.Addr{} // of a Unix socket
	}
	if (!address.IsValid() || address.IsPrivate() || address.IsLoopback()) && !a.warnedOfProxy.Load() {
		a.warnOfProxy(r, address)
	}
	return address
}

func (a *App) warnOfProxy(r *http.Request, address netip.Addr) {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	if trusted || r.Header["X-Forwarded-For"] == nil || a.warnedOfProxy.Swap(true) {
		return
	}
	proxy, write := address.String(), "trusted_proxies static private_ranges"
	if !address.IsValid() {
		proxy, write = "Unix socket", "trusted_proxies_unix"
	}
	a.logger.Warn("requests come from a proxy that is not trusted, so all readers behind it share one rate limit: write trusted_proxies and trusted_proxies_strict into the global option servers",
		zap.String("proxy", proxy), zap.String("write", write))
}
