// Package outbox delivers the writes of the members API to the publishing
// platforms: the pending records of all sites of a process.
//
// A record is leased while it is applied, so that one process at a time changes
// the member on the platform. An attempt that fails is retried, with backoff, by
// whichever process is free. At most a few attempts at a time are made for each
// site, and a platform that does not respond gets a probe now and then. So one that
// is slow or away delays no other.
package outbox

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/limiter"
	"github.com/lychgate/caddy-lychgate/internal/warnings"
	"github.com/lychgate/caddy-lychgate/members"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// retryTimeout bounds an attempt that no caller waits for. It is longer than
	// any caller waits: otherwise a platform that is slow for a while would never
	// finish in time, and be asked again and again. retryLease is how long a
	// process may hold the record for it.
	retryTimeout = 30 * time.Second
	retryLease   = retryTimeout + members.LeaseTime

	// pollInterval is how often Run polls for what is due. Once nothing was due
	// for quietTime, and no site is in trouble, it looks half as often.
	pollInterval = time.Second
	quietTime    = 10 * time.Second

	// firstBackoff is how long after the first failed attempt the next one is due.
	// farthestAttempt is behind the time of any next attempt: a backoff is 6 minutes at most.
	firstBackoff    = time.Second
	farthestAttempt = 10 * time.Minute

	// doneInterval is how often Run polls whether sites that were in trouble have
	// nothing pending any more.
	doneInterval = 2 * time.Second

	// heardInterval is how often at most all that is pending is tried because the platform responds to
	// something else.
	heardInterval = 5 * time.Second

	// concurrency bounds the retries that are under way for a site, and batchSize
	// how many records of it are read at a time.
	concurrency = 4
	batchSize   = 64

	// These bound the attempts that are under way for all sites: retries and
	// those that callers wait for, each at platforms that respond in a time and at
	// others. One site's callers take maxCalling of the former.
	maxRetries, maxSlowRetries, slowRetry = 112, 64, 2 * time.Second
	maxCalls, maxSlowCalls, slowCall      = 56, 24, time.Second
	maxCalling                            = 12

	// tombstoneRetention is how long the platform's IDs of deleted members are
	// kept: longer than anything that was read before can be in use.
	tombstoneRetention = 10 * time.Minute
)

// Config is what an [Outbox] is made from.
type Config struct {
	Store  Store
	Logger *zap.Logger

	// Platform finds the platform of a site: nil if the site has none or is not served by
	// this process. It is asked before each attempt, so sites may be added, changed and
	// removed at any time. It returns the same pointer until the platform is another: what
	// is known of the old one is then forgotten.
	Platform func(site string) platform.Platform

	// Deleted is told of members that are gone from their platform.
	Deleted members.Deletions

	// Contacts is told whether the platform responds, and whether it takes the key.
	Contacts members.Contacts

	// Timeout bounds how long a caller waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Outbox delivers the writes of several sites to their platforms. It may be used by
// many goroutines at once. Run has to run for queued writes to be retried.
type Outbox struct {
	Config
	warnings *warnings.Log
	wake     chan struct{} // something may be due
	interval time.Duration // of looking for what is due
	retries  *limiter.Bulkhead
	calls    *limiter.Bulkhead // that callers wait for
	reported time.Time         // when it was last looked for sites that are done

	mu     sync.Mutex
	states map[string]*state // by site
}

// New makes an Outbox.
func New(cfg Config) *Outbox {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Outbox{
		Config: cfg, warnings: warnings.New(cfg.Logger, cfg.Now),
		wake: make(chan struct{}, 1), interval: pollInterval, states: make(map[string]*state),
		retries: limiter.NewBulkhead(maxRetries, maxSlowRetries, slowRetry), calls: limiter.NewBulkhead(maxCalls, maxSlowCalls, slowCall),
	}
}

// Wake has Run poll for what is due, at once.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

var _ members.Outbox = (*Outbox)(nil)
