// Package edge is the running edge: which site a host is, what serves it, what outlives a
// reload, and the sites of the store as they come and go. It knows no Caddy: a test starts
// an edge from a [config.Config] alone.
//
// An Edge has three stages. [New] checks the configuration, and the Use methods what each
// handler needs beside that; nothing is asked yet. [Edge.Start] opens the store and runs what
// works in the background. [Edge.Stop] ends that, and [Edge.Close] lets go of the rest.
package edge

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/pool"
	"github.com/lychgate/caddy-lychgate/internal/redis"
	"github.com/lychgate/caddy-lychgate/internal/seal"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Options are what an edge is made from.
type Options struct {
	Config       *config.Config
	Placeholders config.Placeholders
	Lines        config.Lines         // where a Caddyfile has what the configuration says
	StoreFile    string               // of the store, if the configuration names none
	Logger       *zap.Logger          //
	Registry     *prometheus.Registry // for metrics
}

// Edge is an edge with one configuration.
type Edge struct {
	Options

	Servers  []netip.AddrPort     // that are asked for MX records
	Resolver *classifier.Resolver // asks them

	// Paths are where the directives are.
	Paths Paths

	byHost   map[string]*Site           // of the configuration
	byName   map[string]*Site           // of the configuration
	live     *atomic.Pointer[liveSites] // those and the ones in the store
	store    *openStore                 // nil unless something needs it
	members  *Members                   // nil unless members_api is used
	themes   *Themes                    // nil unless theme_manifest or staff_desk is used
	curation *Curation                  // nil unless staff_desk is used
	events   *Events                    // nil unless staff_desk or events_api is used
	stored   *StoredSites

	restoreOnce func() error // of the stored sites
	openOnce    func() error // of the store
	isOpen      atomic.Bool  // openOnce has ended

	keyring  *seal.Keyring
	locator  *locator // nil unless the edge runs
	previous *Edge    // that ran before
	redisKey config.RedisKey
	redis    *redis.Client // nil for none
	releases pool.Releases
}

// running is the edge that runs, for the metrics, which belong to the process.
var running atomic.Pointer[Edge]

// New checks a configuration and prepares an edge for it. Errors are about the place of a
// mistake.
func New(options Options) (*Edge, error) {
	e := &Edge{Options: options, live: new(atomic.Pointer[liveSites])}
	if err := registerMetrics(e.Registry); err != nil {
		return e, fmt.Errorf("registering metrics: %w", err)
	}
	for _, prepare := range []func() error{e.prepareSites, e.prepareStored, e.prepareResolver, e.prepareRedis} {
		if err := prepare(); err != nil {
			return e, e.Lines.Explain(err)
		}
	}
	return e, nil
}

func (e *Edge) prepareSites() error {
	if _, err := e.Config.ManifestFile(); err != nil {
		return err
	}
	hosts, err := e.Config.ResolveSites(e.Placeholders)
	if err != nil {
		return err
	}
	if err := e.Config.CheckKeys(e.Placeholders); err != nil {
		return err
	}
	e.byHost, e.byName = make(map[string]*Site), make(map[string]*Site)
	for name, of := range hosts {
		site := &Site{Name: name, Hosts: of, Config: e.Config.Sites[name], Metrics: loadSiteMetrics(name, &e.releases)}
		e.byName[name] = site
		for _, host := range of {
			e.byHost[host] = site
		}
	}
	e.live.Store(new(liveSites(e.byHost)))
	return nil
}

// prepareStored checks what sites in the store need.
func (e *Edge) prepareStored() (err error) {
	if e.keyring, err = e.Config.Keyring(e.Placeholders); err != nil {
		return err
	}
	if e.Config.Store != nil {
		if _, _, err := e.resolveStore(); err != nil {
			return err
		}
	}
	e.stored = newStoredSites(e)
	e.restoreOnce, e.openOnce = sync.OnceValue(e.stored.restore), sync.OnceValue(e.stored.openStore)
	return nil
}

func (e *Edge) prepareResolver() (err error) {
	if e.Servers, err = e.Config.Servers(e.Placeholders); err != nil {
		return err
	}
	if len(e.Servers) == 0 {
		e.Servers = classifier.SystemServers()
	}
	e.Resolver = classifier.NewResolver(classifier.ResolverConfig{Servers: e.Servers, Logger: e.Logger, Observe: observeDNSQuery})
	return nil
}

// prepareRedis checks the Redis of the configuration, if it has one. It is asked once the
// edge starts.
func (e *Edge) prepareRedis() (err error) {
	if e.redisKey, err = e.Config.Redis.Resolve(e.Placeholders); err != nil || e.Config.Redis == nil {
		return err
	}
	e.redis, err = clients.Load(e.redisKey, &e.releases, func() (*redis.Client, error) {
		return redis.New(redis.Config{URL: e.redisKey.URL, Timeout: e.redisKey.Timeout, Logger: e.Logger})
	})
	return config.In("redis", "redis", err)
}

func (e *Edge) resolveStore() (database.Kind, string, error) {
	kind, source, err := e.Config.Store.Resolve(e.Placeholders, e.StoreFile)
	return kind, source, config.In("lychgate", "", err)
}

// useStore checks what the configuration says of the store, and has it opened
// for one more user when the edge starts.
func (e *Edge) useStore(user storeUser) (*openStore, error) {
	if e.store == nil {
		kind, source, err := e.resolveStore()
		if err != nil {
			return nil, err
		}
		e.store = &openStore{kind: kind, source: source, logger: e.Logger}
	}
	e.store.users = append(e.store.users, user)
	return e.store, nil
}

// Start opens the store and runs what works in the background. A file of the store that
// cannot be opened is an error; a server that is away is waited for.
func (e *Edge) Start() error {
	if e.redis != nil {
		e.redis.Start()
	}
	if err := e.openOnce(); err != nil {
		return err
	}
	e.isOpen.Store(true)
	if e.store == nil {
		return nil
	}
	e.previous = running.Swap(e)
	e.locator = startLocating(e.byName, e.Paths, e.Logger)
	return nil
}

// Stop ends what works in the background.
func (e *Edge) Stop() {
	if e.locator != nil {
		e.locator.stop()
	}
	// The configuration before runs on if this one could not be started.
	running.CompareAndSwap(e, e.previous)
	e.previous = nil
	if now := running.Load(); now != nil && now.previous == e {
		now.previous = nil // and this one does not
	}
	if e.store != nil {
		e.store.stop()
	}
}

// Close lets go of what outlives a configuration.
func (e *Edge) Close() error {
	var errs []error
	if e.store != nil {
		errs = append(errs, e.store.close())
	}
	for _, site := range e.byName {
		errs = append(errs, site.close())
	}
	errs = append(errs, e.stored.close())
	return errors.Join(append(errs, e.releases.Close())...)
}

// Site returns the site that a request's Host names, or nil.
func (e *Edge) Site(host string) *Site {
	site := (*e.live.Load()).at(host)
	if site == nil && !e.isOpen.Load() {
		return e.siteWhileStarting(host)
	}
	return site
}

// siteWhileStarting returns the site of a request that comes before the edge has started:
// Caddy may start its HTTP servers first.
func (e *Edge) siteWhileStarting(host string) *Site {
	if e.restoreOnce() == nil {
		if site := (*e.live.Load()).at(host); site != nil {
			return site
		}
	}
	if e.openOnce() != nil { // Start says so
		return nil
	}
	return (*e.live.Load()).at(host)
}

// Members returns what the members API runs on, nil unless it is used.
func (e *Edge) Members() *Members { return e.members }

// Stored returns the sites in the store.
func (e *Edge) Stored() *StoredSites { return e.stored }

// Serves reports whether there is a site of a name, of the configuration or in the store.
func (e *Edge) Serves(name string) bool { return e.byName[name] != nil || e.stored.site(name) != nil }

// SiteOf returns a site of the configuration by its name, nil for none.
func (e *Edge) SiteOf(name string) *Site { return e.byName[name] }

// Hosts returns the hosts of all sites that are served now.
func (e *Edge) Hosts() (hosts []string) {
	for host := range *e.live.Load() {
		hosts = append(hosts, host)
	}
	return hosts
}

// ConfiguredHosts returns the name of the site of each host of the configuration.
func (e *Edge) ConfiguredHosts() map[string]string {
	names := make(map[string]string)
	for host, site := range e.byHost {
		names[host] = site.Name
	}
	return names
}

// KnowsAllSites reports whether no store may have a site that is not known yet.
func (e *Edge) KnowsAllSites() bool { return e.Config.Store == nil || e.stored.store.Load() != nil }

// current returns a site by its name, as it is in the configuration or in the store now, nil
// for none.
func (e *Edge) current(name string) *Site {
	if site := e.byName[name]; site != nil {
		return site
	}
	return e.stored.current(name)
}

// platformsOf returns a function that finds the platform of a site by its name, as the site is
// now. It is nil for a site that is not served, and for a platform that is no T.
func platformsOf[T any](e *Edge) func(name string) T {
	return func(name string) (of T) {
		if site := e.current(name); site != nil && site.Locked == nil {
			of, _ = site.Platform.(T)
		}
		return of
	}
}

func (e *Edge) connect(site *Site) (platform.Platform, error) {
	if site.Platform != nil {
		return site.Platform, nil
	}
	connected, err := site.Config.Platform.Connect(e.Placeholders)
	if err == nil {
		site.Platform = connected
	}
	return connected, err
}
