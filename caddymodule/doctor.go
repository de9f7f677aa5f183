package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/doctor"
	"github.com/lychgate/caddy-lychgate/themes"
)

// DoctorConfig loads a configuration, in JSON, as Caddy does before it starts it, and
// returns what it needs of the world. Nothing is asked yet, and nothing is logged.
func DoctorConfig(config []byte) (doctor.Config, error) {
	var parsed caddy.Config
	if err := caddy.StrictUnmarshalJSON(config, &parsed); err != nil {
		return doctor.Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	parsed.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {
		BaseLog: caddy.BaseLog{WriterRaw: caddyconfig.JSONModuleObject(caddy.DiscardWriter{}, "output", "discard", nil)},
	}}}
	ctx, err := caddy.ProvisionContext(&parsed)
	if err != nil {
		return doctor.Config{}, err
	}
	app, err := ctx.AppIfConfigured("lychgate")
	if errors.Is(err, caddy.ErrNotConfigured) {
		err = ErrNoSite
	}
	if err != nil {
		return doctor.Config{}, err
	}
	checked, err := app.(*App).doctorConfig()
	if err == nil {
		checked.Servers, err = app.(*App).doctorServers(ctx, config)
	}
	return checked, err
}

// doctorConfig returns what the app needs.
func (a *App) doctorConfig() (doctor.Config, error) {
	checked := doctor.Config{Folders: a.folders(), AdminPaths: a.adminPaths, DeskPaths: a.deskPaths, Redis: a.redisKey.url}
	if len(a.lookupPaths) > 0 {
		checked.Resolvers = a.servers
	}
	if a.store != nil || a.Store != nil {
		kind, source, err := a.Store.Resolve()
		if err != nil {
			return doctor.Config{}, inBlock("lychgate", "store", err)
		}
		checked.Store = &doctor.Store{Kind: kind, Source: source, Members: a.members != nil, Themes: a.themes != nil, Curation: a.curation != nil, Events: a.events != nil, Keys: a.keys}
	}
	for _, w := range slices.Concat(a.warningsOfSites(), a.warnOfHosts(), a.warningsOfRoutes()) {
		checked.Warnings = append(checked.Warnings, w.String())
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		site := a.Sites[name]
		of := doctor.Site{Name: name, Platform: site.platform, Hosts: slices.Compact(slices.Sorted(slices.Values(site.hosts)))}
		if a.members != nil {
			of.UsesEvents, of.EventsOff = true, site.Platform.Webhooks == "off"
			of.WebhookURL = a.members.inbound[name].WebhookURL
		}
		if site.themes != nil {
			kind, _ := site.Platform.kind()
			of.AdminPath = kind.AdminPath
			for _, theme := range slices.Sorted(maps.Keys(site.Themes)) {
				repository, err := site.Themes[theme].Repository.connect()
				if err != nil {
					return doctor.Config{}, inSite(name, inTheme(theme, err))
				}
				of.Themes = append(of.Themes, doctor.Theme{Name: theme, Source: themes.FromRepository(repository, a.themes.fileName)})
			}
		}
		checked.Sites = append(checked.Sites, of)
	}
	return checked, nil
}

// doctorServers returns the HTTP servers that have a directive of Lychgate's.
func (a *App) doctorServers(ctx caddy.Context, config []byte) (list []doctor.Server, err error) {
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
	if err := json.Unmarshal(config, &raw); err != nil {
		return nil, err
	}
	servers := app.(*caddyhttp.App).Servers
	for _, name := range slices.Sorted(maps.Keys(a.arrivals)) {
		server := doctor.Server{
			Name: name, TrustsProxies: raw.Apps.HTTP.Servers[name].TrustedProxies != nil, Strict: servers[name].TrustedProxiesStrict > 0 || hasOwnHeader(servers[name]), TrustsUnix: servers[name].TrustedProxiesUnix,
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
