package members

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
)

func (i Integration) allowsDuplicates() bool { return i.Mode == CustomIDMode && i.DuplicateEmails }

// makesAt reports whether the integration makes placeholders at a domain.
func (i Integration) makesAt(domain string) bool {
	return i.allowsDuplicates() && domainOf("@"+i.PlaceholderDomain) == domain
}

// domainOf is in the form that is compared.
func domainOf(address string) string {
	key := emailaddr.Key(address)
	return key[strings.LastIndexByte(key, '@')+1:]
}

// domainsInterval is for how long the placeholder domains of the integrations in the
// store are remembered, so that not each write asks for them. An integration is in use
// later than that after it was added, and the edge that it uses knows it at once.
const domainsInterval = 5 * time.Second

// storedDomains are the placeholder domains of a site's integrations in the store.
type storedDomains struct {
	mu     sync.Mutex
	names  map[string]bool
	readAt time.Time
}

// has reports whether a domain is one of them. Those of revoked integrations are: their
// members are still there. Several callers may ask the store at once: none waits for another.
func (d *storedDomains) has(ctx context.Context, store Integrations, site string, now time.Time, domain string) (bool, error) {
	d.mu.Lock()
	names, isOld := d.names, d.names == nil || now.Sub(d.readAt).Abs() >= domainsInterval
	d.mu.Unlock()
	if !isOld {
		return names[domain], nil
	}
	list, err := store.ListIntegrations(ctx, site)
	if err != nil {
		return false, err
	}
	names = make(map[string]bool)
	for _, i := range list {
		if i.allowsDuplicates() {
			names[domainOf("@"+i.PlaceholderDomain)] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names, d.readAt = names, now
	return names[domain], nil
}
