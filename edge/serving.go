package edge

import (
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/config"
	"github.com/lychgate/caddy-lychgate/sites"
)

// This file takes over changes of the sites in the store, and prepares the sites.

// serve serves sites as they are now, and all others as before, from one moment to the
// next. The caller holds the lock.
func (s *StoredSites) serve(changes []sites.Site) {
	if len(changes) == 0 {
		return
	}
	byName := maps.Clone(*s.byName.Load())
	var gone, locked []*Site
	for _, kept := range changes {
		old := byName[kept.Name]
		if old != nil && old.isAs(kept) {
			continue
		}
		if old != nil {
			gone = append(gone, old)
			delete(byName, kept.Name)
		}
		if !kept.RemovedAt.IsZero() || s.isShadowed(kept.Name) {
			continue
		}
		site, err := s.open(kept)
		if err != nil {
			s.logger.Error("cannot serve a site in the store", zap.String("site", kept.Name), zap.Error(err))
			continue
		}
		if site.Locked != nil {
			locked = append(locked, site)
		}
		byName[site.Name] = site
	}
	for _, site := range byName { // before the first request
		s.complete(site)
	}
	s.byName.Store(&byName)
	s.edge.live.Store(s.merge(byName))
	s.leave(gone, byName)
	s.logLocked(locked)
}

// isAs reports whether a site is as it is kept.
func (s *Site) isAs(kept sites.Site) bool {
	return s.revision == kept.Revision && kept.RemovedAt.IsZero() && (s.Locked == nil) == (kept.Locked == nil)
}

// isShadowed reports whether a site of the configuration has a name, and warns of it.
func (s *StoredSites) isShadowed(name string) bool {
	if s.edge.byName[name] == nil {
		return false
	}
	if !s.warned[name] {
		s.warned[name] = true
		s.logger.Warn("a site in the store is not served, because one of the configuration has its name: remove one of the two", zap.String("site", name))
	}
	return true
}

// merge returns all sites by host. Those of the configuration win.
func (s *StoredSites) merge(byName map[string]*Site) *liveSites {
	live := make(liveSites, len(s.edge.byHost)+2*len(byName))
	maps.Copy(live, s.edge.byHost)
	for name, site := range byName {
		for _, host := range site.Hosts {
			other := s.edge.byHost[host]
			if other == nil {
				live[host] = site
				continue
			}
			if !s.warned[name+" "+host] {
				s.warned[name+" "+host] = true
				s.logger.Warn("a host of a site in the store belongs to a site of the configuration, which is served there: take it from one of the two",
					zap.String("host", host), zap.String("site", name), zap.String("served", other.Name))
			}
		}
	}
	return &live
}

// open prepares a site, so that it can be served by all directives. A row that nobody
// thought of must not end the process, which serves others.
func (s *StoredSites) open(kept sites.Site) (site *Site, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("its row cannot be understood: %v", problem)
		}
	}()
	of, err := config.FromStore(kept)
	if err != nil {
		return nil, err
	}
	site = &Site{Name: kept.Name, Hosts: kept.Hosts, Config: of, Metrics: s.metrics, Stored: true, Locked: kept.Locked, revision: kept.Revision}
	e := s.edge
	if site.Upstream, err = of.Platform.Upstream(e.Placeholders); err != nil || site.Locked != nil {
		return site, err
	}
	if e.members != nil {
		if site.synced, err = e.members.synced(site); err != nil {
			return nil, err
		}
	}
	if e.themes != nil {
		if err = e.themes.serve(e, site); err != nil {
			return site, err
		}
	}
	if e.events != nil {
		err = e.events.serve(site)
	}
	return site, err
}

// complete has the members of a site served and kept in sync, once the store answers.
func (s *StoredSites) complete(site *Site) {
	serving := s.edge.members.Serving()
	if serving == nil || site.Locked != nil || site.members.Load() != nil {
		return
	}
	site.members.Store(serving.open(site, declared{}))
	if site.synced.Platform != nil {
		serving.inbound.Put(site.Name, site.synced)
	}
}

// leave lets go of sites that are gone or replaced.
func (s *StoredSites) leave(gone []*Site, byName map[string]*Site) {
	serving := s.edge.members.Serving()
	for _, site := range gone {
		now := byName[site.Name]
		if serving != nil && (now == nil || now.synced.Platform == nil) {
			serving.inbound.Remove(site.Name)
		}
		if err := site.close(); err != nil {
			s.edge.Logger.Warn("cannot close connections to a site's platform", zap.String("site", site.Name), zap.Error(err))
		}
	}
}

// logLocked says which sites are not served whole, in one line.
func (s *StoredSites) logLocked(list []*Site) {
	if len(list) == 0 {
		return
	}
	const most = 20
	var names []string
	for _, site := range list[:min(len(list), most)] {
		names = append(names, site.Name)
	}
	slices.Sort(names)
	s.edge.Logger.Error("the keys of sites in the store cannot be opened, so their members API answers 500: write the secret that sealed them behind the others in secret",
		zap.Int("sites", len(list)), zap.Strings("first", names), zap.NamedError("problem", list[0].Locked))
}
