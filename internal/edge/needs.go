package edge

import (
	"maps"
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/doctor"
)

// Needs is what the configuration depends on, for the doctor to check. What the web server needs is
// not in it.
func (e *Edge) Needs() (doctor.Config, error) {
	checked := doctor.Config{Folders: e.Paths.folders(), AdminPaths: e.Paths.Admin, DeskPaths: e.Paths.Desk, Redis: e.redisKey.URL, Mail: e.mail}
	if len(e.Paths.Lookup) > 0 {
		checked.Resolvers = e.Servers
	}
	if e.store != nil || e.Config.Store != nil {
		kind, source, err := e.resolveStore()
		if err != nil {
			return doctor.Config{}, err
		}
		checked.Store = &doctor.Store{
			Kind: kind, Source: source, Keys: e.keyring,
			Members: e.members != nil, Themes: e.themes != nil, Curation: e.curation != nil, Events: e.events != nil,
		}
	}
	for _, name := range e.Config.Names() {
		of, err := needsOf(e, e.byName[name])
		if err != nil {
			return doctor.Config{}, config.In("site "+name, "sites."+name, err)
		}
		checked.Sites = append(checked.Sites, of)
	}
	return checked, nil
}

func needsOf(e *Edge, site *Site) (doctor.Site, error) {
	of := doctor.Site{Name: site.Name, Platform: site.Platform, Mail: site.mail, Hosts: slices.Compact(slices.Sorted(slices.Values(site.Hosts)))}
	if e.members != nil {
		of.UsesEvents, of.EventsOff = true, site.Config.Platform.Webhooks == "off"
		of.WebhookURL = e.members.WebhookURL(site.Name)
	}
	if site.themes == nil {
		return of, nil
	}
	kind, _ := site.Config.Platform.Of()
	of.AdminPath = kind.AdminPath
	sources, err := e.themes.sources(site)
	for _, theme := range slices.Sorted(maps.Keys(sources)) {
		of.Themes = append(of.Themes, doctor.Theme{Name: theme, Source: sources[theme]})
	}
	return of, err
}
