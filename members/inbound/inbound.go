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
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

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
	Sites  map[string]Site // by name
	Logger *zap.Logger

	// Timeout bounds how long a caller waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Sync is the inbound sync of several sites. It may be used by many goroutines at
// once. Run has to run for changes to be seen.
type Sync struct {
	Config
	schedule *schedule
	sites    map[string]*site
}

// site is a site that is synced.
type site struct {
	Config
	Site
	name     string
	logger   *zap.Logger
	warnings *zap.Logger // at most a line of each kind a minute

	queue     *queue
	refreshes *task // of the members that events were about
	webhooks  *task // registers the webhook, and asks for changes
	compares  *task // compares all members when that is due

	later     alarms    // when comparisons are to be requested
	count     counting  // of members, by the task compares
	caughtUp  time.Time // when the task webhooks last asked for changes
	compareBy members.Lease
}

// New makes a Sync.
func New(cfg Config) *Sync {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Sync{Config: cfg, schedule: newSchedule(cfg.Now), sites: make(map[string]*site)}
	for i, name := range slices.Sorted(maps.Keys(cfg.Sites)) {
		logger := cfg.Logger.With(zap.String("site", name))
		site := &site{
			Config: cfg, Site: cfg.Sites[name], name: name, logger: logger, queue: newQueue(),
			warnings: logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
				return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
			})),
			compareBy: newOwner(),
		}
		s.sites[name] = site
		start := cfg.Now().Add(time.Duration(i) * startInterval)
		site.refreshes = s.schedule.add(site.refreshDue, time.Time{})
		site.webhooks = s.schedule.add(site.checkWebhook, start)
		site.compares = s.schedule.add(site.compareDue, start)
	}
	return s
}

// startInterval is the time between the first looks at two sites, so that not all
// come at once.
const startInterval = 10 * time.Millisecond

// Run keeps the sites in sync until ctx is done.
func (s *Sync) Run(ctx context.Context) {
	s.schedule.run(ctx)
	// Events that were acknowledged are not sent again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	var refreshes sync.WaitGroup
	defer refreshes.Wait() // before cancel
	for _, site := range s.sites {
		if !site.queue.isEmpty() {
			refreshes.Go(func() { site.refreshDue(ctx) })
		}
	}
}

// lastWords bounds how long events are worked off when Run ends.
const lastWords = 2 * time.Second

func (s *site) leases() members.Leases {
	return members.Leases{Store: s.Store, Now: s.Now, Timeout: s.Timeout}
}

// ErrNoPlatform means that a site has no platform, or does not exist.
var ErrNoPlatform = errors.New("the site has no platform")

// ChangesInBulk reports whether a request to a site's platform, if it succeeds, makes
// a comparison needed: now, and so much later.
func (s *Sync) ChangesInBulk(site, method, path string) (later []time.Duration, ok bool) {
	found, ok := s.sites[site]
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
	found, ok := s.sites[site]
	if !ok {
		return false
	}
	staff, ok := found.Platform.(platform.Authenticator)
	return ok && (staff.HasSession(cookie) || staff.HasToken(authorization))
}

var _ members.Inbound = (*Sync)(nil)
