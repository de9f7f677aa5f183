package edge

import (
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// servedSites are the sites that are served, of the configuration and in the store.
type servedSites struct {
	byHost  map[string]*Site                 // of the configuration
	byName  map[string]*Site                 // of the configuration
	inStore atomic.Pointer[map[string]*Site] // by name; never changed, but replaced
	live    atomic.Pointer[liveSites]        // all
}

func newServedSites() *servedSites {
	s := new(servedSites)
	s.inStore.Store(&map[string]*Site{})
	return s
}

// configure has the sites of the configuration served.
func (s *servedSites) configure(b *base) (err error) {
	if _, err := b.Config.ManifestFile(); err != nil {
		return err
	}
	if b.fallback, err = b.Config.FallbackEvents(b.Placeholders); err != nil {
		return err
	}
	hosts, err := b.Config.ResolveSites(b.Placeholders)
	if err != nil {
		return err
	}
	if err := b.Config.CheckKeys(b.Placeholders); err != nil {
		return err
	}
	s.byHost, s.byName = make(map[string]*Site), make(map[string]*Site)
	for name, of := range hosts {
		site := &Site{Name: name, Hosts: of, Config: b.Config.Sites[name], Metrics: loadSiteMetrics(name, &b.releases)}
		if site.mail, err = mailServer(site.Config.Mail, b.Placeholders); err != nil {
			return config.In("site "+name, "sites."+name, err)
		}
		s.byName[name] = site
		for _, host := range of {
			s.byHost[host] = site
		}
	}
	s.live.Store(new(liveSites(s.byHost)))
	return nil
}

func (s *servedSites) at(host string) *Site { return (*s.live.Load()).at(host) }

// storedSite is nil for an unknown name.
func (s *servedSites) storedSite(name string) *Site { return (*s.inStore.Load())[name] }

// SiteOf finds a site of the configuration by its name, nil if there is none.
func (s *servedSites) SiteOf(name string) *Site { return s.byName[name] }

// Serves reports whether there is a site of a name, of the configuration or in the store.
func (s *servedSites) Serves(name string) bool {
	return s.byName[name] != nil || s.storedSite(name) != nil
}

// Hosts are those of all sites that are served now, in no order.
func (s *servedSites) Hosts() (hosts []string) {
	for host := range *s.live.Load() {
		hosts = append(hosts, host)
	}
	return hosts
}

// ConfiguredHosts has the site's name for each host of the configuration.
func (s *servedSites) ConfiguredHosts() map[string]string {
	names := make(map[string]string)
	for host, site := range s.byHost {
		names[host] = site.Name
	}
	return names
}

// close lets go of the platforms of the configuration's sites. Those of sites in the store outlive
// a configuration, see [snapshot].
func (s *servedSites) close() (errs []error) {
	for _, site := range s.byName {
		errs = append(errs, closePlatform(site.Platform))
	}
	return errs
}
