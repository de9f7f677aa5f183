package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// handshakeTimeout is longer than an authority takes to issue a certificate on demand.
const handshakeTimeout = 12 * time.Second

// checkCertificate connects to the edge as a reader of a host does, so that it gets a certificate
// if it has none yet, and looks at what the reader would see. It does not judge the authority, which
// may be one of the operator's own.
func checkCertificate(ctx context.Context, address, host string) Result {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true}} //nolint:gosec // nothing is sent
	connected, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
			return warn("cannot be looked at: "+err.Error(), "start Caddy, and run this again")
		}
		return fail("cannot be had: "+err.Error(), "have the host's DNS lead to this edge, with ports 80 and 443 open; Caddy's log has the reason")
	}
	defer connected.Close()
	leaf := connected.(*tls.Conn).ConnectionState().PeerCertificates[0]
	left := time.Until(leaf.NotAfter)
	switch {
	case leaf.VerifyHostname(host) != nil:
		return fail("is of another host: "+strings.Join(leaf.DNSNames, ", "), "have Caddy serve this host over HTTPS, or take it out of the site's hosts")
	case left <= 0:
		return fail("has expired "+humanize.Time(leaf.NotAfter), "see in Caddy's log why it cannot be renewed")
	case left < leaf.NotAfter.Sub(leaf.NotBefore)/6:
		return warn("expires "+humanize.Time(leaf.NotAfter)+", and should be renewed by now", "see in Caddy's log why it cannot be renewed")
	}
	return ok("is valid until %s", leaf.NotAfter.UTC().Format(time.DateOnly))
}

// checkCertificates asks the edge that runs which sites it has no certificate for. There may be too many
// sites in the store to connect to each host of them.
func checkCertificates(ctx context.Context, without func(context.Context) (map[string]trouble.Reason, error)) Result {
	reasons, err := without(ctx)
	if err != nil {
		return warn("are not known: "+err.Error(), "run this on the machine on which Caddy runs, as a user who reaches its admin API")
	}
	if len(reasons) == 0 {
		return ok("none failed that readers asked for")
	}
	names := slices.Sorted(maps.Keys(reasons))
	var shown []string
	for _, name := range names[:min(len(names), maxNamed)] {
		shown = append(shown, fmt.Sprintf("%s (%s)", name, reasons[name].Problem))
	}
	if len(names) > maxNamed {
		shown = append(shown, "…")
	}
	return warn("could not be had for "+english.Plural(len(names), "site", "")+": "+strings.Join(shown, ", "),
		"have the DNS of their hosts lead to this edge, with ports 80 and 443 open, or remove the hosts")
}

// publicHosts are those for which an authority may issue a certificate.
func (s Site) publicHosts() []string {
	return slices.DeleteFunc(slices.Clone(s.Hosts), func(host string) bool {
		return net.ParseIP(host) != nil || !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost")
	})
}

// https is the address of a server for readers who come over HTTPS, empty for none.
func (c Config) https() string {
	i := slices.IndexFunc(c.Servers, func(s Server) bool { return s.HTTPS != "" })
	if i < 0 {
		return ""
	}
	return c.Servers[i].HTTPS
}
