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
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/classifier"
	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
)

// Edge is an edge with one configuration.
type Edge struct {
	*base
	*servedSites
	*Uses

	Resolver *classifier.Resolver // asks Servers

	// Paths are where the directives are.
	Paths Paths

	stored  *StoredSites
	isOpen  atomic.Bool // the store, if there is one
	locator *locator    // nil unless the edge runs
	running *runningEdge
}

// New checks a configuration and prepares an edge for it. Errors are about the place of a
// mistake.
func New(options Options) (*Edge, error) {
	e := &Edge{base: &base{Options: options, Audit: audit.To(options.Logger.Named("audit"))}, servedSites: newServedSites()}
	followed := newFollower(e.servedSites, e.Logger)
	e.Uses = &Uses{base: e.base, sites: followed}
	e.running = &runningEdge{uses: e.Uses}
	if err := registerMetrics(e.Registry); err != nil {
		return e, fmt.Errorf("registering metrics: %w", err)
	}
	configure := func() error { return e.configure(e.base) }
	for _, prepare := range []func() error{configure, e.prepareStore, e.prepareTokens, e.prepareMail, e.prepareShared} {
		if err := prepare(); err != nil {
			return e, e.Lines.Explain(err)
		}
	}
	e.stored = newStoredSites(e.base, e.servedSites, followed, e.Uses)
	e.Resolver = classifier.NewResolver(classifier.ResolverConfig{Servers: e.Servers, Logger: e.Logger, Observe: observeDNSQuery})
	return e, nil
}

// Start opens the store and runs what works in the background. A file of the store that
// cannot be opened is an error; a server that is away is waited for.
func (e *Edge) Start() error {
	if e.redis != nil {
		e.redis.Start()
	}
	if err := e.stored.openOnce(); err != nil {
		return err
	}
	e.isOpen.Store(true)
	if e.store == nil {
		return nil
	}
	e.running.start()
	e.retryChanged()
	e.locator = startLocating(e.byName, e.Paths, e.Logger, e.store.trySoon)
	return nil
}

// retryChanged has what is pending of sites of the configuration tried whose platform is reached
// in another way than before a reload. After a restart, which is how Caddy gets another environment
// with keys, it may be any.
func (e *Edge) retryChanged() {
	before := e.running.before()
	for name, site := range e.byName {
		var old *Site
		if before != nil {
			old = before.sites.served.byName[name]
		}
		if before == nil || old != nil && !site.Config.Platform.ReachesAs(old.Config.Platform) {
			e.store.trySoon(name)
		}
	}
}

// Stop ends what works in the background.
func (e *Edge) Stop() {
	if e.locator != nil {
		e.locator.stop()
	}
	e.running.stop()
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
	errs = append(errs, e.close()...)
	return errors.Join(append(errs, e.releases.Close())...)
}

// Site finds the site for a request's Host header, nil if no site has that host.
func (e *Edge) Site(host string) *Site {
	site := e.at(host)
	if site == nil && !e.isOpen.Load() {
		return e.siteWhileStarting(host)
	}
	return site
}

// Caddy may start its HTTP servers before the edge. A request that comes in between opens the
// store.
func (e *Edge) siteWhileStarting(host string) *Site {
	if e.stored.restoreOnce() == nil {
		if site := e.at(host); site != nil {
			return site
		}
	}
	if e.stored.openOnce() != nil { // Start says so
		return nil
	}
	return e.at(host)
}

// FindSite is Site for a handler that answers for a host without a site. Errors: api.ErrNoSite,
// and api.ErrSitesUnread while the store may have one.
func (e *Edge) FindSite(host string) (*Site, error) {
	if site := e.Site(host); site != nil {
		return site, nil
	}
	if !e.storedAreRead() {
		return nil, api.ErrSitesUnread
	}
	if site := e.at(host); site != nil { // read meanwhile
		return site, nil
	}
	return nil, api.ErrNoSite
}

// Stored has no sites if the configuration has no store.
func (e *Edge) Stored() *StoredSites { return e.stored }

// KnowsAllSites reports whether no store of the configuration may have a site that is not known
// yet.
func (e *Edge) KnowsAllSites() bool { return e.Config.Store == nil || e.storedAreRead() }
