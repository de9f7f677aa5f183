// Package inbound brings here what the publishing platforms have: members that
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
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/internal/warnings"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Site is a site and its platform.
type Site struct {
	Platform platform.Platform

	// WebhookURL is what the addresses begin with to which the platform sends
	// webhook events: that of this site's edge, as the platform reaches it.
	// Empty for none.
	WebhookURL string

	// Reconcile is how long after a comparison of all members the next one is
	// due. It is also due when the platform has not as many members as it should.
	// If it is 0, members are compared only on request.
	Reconcile time.Duration
}

// Config is what a [Sync] is made from.
type Config struct {
	Store  Store
	Sites  map[string]Site // by name, those that there are at first
	Logger *zap.Logger

	// Timeout bounds how long a caller waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Sync is the inbound sync of several sites, which are added, changed and removed
// while it runs. It may be used by many goroutines at once. Run has to run for
// changes to be seen.
type Sync struct {
	Config
	schedule *schedule
	warnings *warnings.Log

	calls     *limiter.Lanes // what is done at platforms, but for the refreshes of events
	looking   *limiter.Lanes // tasks webhooks that have begun
	comparing *limiter.Lanes // tasks compares that have begun

	mu    sync.RWMutex
	sites map[string]*site
	start time.Time // of the first look at the site that was added last
}

// site is a site that is synced.
type site struct {
	*Sync
	Site
	name   string
	isOver atomic.Bool // it was removed or replaced

	queue     *queue
	refreshes *task // of the members that events were about
	webhooks  *task // registers the webhook, and asks for changes
	counts    *task // asks how many members there are
	compares  *task // compares all members when that is due

	// isSilent means that the platform had no answer for long. Then the task counts
	// alone asks it, until it answers.
	isSilent atomic.Bool

	spread      float64        // from 0 to 1, so that what recurs does not come at once for all sites
	later       *alarms        // when comparisons are to be requested
	isRequested atomic.Bool    // that a comparison is, as far as this process knows
	isOdd       atomic.Bool    // the number of members, so they are to be compared
	count       counting       // by the task counts
	compared    lastComparison // by the task compares
	webhook     registered     // by the task webhooks
	compareBy   members.Lease
}

// New makes a Sync.
func New(cfg Config) *Sync {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Sync{
		Config: cfg, schedule: newSchedule(cfg.Now), warnings: warnings.New(cfg.Logger, cfg.Now), sites: make(map[string]*site),
		calls:   limiter.NewLanes(maxCalls, maxSlowCalls, slowCall),
		looking: limiter.NewLanes(maxBegun, 0, 0), comparing: limiter.NewLanes(maxBegun, 0, 0),
	}
	s.schedule.add(s.askWaiting, cfg.Now(), nil)
	for _, name := range slices.Sorted(maps.Keys(cfg.Sites)) {
		s.Put(name, cfg.Sites[name])
	}
	s.Sites = nil
	return s
}

// Put adds a site, or puts it in place of the one with its name. What is being done
// for that one comes to an end soon. The webhook events that it has taken and the
// comparisons that were asked for are the new one's.
func (s *Sync) Put(name string, put Site) {
	added := &site{Sync: s, Site: put, name: name, compareBy: newOwner(), spread: mathrand.Float64()}
	s.mu.Lock()
	old := s.sites[name]
	if old == nil {
		added.queue, added.later = new(queue), new(alarms)
	} else {
		added.queue, added.later = old.queue, old.later
	}
	added.refreshes = s.schedule.add(added.refreshDue, time.Time{}, nil)
	added.webhooks = s.schedule.add(added.checkWebhook, time.Time{}, s.looking)
	added.compares = s.schedule.add(comparer{added}.compareDue, time.Time{}, s.comparing)
	added.counts = s.schedule.add(comparer{added}.countDue, time.Time{}, s.calls)
	added.counts.askBy(s.nextStart()) // begins the others
	s.sites[name] = added
	s.mu.Unlock()
	if old != nil {
		old.end(false)
		added.askRefresh() // of what the other one has not come to
	}
}

// Remove ends the sync of a site. What is being done for it is cut off, and the
// webhook events that it has taken are dropped.
func (s *Sync) Remove(name string) {
	s.mu.Lock()
	old := s.sites[name]
	delete(s.sites, name)
	s.mu.Unlock()
	if old != nil {
		old.end(true)
	}
}

// end lets no task of the site begin any more.
func (s *site) end(cutOff bool) {
	s.isOver.Store(true)
	for _, t := range []*task{s.refreshes, s.webhooks, s.counts, s.compares} {
		t.finish(cutOff)
	}
}

// errOver means that a site was removed or replaced while something was done for it.
var errOver = errors.New("the site was removed or replaced")

// find returns a site that is synced now.
func (s *Sync) find(name string) (*site, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.sites[name]
	return found, ok
}

// askRefresh has the members refreshed that are in the site's queue, if there are
// any, for the site that has its name now.
func (s *site) askRefresh() {
	if now, ok := s.find(s.name); ok && !now.queue.isEmpty() {
		now.refreshes.ask()
	}
}

const (
	// startInterval is the time between the first looks at two sites, so that not
	// all come at once. startIntervalOfMany is that between the sites whose first
	// looks are more than startsSoon away.
	startInterval       = 10 * time.Millisecond
	startIntervalOfMany = 50 * time.Millisecond
	startsSoon          = time.Second
)

// nextStart returns when the first look at one more site is due. The caller holds
// the lock.
func (s *Sync) nextStart() time.Time {
	now, interval := s.Now(), startInterval
	if s.start.Sub(now) > startsSoon {
		interval = startIntervalOfMany
	}
	if s.start = s.start.Add(interval); s.start.Before(now) {
		s.start = now
	}
	return s.start
}

// Run keeps the sites in sync until ctx is done.
func (s *Sync) Run(ctx context.Context) {
	s.schedule.run(ctx)
	// Events that were acknowledged are not sent again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	var refreshes sync.WaitGroup
	defer refreshes.Wait() // before cancel
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, site := range s.sites {
		if !site.queue.isEmpty() {
			refreshes.Go(func() { site.refreshDue(ctx) })
		}
	}
}

// lastWords bounds how long events are worked off when Run ends.
const lastWords = 2 * time.Second

func (s *site) logger() *zap.Logger { return s.Logger.With(zap.String("site", s.name)) }

func (s *site) leases() members.Leases {
	return members.Leases{Store: s.Store, Now: s.Now, Timeout: s.Timeout}
}

// ErrNoPlatform means that a site has no platform, or does not exist.
var ErrNoPlatform = errors.New("the site has no platform")

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
	return ok && (staff.HasSession(cookie) || staff.HasToken(authorization))
}

var _ members.Inbound = (*Sync)(nil)
