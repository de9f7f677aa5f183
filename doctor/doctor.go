// Package doctor checks what a configuration needs of the world: DNS servers, a
// store, publishing platforms, repositories of themes, proxies that are trusted.
package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/database"
	"github.com/lychgate/caddy-lychgate/internal/redis"
	"github.com/lychgate/caddy-lychgate/internal/seal"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/themes"
)

// Config is what is checked.
type Config struct {
	Resolvers []netip.AddrPort
	Store     *Store // nil if none is used
	Redis     string // URL, empty for none
	Sites     []Site
	Servers   []Server

	// Warnings are what Caddy will log when it starts the configuration.
	Warnings []string

	// Folders are those in which a platform is looked for that is not at its
	// address (see platform.Locator).
	Folders []string

	// AdminPaths are those at which uploads of themes are watched, and DeskPaths those at
	// which the staff's pages are.
	AdminPaths, DeskPaths []string
}

// Store is where the store is, and what is in it.
type Store struct {
	Kind                              database.Kind
	Source                            string
	Members, Themes, Curation, Events bool

	// Keys open the secrets of the sites that are in the store. Nil if sites there are
	// not served.
	Keys *seal.Keyring
}

// Site is one publication.
type Site struct {
	Name     string
	Hosts    []string          // as they appear in requests
	Platform platform.Platform // nil for none
	Themes   []Theme

	// AdminPath is the path of the platform's admin, below that of the publication. It
	// is empty where neither uploads of themes are watched nor staff have pages.
	AdminPath string

	// UsesEvents tells that webhook events are of use, EventsOff that the configuration
	// wants none, and WebhookURL where they arrive, without the token; it is empty for
	// nowhere.
	UsesEvents, EventsOff bool
	WebhookURL            string
}

// Theme is a theme with a repository.
type Theme struct {
	Name   string
	Source themes.Source
}

// Server is one of Caddy's HTTP servers that has a directive of Lychgate's.
type Server struct {
	Name      string
	Addresses []string // that it listens at, without ports; empty for all

	// TrustsProxies, Strict and TrustsUnix tell whether it has Caddy's trusted_proxies,
	// trusted_proxies_strict and trusted_proxies_unix.
	TrustsProxies, Strict, TrustsUnix bool
}

// Status says how a check ended.
type Status string

// The values of Status.
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but perhaps not as it is meant
	Failed  Status = "failed"
)

// Result is how one check ended.
type Result struct {
	Subject string `json:"subject"` // what was checked, such as: site daily
	Status  Status `json:"status"`
	Message string `json:"message"`        // what was found
	Fix     string `json:"mend,omitempty"` // what to do; empty if that is nothing
}

// checkTimeout bounds each check but that of events, which has a bound of its own.
const checkTimeout = 15 * time.Second

// Run makes all checks, one after the other. It says of each when it begins, and tells
// its result at once. No secret is in them. Ctx ends it early.
func Run(ctx context.Context, c Config, begin func(subject string), tell func(Result)) {
	one := func(subject string, check func(context.Context) Result) {
		if ctx.Err() != nil {
			return
		}
		begin(subject)
		checking, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		r := check(checking)
		if ctx.Err() != nil {
			return // it is not known how it would have ended
		}
		r.Subject = subject
		tell(r)
	}
	for _, warning := range c.Warnings {
		one("configuration", func(context.Context) Result { return warn(warning, "") })
	}
	for _, resolver := range c.Resolvers {
		one("resolver "+resolver.String(), func(ctx context.Context) Result { return checkResolver(ctx, resolver) })
	}
	var opened openedStore
	if c.Store != nil {
		one("store "+c.Store.name(), func(ctx context.Context) (r Result) {
			opened, r = c.Store.check(ctx)
			return r
		})
		defer opened.close()
	}
	if opened.members != nil && ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if r := opened.refused(asking); r != nil {
			one("refused writes", func(context.Context) Result { return *r })
		}
	}
	if opened.sites != nil {
		one("sites in the store", opened.checkSites)
	}
	if c.Redis != "" {
		one("redis "+redis.Place(c.Redis), func(ctx context.Context) Result { return checkRedis(ctx, c.Redis) })
	}
	for _, site := range c.Sites {
		subject := "site " + site.Name
		if site.Platform != nil {
			found := true
			one(subject, func(ctx context.Context) (r Result) {
				r = checkPlatform(ctx, site, c)
				found = r.Status != Failed
				return r
			})
			if tester, ok := site.Platform.(platform.EventTester); ok && site.UsesEvents && found {
				one(subject+", webhook events", func(context.Context) Result { return checkEvents(ctx, site, tester, opened) })
			}
		}
		for _, theme := range site.Themes {
			one(subject+", theme "+theme.Name, func(ctx context.Context) Result { return checkTheme(ctx, theme) })
		}
	}
	for _, server := range c.Servers {
		one("server "+server.Name, func(context.Context) Result { return checkProxies(server) })
	}
}

func ok(format string, args ...any) Result {
	return Result{Status: OK, Message: fmt.Sprintf(format, args...)}
}

func warn(message, fix string) Result { return Result{Status: Warning, Message: message, Fix: fix} }

func fail(message, fix string) Result { return Result{Status: Failed, Message: message, Fix: fix} }
