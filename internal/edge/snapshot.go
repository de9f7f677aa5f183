package edge

import (
	"errors"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/lib/pool"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// snapshot is what was last seen of the sites in a store. It outlives a configuration, so that a
// reload reads no more than what has changed, and loses no site while the store is away.
type snapshot struct {
	mu sync.Mutex
	seen
}

// seen is all sites of a store at a revision.
type seen struct {
	list     map[string]*seenSite
	revision int64
	isRead   bool   // whether the store was read once
	keys     string // of the keyring that has opened the secrets
}

// seenSite is a site with what was made of it, which does not depend on a configuration and takes
// long to make of a hundred thousand.
type seenSite struct {
	sites.Site
	made atomic.Pointer[madeSite] // nil before it was served
}

type madeSite struct {
	config   *config.Site
	platform platform.Platform // nil unless it is used
	mail     *mail.Server      // of its own, nil for none
	upstream *url.URL
}

var snapshots pool.Pool[databaseKey, *snapshot]

// Close lets go of the platforms, once no configuration uses them.
func (s *snapshot) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, site := range s.list {
		if made := site.made.Load(); made != nil {
			errs = append(errs, closePlatform(made.platform))
		}
	}
	return errors.Join(errs...)
}

// changes are what was read of the sites in a store.
type changes struct {
	list   []sites.Site // in the order of their revisions
	isAll  bool         // of all sites; otherwise of those that have changed
	before int64        // the revision after which they are
	last   int64        // the last revision that there is
	keys   string       // of the keyring that has opened the secrets
}

// keep takes over changes. During a reload two configurations do: each change is taken once, and
// none that another keyring has opened than that of the last complete reading.
func (s *snapshot) keep(c changes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.list
	if c.isAll {
		s.seen = seen{list: make(map[string]*seenSite), isRead: true, keys: c.keys}
	} else if c.keys != s.keys || c.before > s.revision {
		return
	}
	for _, site := range c.list {
		switch {
		case site.Revision <= s.revision && !c.isAll:
		case site.RemovedAt.IsZero():
			kept := &seenSite{Site: site}
			if old := before[site.Name]; old != nil && old.isAs(site) {
				kept.made.Store(old.made.Load())
			}
			s.list[site.Name] = kept
		default:
			delete(s.list, site.Name)
		}
	}
	if c.isAll || c.last > s.revision {
		s.revision = c.last
	}
}

// get is in no order. The revision is 0 if all sites must be read again, to be opened with a
// keyring.
func (s *snapshot) get(keys string) (list []sites.Site, revision int64, isRead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keys == s.keys {
		revision = s.revision
	}
	list = make([]sites.Site, 0, len(s.list))
	for _, site := range s.list {
		list = append(list, site.Site)
	}
	return list, revision, s.isRead
}

// of is nil if the site has changed since it was last seen.
func (s *snapshot) of(kept sites.Site) *seenSite {
	s.mu.Lock()
	defer s.mu.Unlock()
	if site := s.list[kept.Name]; site != nil && site.isAs(kept) {
		return site
	}
	return nil
}

// isAs reports whether a site is as it was seen.
func (s *seenSite) isAs(kept sites.Site) bool {
	return s.Revision == kept.Revision && (s.Locked == nil) == (kept.Locked == nil)
}
