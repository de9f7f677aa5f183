package caddymodule

import (
	"context"
	"errors"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/platform"
)

// This file logs what to write where a Ghost is in a subdirectory and the
// configuration does not say so.

// locator looks once for the platforms of a configuration, in the background.
type locator struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

const (
	// firstLocateInterval is when platforms that did not answer are asked again; it
	// doubles up to maxLocateInterval.
	firstLocateInterval = time.Second
	maxLocateInterval   = time.Minute
)

// startLocating begins to look for the platforms of an app.
func startLocating(a *App) *locator {
	pending := make(map[*Site]platform.Locator)
	for site, connected := range a.platforms {
		if asked, ok := connected.(platform.Locator); ok {
			pending[site] = asked
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &locator{cancel: cancel}
	l.running.Go(func() {
		warned := make(map[*Site]bool)
		for interval := firstLocateInterval; ; interval = min(2*interval, maxLocateInterval) {
			if a.locate(ctx, pending, warned); len(pending) == 0 {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
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
func (a *App) locate(ctx context.Context, pending map[*Site]platform.Locator, warned map[*Site]bool) {
	for _, site := range slices.SortedFunc(maps.Keys(pending), func(a, b *Site) int { return strings.Compare(a.name, b.name) }) {
		location, err := pending[site].Locate(ctx, a.folders())
		elsewhere, answered := errors.AsType[*platform.ElsewhereError](err)
		if err != nil && !answered {
			if !warned[site] && ctx.Err() == nil {
				a.logger.Warn("Ghost cannot be reached at the address in platform ghost; it is tried again until it answers",
					zap.String("site", site.name), zap.Error(err))
			}
			warned[site] = true
			continue
		}
		delete(pending, site)
		logger := a.logger.With(zap.String("site", site.name))
		if warned[site] && !answered {
			logger.Info("Ghost can be reached")
		}
		if answered {
			logElsewhere(logger, elsewhere)
			continue
		}
		if location.Found.String() != location.Configured.String() {
			logger.Error("Ghost is not at the address in platform ghost, so nothing reaches it",
				zap.String("address", location.Configured.Redacted()), writePlatform(location.Found))
		}
		a.checkAdminPath(logger, location.Public)
	}
}

func logElsewhere(logger *zap.Logger, elsewhere *platform.ElsewhereError) {
	address := zap.String("address", elsewhere.Configured.Redacted())
	status := zap.Int("status", elsewhere.Status)
	if elsewhere.Redirect != nil {
		logger.Error("Ghost redirects from the address in platform ghost to another, so nothing reaches it", address, status, writePlatform(elsewhere.Redirect))
		return
	}
	example := elsewhere.Configured.JoinPath("blog")
	logger.Error("Ghost is not at the address in platform ghost, so nothing reaches it; if readers see it in a subdirectory, such as https://example.com/blog, the address needs that too",
		address, status, writePlatform(example))
}

func writePlatform(address *url.URL) zap.Field {
	return zap.String("write", "platform ghost "+address.Redacted())
}

// checkAdminPath compares the path of Ghost's admin, of a publication that readers
// see at an address, with those that theme_manifest has.
func (a *App) checkAdminPath(logger *zap.Logger, public *url.URL) {
	admin := strings.TrimRight(public.Path, "/") + defaultAdminPath
	if len(a.adminPaths) == 0 || slices.ContainsFunc(a.adminPaths, func(p string) bool { return strings.EqualFold(p, admin) }) {
		return
	}
	logger.Warn("Ghost's admin is not at the path of theme_manifest, so uploads of themes are not read",
		zap.Strings("path", a.adminPaths), zap.String("write", "path "+admin))
}

// folders returns those that the paths of the directives suggest for a Ghost: /blog
// for /blog/ghost.
func (a *App) folders() []string {
	folders := []string{""}
	for _, p := range a.adminPaths {
		folders = append(folders, strings.TrimSuffix(path.Dir(p), "/"))
	}
	for _, p := range a.lookupPaths {
		folders = append(folders, strings.TrimSuffix(path.Dir(path.Dir(p)), "/"))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}
