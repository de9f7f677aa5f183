// Package outbox delivers the writes of the members API to the publishing platforms: the pending records of all sites
// of a process.
//
// It is a kind of work (package work), whose tasks are the records themselves. A caller makes the first attempt, and
// waits for it. What is left is tried again by whichever process is free.
package outbox

import (
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
)

// Kind is the kind of work.
const Kind = "members"

const (
	// retryTimeout bounds an attempt that no caller waits for. It is longer than
	// any caller waits: otherwise a platform that is slow for a while would never
	// finish in time, and be asked again and again.
	retryTimeout = 30 * time.Second

	// noteTimeout bounds how long it takes to note what became of an attempt.
	noteTimeout = 5 * time.Second

	// firstBackoff is how long after the first failed attempt the next one is due.
	firstBackoff = time.Second
)

// Config is what an [Outbox] is made from.
type Config struct {
	Store  Store
	Tasks  work.Table // the pending records of Store
	Work   *work.Queue
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
// many goroutines at once. The queue has to run for queued writes to be retried.
type Outbox struct {
	Config
	warnings *warnings.Log
}

// New makes an Outbox, and has its queue do the work.
func New(cfg Config) *Outbox {
	if cfg.Timeout == 0 {
		cfg.Timeout = members.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	o := &Outbox{Config: cfg, warnings: warnings.New(cfg.Logger, cfg.Now)}
	cfg.Work.Handle(work.Kind{
		Name: Kind, Table: cfg.Tasks, Timeout: retryTimeout, IsPersonal: true, Do: o.retry,
		Platform: func(site string) any { return cfg.Platform(site) },
	})
	return o
}

// site is a site with its platform, for an attempt.
type site struct {
	*Outbox
	name     string
	platform platform.Platform
}

func (s *site) wake() { s.Work.Wake(s.name) }

func (s *site) logger() *zap.Logger { return s.Logger.With(zap.String("site", s.name)) }

func (o *Outbox) leases() members.Leases {
	return members.Leases{Store: o.Store, Now: o.Now}
}

var _ members.Outbox = (*Outbox)(nil)
