package edge

import (
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/pool"
	"github.com/lychgate/caddy-lychgate/members/inbound"
)

// membersRuns outlive a configuration, unless the next one has no members API.
var membersRuns pool.Pool[databaseKey, *membersRun]

// membersRun is the time in which one configuration after the other keeps the members of a store in sync.
type membersRun struct{ _ byte } // so that each has an address of its own

// continuity says since when a site in a store is kept in sync with its platform without a break, so that a reload
// does not poll it again. It has the webhook events that one configuration leaves to the next. Like the platform it
// outlives a configuration (snapshot).
type continuity struct {
	mu     sync.Mutex
	run    *membersRun
	from   time.Time
	events *inbound.Queue
}

// put adds a site to a Sync, with the events that the Sync before it left.
func (c *continuity) put(with *inbound.Sync, name string, site inbound.Site) {
	c.mu.Lock()
	defer c.mu.Unlock()
	site.Queue = c.events
	c.events = with.Put(name, site)
}

// since is now for a site that was not kept in sync, or whose platform failed.
func (c *continuity) since(run *membersRun, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != run {
		c.run, c.from = run, now
	}
	return c.from
}

// end is called for a platform that fails: the next configuration is to find out whether it still does.
func (c *continuity) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = nil
}
