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
// that: the store says which platforms another has polled. It also says which this one has polled
// before a reload.

const (
	// firstPollInterval is the time between two batches of first polls: 100,000 sites take 500 s.
	// Without batches they took 600 s, as timers are some hundred microseconds late.
	firstPollInterval = 50 * time.Millisecond
	firstPollBatch    = 10

	// maxFirstPolls bounds the first polls that wait for a slot or have one, so that one of PollSoon is
	// behind as many of them at most. Later polls do not count: first polls go on even where those fill all
	// slots.
	maxFirstPolls = 4 * maxCounts

	// Sites whose keys were used within activeSpan are polled before the others: maxActive of them, of which
	// maxActiveAsked wait or are polled at once. Were it more, those that hang would keep the others waiting.
	activeSpan     = 24 * time.Hour
	maxActive      = 1000
	maxActiveAsked = maxCounts / 2
)

// firstPolls are the sites whose first poll is to be made.
type firstPolls struct {
	mu             sync.Mutex
	isActive       map[string]bool // by name, of those that are not added yet
	active, others firstPollGroup
}

// firstPollGroup has the sites whose first poll is not due yet, and those that wait for it to be made.
type firstPollGroup struct{ waiting, asked []*site }

func (l *firstPolls) add(s *site) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isPreferred(s) {
		l.active.waiting = append(l.active.waiting, s)
	} else {
		l.others.waiting = append(l.others.waiting, s)
	}
}

// isPreferred prefers each name once: a site that is changed again and again would never let the others be
// polled. The caller holds the lock.
func (l *firstPolls) isPreferred(s *site) bool {
	is := l.isActive[s.name]
	delete(l.isActive, s.name)
	return is
}

// prefer has sites polled before the others, also those that are added later.
func (l *firstPolls) prefer(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isActive = make(map[string]bool)
	for _, name := range names {
		l.isActive[name] = true
	}
	l.others.waiting = slices.DeleteFunc(l.others.waiting, func(s *site) bool {
		is := l.isPreferred(s)
		if is {
			l.active.waiting = append(l.active.waiting, s)
		}
		return is
	})
}

// next removes a batch of the sites, as many as maxFirstPolls allows. left reports whether others wait.
func (l *firstPolls) next() (batch []*site, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active.forget()
	l.others.forget()
	for len(batch) < firstPollBatch && len(l.active.asked)+len(l.others.asked) < maxFirstPolls {
		from := &l.active
		if len(from.waiting) == 0 || len(from.asked) >= maxActiveAsked {
			from = &l.others
		}
		if len(from.waiting) == 0 {
			break
		}
		batch = append(batch, from.take())
	}
	return batch, len(l.active.waiting)+len(l.others.waiting) > 0
}

// forget forgets the sites that do not wait any more.
func (g *firstPollGroup) forget() {
	g.asked = slices.DeleteFunc(g.asked, func(s *site) bool { return s.hasBegun.Load() || s.isSilent.Load() || s.isOver.Load() })
}

// take removes one of the waiting sites at random, so that processes which share them are at different
// ones. It counts as asked.
func (g *firstPollGroup) take() *site {
	i, last := mathrand.IntN(len(g.waiting)), len(g.waiting)-1
	taken := g.waiting[i]
	g.waiting[i], g.waiting[last] = g.waiting[last], nil
	if g.waiting = g.waiting[:last]; last == 0 {
		g.waiting = nil // of its size
	}
	g.asked = append(g.asked, taken)
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

// isPolledAlready reports whether another process, or this one before a reload, has polled the platform
// since this process keeps the site in sync.
func (s *site) isPolledAlready(ctx context.Context) bool {
	source := s.events()
	if source == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, members.StoreTimeout)
	defer cancel()
	w, err := s.Store.FindWebhook(ctx, s.name)
	return err == nil && s.isMine(w, source) && w.SeenAt.After(s.Since) && s.Now().Sub(w.SeenAt) < catchUpInterval
}
