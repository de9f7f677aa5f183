package caddymodule

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// parseHost checks a host name of the configuration, and returns it as it
// appears in requests: in lower case, and in ASCII.
func parseHost(s string) (string, error) {
	if address, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return address.String(), nil
	}
	switch {
	case strings.Contains(s, "/"):
		return "", fmt.Errorf("hosts: %q is a URL: write only the host name, such as news.example.com", s)
	case strings.Contains(s, ":"):
		return "", fmt.Errorf("hosts: %q has a port: write the host name without it", s)
	case strings.Contains(s, "*"):
		return "", fmt.Errorf("hosts: %q is a pattern: write each host name out", s)
	}
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(s, "."))
	if err != nil || host == "" {
		return "", fmt.Errorf("hosts: %q is not a host name, such as news.example.com", s)
	}
	return host, nil
}

// hostOf returns the host name in a request's Host (RFC 9110, section 7.2):
// without port, brackets and root dot, in lower case.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(s, "[]"), "."))
}
