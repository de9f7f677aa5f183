package inbound

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/warnings"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
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

	// Work polls platforms, refreshes members of whom webhook events have told, and compares all. Nil for a Sync that does not run.
	Work *work.Queue

	// Timeout bounds how long a caller waits for the platform. Default: 5
	// seconds.
	Timeout time.Duration

	// Deleted is told of members that are gone from their platform.
	Deleted members.Deletions

	// Contacts is told whether the platform responds, and whether it takes the key.
	Contacts members.Contacts

	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Sync is the inbound sync of several sites, which are added, changed and removed
// while it runs. It may be used by many goroutines at once. Config.Work has to run for
// changes to be seen.
type Sync struct {
	Config
	warnings *warnings.Log
	polls    *work.Recurring

	mu    sync.RWMutex
	sites map[string]*site

	lastFirst time.Time // when the first poll of the site is due that was put last

	failing atomic.Int64 // sites whose last count failed
}

// site is a site that is synced.
type site struct {
	*Sync
	Site
	name   string
	isOver atomic.Bool // it was removed or replaced

	hasBegun atomic.Bool // its platform was polled once
	isWanted atomic.Bool // a program has asked for its members before that
	firstAt  time.Time   // when that is due

	// isSilent means that the platform had no response for long. Then polls
	// alone ask it, until it responds.
	isSilent atomic.Bool

	polling   sync.Mutex                // while it is polled
	isFailing atomic.Bool               // its last count failed
	spread    float64                   // from 0 to 1, so that what recurs does not come at once for all sites
	count     counting                  // by the poll
	applied   applied                   // by the comparison
	webhook   registered                // by the poll
	isPlanned atomic.Bool               // that members are compared from time to time
	isOwed    atomic.Bool               // a comparison that could not be stored
	laterAt   atomic.Pointer[time.Time] // when the comparison is due that strangers have caused

	removed context.Context // is done once the site is
	remove  func()
}

// errOver means that a site was removed or replaced while something was done for it.
var errOver = errors.New("the site was removed or replaced")

func (s *Sync) find(name string) (*site, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.sites[name]
	return found, ok
}

func (s *site) logger() *zap.Logger { return s.Logger.With(zap.String("site", s.name)) }

func (s *site) leases() members.Leases {
	return members.Leases{Store: s.Store, Now: s.Now, Timeout: s.Timeout}
}

// whileThere derives a context that is done once the site is removed.
func (s *site) whileThere(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.removed, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// ErrNoPlatform means that a site has no platform, or does not exist.
var ErrNoPlatform = errors.New("the site has no platform")

// counting is what was seen of the number of members.
type counting struct {
	silence time.Duration // until the next count of a platform that hangs

	counted time.Time // when that was; zero before
	there   int       // how many the platform had
	latest  version   // of the member that was changed last
	surplus int       // those that the store had not

	// isOdd means that the surplus was another than that after the last
	// comparison, so the store is asked again whatever the platform has.
	isOdd bool

	// isKnown means that there was a comparison because of the surplus known. It
	// has not gone by that, so there is no use in comparing again.
	isKnown bool
	known   int
}

// version is a member as it was at a time. Of a hundred thousand sites no more is kept.
type version struct {
	id        string
	updatedAt time.Time
}

// applied counts what this process has applied of the comparison under way.
type applied struct {
	startedAt                       time.Time
	added, changed, removed, failed int
}

func (a *applied) count(step Compared) {
	a.added += step.Added
	a.changed += step.Changed
	a.removed += step.Removed
	a.failed += len(step.Failed)
}

// registered is what is known of the webhook. What is due is looked at in the
// store then, since other processes do it too.
type registered struct {
	next     time.Time // when it is to be registered
	catchUp  time.Time // when it is to be asked for changes
	caughtUp bool      // since the site was added

	hasArrived atomic.Bool               // an event, at this process
	changed    *platform.Member          // the one that a count has seen to be changed since the last one, nil for none
	unheard    atomic.Pointer[time.Time] // since when it is known that no event comes, nil if it is not
	missed     int                       // how often there were changes of which no event came, in a row

	changes *changes      // those that are asked for, nil if they are not
	pause   time.Duration // before the next attempt, after one that took long and failed
}
