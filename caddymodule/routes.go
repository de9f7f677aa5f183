package caddymodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// This file finds what Caddy warns of: routes by which requests never arrive at a directive,
// or arrive for no site.

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

// checkRoutes reads the routes to the app's directives, refuses those of which one gets no
// request for what is its own, and logs what may be meant but seldom is. Each directive
// that is provisioned calls it; the first finds all of them.
func (a *App) checkRoutes() error {
	var err error
	a.readOnce.Do(func() {
		if a.arrivals, err = a.readRoutes(); err != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(a.arrivals)) {
			if err = a.checkArrivals(a.arrivals[name]); err != nil {
				return
			}
		}
		a.log(a.warningsOfRoutes())
	})
	return err
}

// warningsOfRoutes returns what is odd about the routes to the app's directives, whatever
// sites there are in the store.
func (a *App) warningsOfRoutes() []warning {
	var servers [][]arrival
	for _, name := range slices.Sorted(maps.Keys(a.arrivals)) {
		servers = append(servers, a.arrivals[name])
	}
	all := slices.Concat(servers...)
	return slices.Concat(a.warnOfMatchers(all), a.warnOfHidden(servers), warnOfShared(servers), warnOfTwoEvents(servers), a.warnOfLimits(all))
}

// warnOfHosts returns a warning for the hosts of server blocks that no site has.
func (a *App) warnOfHosts() (warnings []warning) {
	if a.Store != nil && a.stored.store.Load() == nil { // it may have the site
		return nil
	}
	strangers := make(map[string][]string) // host → directives
	for _, all := range a.arrivals {
		for _, arrival := range all {
			for _, pattern := range arrival.hosts {
				if !a.hasHost(pattern) {
					strangers[pattern] = append(strangers[pattern], arrival.name)
				}
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
				[]zap.Field{zap.String("directive", arrival.name), zap.String("at", arrival.at), zap.String("path", need.paths[0]), zap.String("write", need.write)},
			})
		}
	}
	return warnings
}

// hiding is that a directive gets no request for a path, because the same directive before
// it answers them all.
type hiding struct{ directive, at, path, before string }

// warnOfHidden returns a warning for each directive that the same one before it hides, with
// the hosts where that is so.
func (a *App) warnOfHidden(servers [][]arrival) (warnings []warning) {
	hosts := make(map[hiding][]string)
	for _, all := range servers {
		for i, before := range befores(all) {
			if h, ok := a.hidden(all[i], before); ok {
				hosts[h] = append(hosts[h], all[i].hosts...)
			}
		}
	}
	byText := func(a, b hiding) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, h := range slices.SortedFunc(maps.Keys(hosts), byText) {
		slices.Sort(hosts[h])
		warnings = append(warnings, warning{
			"the same directive before it answers this path, so this one gets no request for it: write another path or matcher, or remove one of the two",
			[]zap.Field{
				zap.String("directive", h.directive), zap.String("at", h.at), zap.String("path", h.path),
				zap.String("before", h.before), zap.Strings("hosts", slices.Compact(hosts[h])),
			},
		})
	}
	return warnings
}

// hidden reports whether the same directive before it hides one. Another may be for a part
// of its paths, so all of them have to be taken.
func (a *App) hidden(after arrival, befores []arrival) (h hiding, ok bool) {
	if after.rewritten {
		return h, false
	}
	for _, need := range after.directive.reach(a) {
		for _, path := range need.paths {
			if !after.lets(path) {
				continue
			}
			i := slices.IndexFunc(befores, func(other arrival) bool {
				return other.name == after.name && !other.isPartial && !other.rewritten && other.takes(path, a)
			})
			if i < 0 {
				return hiding{}, false
			}
			if !ok {
				h, ok = hiding{after.name, after.at, path, befores[i].at}, true
			}
		}
	}
	return h, ok
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
			limit := api.limit()
			limits[site][fmt.Sprintf("%d %s", limit.Requests, limit.plain().Window)] = true
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
