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

	// titleTTL is how long the title of a publication stands in while the platform says none, and
	// titleInterval how often it is asked for at most.
	titleTTL      = 30 * 24 * time.Hour
	titleInterval = time.Minute
)

// publications caches them by site.
type publications struct {
	*recent.Cache[string, platform.Publication]

	titles *recent.Cache[string, string]
	asked  *recent.Cache[string, struct{}] // whose titles were asked for a moment ago
}

func newPublications() *publications {
	return &publications{
		recent.New[string, platform.Publication](maxSites, publicationTTL),
		recent.New[string, string](maxSites, titleTTL), recent.New[string, struct{}](maxSites, titleInterval),
	}
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
	s.publications.titles.Put(site, p.Title, began)
	return p, nil
}

// Title returns what readers know the publication of a site by, "" while that is not known. The
// platform is asked once a minute at most, and whoever asks waits for it only if there is no
// earlier title.
func (s *Posts) Title(ctx context.Context, site string) string {
	title, isKnown := s.publications.titles.Get(site)
	_, isAsked := s.publications.asked.Get(site)
	host := s.hosts(site)
	if isAsked || host == nil {
		return title
	}
	s.publications.asked.Put(site, struct{}{}, time.Now())
	if isKnown {
		s.work.Background(site, func(ctx context.Context) { _, _ = s.publication(ctx, host, site) }) // the earlier one stays
		return title
	}
	p, err := s.publication(ctx, host, site)
	if err != nil {
		return ""
	}
	return p.Title
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
