// Package classifier tells which webmail provider stands behind an email
// domain.
//
// Check what a reader typed with [ParseDomain], and ask [Classifier.Classify]. It
// answers from three places, cheapest first: the built-in list of 30 domains
// (provider.go), a [Cache], and the domain's MX records, which a [Resolver] reads and
// [Decide] judges. docs/inbox_provider.md has the rules. To add a provider, add it to
// provider.go.
//
// Readers can make the edge ask DNS servers for any domain, so everything is
// bounded: the answers kept, the lookups at once, and each network's share of them
// (limiter.go).
package classifier

import (
	"context"
	"net"
	"net/netip"
)

// MXSource finds the MX records of a domain.
//
// The domain is one that [ParseDomain] returned. No records and no error means
// that the domain surely has none: it does not exist, or exists without MX.
// An error means that this could not be found out; ErrBusy, that it was not tried,
// because too many lookups are under way for the network that this one is for.
// LookupMX may be called from many goroutines at once and returns soon after ctx is
// done.
type MXSource interface {
	LookupMX(ctx context.Context, domain string, from netip.Prefix) ([]net.MX, error)
}

// Classifier answers for domains. It may be used by many goroutines at once.
// Both fields are required.
type Classifier struct {
	// MX is asked about domains that neither the list nor the cache holds.
	MX MXSource

	// Cache remembers the answers. Several classifiers may share one.
	Cache *Cache
}

// Classify answers a reader for a domain that [ParseDomain] returned. Many callers
// of one domain that is not known yet share one MX lookup. Lookups for many domains
// at once are shared fairly among the networks of their readers (see [NetworkOf]).
//
// The error is ctx's, when ctx is done before there is an answer. The lookup
// then goes on for others who wait, or ask next.
func (c *Classifier) Classify(ctx context.Context, domain string, reader netip.Addr) (Answer, error) {
	if provider, ok := builtIn[domain]; ok {
		return Answer{Provider: provider, Source: FromList}, nil
	}
	if answer, ok := c.Cache.get(domain); ok {
		return answer, nil
	}
	return c.Cache.fill(ctx, domain, NetworkOf(reader), c.decide)
}

// decide places a domain by its MX records.
func (c *Classifier) decide(ctx context.Context, domain string, from netip.Prefix) (Provider, error) {
	records, err := c.MX.LookupMX(ctx, domain, from)
	if err != nil {
		return None, err
	}
	return Decide(records), nil
}
