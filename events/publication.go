package events

import (
	"context"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/recent"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/work"
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

// sitePages knows what the posts of sites have for readers beside the events.
type sitePages struct {
	store        Store
	hosts        func(site string) platform.EventHost
	work         *work.Queue
	pages        Pages
	publications *publications
}

// UseCache has publications cached where others that go on with the store find them. It must be
// called before Run.
func (s *sitePages) UseCache(c *Cache) { s.publications = c.publications }

// UsePages sets what the posts of events have. It must be called before Run.
func (s *sitePages) UsePages(p Pages) { s.pages = p }

// sitePage returns what the posts of a site have now. While the platform does not say what its
// publication is, that is English and has no name, and isKnown is false. Errors: those of the store.
func (s *sitePages) sitePage(ctx context.Context, host platform.EventHost, site string) (p sitePage, isKnown bool, err error) {
	_, settings, err := s.store.Version(ctx, site)
	if err != nil {
		return sitePage{}, false, err
	}
	p = sitePage{script: s.pages.Script, language: messaging.DefaultLanguage, register: settings.Messages[string(messaging.CanRegister)], takesRegistrations: true, now: s.store.Now()}
	if s.pages.TakesRegistrations != nil {
		p.takesRegistrations = s.pages.TakesRegistrations(site)
	}
	if p.publication, err = s.publication(ctx, host, site); err != nil {
		return p, false, nil //nolint:nilerr // isKnown says so
	}
	if language, ok := messaging.Language(p.publication.Language); ok {
		p.language = language
	}
	return p, true, nil
}

// publication returns the publication of a site. Errors: those of the platform.
func (s *sitePages) publication(ctx context.Context, host platform.EventHost, site string) (platform.Publication, error) {
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
func (s *sitePages) Title(ctx context.Context, site string) string {
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
func (s *sitePages) Calendar(ctx context.Context, site, origin string) string {
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
func (s *sitePages) Zone(ctx context.Context, site string) (*time.Location, error) {
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
