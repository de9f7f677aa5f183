package ghost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// sitePath is the path of the publication's title and address below the Admin API.
// Ghost tells them to anyone.
const sitePath = "/site/"

// A Ghost in a subdirectory responds with 404
// elsewhere on its server, and does not say where it is.
func (c *visitorClient) Locate(ctx context.Context, folders []string) (platform.Location, error) {
	configured, err := url.Parse(c.site)
	if err != nil {
		return platform.Location{}, err
	}
	location, err := c.locateAt(ctx, configured, configured)
	if _, elsewhere := errors.AsType[*platform.ElsewhereError](err); !elsewhere {
		return location, err
	}
	for _, folder := range folders {
		at := *configured
		at.Path, at.RawPath = strings.TrimRight(folder, "/"), ""
		if at.Path == configured.Path {
			continue
		}
		if location, err := c.locateAt(ctx, configured, &at); err == nil {
			return location, nil
		}
	}
	return platform.Location{}, err
}

// AdminURL is what Ghost told, or else what the configuration has.
func (c *visitorClient) AdminURL() *url.URL {
	return cmp.Or(c.told.Load(), c.addresses.Load().admin)
}

// locateAt looks for Ghost at one address.
func (c *visitorClient) locateAt(ctx context.Context, configured, at *url.URL) (platform.Location, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	found, err := c.find(ctx, at)
	if err != nil {
		return platform.Location{}, fmt.Errorf("asking Ghost where it is: %w", err)
	}
	switch status := found.status; {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return platform.Location{}, fmt.Errorf("asking Ghost where it is: %w", refusal(status, found.body))
	case found.public != nil:
		location := platform.Location{Configured: configured, Found: at, Public: found.public, ConfiguredAdmin: c.admin, Admin: c.adminOf(ctx, at, found.public), TellsAt: adminAPI + sitePath, Told: found.body}
		c.told.Store(location.Admin)
		return location, nil
	}
	return platform.Location{}, &platform.ElsewhereError{
		Configured: configured, Status: found.status, Redirect: redirect(at.JoinPath(adminAPI, sitePath), found.header.Get("Location")),
	}
}

func publicURL(response []byte) *url.URL {
	var body struct {
		Site struct {
			URL string `json:"url"`
		} `json:"site"`
	}
	if decode(response, &body) != nil {
		return nil
	}
	public, err := url.Parse(body.Site.URL)
	if err != nil || !isTold(public) {
		return nil
	}
	return public
}

// isTold reports whether an address that a Ghost has told is one of a server. It is logged, shown, and written into commands.
func isTold(u *url.URL) bool {
	isOther := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_:[]", r)
	}
	return platform.IsServer(u) && !strings.ContainsFunc(u.Host, isOther) && len(u.String()) <= maxHeader
}

// redirect is nil unless a response's location, from an address on, is the site endpoint of a Ghost.
func redirect(from *url.URL, location string) *url.URL {
	to, err := from.Parse(location)
	if err != nil || location == "" || !isTold(to) {
		return nil
	}
	folder, found := strings.CutSuffix(strings.TrimRight(to.Path, "/"), strings.TrimRight(adminAPI+sitePath, "/"))
	if !found {
		return nil
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: folder}
}
