package caddymodule

import (
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/sites"
)

// This file takes over changes of the sites in the store, and prepares the sites.

// serve serves sites as they are now, and all others as before, from one moment to the
// next. The caller holds the lock.
func (s *storedSites) serve(changes []sites.Site) {
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
			s.logger.Error("a site in the store cannot be served", zap.String("site", kept.Name), zap.Error(err))
			continue
		}
		if site.locked != nil {
			locked = append(locked, site)
		}
		byName[site.name] = site
	}
	for _, site := range byName { // before the first request
		s.complete(site)
	}
	s.byName.Store(&byName)
	s.app.live.Store(s.merge(byName))
	s.leave(gone, byName)
	s.logLocked(locked)
}

// isAs reports whether a site is as it is kept.
func (s *Site) isAs(kept sites.Site) bool {
	return s.revision == kept.Revision && kept.RemovedAt.IsZero() && (s.locked == nil) == (kept.Locked == nil)
}

// isShadowed reports whether a site of the configuration has a name, and warns of it.
func (s *storedSites) isShadowed(name string) bool {
	if s.app.Sites[name] == nil {
		return false
	}
	if !s.warned[name] {
		s.warned[name] = true
		s.logger.Warn("a site in the store is not served, because one of the configuration has its name: remove one of the two", zap.String("site", name))
	}
	return true
}

// merge returns all sites by host. Those of the configuration win.
func (s *storedSites) merge(byName map[string]*Site) *liveSites {
	live := make(liveSites, len(s.app.sites)+2*len(byName))
	maps.Copy(live, s.app.sites)
	for name, site := range byName {
		for _, host := range site.hosts {
			other := s.app.sites[host]
			if other == nil {
				live[host] = site
				continue
			}
			if !s.warned[name+" "+host] {
				s.warned[name+" "+host] = true
				s.logger.Warn("a host of a site in the store belongs to a site of the configuration, which is served there: take it from one of the two",
					zap.String("host", host), zap.String("site", name), zap.String("served", other.name))
			}
		}
	}
	return &live
}

// open prepares a site, so that it can be served by all directives. A row that nobody
// thought of must not end the process, which serves others.
func (s *storedSites) open(kept sites.Site) (site *Site, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("its row cannot be understood: %v", problem)
		}
	}()
	if site, err = FromStore(kept); err != nil {
		return nil, err
	}
	a := s.app
	site.metrics = s.metrics
	if site.address, err = site.Platform.upstream(); err != nil || site.locked != nil {
		return site, err
	}
	if a.members != nil {
		if site.synced, err = a.members.synced(a, site); err != nil {
			return nil, err
		}
	}
	if a.themes != nil {
		err = a.themes.serve(a, site)
	}
	return site, err
}

// complete has the members of a site served and kept in sync, once the store answers.
func (s *storedSites) complete(site *Site) {
	serving := s.app.members.now()
	if serving == nil || site.locked != nil || site.members.Load() != nil {
		return
	}
	site.members.Store(serving.open(site, new(integrations)))
	if site.synced.Platform != nil {
		serving.inbound.Put(site.name, site.synced)
	}
}

// leave lets go of sites that are gone or replaced.
func (s *storedSites) leave(gone []*Site, byName map[string]*Site) {
	serving := s.app.members.now()
	for _, site := range gone {
		now := byName[site.name]
		if serving != nil && (now == nil || now.synced.Platform == nil) {
			serving.inbound.Remove(site.name)
		}
		if err := site.close(); err != nil {
			s.app.logger.Warn("the connections to a site's platform could not be closed", zap.String("site", site.name), zap.Error(err))
		}
	}
}

// logLocked says which sites are not served whole, in one line.
func (s *storedSites) logLocked(list []*Site) {
	if len(list) == 0 {
		return
	}
	const most = 20
	var names []string
	for _, site := range list[:min(len(list), most)] {
		names = append(names, site.name)
	}
	slices.Sort(names)
	s.app.logger.Error("the keys of sites in the store cannot be opened, so their members API answers 500: write the secret that sealed them behind the others in secret",
		zap.Int("sites", len(list)), zap.Strings("first", names), zap.NamedError("problem", list[0].locked))
}
