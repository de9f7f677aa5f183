package edge

import (
	"sync"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/pool"
)

// membersRuns outlive a configuration, unless the next one has no members API.
var membersRuns pool.Pool[databaseKey, *membersRun]

// membersRun is the time in which one configuration after the other keeps the members of a store in sync.
type membersRun struct{ _ byte } // so that each has an address of its own

// continuity says since when a site in a store is kept in sync with its platform without a break, so that a reload
// does not poll it again. Like the platform it outlives a configuration (snapshot).
type continuity struct {
	mu   sync.Mutex
	run  *membersRun
	from time.Time
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
