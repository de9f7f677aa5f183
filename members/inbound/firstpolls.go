package inbound

import (
	"context"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/members"
)

// This file says when the platform of a site is polled for the first time since the site was added,
// for changes that were made while no process was there. Processes that start at the same time share
// that: the store says which platforms another has polled.

const (
	// firstPollInterval is the time between two batches of first polls: 100,000 sites take 500 s.
	// Without batches they took 600 s, as timers are some hundred microseconds late.
	firstPollInterval = 50 * time.Millisecond
	firstPollBatch    = 10

	// maxWaiting bounds the polls that wait for a slot, so that one of PollSoon is behind as many
	// at most.
	maxWaiting = 3 * maxPolls
)

// firstPolls are the sites whose first poll is not due yet.
type firstPolls struct {
	mu    sync.Mutex
	sites []*site
}

func (l *firstPolls) add(s *site) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sites = append(l.sites, s)
}

// take removes one of the sites, any of them, so that processes which share them are at different
// ones. It returns nil if there is none.
func (l *firstPolls) take() *site {
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

// pollNext begins the first polls of one more batch.
func (s *Sync) pollNext(context.Context) (next, rest time.Duration) {
	for range firstPollBatch {
		if s.polls.Waiting() >= maxWaiting {
			break
		}
		found := s.firstPolls.take()
		if found == nil {
			return 0, 0
		}
		if !found.hasBegun.Load() {
			found.counts.ask()
		}
	}
	return firstPollInterval, 0
}

// PollSoon begins the first poll of a site before those of others, since a program asks for the
// site's members.
func (s *Sync) PollSoon(site string) {
	if found, ok := s.find(site); ok && !found.hasBegun.Load() && !found.isWanted.Swap(true) {
		found.counts.ask()
	}
}

// Unpolled counts the sites whose first poll is to come.
func (s *Sync) Unpolled() int {
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

// isPolledByAnother reports whether another process has polled the platform since the site was added.
func (s *site) isPolledByAnother(ctx context.Context) bool {
	source := s.events()
	if source == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	w, err := s.Store.FindWebhook(ctx, s.name)
	return err == nil && s.isMine(w, source) && w.SeenAt.After(s.added)
}
