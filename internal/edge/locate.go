package edge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file logs what to write where a platform has another address than the configuration or its own says.

// locator looks once for the platforms of a configuration, in the background.
type locator struct {
	paths   Paths
	logger  *zap.Logger
	reached func(site string)
	cancel  context.CancelFunc
	running sync.WaitGroup
}

const (
	// firstLocateInterval is when platforms that did not answer are asked again; it
	// doubles up to maxLocateInterval.
	firstLocateInterval = time.Second
	maxLocateInterval   = time.Minute
)

// startLocating begins to look for the platforms of sites.
// Reached is told of those that are reached after they were not.
func startLocating(sites map[string]*Site, paths Paths, logger *zap.Logger, reached func(site string)) *locator {
	pending := make(map[*Site]platform.Locator)
	for _, site := range sites {
		if asked, ok := site.Platform.(platform.Locator); ok {
			pending[site] = asked
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &locator{paths: paths, logger: logger, reached: reached, cancel: cancel}
	l.running.Go(func() {
		warned := make(map[*Site]bool)
		for interval := firstLocateInterval; ; interval = min(2*interval, maxLocateInterval) {
			if l.locate(ctx, pending, warned); len(pending) == 0 {
				return
			}
			if !waitFor(ctx, interval) {
				return
			}
		}
	})
	return l
}

// stop ends the search.
func (l *locator) stop() {
	l.cancel()
	l.running.Wait()
}

// locate asks each pending platform where it is, and removes those that answered.
// Of one that does not it warns once, and adds it to those that were warned of.
func (l *locator) locate(ctx context.Context, pending map[*Site]platform.Locator, warned map[*Site]bool) {
	for _, site := range slices.SortedFunc(maps.Keys(pending), func(a, b *Site) int { return strings.Compare(a.Name, b.Name) }) {
		title := site.Config.Platform.Title()
		location, err := pending[site].Locate(ctx, l.paths.folders())
		elsewhere, answered := errors.AsType[*platform.ElsewhereError](err)
		if err != nil && !answered {
			if !warned[site] && ctx.Err() == nil {
				l.logger.Warn(fmt.Sprintf("%s cannot be reached at the address in %s; it is tried again until it answers", title, site.Config.Platform.Block()),
					zap.String("site", site.Name), zap.Error(err))
			}
			warned[site] = true
			continue
		}
		delete(pending, site)
		logger := l.logger.With(zap.String("site", site.Name))
		if warned[site] && !answered {
			logger.Info(title + " can be reached")
			l.reached(site.Name)
		}
		if answered {
			logElsewhere(logger, site.Config.Platform, elsewhere)
			continue
		}
		if location.Found.String() != location.Configured.String() {
			logger.Error(fmt.Sprintf("%s is not at the address in %s, so nothing reaches it", title, site.Config.Platform.Block()),
				zap.String("address", location.Configured.Redacted()), write(site.Config.Platform, location.Found))
		}
		l.checkAddresses(logger, site, location)
		checkKey(ctx, logger, site)
	}
}

func logElsewhere(logger *zap.Logger, p *config.Platform, elsewhere *platform.ElsewhereError) {
	address := zap.String("address", elsewhere.Configured.Redacted())
	status := zap.Int("status", elsewhere.Status)
	if elsewhere.Redirect != nil {
		logger.Error(fmt.Sprintf("%s redirects from the address in %s to another, so nothing reaches it", p.Title(), p.Block()),
			address, status, write(p, elsewhere.Redirect))
		return
	}
	example := elsewhere.Configured.JoinPath("blog")
	logger.Error(fmt.Sprintf("%s is not at the address in %s, so nothing reaches it; if readers see it in a subdirectory, such as https://example.com/blog, the address needs that too", p.Title(), p.Block()),
		address, status, write(p, example))
}

func write(p *config.Platform, address *url.URL) zap.Field {
	return zap.String("write", p.Block()+" "+address.Redacted())
}

// checkKey warns of a key that the platform does not take, whatever the site of the configuration uses it for.
func checkKey(ctx context.Context, logger *zap.Logger, site *Site) {
	examiner, ok := site.Platform.(platform.Examiner)
	if !ok {
		return
	}
	if _, err := examiner.Examine(ctx); errors.Is(err, platform.ErrKeyRejected) {
		logger.Error(err.Error())
	}
}

// checkAddresses compares the addresses of a site and of its admin with the configuration, and the admin's path with
// those that theme_manifest and staff_desk have.
func (l *locator) checkAddresses(logger *zap.Logger, site *Site, location platform.Location) {
	kind, _ := site.Config.Platform.Of()
	problem, fix := location.AdminProblem()
	if problem == "" {
		problem, fix = l.publicProblem(site.Hosts, location)
	}
	if problem != "" {
		logger.Warn(kind.Title+" is reached, but "+problem, zap.String("fix", fix))
	}
	public := location.Public
	admin := strings.TrimRight(public.Path, "/") + kind.AdminPath
	if !kind.HasThemes() {
		return
	}
	for _, of := range []struct {
		paths []string
		means string
	}{
		{l.paths.Admin, "theme_manifest, so uploads of themes are not read"},
		{l.paths.Desk, "staff_desk, so nobody is signed in on its pages"},
	} {
		if len(of.paths) > 0 && !slices.ContainsFunc(of.paths, func(p string) bool { return strings.EqualFold(p, admin) }) {
			logger.Warn(kind.Title+"'s admin is not at the path of "+of.means, zap.Strings("path", of.paths), zap.String("write", "path "+admin))
		}
	}
}

// publicProblem says what is surely wrong about the publication's own address. The doctor, which knows where Caddy
// listens, says more.
func (l *locator) publicProblem(hosts []string, location platform.Location) (problem, fix string) {
	var known []string
	for _, host := range hosts {
		apex := strings.TrimPrefix(host, "www.")
		known = append(known, apex, "www."+apex) // one of the two may redirect to the other
	}
	isForReaders := len(l.paths.Lookup)+len(l.paths.Admin)+len(l.paths.Desk) > 0 // else the hosts may be for CRMs alone
	if isForReaders && platform.NoneOf(known, location.Public) != "" && platform.NoneOf(known, location.Staff()) != "" {
		return location.HostProblem(hosts)
	}
	if asked := location.Configured.Hostname(); asked == "localhost" || net.ParseIP(asked).IsLoopback() {
		return location.PortProblem(), "set url in the platform's own configuration to the address at which readers reach Caddy"
	}
	return "", ""
}
