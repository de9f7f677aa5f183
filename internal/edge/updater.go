package edge

import (
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// updater takes over changes of the sites in the store, and prepares the sites.
type updater struct {
	base    *base
	served  *servedSites
	uses    *Uses
	logger  *zap.Logger     // of what may be wrong with each of many sites
	metrics *SiteMetrics    // of all sites in the store
	warned  map[string]bool // of names and hosts that a site of the configuration has

	snapshot *snapshot // of what this edge, or the one before, has made of sites
}

// serve serves sites as they are now, and all others as before, from one moment to the
// next. The caller holds the lock.
func (u *updater) serve(changes []sites.Site) {
	if len(changes) == 0 {
		return
	}
	byName := maps.Clone(*u.served.inStore.Load())
	var come, gone, locked []*Site
	for _, kept := range changes {
		old := byName[kept.Name]
		if old != nil && old.isAs(kept) {
			continue
		}
		if old != nil {
			gone = append(gone, old)
			delete(byName, kept.Name)
		}
		if !kept.RemovedAt.IsZero() || u.isShadowed(kept.Name) {
			continue
		}
		site, err := u.open(kept)
		if err != nil {
			u.logger.Error("cannot serve a site in the store", zap.String("site", kept.Name), zap.Error(err))
			continue
		}
		if site.Locked != nil {
			locked = append(locked, site)
		}
		byName[site.Name] = site
		come = append(come, site)
	}
	for _, site := range come { // before the first request
		u.uses.members.complete(site)
	}
	u.served.inStore.Store(&byName)
	u.served.live.Store(u.merge(byName))
	u.leave(gone, byName)
	u.retryChanged(gone, byName)
	u.logLocked(locked)
	u.warnOfSameKeys(come, byName)
}

// warnOfSameKeys says which sites that come have the key of another, in one line.
func (u *updater) warnOfSameKeys(come []*Site, byName map[string]*Site) {
	names := make(map[string][]string) // by key, of those that come
	for _, site := range come {
		if key := site.Config.Platform.AdminKey; key != "" {
			names[key] = nil
		}
	}
	for name, site := range byName {
		if of, ok := names[site.Config.Platform.AdminKey]; ok {
			names[site.Config.Platform.AdminKey] = append(of, name)
		}
	}
	var same []string
	for _, of := range names {
		if len(of) > 1 {
			same = append(same, of...)
		}
	}
	if len(same) > 0 {
		slices.Sort(same)
		u.base.Logger.Warn("sites in the store have the same admin_key, which is of one Ghost: write the other's own, or all hosts into one site",
			zap.Int("sites", len(same)), zap.Strings("first", same[:min(len(same), mostLogged)]))
	}
}

// mostLogged bounds the names of sites in a line of the log.
const mostLogged = 20

// isShadowed reports whether a site of the configuration has a name, and warns of it.
func (u *updater) isShadowed(name string) bool {
	if u.served.byName[name] == nil {
		return false
	}
	if !u.warned[name] {
		u.warned[name] = true
		u.logger.Warn("a site in the store is not served, because one of the configuration has its name: remove one of the two", zap.String("site", name))
	}
	return true
}

// merge prefers the sites of the configuration to those in the store.
func (u *updater) merge(byName map[string]*Site) *liveSites {
	live := make(liveSites, len(u.served.byHost)+2*len(byName))
	maps.Copy(live, u.served.byHost)
	for name, site := range byName {
		for _, host := range site.Hosts {
			other := u.served.byHost[host]
			if other == nil {
				live[host] = site
				continue
			}
			if !u.warned[name+" "+host] {
				u.warned[name+" "+host] = true
				u.logger.Warn("a host of a site in the store belongs to a site of the configuration, which is served there: take it from one of the two",
					zap.String("host", host), zap.String("site", name), zap.String("served", other.Name))
			}
		}
	}
	return &live
}

// open prepares a site, so that it can be served by all directives. A row that nobody
// thought of must not end the process, which serves others.
func (u *updater) open(kept sites.Site) (site *Site, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("its row cannot be understood: %v", problem)
		}
	}()
	site = &Site{Name: kept.Name, Hosts: kept.Hosts, Metrics: u.metrics, Stored: true, Locked: kept.Locked, revision: kept.Revision}
	seen := u.snapshot.of(kept)
	if seen != nil && seen.made.Load() != nil {
		made := seen.made.Load()
		site.Config, site.Platform, site.mail, site.Upstream = made.config, made.platform, made.mail, made.upstream
	} else if err := site.make(kept, u.base.Placeholders); err != nil {
		return site, err
	}
	if site.Locked != nil {
		return site, nil
	}
	if err := u.uses.open(site); err != nil {
		return site, err
	}
	if seen != nil {
		seen.made.Store(&madeSite{site.Config, site.Platform, site.mail, site.Upstream})
	}
	return site, nil
}

// leave lets go of sites that are gone or replaced.
func (u *updater) leave(gone []*Site, byName map[string]*Site) {
	for _, site := range gone {
		u.uses.leave(site.Name, byName[site.Name])
		if err := closePlatform(site.Platform); err != nil {
			u.base.Logger.Warn("cannot close connections to a site's platform", zap.String("site", site.Name), zap.Error(err))
		}
	}
}

// retryChanged has what is pending of sites tried whose platform is reached in another way than
// before, or again after their keys could not be opened.
func (u *updater) retryChanged(gone []*Site, byName map[string]*Site) {
	for _, old := range gone {
		now := byName[old.Name]
		if now != nil && now.Locked == nil && (old.Locked != nil || !now.Config.Platform.ReachesAs(old.Config.Platform)) {
			u.base.store.trySoon(now.Name)
		}
	}
}

// logLocked says which sites are not served whole, in one line.
func (u *updater) logLocked(list []*Site) {
	if len(list) == 0 {
		return
	}
	var names []string
	for _, site := range list[:min(len(list), mostLogged)] {
		names = append(names, site.Name)
	}
	slices.Sort(names)
	u.base.Logger.Error("the keys of sites in the store cannot be opened, so their members API answers 500: write the secret that sealed them behind the others in secret",
		zap.Int("sites", len(list)), zap.Strings("first", names), zap.NamedError("problem", list[0].Locked))
}
