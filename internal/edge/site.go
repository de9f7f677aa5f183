package edge

import (
	"io"
	"net/url"
	"sync/atomic"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/members/inbound"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// Site is a publication as it is served, of the configuration or in the store.
type Site struct {
	Name    string
	Hosts   []string     // as they appear in requests
	Config  *config.Site //
	Metrics *SiteMetrics
	Stored  bool  // whether it is in the store
	Locked  error // why its keys cannot be opened, if it is in the store

	Platform platform.Platform // nil unless it is used
	mail     *mail.Server      // of its own, nil for none
	Upstream *url.URL          // where the platform listens, for dynamic lychgate; nil for none

	// Made when they are first asked for: of a hundred thousand sites, few are before the next reload.
	themes  func() *api.Site    // nil for a platform without themes
	readers func() *api.Readers // nil for a platform that does not know them

	members atomic.Pointer[membersapi.Site] // nil while the store is away

	// Of a site in the store.
	synced   inbound.Site
	revision int64
}

// Themes is nil for a platform without themes.
func (s *Site) Themes() *api.Site {
	if s.themes == nil {
		return nil
	}
	return s.themes()
}

// Readers is nil for a platform that does not know its readers.
func (s *Site) Readers() *api.Readers {
	if s.readers == nil {
		return nil
	}
	return s.readers()
}

// closePlatform lets go of a platform, nil for none. Requests that are under way go on.
func closePlatform(of platform.Platform) error {
	if closer, ok := of.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// make makes the configuration of a site in the store of what is kept of it.
func (s *Site) make(kept sites.Site, p config.Placeholders) (err error) {
	if s.Config, err = config.FromStore(kept); err != nil {
		return err
	}
	if s.mail, err = mailServer(s.Config.Mail, p); err != nil && s.Locked == nil { // the server is not known while it is sealed
		return err
	}
	s.Upstream, err = s.Config.Platform.Upstream(p)
	return err
}

// isAs reports whether a site is as it is kept.
func (s *Site) isAs(kept sites.Site) bool {
	return s.revision == kept.Revision && kept.RemovedAt.IsZero() && (s.Locked == nil) == (kept.Locked == nil)
}

// liveSites are the sites that are served, by host. They are never changed, but
// replaced.
type liveSites map[string]*Site

func (l liveSites) at(host string) *Site {
	if site, ok := l[host]; ok {
		return site
	}
	return l[config.HostOf(host)]
}
