package events

import (
	"context"
	"net/url"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/lib/recent"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

const (
	// publicationTTL is how long what a publication is called, and how it is set, is taken to be
	// the same.
	publicationTTL = 10 * time.Minute

	// zoneInterval is how often a publication is asked for at most for its time zone.
	zoneInterval = time.Minute

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
	places *recent.Cache[string, string]   // time zones, as long as titles
	asked  *recent.Cache[string, struct{}] // whose titles were asked for a moment ago
	zones  *recent.Cache[string, struct{}] // who was asked for at all
}

func newPublications() *publications {
	return &publications{
		recent.New[string, platform.Publication](maxSites, publicationTTL),
		recent.New[string, string](maxSites, titleTTL), recent.New[string, string](maxSites, titleTTL), recent.New[string, struct{}](maxSites, titleInterval),
		recent.New[string, struct{}](maxSites, zoneInterval),
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

// sitePage is the site's part of its posts. While the platform does not respond, the publication
// has no name, its language is English, and isKnown is false. Errors: those of the store.
func (s *sitePages) sitePage(ctx context.Context, host platform.EventHost, site string) (p sitePage, isKnown bool, err error) {
	_, settings, err := s.store.Version(ctx, site)
	if err != nil {
		return sitePage{}, false, err
	}
	p = sitePage{script: s.pages.Script, list: s.pages.List, language: messaging.DefaultLanguage, register: settings.Messages[string(messaging.CanRegister)], takesRegistrations: true, now: s.store.Now()}
	if s.pages.TakesRegistrations != nil {
		p.takesRegistrations = s.pages.TakesRegistrations(site)
	}
	if p.publication, err = s.publication(ctx, host, site); err != nil {
		return p, false, nil //nolint:nilerr // isKnown says so
	}
	if language, ok := messaging.Language(p.publication.Language); ok {
		p.language, p.scriptLanguage = language, language
	}
	return p, true, nil
}

// publication is cached for publicationTTL. Errors: those of the platform.
func (s *sitePages) publication(ctx context.Context, host platform.EventHost, site string) (platform.Publication, error) {
	if p, isKnown := s.publications.Get(site); isKnown {
		return p, nil
	}
	return s.ask(ctx, host, site)
}

// ask asks the platform. Errors: those of it.
func (s *sitePages) ask(ctx context.Context, host platform.EventHost, site string) (platform.Publication, error) {
	ctx, cancel := context.WithTimeout(ctx, publicationTimeout)
	defer cancel()
	began := time.Now()
	s.publications.zones.Put(site, struct{}{}, began)
	p, err := host.Publication(ctx)
	if err != nil {
		return platform.Publication{}, err
	}
	s.publications.Put(site, p, began)
	s.publications.titles.Put(site, p.Title, began)
	s.publications.places.Put(site, p.TimeZone, began)
	return p, nil
}

// Title is what readers know the publication by, "" while that is not known. The platform is asked
// at most once a minute. The caller waits for it only if no earlier title is known.
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
	p, err := s.publication(context.WithoutCancel(ctx), host, site) // for others too, if the caller leaves
	if err != nil {
		return ""
	}
	return p.Title
}

// Language is one of our messages: the publication's, or English where there are none in that, or while the platform does not
// respond.
func (s *sitePages) Language(ctx context.Context, site string) string {
	if host := s.hosts(site); host != nil {
		p, err := s.publication(ctx, host, site)
		if language, ok := messaging.Language(p.Language); ok && err == nil {
			return language
		}
	}
	return messaging.DefaultLanguage
}

// Calendar is the address of the calendar with all events of a site, to which readers subscribe. It
// is "" if no readers are served. origin is used while the platform does not say where the
// publication is.
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

// KnownZone is the time zone that the publication had when the platform was last asked, nil if nobody has asked yet.
func (s *sitePages) KnownZone(site string) *time.Location {
	name, isKnown := s.publications.places.Get(site)
	if zone, ok := parseZone(name); isKnown && ok {
		return zone
	}
	return nil
}

// Zone is UTC if the publication has no valid time zone. Another zone is known within a minute. Errors: those of the
// platform, if no earlier zone is known.
func (s *sitePages) Zone(ctx context.Context, site string) (*time.Location, error) {
	host := s.hosts(site)
	if host == nil {
		return time.UTC, nil
	}
	p, isKnown := s.publications.Get(site)
	var err error
	if _, isAsked := s.publications.zones.Get(site); !isKnown || !isAsked {
		now, failed := s.ask(ctx, host, site)
		if !isKnown || failed == nil {
			p, err = now, failed
		}
	}
	if zone, ok := parseZone(p.TimeZone); ok {
		return zone, err
	}
	return time.UTC, err
}
