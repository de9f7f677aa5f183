package caddymodule

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

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
		return "", wrongHost(s, "is a URL: write only the host name, such as news.example.com")
	case strings.Contains(s, ":"):
		return "", wrongHost(s, "has a port: write the host name without it")
	case strings.Contains(s, "*"):
		return "", wrongHost(s, "is a pattern: write each host name out")
	case strings.Contains(s, ","):
		return "", &mistake{
			name: "hosts", text: strconv.Quote(s) + " has a comma: separate host names by spaces",
			json: strconv.Quote(s) + ` has a comma: write each host name as a string of its own, such as ["news.example.com", "www.news.example.com"]`,
		}
	}
	host, err := strings.ToLower(strings.TrimSuffix(s, ".")), error(nil)
	if strings.ContainsFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }) {
		host, err = idna.Lookup.ToASCII(host)
	}
	if err != nil || len(host) > 253 || !hostName.MatchString(host) {
		return "", wrongHost(s, "is not a host name, such as news.example.com")
	}
	return host, nil
}

func wrongHost(host, problem string) error {
	return &mistake{name: "hosts", text: strconv.Quote(host) + " " + problem}
}

// hostName is what a browser takes for the name of a host. Names with
// underscores exist, though they should not (RFC 1123, section 2.1).
var hostName = regexp.MustCompile(`^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$`)

// hostOf returns the host name in a request's Host (RFC 9110, section 7.2):
// without port, brackets and root dot, in lower case.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(s, "[]"), "."))
}
