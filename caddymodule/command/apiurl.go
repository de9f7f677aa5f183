package command

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
)

// apiServer is what has to be known of one of Caddy's HTTP servers to say where
// its members API is.
type apiServer struct {
	Listen         []string `json:"listen"`
	AutomaticHTTPS struct {
		Disable bool     `json:"disable"`
		Skip    []string `json:"skip"`
	} `json:"automatic_https"`
	TLSPolicies []json.RawMessage `json:"tls_connection_policies"`
	Routes      []any             `json:"routes"`

	httpPort, httpsPort uint // of the HTTP app
}

// apiServers are the HTTP servers that have a members_api, in the order of their names.
type apiServers []*apiServer

// url prefers an address with https: a caller sends its key there.
func (all apiServers) url(host string) string {
	var first string
	for _, isFor := range []func(*apiServer) (path string, ok bool){
		func(s *apiServer) (string, bool) { return s.pathAt(host) },
		func(s *apiServer) (string, bool) { return membersPath(s.Routes) }, // at other hosts than the site's
	} {
		for _, server := range all {
			path, ok := isFor(server)
			if !ok {
				continue
			}
			found := server.url(host, path)
			if strings.HasPrefix(found, "https:") {
				return found
			}
			first = cmp.Or(first, found)
		}
		if first != "" {
			break
		}
	}
	return first
}

// pathAt finds the path of the members API at a host. It looks at the matchers of the server's
// own routes alone.
func (s *apiServer) pathAt(host string) (path string, ok bool) {
	for _, route := range s.Routes {
		hosts := hostsOf(route)
		isForHost := len(hosts) == 0 || slices.ContainsFunc(hosts, func(pattern string) bool { return caddymodule.MatchesHost(pattern, host) })
		if path, ok := membersPath(route); ok && isForHost {
			return path, true
		}
	}
	return "", false
}

func (s *apiServer) url(host, path string) string {
	ports := s.ports()
	port := s.httpsPort
	if len(ports) > 0 {
		port = ports[0]
	}
	scheme, usual := "http", uint(80)
	if port != s.httpPort && s.usesTLS(ports) {
		scheme, usual = "https", 443
	}
	if port != usual {
		host = net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
	}
	return scheme + "://" + host + path
}

func (s *apiServer) ports() (ports []uint) {
	for _, listen := range s.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && address.StartPort != 0 {
			ports = append(ports, address.StartPort)
		}
	}
	return ports
}

// usesTLS reports whether the server speaks TLS at ports other than that of HTTP:
// because of a policy, or by automatic HTTPS, as caddyhttp decides it (autohttps.go).
func (s *apiServer) usesTLS(ports []uint) bool {
	switch {
	case len(s.TLSPolicies) > 0:
		return true
	case s.AutomaticHTTPS.Disable:
		return false
	case !slices.ContainsFunc(ports, func(port uint) bool { return port != s.httpsPort }):
		return true
	}
	return slices.ContainsFunc(s.Routes, func(route any) bool {
		return slices.ContainsFunc(hostsOf(route), func(host string) bool { return !slices.Contains(s.AutomaticHTTPS.Skip, host) })
	})
}

func hostsOf(route any) (hosts []string) {
	var parsed struct {
		Match []struct {
			Host []string `json:"host"`
		} `json:"match"`
	}
	text, err := json.Marshal(route)
	if err != nil || json.Unmarshal(text, &parsed) != nil {
		return nil
	}
	for _, set := range parsed.Match {
		hosts = append(hosts, set.Host...)
	}
	return hosts
}

// membersPath looks for the handler members_api in a part of a configuration,
// and returns its path.
func membersPath(part any) (string, bool) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			if path, found := membersPath(element); found {
				return path, true
			}
		}
	case map[string]any:
		if part["handler"] == "members_api" {
			path, ok := part["path"].(string)
			if !ok {
				path = config.DefaultAPIPath
			}
			return path, true
		}
		for _, key := range slices.Sorted(maps.Keys(part)) {
			if path, found := membersPath(part[key]); found {
				return path, true
			}
		}
	}
	return "", false
}
