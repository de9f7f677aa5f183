package ghost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

const (
	// privateSession is the name of the cookie that the password of a private site gives.
	privateSession = "ghost-private"

	// privatePath is the form for that password. Ghost redirects from it who needs none.
	privatePath = "/private/"
)

// Without a key that Ghost takes, its form for the password tells. Ghost's own secret feed has the same hash in its address.
func (c *readerClient) Privacy(ctx context.Context) (platform.Privacy, error) {
	said, err := c.privacySettings(ctx)
	if errors.Is(err, platform.ErrKeyRejected) {
		var isOpen bool
		isOpen, err = c.HasAccess(ctx, "")
		said.IsPrivate = !isOpen
	}
	return said, err
}

func (c *readerClient) privacySettings(ctx context.Context) (platform.Privacy, error) {
	ctx, cancel := context.WithTimeout(ctx, staffTimeout)
	defer cancel()
	var response struct {
		Settings []struct {
			Key   string `json:"key"`
			Value any    `json:"value"`
		} `json:"settings"`
	}
	if err := c.call(ctx, http.MethodGet, "/settings/", url.Values{"group": {"private"}}, nil, &response); err != nil {
		return platform.Privacy{}, fmt.Errorf("asking Ghost whether the publication is private: %w", err)
	}
	var p platform.Privacy
	isKnown := false
	for _, setting := range response.Settings {
		switch setting.Key {
		case "is_private":
			p.IsPrivate, isKnown = setting.Value.(bool)
		case "public_hash":
			p.FeedToken, _ = setting.Value.(string)
		}
	}
	if !isKnown {
		return platform.Privacy{}, fmt.Errorf("asking Ghost whether the publication is private: %w", &Error{Status: http.StatusOK, Message: "without is_private"})
	}
	return p, nil
}

// Ghost does not sign the cookie: it has a hash of the password.
func (*readerClient) AccessSession(cookie string) string { return cookieOf(cookie, privateSession) }

// HasAccess asks for the form as a browser does. A redirect to the form itself, such as to another host, says nothing.
func (c *readerClient) HasAccess(ctx context.Context, session string) (bool, error) {
	form, err := c.sendAsReader(ctx, request{method: http.MethodGet, url: privatePath, header: map[string]string{"Cookie": session}})
	switch {
	case err != nil:
		return false, fmt.Errorf("asking Ghost who may read: %w", err)
	case form.status >= 300 && form.status < 400 && !strings.HasSuffix(form.header.Get("Location"), privatePath):
		return true, nil
	case form.status == http.StatusOK:
		return false, nil
	}
	return false, fmt.Errorf("asking Ghost who may read: %w", refusal(form.status, form.body))
}
