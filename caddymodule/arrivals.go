package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lychgate/caddy-lychgate/internal/config"
)

// servers are the HTTP servers that have directives, by their names.
type servers map[string]server

// server is the arrivals at the directives of an HTTP server, and the hosts for which anything else answers.
type server struct {
	arrivals []arrival
	answers  map[string]bool // by a host or a pattern, "" for any host
}

// arrival is how requests arrive at a directive.
type arrival struct {
	directive directive                // as it is configured, not provisioned
	routing   routing                  // with what all sites may need
	name      string                   // the directive's
	at        string                   // its line in a Caddyfile, or its path in JSON
	line      string                   // its line in a Caddyfile, "" for JSON
	hosts     []string                 // those that a matcher lets through, nil for all
	paths     [][]*caddyhttp.MatchPath // of each route around it, any of which lets through; nil in it for all
	isPartial bool                     // whether more than hosts and paths decides
	rewritten bool                     // whether the path may be another by then
	stripped  string                   // the beginning that each path has lost by then, such as by handle_path
	taken     [][]arrival              // what is before it and ends requests, or keeps them
}

// readRoutes reads the routes of all HTTP servers. It is for the first directive that is provisioned: Caddy has provisioned the
// matchers of servers' routes by then, and forgets a route's JSON after its handlers.
func readRoutes(ctx caddy.Context) (servers, error) {
	app, err := ctx.AppIfConfigured("http")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make(servers)
	for name, of := range app.(*caddyhttp.App).Servers {
		read := reading{answers: make(map[string]bool)}
		if read.follow(of.Routes, arrival{at: "http.servers." + name}); len(read.found) > 0 {
			all[name] = server{read.found, read.answers}
		}
	}
	return all, nil
}

// reading is what is known of a server's routes.
type reading struct {
	found   []arrival
	answers map[string]bool
}

// follow follows requests to the directives in routes, which are inside of around, and returns where requests end on
// the way. What cannot be read is left out: Caddy says so when it provisions it.
func (all *reading) follow(routes caddyhttp.RouteList, around arrival) (ends []arrival) {
	var before []arrival
	groups := make(map[string][]arrival) // of which the first that matches takes a request
	for i, route := range routes {
		here := around.within(route)
		here.taken = append(slices.Clip(around.taken), before, groups[route.Group], nil)
		var ended []arrival
		for j, raw := range route.HandlersRaw {
			here.at = fmt.Sprintf("%s.routes.%d.handle.%d", around.at, i, j)
			name, handler := handlerIn(raw)
			switch name {
			case "rewrite": // what was matched is another path from here on
				here.paths, around.paths = nil, nil
				here.rewritten, around.rewritten = true, true
				here.stripped = strippedBy(handler)
				if len(matchersOf(route)) == 0 { // else the rest has its paths
					around.stripped = here.stripped
				}
			case "subroute":
				var subroute caddyhttp.Subroute
				if json.Unmarshal(handler, &subroute) == nil {
					ended = append(ended, all.follow(subroute.Routes, here)...)
				}
			default:
				if found := directiveIn(name, handler); found != nil {
					arrives := here
					arrives.directive, arrives.name, arrives.line = found, name, placeOf(name, found)
					arrives.at = cmp.Or(arrives.line, here.at)
					arrives.routing = found.routing(new(config.Config))
					all.found = append(all.found, arrives)
					continue
				}
				if ends := here; answers(name, handler) {
					ends.name = name
					ended = append(ended, ends)
				}
				all.seeHandler(name, here.hosts)
			}
			here.taken = append(slices.Clip(here.taken[:len(here.taken)-1]), ended)
		}
		if route.Group != "" {
			here.name, here.taken = "handle", nil
			groups[route.Group] = append(groups[route.Group], here)
		}
		if !route.Terminal { // else none of them goes on to what follows
			before, ends = append(before, ended...), append(ends, ended...)
		}
	}
	return ends
}

// passing are Caddy's handlers that answer nothing.
var passing = []string{
	"authentication", "encode", "headers", "intercept", "log_append", "map", "push", "request_body", "templates", "tracing", "vars",
}

// answers reports whether a handler answers each request.
func answers(name string, handler json.RawMessage) bool {
	var of struct {
		PassThru       bool `json:"pass_thru"`
		HandleResponse []struct {
			Routes []json.RawMessage `json:"routes"`
		} `json:"handle_response"` // as forward_auth has, which goes on
	}
	return slices.Contains([]string{"error", "file_server", "reverse_proxy", "static_response"}, name) && json.Unmarshal(handler, &of) == nil && !of.PassThru && len(of.HandleResponse) == 0
}

// seeHandler notes that something else may answer for some hosts, nil for all.
func (all *reading) seeHandler(name string, hosts []string) {
	if slices.Contains(passing, name) {
		return
	}
	if hosts == nil {
		all.answers[""] = true
	}
	for _, host := range hosts {
		all.answers[host] = true
	}
}

// strippedBy is the beginning of each path that a rewrite takes off, "" for none.
func strippedBy(rewrite json.RawMessage) string {
	var of struct {
		StripPathPrefix string `json:"strip_path_prefix"`
	}
	if json.Unmarshal(rewrite, &of) != nil {
		return ""
	}
	return strings.TrimRight(of.StripPathPrefix, "/")
}

// handlerIn splits the name of a handler from the rest of its configuration.
func handlerIn(raw json.RawMessage) (name string, config json.RawMessage) {
	fields := make(map[string]json.RawMessage)
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(fields["handler"], &name) != nil {
		return "", nil
	}
	delete(fields, "handler")
	config, err := json.Marshal(fields)
	if err != nil {
		return "", nil
	}
	return name, config
}

func directiveIn(name string, config json.RawMessage) directive {
	module, err := caddy.GetModule("http.handlers." + name)
	if err != nil {
		return nil
	}
	found, ok := module.New().(directive)
	if !ok || json.Unmarshal(config, found) != nil {
		return nil
	}
	return found
}

// within narrows the requests to those that get through the matchers of a route.
func (a arrival) within(route caddyhttp.Route) arrival {
	here := a
	here.paths = slices.Clone(a.paths)
	sets := matchersOf(route)
	if len(sets) == 0 {
		return here
	}
	var hosts []string
	var paths []*caddyhttp.MatchPath
	anyHost := false
	for _, set := range sets {
		host, path, others := matchersIn(set)
		here.isPartial = here.isPartial || others || host != nil && path != nil && len(sets) > 1
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

// matchersOf lists the sets of matchers of a route. Those of a subroute are not
// provisioned yet; of them, nil stands for each that is neither of hosts nor of paths.
func matchersOf(route caddyhttp.Route) caddyhttp.MatcherSets {
	if len(route.MatcherSetsRaw) == 0 {
		return route.MatcherSets
	}
	var sets caddyhttp.MatcherSets
	for _, raw := range route.MatcherSetsRaw {
		var set caddyhttp.MatcherSet
		for _, name := range slices.Sorted(maps.Keys(raw)) {
			set = append(set, matcherIn(name, raw[name]))
		}
		sets = append(sets, set)
	}
	return sets
}

// Only matchers of hosts and of paths are read; for others the result is nil.
func matcherIn(name string, raw json.RawMessage) any {
	var matcher interface {
		caddyhttp.RequestMatcherWithError
		caddy.Provisioner
	}
	switch name {
	case "host":
		matcher = new(caddyhttp.MatchHost)
	case "path":
		matcher = new(caddyhttp.MatchPath)
	default:
		return nil
	}
	if json.Unmarshal(raw, matcher) != nil || matcher.Provision(caddy.Context{}) != nil {
		return nil
	}
	return matcher
}

// matchersIn finds the matchers of hosts and paths in a set, nil for none. others is
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

// serves reports whether requests for a host arrive.
func (a arrival) serves(host string) bool {
	return a.hosts == nil || slices.ContainsFunc(a.hosts, func(pattern string) bool { return MatchesHost(pattern, host) })
}

// takes reports whether requests for a path arrive that the directive is there for, so
// that the same directive behind it is of no use for them.
func (a arrival) takes(path string, of *config.Config) bool {
	return a.lets(path) && slices.ContainsFunc(a.directive.routing(of).Needs, func(need need) bool { return slices.Contains(need.Paths, path) })
}

// befores lists, for each directive of a server, those before it that get requests for all
// of its hosts. It takes no longer for a directive if there are others for other hosts.
func befores(all []arrival) [][]arrival {
	found := make([][]arrival, len(all))
	var general []int                // with patterns, or for any host
	byHost := make(map[string][]int) // all others
	for i, after := range all {
		candidates := slices.Clone(general)
		if len(after.hosts) > 0 {
			candidates = append(candidates, byHost[after.hosts[0]]...)
		}
		slices.Sort(candidates)
		for _, j := range slices.Compact(candidates) {
			if all[j].hasHostsOf(after) {
				found[i] = append(found[i], all[j])
			}
		}
		if after.hosts == nil || slices.ContainsFunc(after.hosts, func(host string) bool { return strings.Contains(host, "*") }) {
			general = append(general, i)
			continue
		}
		for _, host := range after.hosts {
			byHost[host] = append(byHost[host], i)
		}
	}
	return found
}

// hasHostsOf reports whether requests for each host of another arrival arrive too.
func (a arrival) hasHostsOf(other arrival) bool {
	if a.hosts == nil || other.hosts == nil {
		return a.hosts == nil
	}
	for _, host := range other.hosts {
		isHost := func(pattern string) bool {
			return pattern == host || strings.Contains(pattern, "*") && MatchesHost(pattern, host)
		}
		if !slices.ContainsFunc(a.hosts, isHost) {
			return false
		}
	}
	return true
}

// MatchesHost reports whether a pattern of a matcher stands for a host.
func MatchesHost(pattern, host string) bool {
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewReplacer())
	request := (&http.Request{Host: host}).WithContext(ctx)
	matched, err := caddyhttp.MatchHost{pattern}.MatchWithError(request)
	return matched && err == nil
}
