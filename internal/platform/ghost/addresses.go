package ghost

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// This file finds the hosts at which a Ghost serves its paths. One whose configuration has an admin:url of another
// host than its url serves its admin and the Admin API at that alone, and all else at others alone. It listens at one
// port for both, and goes by X-Forwarded-Host, else Host.

// addresses are those whose hosts a Ghost is asked at. Nil is for the address of the configuration.
type addresses struct{ site, admin *url.URL }

func (as *addresses) of(r request) *url.URL {
	if r.isReaders {
		return as.site
	}
	return as.admin
}

// isMisplaced reports whether a Ghost serves the path elsewhere: it redirects to its admin, or has no such path.
func (r response) isMisplaced(asked request) bool {
	return r.status >= 300 && r.status < 400 && !asked.isReaders || r.status == http.StatusNotFound && firstError(r.body).Type == ""
}

// findInterval is how long after a search the next one is. What is no Ghost has no such path either.
const findInterval = 10 * time.Second

// do sends a request. If Ghost serves it at another host, that is found, and kept for the next one.
func (a api) do(ctx context.Context, r request) (response, error) {
	known := a.addresses.Load()
	first, err := a.exchange(ctx, r, known.of(r))
	if err != nil || !first.isMisplaced(r) {
		return first, err
	}
	if found := a.refind(ctx, known, r.isReaders); found.of(r) != known.of(r) {
		if again, err := a.exchange(ctx, r, found.of(r)); err == nil && !again.isMisplaced(r) {
			return again, nil
		}
	}
	return first, nil
}

// refind looks where Ghost is, unless that was just done. Whoever comes meanwhile waits for it. What readers' pages ask
// stays at the host of the configuration unless Ghost has no such path there.
func (a api) refind(ctx context.Context, known *addresses, isReaders bool) *addresses {
	select {
	case a.finding <- struct{}{}:
		defer func() { <-a.finding }()
	case <-ctx.Done():
		return known
	}
	if now := a.addresses.Load(); now != known || time.Since(a.found) < findInterval {
		return now
	}
	defer func() { a.found = time.Now() }()
	at, err := url.Parse(a.site)
	if err != nil {
		return known
	}
	if found, err := a.find(ctx, at); err == nil && found.public != nil {
		next := &addresses{admin: found.askedAt, site: known.site}
		if isReaders && found.public.Host != at.Host {
			next.site = found.public
		}
		a.addresses.Store(next)
	}
	return a.addresses.Load()
}

// finding is what a Ghost tells of its addresses.
type finding struct {
	response          // of sitePath
	public   *url.URL // nil if this is no Ghost
	askedAt  *url.URL // at whose host it told, nil for that of the configuration
}

// find asks Ghost at an address, and where its admin is unless it answers there.
func (a api) find(ctx context.Context, at *url.URL) (found finding, err error) {
	asked := request{method: http.MethodGet, url: at.JoinPath(adminAPI, sitePath).String(), header: map[string]string{"Accept-Version": apiVersion}, maxResponse: maxResponse}
	found.askedAt = a.addresses.Load().admin
	found.response, err = a.exchange(ctx, asked, found.askedAt)
	if err == nil && found.isMisplaced(asked) {
		if admin := a.adminOf(ctx, at, nil); admin != nil {
			found.askedAt = admin
			found.response, err = a.exchange(ctx, asked, admin)
		}
	}
	if err == nil && found.status == http.StatusOK {
		found.public = publicURL(found.body)
	}
	return found, err
}

// adminOf asks Ghost at the host of the publication where its admin is. It is nil if that is at the same host, and if
// Ghost does not say so. Ghost 5 and 6 redirect alike.
func (a api) adminOf(ctx context.Context, at, public *url.URL) *url.URL {
	front := request{method: http.MethodGet, url: at.JoinPath(AdminPath, "/").String(), maxResponse: maxResponse}
	response, err := a.exchange(ctx, front, public)
	if err != nil || response.status < 300 || response.status > 399 {
		return nil
	}
	here := at
	if public != nil {
		here = public
	}
	location := response.header.Get("Location")
	to, err := here.Parse(location)
	if err != nil || !isTold(to) || strings.EqualFold(to.Host, here.Host) {
		return nil
	}
	folder, isAdmin := strings.CutSuffix(strings.TrimRight(to.Path, "/"), AdminPath)
	if !isAdmin {
		return nil
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: folder}
}
