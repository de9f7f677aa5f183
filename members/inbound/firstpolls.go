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

	// Sites whose keys were used within activeSpan are polled before the others: maxActive of them, 5 seconds' worth.
	activeSpan = 24 * time.Hour
	maxActive  = 1000
)

// firstPolls are the sites whose first poll is not due yet, and those that wait for it to be made.
type firstPolls struct {
	mu       sync.Mutex
	isActive map[string]bool // by name
	active   []*site         // before the others
	others   []*site
	asked    []*site
}

func (l *firstPolls) add(s *site) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isActive[s.name] {
		l.active = append(l.active, s)
	} else {
		l.others = append(l.others, s)
	}
}

// prefer has sites polled before the others, also those that are added later.
func (l *firstPolls) prefer(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isActive = make(map[string]bool)
	for _, name := range names {
		l.isActive[name] = true
	}
	l.others = slices.DeleteFunc(l.others, func(s *site) bool {
		if l.isActive[s.name] {
			l.active = append(l.active, s)
		}
		return l.isActive[s.name]
	})
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
	from := &l.active
	if len(*from) == 0 {
		from = &l.others
	}
	last := len(*from) - 1
	if last < 0 {
		l.active, l.others = nil, nil // of their sizes
		return nil
	}
	i := mathrand.IntN(last + 1)
	taken := (*from)[i]
	(*from)[i], (*from)[last] = (*from)[last], nil
	*from = (*from)[:last]
	return taken
}

// preferActive has the sites polled first whose keys were used most recently. If the store cannot be read,
// the order is random.
func (s *Sync) preferActive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	if names, err := s.Store.ActiveSites(ctx, s.Now().Add(-activeSpan), maxActive); err == nil {
		s.firstPolls.prefer(names)
	}
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
