package inbound

import (
	"context"
	mathrand "math/rand/v2"
	"slices"
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

	// maxFirstPolls bounds the first polls that wait for a slot or have one, so that one of PollSoon is
	// behind as many of them at most. Later polls do not count: first polls go on even where those fill all
	// slots.
	maxFirstPolls = 4 * maxCounts
)

// firstPolls are the sites whose first poll is not due yet, and those that wait for it to be made.
type firstPolls struct {
	mu    sync.Mutex
	sites []*site
	asked []*site
}

func (l *firstPolls) add(s *site) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sites = append(l.sites, s)
}

// next removes a batch of the sites, as many as maxFirstPolls allows. left is false if there are no others.
func (l *firstPolls) next() (batch []*site, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = slices.DeleteFunc(l.asked, func(s *site) bool { return s.hasBegun.Load() || s.isSilent.Load() || s.isOver.Load() })
	for len(batch) < firstPollBatch && len(l.asked) < maxFirstPolls {
		s := l.take()
		if s == nil {
			return batch, false
		}
		batch, l.asked = append(batch, s), append(l.asked, s)
	}
	return batch, true
}

// take removes one of the sites, any of them, so that processes which share them are at different
// ones. It returns nil if there is none. The caller holds the lock.
func (l *firstPolls) take() *site {
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
	batch, left := s.firstPolls.next()
	for _, found := range batch {
		if !found.hasBegun.Load() {
			found.counts.ask()
		}
	}
	if !left {
		return 0, 0
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
