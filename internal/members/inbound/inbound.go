// Package inbound fetches what the publishing platforms have: members that
// are looked up for the first time, and all that staff and readers change there.
//
// It learns of changes in three ways. Webhook events tell of most, at once. The
// platform is asked every hour for members that changed since, for events that
// were lost. All members are compared from time to time, and after requests that
// change many of them, for which platforms send no events.
//
// Fields that are pending here win over what the platform has.
package inbound

import (
	"context"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// New makes a Sync.
func New(cfg Config) *Sync {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Sync{
		Config: cfg, warnings: warnings.New(cfg.Logger, cfg.Now), polls: work.NewRecurring(Polls, cfg.Now), sites: make(map[string]*site),
	}
	if cfg.Work != nil {
		s.handle(cfg.Work)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sites)) {
		s.Put(name, cfg.Sites[name])
	}
	s.Sites = nil
	return s
}

// Put adds a site, or puts it in place of the one with its name. What is being done
// for that one comes to an end soon.
func (s *Sync) Put(name string, put Site) {
	added := &site{Sync: s, Site: put, name: name, spread: mathrand.Float64()}
	added.removed, added.remove = context.WithCancel(context.Background())
	s.mu.Lock()
	old := s.sites[name]
	if old != nil && !old.hasBegun.Load() { // it keeps its turn
		added.firstAt = old.firstAt
		added.isWanted.Store(old.isWanted.Load())
	} else {
		s.lastFirst = s.lastFirst.Add(firstPollInterval)
		if now := s.Now(); s.lastFirst.Before(now) {
			s.lastFirst = now
		}
		added.firstAt = s.lastFirst
	}
	if added.isWanted.Load() {
		added.firstAt = s.Now()
	}
	s.polls.Put(name, added.firstAt)
	s.sites[name] = added
	s.mu.Unlock()
	if old != nil {
		old.end(false)
	}
}

// Remove ends the sync of a site. What is being done for it is cut off.
func (s *Sync) Remove(name string) {
	s.mu.Lock()
	old := s.sites[name]
	delete(s.sites, name)
	s.polls.Remove(name)
	s.mu.Unlock()
	if old != nil {
		old.end(true)
	}
}

// end lets nothing be done for the site any more.
func (s *site) end(cutOff bool) {
	s.isOver.Store(true)
	s.noteFailing(false)
	if cutOff {
		s.remove()
	}
}

// ChangesInBulk reports whether a request to a site's platform, if it succeeds, makes
// a comparison needed: now, and so much later.
func (s *Sync) ChangesInBulk(site, method, path string) (later []time.Duration, ok bool) {
	found, ok := s.find(site)
	if !ok {
		return nil, false
	}
	bulkChanger, ok := found.Platform.(platform.BulkChanger)
	if !ok {
		return nil, false
	}
	return bulkChanger.ChangesInBulk(method, path)
}

// HasCredentials reports whether the headers of a request have what may be a
// session or a token of the platform's. It asks nobody.
func (s *Sync) HasCredentials(site, cookie, authorization string) bool {
	found, ok := s.find(site)
	if !ok {
		return false
	}
	staff, ok := found.Platform.(platform.Authenticator)
	return ok && (staff.StaffSession(cookie) != "" || staff.HasToken(authorization))
}

var _ members.Inbound = (*Sync)(nil)
