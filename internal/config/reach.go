package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// This file says which hosts and servers may be written by somebody with a scope, such as a tenant: none that only this machine,
// or its network, reaches.

// Reach is which servers somebody with a scope may write.
type Reach struct {
	// PrivateUpstreams allows those on this machine and in private networks.
	PrivateUpstreams bool

	// Admin is where Caddy's admin API listens, which is never a platform or a repository. The zero AddrPort means that it
	// does not listen on TCP.
	Admin netip.AddrPort
}

// checkReach checks the hosts and servers that a change adds. What the operator has written before stays.
func (e *Editor) checkReach(kept sites.Site, site *Site, prepared sites.Site, after *Site) error {
	if len(e.Scope) == 0 {
		return nil
	}
	for _, host := range prepared.Hosts {
		if !slices.Contains(kept.Hosts, host) && (isLocalhost(host) || isAddress.MatchString(host)) {
			problem := wrongHost(host, "is no host for a site of this token: write a name that is in DNS, such as news.example.com")
			return &InvalidSiteError{prepared.Name, JSONText(problem)}
		}
	}
	for _, of := range movedReceivers(site, after) {
		if problem := e.Reach.problemOf(of.address); problem != "" {
			return &InvalidSiteError{prepared.Name, JSONText(&Mistake{Option: of.field, Text: literal(problem)})}
		}
	}
	return nil
}

// problemOf says why a server cannot be written, "" if it can. Names are not looked up: DNS may say something else when they are used.
func (r Reach) problemOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return err.Error()
	}
	host := u.Hostname()
	if strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 { // ｌocalhost and 127.0.0.１ are names of this machine too
		if host, err = hostname.ToASCII(host); err != nil {
			return "the host is no name that DNS can have: " + err.Error()
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case r.Admin.IsValid() && portOf(u) == strconv.Itoa(int(r.Admin.Port())) && isThisMachine(host):
		return "this is Caddy's admin API: write where the site's own server is"
	case !r.PrivateUpstreams && isPrivate(host):
		return "this is on this machine or in its network, which the token may not reach: write a public address, " +
			"or have the operator add allow_private_upstreams to the admin_token"
	}
	return ""
}

func isLocalhost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isAddress matches what is an IP address to somebody: also an IPv4 address in other notations, such as 127.1 and 0x7f000001, which some
// resolvers take (URL Standard, "ends in a number").
var isAddress = regexp.MustCompile(`:|(^|\.)([0-9]+|0x[0-9a-f]*)$`)

// privateName matches names that no public DNS has (RFC 6762, RFC 8375): of one label, as containers have them, and
// below names that are for networks of one's own.
var privateName = regexp.MustCompile(`^[^.]+$|\.(localhost|local|internal|home\.arpa|lan)$`)

// privateNetworks are those beside what package netip knows: "this network", shared address space (RFC 6598), and IPv4
// addresses within IPv6 (RFC 6052).
var privateNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("64:ff9b::/96"),
}

func isPrivate(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return privateName.MatchString(host) || isAddress.MatchString(host)
	}
	ip = ip.Unmap()
	return !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Zone() != "" ||
		slices.ContainsFunc(privateNetworks, func(of netip.Prefix) bool { return of.Contains(ip) })
}

// isThisMachine reports whether a host is this machine, as far as can be told without DNS.
func isThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return isLocalhost(host) || isAddress.MatchString(host)
	}
	ip = ip.Unmap()
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, _ := net.InterfaceAddrs() // none, if they cannot be read
	return slices.ContainsFunc(own, func(of net.Addr) bool {
		prefix, err := netip.ParsePrefix(of.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}
