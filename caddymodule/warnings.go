package caddymodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/doctor"
)

// This file finds what Caddy warns of: routes by which requests never arrive at a directive,
// or arrive for no site.

// Warnings are about the routes alone, whatever sites there are in the store. The hosts
// are those of the configuration, each with the name of its site.
func (s servers) Warnings(of *config.Config, hosts map[string]string) []config.Warning {
	var servers [][]arrival
	for _, name := range slices.Sorted(maps.Keys(s)) {
		servers = append(servers, s[name].arrivals)
	}
	all := slices.Concat(servers...)
	return slices.Concat(warnOfMatchers(all, of), warnOfTaken(all, of), warnOfStripped(all), s.warnOfNothingBehind(of, hosts), warnOfHidden(servers, of), warnOfShared(servers), warnOfTwoEvents(servers), warnOfNoManifests(all, of), warnOfLimits(all, hosts))
}

// Directives lists the directives of a server for the doctor.
func (s servers) Directives(server string, of *config.Config) (list []doctor.Directive) {
	for _, a := range s[server].arrivals {
		d := doctor.Directive{Name: a.name, At: a.at, Path: a.routing.Path, IsPartial: a.isPartial, IsForAll: a.hosts == nil, Serves: a.serves}
		for _, need := range a.directive.routing(of).Needs {
			d.Needs = append(d.Needs, need.Paths)
		}
		list = append(list, d)
	}
	return list
}

// WarningsOfHosts are about hosts of server blocks that no site has. The hosts are those
// that are served, and those of the configuration.
func (s servers) WarningsOfHosts(served []string, configured map[string]string) (warnings []config.Warning) {
	unknown := make(map[string][]string) // host → directives
	for _, server := range s {
		for _, arrival := range server.arrivals {
			for _, pattern := range arrival.hosts {
				if !slices.ContainsFunc(served, func(host string) bool { return MatchesHost(pattern, host) }) {
					unknown[pattern] = append(unknown[pattern], arrival.name)
				}
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(unknown)) {
		slices.Sort(unknown[host])
		warnings = append(warnings, config.NewWarning(
			"no site has the host of a server block, so its directives serve nothing there: add the host to the site's hosts",
			"host", host, "directives", slices.Compact(unknown[host]), "hosts_of_sites", slices.Sorted(maps.Keys(configured)),
		))
	}
	return warnings
}

// warnOfNoManifests warns of an events_api without what reads the event types of themes.
func warnOfNoManifests(all []arrival, of *config.Config) (warnings []config.Warning) {
	if of.FallbackManifest != "" {
		return nil
	}
	for _, arrival := range all {
		switch arrival.name {
		case "theme_manifest":
			return nil
		case "events_api":
			warnings = append(warnings, config.NewWarning(
				"events_api without theme_manifest has no events, unless another edge reads the event types of themes: write theme_manifest too, and staff_desk for editors",
				"at", arrival.at,
			))
		}
	}
	return warnings[:min(len(warnings), 1)]
}

// warnOfMatchers warns of matchers that keep a directive from its own paths.
func warnOfMatchers(all []arrival, of *config.Config) (warnings []config.Warning) {
	warned := make(map[string]bool)
	for _, arrival := range all {
		for _, need := range arrival.directive.routing(of).Needs {
			if warned[need.Paths[0]] || slices.ContainsFunc(need.Paths, arrival.lets) {
				continue
			}
			warned[need.Paths[0]] = true
			warnings = append(warnings, config.NewWarning(
				"a matcher keeps a directive from its own paths: let them through",
				"directive", arrival.name, "at", arrival.at, "path", need.Paths[0], "write", need.Write,
			))
		}
	}
	return warnings
}

// warnOfTaken warns of each directive that no request reaches, because another block or handler before it takes all.
func warnOfTaken(all []arrival, of *config.Config) (warnings []config.Warning) {
	for _, after := range all {
		if after.rewritten {
			continue
		}
		if path, by := after.takenPath(of); by != nil {
			warnings = append(warnings, config.NewWarning(
				"what stands before a directive takes the requests for this path, so none reaches the directive: write it into that block, or in front of it",
				"directive", after.name, "at", after.at, "path", path, "taken_by", by.text(),
			))
		}
	}
	return warnings
}

// takenPath finds a path that a directive needs and does not get, and what gets it.
func (a arrival) takenPath(of *config.Config) (path string, by *arrival) {
	taker := func(path string) *arrival {
		for _, list := range a.taken {
			i := slices.IndexFunc(list, func(before arrival) bool {
				return !before.isPartial && !before.rewritten && before.hasHostsOf(a) && before.lets(path)
			})
			if i >= 0 {
				return &list[i]
			}
		}
		return nil
	}
	for _, need := range a.directive.routing(of).Needs {
		arriving := slices.DeleteFunc(slices.Clone(need.Paths), func(p string) bool { return !a.lets(p) })
		if len(arriving) == 0 || slices.ContainsFunc(arriving, func(p string) bool { return taker(p) == nil }) {
			continue
		}
		return arriving[0], taker(arriving[0])
	}
	return "", nil
}

// text names what takes requests, as a Caddyfile does.
func (a arrival) text() string {
	words := []string{a.name}
	for _, route := range a.paths {
		for _, matcher := range route {
			if matcher != nil {
				words = append(words, *matcher...)
			}
		}
	}
	return strings.Join(words, " ")
}

// warnOfStripped warns of handle_path around directives whose paths begin with what it takes off.
func warnOfStripped(all []arrival) (warnings []config.Warning) {
	type block struct{ at, stripped string }
	var found []block
	names := make(map[string][]string) // by what is taken off
	for _, arrival := range all {
		isBelow := func(area area) bool { return isBelow(area.Path, arrival.stripped) }
		if arrival.stripped == "" || !slices.ContainsFunc(arrival.routing.Serves, isBelow) {
			continue
		}
		if names[arrival.stripped] == nil {
			found = append(found, block{arrival.at, arrival.stripped})
		}
		names[arrival.stripped] = append(names[arrival.stripped], arrival.name)
	}
	for _, b := range found {
		slices.Sort(names[b.stripped])
		warnings = append(warnings, config.NewWarning(
			"handle_path takes off the beginning of each path, so neither the directives in it nor Ghost get the paths that they answer: write handle instead",
			"directives", slices.Compact(names[b.stripped]), "at", b.at, "taken_off", b.stripped,
		))
	}
	return warnings
}

// warnOfNothingBehind warns of a directive with nothing behind it that reaches the platform. A members_api alone may have
// a host of its own.
func (s servers) warnOfNothingBehind(all *config.Config, sites map[string]string) (warnings []config.Warning) {
	isOfGhost := func(a arrival) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(sites)), func(host string) bool {
			of := all.Sites[sites[host]].Platform
			return of != nil && of.HasThemes() && a.serves(host)
		})
	}
	warned := make(map[string]bool) // by hosts
	for _, name := range slices.Sorted(maps.Keys(s)) {
		of := s[name]
		patterns := slices.DeleteFunc(slices.Collect(maps.Keys(of.answers)), func(host string) bool { return !strings.Contains(host, "*") })
		for _, arrival := range of.arrivals {
			isAnswered := func(host string) bool {
				return of.answers[host] || strings.Contains(host, "*") || slices.ContainsFunc(patterns, func(pattern string) bool { return MatchesHost(pattern, host) })
			}
			hosts := strings.Join(arrival.hosts, " ")
			if arrival.name == "members_api" || warned[hosts] || of.answers[""] || slices.ContainsFunc(arrival.hosts, isAnswered) || arrival.hosts == nil && len(of.answers) > 0 || !isOfGhost(arrival) {
				continue
			}
			warned[hosts] = true
			warnings = append(warnings, config.NewWarning(
				"nothing behind a directive passes requests on, so Ghost's pages and admin are empty there: write reverse_proxy with Ghost's address into the block",
				"directive", arrival.name, "at", arrival.at,
			))
		}
	}
	return warnings
}

// hiding is that a directive gets no request for a path, because the same directive before
// it answers them all.
type hiding struct{ directive, at, path, before string }

// warnOfHidden warns of each directive that gets no requests for some hosts, because the
// same directive before it serves them.
func warnOfHidden(servers [][]arrival, of *config.Config) (warnings []config.Warning) {
	hosts := make(map[hiding][]string)
	for _, all := range servers {
		for i, before := range befores(all) {
			if h, ok := hidden(all[i], before, of); ok {
				hosts[h] = append(hosts[h], all[i].hosts...)
			}
		}
	}
	byText := func(a, b hiding) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, h := range slices.SortedFunc(maps.Keys(hosts), byText) {
		slices.Sort(hosts[h])
		warnings = append(warnings, config.NewWarning(
			"the same directive before it answers this path, so this one gets no request for it: write another path or matcher, or remove one of the two",
			"directive", h.directive, "at", h.at, "path", h.path, "before", h.before, "hosts", slices.Compact(hosts[h]),
		))
	}
	return warnings
}

// hidden reports whether the same directive before it hides one. Another may be for a part
// of its paths, so all of them have to be taken.
func hidden(after arrival, befores []arrival, of *config.Config) (h hiding, ok bool) {
	if after.rewritten {
		return h, false
	}
	for _, need := range after.directive.routing(of).Needs {
		for _, path := range need.Paths {
			if !after.lets(path) {
				continue
			}
			i := slices.IndexFunc(befores, func(other arrival) bool {
				return other.name == after.name && !other.isPartial && !other.rewritten && other.takes(path, of)
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

// warnOfLimits warns of members_api with different limits on one site.
func warnOfLimits(all []arrival, hosts map[string]string) (warnings []config.Warning) {
	limits := make(map[string]map[string]bool) // by site
	for _, arrival := range all {
		if arrival.routing.KeyLimit == "" {
			continue
		}
		for host, site := range hosts {
			if !arrival.serves(host) {
				continue
			}
			if limits[site] == nil {
				limits[site] = make(map[string]bool)
			}
			limits[site][arrival.routing.KeyLimit] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if of := limits[name]; len(of) > 1 {
			warnings = append(warnings, config.NewWarning(
				"members_api has several limits on one site, and each counts a key's requests for itself: write the same limit",
				"site", name, "limits", slices.Sorted(maps.Keys(of)),
			))
		}
	}
	return warnings
}
