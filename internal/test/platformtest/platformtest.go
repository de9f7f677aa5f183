// Package platformtest has a publishing platform in memory. It behaves as Ghost does, and
// fails on request in ways that a real one cannot be made to.
package platformtest

import (
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Platform has the methods of all interfaces of package platform. Its exported fields may be used by
// a caller who holds Mu, or while nobody else uses the platform.
type Platform struct {
	*faults
	members
	webhooks
	posts
	eventPosts
	staff
	themes
	site
}

// New makes a platform without members, posts and themes.
func New() *Platform {
	f := new(faults)
	return &Platform{
		faults:     f,
		members:    members{faults: f, Members: make(map[string]platform.Member)},
		webhooks:   webhooks{faults: f},
		posts:      posts{faults: f, Tags: make(map[string][]string), Carriers: make(map[string][]int)},
		eventPosts: eventPosts{faults: f, EventsPosts: make(map[string]platform.EventPost), Now: time.Now},
		staff:      staff{faults: f, asked: make(map[string]int)},
		themes:     themes{faults: f},
		site:       site{faults: f},
	}
}

var (
	_ platform.EventTester = (*Platform)(nil)
	_ platform.BulkChanger = (*Platform)(nil)
	_ platform.EventHost   = (*Platform)(nil)
	_ platform.ThemeHost   = (*Platform)(nil)
	_ platform.Locator     = (*Platform)(nil)
	_ platform.Examiner    = (*Platform)(nil)
)
