// Package doctor checks what a configuration needs of the world: DNS servers, a
// store, publishing platforms, repositories of themes, proxies that are trusted.
package doctor

import (
	"context"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/redis"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

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
			return c.compareStore(ctx, r)
		})
		defer opened.close()
	}
	if c.UnknownHosts != nil && (opened.sites != nil || opened.isNew || c.Store.Keys == nil) {
		asking, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if hosts, err := opened.hosts(asking); err == nil { // else the check of the sites says so
			for _, warning := range c.UnknownHosts(hosts) {
				one("configuration", func(context.Context) Result { return warn(warning, "") })
			}
		}
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
		if c.WithoutCertificate != nil && c.https() != "" {
			one("certificates of sites", func(ctx context.Context) Result { return checkCertificates(ctx, c.WithoutCertificate) })
		}
	}
	if c.Redis != "" {
		one("redis "+redis.Place(c.Redis), func(ctx context.Context) Result { return checkRedis(ctx, c.Redis) })
	}
	if c.Mail != nil {
		one("mail", func(ctx context.Context) Result { return checkMail(ctx, c.Mail) })
	}
	for _, site := range c.Sites {
		subject := "site " + site.Name
		if site.Platform != nil {
			var at *platform.Location
			var wrong *Result
			found := true
			one(subject, func(ctx context.Context) (r Result) {
				if at, wrong = c.locate(ctx, site); wrong != nil {
					r = *wrong
				} else {
					r = c.checkPlatform(ctx, site, at)
				}
				found = r.Status != Failed
				return r
			})
			if tester, ok := site.Platform.(platform.EventTester); ok && site.UsesEvents && found {
				one(subject+", webhook events", func(context.Context) Result { return c.checkEvents(ctx, site, tester, opened) })
			}
			if at != nil && c.serverOf(site, ascii(at.Public.JoinPath("/"))) != nil {
				one(subject+", through Caddy", func(ctx context.Context) Result { return c.checkThrough(ctx, site, *at) })
			}
		}
		if site.Mail != nil {
			one(subject+", mail", func(ctx context.Context) Result { return checkMail(ctx, site.Mail) })
		}
		if c.hasDirectives(site) {
			one(subject+", directives", func(ctx context.Context) Result { return c.checkDirectives(ctx, site) })
		}
		for _, host := range site.publicHosts() {
			if https := c.https(); https != "" {
				one(subject+", certificate of "+host, func(ctx context.Context) Result { return checkCertificate(ctx, https, host) })
			}
		}
		for _, theme := range site.Themes {
			one(subject+", theme "+theme.Name, func(ctx context.Context) Result { return checkTheme(ctx, theme) })
		}
	}
	if r := c.findTaken(ctx, c.Admin, "write another address into the global option admin"); r != nil {
		one("admin API", func(context.Context) Result { return *r })
	}
	for _, server := range c.Servers {
		one("server "+server.Name, func(ctx context.Context) Result { return c.checkServer(ctx, server) })
	}
}
