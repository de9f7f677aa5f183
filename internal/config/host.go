package config

import (
	"net"
	"net/netip"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/hostname"
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
		return "", wrongHost(s, `has a comma: write each host name by itself, such as ‹news.example.com www.news.example.com|["news.example.com", "www.news.example.com"]›`)
	}
	host, err := strings.ToLower(strings.TrimSuffix(s, ".")), error(nil)
	if strings.ContainsFunc(host, func(c rune) bool { return c >= utf8.RuneSelf }) {
		host, err = hostname.ToASCII(host)
	}
	if err != nil || len(host) > hostname.MaxLength || !hostName.MatchString(host) {
		return "", wrongHost(s, "is not a host name, such as news.example.com")
	}
	return host, nil
}

var errNoHosts = &Mistake{Field: "hosts", Text: `needs at least one host, such as ‹hosts news.example.com|["news.example.com"]›`}

func wrongHost(host, problem string) error {
	return &Mistake{Option: "hosts", Text: quote(host) + " " + problem}
}

// hostName is what a browser takes for the name of a host. Names with
// underscores exist, though they should not (RFC 1123, section 2.1).
var hostName = regexp.MustCompile(`^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$`)

// HostOf normalizes a request's Host (RFC 9110, section 7.2): without port, brackets and
// root dot, in lower case.
func HostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(s, "[]"), "."))
}
