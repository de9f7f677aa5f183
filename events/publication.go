package events

import (
	"context"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/recent"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// publicationTTL is how long what a publication is called, and how it is set, is taken to be
	// the same.
	publicationTTL = 10 * time.Minute

	// publicationTimeout bounds the question for it, which Ghost answers in some 40 ms.
	publicationTimeout = 3 * time.Second
)

// publications caches them by site.
type publications = recent.Cache[string, platform.Publication]

func newPublications() *publications {
	return recent.New[string, platform.Publication](maxSites, publicationTTL)
}

// publication returns the publication of a site. Errors: those of the platform.
func (s *Posts) publication(ctx context.Context, host platform.EventHost, site string) (platform.Publication, error) {
	if p, isKnown := s.publications.Get(site); isKnown {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, publicationTimeout)
	defer cancel()
	began := time.Now()
	p, err := host.Publication(ctx)
	if err != nil {
		return platform.Publication{}, err
	}
	s.publications.Put(site, p, began)
	return p, nil
}

// Calendar returns the address of the calendar of all events of a site, to which readers subscribe,
// "" if no readers are served. origin is where the site is as long as the platform does not say.
func (s *Posts) Calendar(ctx context.Context, site, origin string) string {
	if s.pages.List == "" {
		return ""
	}
	if host := s.hosts(site); host != nil {
		p, err := s.publication(ctx, host, site)
		if u, broken := url.Parse(p.URL); err == nil && broken == nil && u.Host != "" {
			origin = u.Scheme + "://" + u.Host
		}
	}
	return origin + (&url.URL{Path: s.pages.List + ".ics"}).EscapedPath()
}

// Zone returns the time zone of a site's publication, UTC if it has none. Errors: those of the
// platform.
func (s *Posts) Zone(ctx context.Context, site string) (*time.Location, error) {
	host := s.hosts(site)
	if host == nil {
		return time.UTC, nil
	}
	p, err := s.publication(ctx, host, site)
	if zone, ok := parseZone(p.TimeZone); ok {
		return zone, err
	}
	return time.UTC, err
}
