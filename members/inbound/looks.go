package inbound

import (
	"context"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/members"
)

// This file says when the platform of a site is looked at for the first time since the site was
// added: for changes that were made while no process was there. Processes that start at the same
// time share that, since one sees in the store at which platforms another has looked.

const (
	// firstLookInterval is the time between two first looks: 100,000 sites take 500 s.
	firstLookInterval = 5 * time.Millisecond

	// maxWaiting bounds the polls that wait for a slot: what is asked for by somebody
	// is behind as many at most.
	maxWaiting = 3 * maxPolls
)

// looks are the sites whose first look is not due yet.
type looks struct {
	mu    sync.Mutex
	sites []*site
}

func (l *looks) add(s *site) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sites = append(l.sites, s)
}

// take removes one of the sites, any of them, so that processes which share the looks are at
// different ones. It returns nil if there is none.
func (l *looks) take() *site {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.sites) - 1
	if last < 0 {
		l.sites = nil // of its size
		return nil
	}
	i := mathrand.IntN(last + 1)
	taken := l.sites[i]
	l.sites[i], l.sites[last] = l.sites[last], nil
	l.sites = l.sites[:last]
	return taken
}

// lookNext has the next site looked at.
func (s *Sync) lookNext(context.Context) (next, rest time.Duration) {
	if s.polls.Waiting() < maxWaiting {
		found := s.looks.take()
		if found == nil {
			return 0, 0
		}
		if !found.hasBegun.Load() {
			found.counts.ask()
		}
	}
	return firstLookInterval, 0
}

// LookSoon has the platform of a site looked at before others, if it was not yet: somebody asks
// for the site's members.
func (s *Sync) LookSoon(site string) {
	if found, ok := s.find(site); ok && !found.hasBegun.Load() && !found.isWanted.Swap(true) {
		found.counts.ask()
	}
}

// Unseen counts the sites whose first look is to come.
func (s *Sync) Unseen() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for _, found := range s.sites {
		if !found.hasBegun.Load() {
			n++
		}
	}
	return n
}

// isSeenByAnother reports whether another process has looked at the platform since the site was
// added.
func (s *site) isSeenByAnother(ctx context.Context) bool {
	source := s.events()
	if source == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	w, err := s.Store.FindWebhook(ctx, s.name)
	return err == nil && s.isMine(w, source) && w.SeenAt.After(s.added)
}
