package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// This file finds what Caddy warns of when it starts: routes by which requests never arrive at
// a directive, or arrive for no site.

// routesOf returns the routes of all HTTP servers of a configuration.
func routesOf(ctx caddy.Context) ([]caddyhttp.RouteList, error) {
	app, err := ctx.AppIfConfigured("http")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	servers := app.(*caddyhttp.App).Servers
	var all []caddyhttp.RouteList
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		all = append(all, servers[name].Routes)
	}
	return all, nil
}

// arrival is how requests arrive at a directive.
type arrival struct {
	directive directive
	hosts     []string                 // those that a matcher lets through, nil for all
	paths     [][]*caddyhttp.MatchPath // of each route around it, any of which lets through; nil in it for all
	isPartial bool                     // whether more than hosts and paths decides
	rewritten bool                     // whether the path may be another by then
}

// arrivals returns how requests arrive at the directives in routes, which are in
// others.
func arrivals(routes caddyhttp.RouteList, around arrival) (all []arrival) {
	for _, route := range routes {
		here := around.within(route)
		for _, handler := range route.Handlers {
			switch handler := handler.(type) {
			case *rewrite.Rewrite: // what was matched is another path from here on
				here.paths, around.paths = nil, nil
				here.rewritten, around.rewritten = true, true
			case *caddyhttp.Subroute:
				all = append(all, arrivals(handler.Routes, here)...)
			case directive:
				here.directive = handler
				all = append(all, here)
			}
		}
	}
	return all
}

// within returns how requests that arrive get through the matchers of a route.
func (a arrival) within(route caddyhttp.Route) arrival {
	here := a
	here.paths = slices.Clone(a.paths)
	if len(route.MatcherSets) == 0 {
		return here
	}
	var hosts []string
	var paths []*caddyhttp.MatchPath
	anyHost := false
	for _, set := range route.MatcherSets {
		host, path, others := matchersIn(set)
		here.isPartial = here.isPartial || others || host != nil && path != nil && len(route.MatcherSets) > 1
		if anyHost = anyHost || host == nil; host != nil {
			hosts = append(hosts, *host...)
		}
		paths = append(paths, path)
	}
	if !anyHost {
		here.hosts = hosts
	}
	here.paths = append(here.paths, paths)
	return here
}

// matchersIn returns the matchers of hosts and paths in a set, nil for none, and
// whether anything else decides, such as a placeholder.
func matchersIn(set caddyhttp.MatcherSet) (host *caddyhttp.MatchHost, path *caddyhttp.MatchPath, others bool) {
	for _, matcher := range set {
		switch matcher := matcher.(type) {
		case *caddyhttp.MatchHost:
			host = matcher
		case *caddyhttp.MatchPath:
			path, others = matcher, others || hasPlaceholder(*matcher)
		default:
			others = true
		}
	}
	return host, path, others
}

// lets reports whether a request for a path arrives, as far as matchers of paths
// tell.
func (a arrival) lets(path string) bool {
	for _, route := range a.paths {
		if !slices.ContainsFunc(route, func(m *caddyhttp.MatchPath) bool { return m == nil || lets(*m, path) }) {
			return false
		}
	}
	return true
}

// answers reports whether a directive answers a path, of which requests arrive.
func (a arrival) answers(path string, app *App) bool {
	return a.lets(path) && slices.ContainsFunc(a.directive.reach(app), func(need reach) bool { return slices.Contains(need.paths, path) })
}

// hasHostsOf reports whether requests for each host of another arrival arrive too.
func (a arrival) hasHostsOf(other arrival) bool {
	if a.hosts == nil || other.hosts == nil {
		return a.hosts == nil
	}
	for _, host := range other.hosts {
		isHost := func(pattern string) bool {
			return pattern == host || strings.Contains(pattern, "*") && matchesHost(pattern, host)
		}
		if !slices.ContainsFunc(a.hosts, isHost) {
			return false
		}
	}
	return true
}

// matchesHost reports whether a pattern of a matcher stands for a host.
func matchesHost(pattern, host string) bool {
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	request := (&http.Request{Host: host}).WithContext(ctx)
	matched, err := caddyhttp.MatchHost{pattern}.MatchWithError(request)
	return matched && err == nil
}

// warning is what may be meant but seldom is.
type warning struct {
	message string
	fields  []zap.Field
}

// String returns the warning for people.
func (w warning) String() string {
	values := zapcore.NewMapObjectEncoder()
	var said []string
	for _, field := range w.fields {
		field.AddTo(values)
		said = append(said, fmt.Sprintf("%s: %v", strings.ReplaceAll(field.Key, "_", " "), values.Fields[field.Key]))
	}
	return w.message + " (" + strings.Join(said, ", ") + ")"
}

// warningsOfRoutes returns what is odd about the routes to the app's directives.
func (a *App) warningsOfRoutes() ([]warning, error) {
	routes, err := a.routes()
	if err != nil {
		return nil, err
	}
	servers := make([][]arrival, len(routes))
	for i, list := range routes {
		servers[i] = arrivals(list, arrival{})
	}
	all := slices.Concat(servers...)
	return slices.Concat(a.warnOfHosts(all), a.warnOfMatchers(all), a.warnOfHidden(servers), a.warnOfLimits(all)), nil
}

// warnOfHosts returns a warning for the hosts of server blocks that no site has.
func (a *App) warnOfHosts(all []arrival) (warnings []warning) {
	if a.Store != nil && a.stored.store.Load() == nil { // it may have the site
		return nil
	}
	strangers := make(map[string][]string) // host → directives
	for _, arrival := range all {
		for _, pattern := range arrival.hosts {
			if !a.hasHost(pattern) {
				strangers[pattern] = append(strangers[pattern], nameOf(arrival.directive))
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(strangers)) {
		slices.Sort(strangers[host])
		warnings = append(warnings, warning{
			"no site has the host of a server block, so its directives serve nothing there: add the host to the site's hosts",
			[]zap.Field{
				zap.String("host", host), zap.Strings("directives", slices.Compact(strangers[host])),
				zap.Strings("hosts_of_sites", slices.Sorted(maps.Keys(a.sites))),
			},
		})
	}
	return warnings
}

// hasHost reports whether a site has a host that a pattern stands for.
func (a *App) hasHost(pattern string) bool {
	for host := range *a.live.Load() {
		if matchesHost(pattern, host) {
			return true
		}
	}
	return false
}

// warnOfMatchers returns a warning for matchers that keep a directive from its own paths.
func (a *App) warnOfMatchers(all []arrival) (warnings []warning) {
	warned := make(map[string]bool)
	for _, arrival := range all {
		for _, need := range arrival.directive.reach(a) {
			if warned[need.paths[0]] || slices.ContainsFunc(need.paths, arrival.lets) {
				continue
			}
			warned[need.paths[0]] = true
			warnings = append(warnings, warning{
				"a matcher keeps a directive from its own paths: let them through",
				[]zap.Field{zap.String("directive", nameOf(arrival.directive)), zap.String("path", need.paths[0]), zap.String("write", need.write)},
			})
		}
	}
	return warnings
}

// hiding is that a directive gets no request for a path, because one before it answers
// them all.
type hiding struct{ directive, path, before string }

// warnOfHidden returns a warning for each directive that one before it hides, with the
// hosts where that is so.
func (a *App) warnOfHidden(servers [][]arrival) (warnings []warning) {
	hosts := make(map[hiding][]string)
	for _, all := range servers {
		for i, arrival := range all {
			if h, ok := a.hidden(arrival, all[:i]); ok {
				hosts[h] = append(hosts[h], arrival.hosts...)
			}
		}
	}
	byText := func(a, b hiding) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, h := range slices.SortedFunc(maps.Keys(hosts), byText) {
		slices.Sort(hosts[h])
		warnings = append(warnings, warning{
			"an earlier directive answers this path, so this one gets no request for it: write another path or matcher, or remove one of the two",
			[]zap.Field{zap.String("directive", h.directive), zap.String("path", h.path), zap.String("before", h.before), zap.Strings("hosts", slices.Compact(hosts[h]))},
		})
	}
	return warnings
}

// hidden reports whether directives hide one that comes after them. If the same directive
// is before it, that may be for a part of its paths; so all of them have to be hidden then.
func (a *App) hidden(after arrival, all []arrival) (h hiding, ok bool) {
	if after.rewritten {
		return h, false
	}
	var before []arrival
	for _, other := range all {
		if !other.isPartial && !other.rewritten && other.hasHostsOf(after) {
			before = append(before, other)
		}
	}
	var taken []hiding
	isLeft := false
	for _, need := range after.directive.reach(a) {
		for _, path := range need.paths {
			if !after.lets(path) {
				continue
			}
			i := slices.IndexFunc(before, func(other arrival) bool { return other.answers(path, a) })
			if i < 0 {
				isLeft = true
				continue
			}
			taken = append(taken, hiding{nameOf(after.directive), path, nameOf(before[i].directive)})
		}
	}
	i := slices.IndexFunc(taken, func(h hiding) bool { return !isLeft || h.directive != h.before })
	if i < 0 {
		return h, false
	}
	return taken[i], true
}

// warnOfLimits returns a warning for members_api with different limits on one site.
func (a *App) warnOfLimits(all []arrival) (warnings []warning) {
	limits := make(map[*Site]map[string]bool)
	for _, arrival := range all {
		api, ok := arrival.directive.(*MembersAPI)
		if !ok {
			continue
		}
		for host, site := range a.sites {
			if arrival.hosts != nil && !slices.ContainsFunc(arrival.hosts, func(pattern string) bool { return matchesHost(pattern, host) }) {
				continue
			}
			if limits[site] == nil {
				limits[site] = make(map[string]bool)
			}
			limits[site][fmt.Sprintf("%d %s", api.Limit.Requests, api.Limit.plain().Window)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sites)) {
		if of := limits[a.Sites[name]]; len(of) > 1 {
			warnings = append(warnings, warning{
				"members_api has several limits on one site, and each counts a key's requests for itself: write the same limit",
				[]zap.Field{zap.String("site", name), zap.Strings("limits", slices.Sorted(maps.Keys(of)))},
			})
		}
	}
	return warnings
}

func nameOf(handler directive) string { return caddy.GetModuleName(handler) }
