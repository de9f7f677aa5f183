package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/platform"
)

// sitePath is the path of the publication's title and address below the Admin API.
// Ghost tells them to anyone.
const sitePath = "/site/"

// A Ghost in a subdirectory responds with 404
// elsewhere on its server, and does not say where it is.
func (c *visitorClient) Locate(ctx context.Context, folders []string) (platform.Location, error) {
	configured, err := url.Parse(strings.TrimSuffix(c.base, adminAPI))
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

// locateAt looks for Ghost at one address.
func (c *visitorClient) locateAt(ctx context.Context, configured, at *url.URL) (platform.Location, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	asked := at.JoinPath(adminAPI, sitePath)
	response, err := c.do(ctx, request{http.MethodGet, asked.String(), map[string]string{"Accept-Version": apiVersion}, nil, maxResponse})
	if err != nil {
		return platform.Location{}, fmt.Errorf("asking Ghost where it is: %w", err)
	}
	switch status, body := response.status, response.body; {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return platform.Location{}, fmt.Errorf("asking Ghost where it is: %w", refusal(status, body))
	case status == http.StatusOK:
		if public := publicURL(body); public != nil {
			return platform.Location{Configured: configured, Found: at, Public: public}, nil
		}
	}
	return platform.Location{}, &platform.ElsewhereError{Configured: configured, Status: response.status, Redirect: redirect(asked, response.header.Get("Location"))}
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
	if err != nil || public.Host == "" {
		return nil
	}
	return public
}

// redirect is nil unless a response's location, from an address on, is the site endpoint of a Ghost.
func redirect(from *url.URL, location string) *url.URL {
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return nil
	}
	folder, found := strings.CutSuffix(strings.TrimRight(to.Path, "/"), strings.TrimRight(adminAPI+sitePath, "/"))
	if !found {
		return nil
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: folder}
}
