// Package caddymodule is all of Lychgate that knows Caddy: the app "lychgate",
// which holds what is shared, and a thin HTTP handler for each directive,
// which asks the app. What they do lives in the packages below.
package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/redis"
	"github.com/lychgate/caddy-lychgate/internal/seal"
	"github.com/lychgate/caddy-lychgate/members/inbound"
	"github.com/lychgate/caddy-lychgate/platform"
)

func init() {
	caddy.RegisterModule(App{})
}

// App holds the sites that Lychgate serves and what its directives share.
type App struct {
	// Resolvers are the recursive DNS servers that are asked for MX records,
	// in this order: IP addresses, with a port if it is not 53. Placeholders
	// such as {env.RESOLVER} are replaced. Default: the servers of
	// /etc/resolv.conf when the configuration is loaded.
	Resolvers []string `json:"resolvers,omitempty"`

	// Store is where members, integrations and theme manifests are kept. Default: SQLite, in the
	// file lychgate/lychgate.db in Caddy's data directory.
	Store *Store `json:"store,omitempty"`

	// Redis is the Redis, or Valkey, that several edges share, so that their rate limits
	// are exact over all of them and one lookup serves them all. Default: none.
	Redis *Redis `json:"redis,omitempty"`

	// Secrets seal what is secret of sites in the store: the first seals, the others
	// still open. Each has 32 characters or more. Placeholders such as
	// {env.LYCHGATE_SECRET} are replaced. Default: none, so such sites cannot be added.
	Secrets []string `json:"secrets,omitempty"`

	// Service is what the file name of theme manifests starts with:
	// `<service>-manifest.yaml`. Default: `lychgate`.
	Service string `json:"service,omitempty"`

	// Sites are the publications, by name. A name has up to 63 letters,
	// digits, hyphens and underscores; it names the site in metrics and logs. Other
	// sites may be in the store.
	Sites map[string]*Site `json:"sites,omitempty"`

	// Lines are where a Caddyfile has the options, by their paths here, such as
	// sites.daily.platform.admin_key. They are written by the Caddyfile adapter,
	// for messages about values that are only known when the configuration is
	// loaded. Leave them out of JSON.
	Lines map[string]string `json:"lines,omitempty"`

	sites       map[string]*Site           // of the configuration, by host
	live        *atomic.Pointer[liveSites] // those and the ones in the store
	store       *openStore                 // nil unless something needs it
	members     *membersState              // nil unless members_api is used
	themes      *themesState               // nil unless theme_manifest or staff_desk is used
	curation    *curationState             // nil unless staff_desk is used
	events      *eventsState               // nil unless staff_desk or events_api is used
	stored      *storedSites
	restoreOnce func() error // restoreStored
	openOnce    func() error // openStored
	isOpen      *atomic.Bool // openOnce has ended
	keys        *seal.Keyring
	locator     *locator // nil unless the app runs
	logger      *zap.Logger
	resolver    *classifier.Resolver
	servers     []netip.AddrPort // the resolver's
	redisKey    redisKey         // zero for none
	redis       *redis.Client    // nil for none
	release     releases

	readRoutes func() (map[string][]arrival, error)
	readOnce   *sync.Once           // of readRoutes
	arrivals   map[string][]arrival // at directives, by HTTP server

	adminPaths  []string // of theme_manifest
	deskPaths   []string // of staff_desk
	lookupPaths []string // of inbox_provider

	warnedOfProxy *atomic.Bool // that is not trusted
}

// Site is one publication.
type Site struct {
	// Hosts are the host names at which the site is live, without port. A host
	// belongs to one site only. Internationalized names may be written either
	// way. Placeholders such as {env.HOST} are replaced. Required.
	Hosts []string `json:"hosts,omitempty"`

	// Platform is the publishing platform that the site's members are brought
	// to. Required where members_api serves the site.
	Platform *Platform `json:"platform,omitempty"`

	// Integrations are those who may use the members API, by name.
	Integrations map[string]*Integration `json:"integrations,omitempty"`

	// Themes are those whose manifests can be refreshed, by their names in
	// Ghost.
	Themes map[string]*Theme `json:"themes,omitempty"`

	// StaffIntegrations lets the site's owners and administrators add, rotate and
	// revoke integrations on the desk. Default: false.
	StaffIntegrations bool `json:"staff_integrations,omitempty"`

	name     string
	hosts    []string // as they appear in requests
	metrics  *siteMetrics
	isStored bool

	platform platform.Platform // nil unless it is used
	locked   error             // why its keys cannot be opened
	revision int64             // of a site in the store

	members atomic.Pointer[membersapi.Site] // nil while the store is away
	synced  inbound.Site                    // of a site in the store
	themes  *api.Site                       // nil for a platform without themes
	address *url.URL                        // of the platform, for dynamic lychgate; nil for none
}

// liveSites are the sites that are served, by host. They are never changed, but
// replaced.
type liveSites map[string]*Site

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "lychgate",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision sets up the app.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
	a.warnedOfProxy = new(atomic.Bool)
	a.readRoutes, a.readOnce = func() (map[string][]arrival, error) { return readRoutes(ctx) }, new(sync.Once)
	if err := registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	err := checkService(a.serviceName())
	if err == nil {
		err = a.provisionSites()
	}
	if err == nil {
		err = a.checkKeys()
	}
	if err == nil {
		err = a.provisionStored()
	}
	if err == nil {
		err = a.provisionResolver(a.logger)
	}
	if err == nil {
		err = a.loadRedis()
	}
	if err == nil {
		a.log(a.warningsOfSites())
	}
	return explain(a.Lines, err)
}

func (a *App) log(warnings []warning) {
	for _, w := range warnings {
		a.logger.Warn(w.message, w.fields...)
	}
}

func (a *App) provisionSites() error {
	a.sites = make(map[string]*Site)
	a.live, a.isOpen = new(atomic.Pointer[liveSites]), new(atomic.Bool)
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		if err := checkSiteName(name); err != nil {
			return err
		}
		if site == nil {
			return inSite(name, errNoHosts)
		}
		site.name = name
		if err := cmp.Or(a.provisionHosts(site), site.checkThemes()); err != nil {
			return inSite(name, err)
		}
		site.metrics = loadSiteMetrics(name, &a.release)
	}
	a.live.Store(new(liveSites(a.sites)))
	return nil
}

func (a *App) provisionHosts(site *Site) error {
	for _, host := range site.Hosts {
		host, err := replace("hosts", host)
		if err != nil {
			return err
		}
		if host, err = parseHost(host); err != nil {
			return err
		}
		if other, taken := a.sites[host]; taken && other != site {
			return hostTaken(host, other.name)
		}
		a.sites[host] = site
		site.hosts = append(site.hosts, host)
	}
	if len(site.hosts) == 0 {
		return errNoHosts
	}
	return nil
}

// has reports whether a host is one of the site's.
func (s *Site) has(host string) bool { return slices.Contains(s.hosts, host) }

func (a *App) provisionResolver(logger *zap.Logger) error {
	var servers []netip.AddrPort
	for _, resolver := range a.Resolvers {
		resolver, err := replace("resolvers", resolver)
		if err != nil {
			return inBlock("lychgate", "", err)
		}
		server, err := parseResolver(resolver)
		if err != nil {
			return inBlock("lychgate", "", err)
		}
		servers = append(servers, server)
	}
	if len(servers) == 0 {
		servers = classifier.SystemServers()
	}
	a.servers = servers
	a.resolver = classifier.NewResolver(classifier.ResolverConfig{
		Servers: servers,
		Logger:  logger,
		Observe: observeDNSQuery,
	})
	return nil
}

// sampled returns a logger that writes at most ten lines of each message a minute,
// so that what strangers send fills no log.
func sampled(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Minute, 10, 0)
	}))
}

// Start implements caddy.App.
func (a *App) Start() error {
	if a.redis != nil {
		a.redis.Start()
	}
	if err := a.openOnce(); err != nil {
		return err
	}
	a.isOpen.Store(true)
	a.log(a.warnOfHosts())
	if a.store == nil {
		return nil
	}
	if a.members != nil {
		a.members.previous = running.Swap(a.members)
	}
	a.locator = startLocating(a)
	return nil
}

// Stop implements caddy.App.
func (a *App) Stop() error {
	if a.locator != nil {
		a.locator.stop()
	}
	if a.members != nil {
		// The configuration before runs on if this one could not be started.
		running.CompareAndSwap(a.members, a.members.previous)
		a.members.previous = nil
		if now := running.Load(); now != nil && now.previous == a.members {
			now.previous = nil // and this one does not
		}
	}
	if a.store != nil {
		a.store.stop()
	}
	return nil
}

// Cleanup lets go of what outlives a configuration.
func (a *App) Cleanup() error {
	var errs []error
	if a.store != nil {
		errs = append(errs, a.store.close())
	}
	for _, site := range a.Sites {
		errs = append(errs, site.close())
	}
	errs = append(errs, a.stored.close())
	return errors.Join(append(errs, a.release.all())...)
}

// connect returns the platform of a site.
func (a *App) connect(site *Site) (platform.Platform, error) {
	if site.platform != nil {
		return site.platform, nil
	}
	connected, err := site.Platform.Connect()
	if err != nil {
		return nil, err
	}
	site.platform = connected
	return connected, nil
}

// close lets go of the site's platform. Requests that are under way go on.
func (s *Site) close() error {
	if s == nil {
		return nil
	}
	if closer, ok := s.platform.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// siteOf returns the site that a request's Host names, or nil.
func (a *App) siteOf(host string) *Site {
	site := (*a.live.Load()).at(host)
	if site == nil && !a.isOpen.Load() {
		return a.siteWhileStarting(host)
	}
	return site
}

// siteWhileStarting returns the site of a request that comes before the app has started:
// Caddy may start its HTTP servers first.
func (a *App) siteWhileStarting(host string) *Site {
	if a.restoreOnce() == nil {
		if site := (*a.live.Load()).at(host); site != nil {
			return site
		}
	}
	if a.openOnce() != nil { // Start says so
		return nil
	}
	return (*a.live.Load()).at(host)
}

// at returns the site of a Host, nil for none.
func (l liveSites) at(host string) *Site {
	if site, ok := l[host]; ok {
		return site
	}
	return l[hostOf(host)]
}

var errNoHosts = &mistake{
	text:  "needs at least one host, such as: hosts news.example.com",
	field: "hosts", json: `needs at least one host, such as ["news.example.com"]`,
}

func hostTaken(host, site string) error {
	return &mistake{text: "host " + host + " already belongs to site " + site, field: "hosts"}
}

const (
	exampleSite = "site daily {\n\thosts news.example.com\n}"
	exampleApp  = "lychgate {\n\tsite daily {\n\t\thosts news.example.com\n\t}\n}"
)

func checkSiteName(name string) error { return checkName("site", "sites", name, "daily") }

func checkIntegrationName(name string) error {
	return checkName("integration", "integrations", name, "crm")
}

func checkName(of, field, name, example string) error {
	valid := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	if name == "" || len(name) > 63 || strings.ContainsFunc(name, func(c rune) bool { return !valid(c) }) {
		return &mistake{name: of, text: fmt.Sprintf("%q: a name has 1 to 63 letters, digits, hyphens and underscores, such as %s", name, example), field: field}
	}
	return nil
}

// parseResolver parses the address of a DNS server, with or without port.
func parseResolver(s string) (netip.AddrPort, error) {
	if server, err := netip.ParseAddrPort(s); err == nil && server.Port() != 0 {
		return server, nil
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		return netip.AddrPort{}, &mistake{
			name: "resolvers",
			text: strconv.Quote(s) + " is not an IP address, with or without port, such as 1.1.1.1, 127.0.0.1:5353 or [2606:4700:4700::1111]:53",
		}
	}
	return netip.AddrPortFrom(address, 53), nil
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
