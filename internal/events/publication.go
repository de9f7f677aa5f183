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

	// lastTTL is how long the last response stands in while the platform does not respond, and
	// lastInterval how often it is asked at most for another.
	lastTTL      = 30 * 24 * time.Hour
	lastInterval = time.Minute
)

// publications caches them by site.
type publications struct {
	*recent.Cache[string, platform.Publication]

	last  *recent.Cache[string, platform.Publication]
	asked *recent.Cache[string, struct{}] // for which last was read a moment ago
	zones *recent.Cache[string, struct{}] // who was asked for at all
}

func newPublications() *publications {
	return &publications{
		recent.New[string, platform.Publication](maxSites, publicationTTL),
		recent.New[string, platform.Publication](maxSites, lastTTL), recent.New[string, struct{}](maxSites, lastInterval),
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
	s.publications.last.Put(site, p, began)
	return p, nil
}

// known is what the platform said of the publication last. It is asked at most once a minute. The
// caller waits for it only if nothing is known.
func (s *sitePages) known(ctx context.Context, site string) (p platform.Publication, isKnown bool) {
	p, isKnown = s.publications.last.Get(site)
	_, isAsked := s.publications.asked.Get(site)
	host := s.hosts(site)
	if isAsked || host == nil {
		return p, isKnown
	}
	s.publications.asked.Put(site, struct{}{}, time.Now())
	if isKnown {
		s.work.Background(site, func(ctx context.Context) { _, _ = s.publication(ctx, host, site) }) // the earlier one stays
		return p, true
	}
	p, err := s.publication(context.WithoutCancel(ctx), host, site) // for others too, if the caller leaves
	return p, err == nil
}

// Title is what readers know the publication by, "" while that is not known.
func (s *sitePages) Title(ctx context.Context, site string) string {
	p, _ := s.known(ctx, site)
	return p.Title
}

// Language is one of our messages: the publication's, or English where there are none in that, or while that is not known.
func (s *sitePages) Language(ctx context.Context, site string) (language string, isKnown bool) {
	p, isKnown := s.known(ctx, site)
	if language, ok := messaging.Language(p.Language); ok && isKnown {
		return language, true
	}
	return messaging.DefaultLanguage, isKnown
}

// Calendar is the address of the calendar with all events of a site, to which readers subscribe. It
// is "" if no readers are served. origin is used while nobody knows where the publication is.
func (s *sitePages) Calendar(ctx context.Context, site, origin string) string {
	if s.pages.List == "" {
		return ""
	}
	p, _ := s.known(ctx, site)
	if u, err := url.Parse(p.URL); err == nil && u.Host != "" {
		origin = u.Scheme + "://" + u.Host
	}
	return origin + (&url.URL{Path: s.pages.List + ".ics"}).EscapedPath()
}

// KnownZone is the time zone that the publication had when the platform was last asked, nil if nobody has asked yet.
func (s *sitePages) KnownZone(site string) *time.Location {
	p, isKnown := s.publications.last.Get(site)
	if zone, ok := parseZone(p.TimeZone); isKnown && ok {
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
