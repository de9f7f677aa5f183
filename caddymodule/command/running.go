package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// askTimeout bounds one request to the running Caddy.
const askTimeout = 5 * time.Second

// runningCaddy is the Caddy that runs on this machine with a configuration. It is asked on its admin API.
type runningCaddy struct {
	address string // empty for no admin API
	header  http.Header
}

// Why a running Caddy is not asked.
var (
	errNotRunning = errors.New("no Caddy with Lychgate runs on this machine at the admin address of this configuration")
	errNoAdminAPI = errors.New("the configuration turns Caddy's admin API off")
	errNoToken    = errors.New("the Caddy that runs wants an admin token that may see all sites: add an admin_token without labels to the configuration, and run this in the environment of Caddy")
)

// runningWith is the Caddy that runs with a configuration in JSON.
func runningWith(text []byte) (*runningCaddy, error) {
	var parsed struct {
		Admin struct {
			Disabled bool   `json:"disabled"`
			Listen   string `json:"listen"`
		} `json:"admin"`
		Apps struct {
			Lychgate config.Config `json:"lychgate"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if parsed.Admin.Disabled {
		return &runningCaddy{}, nil
	}
	replacer := caddy.NewReplacer()
	c := &runningCaddy{address: cmp.Or(replacer.ReplaceAll(parsed.Admin.Listen, ""), caddy.DefaultAdminListen)}
	tokens := parsed.Apps.Lychgate.AdminTokens
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		if key := replacer.ReplaceAll(tokens[name].Key, ""); key != "" && len(tokens[name].Labels) == 0 { // it may see all sites
			c.header = http.Header{"Authorization": {"Bearer " + key}}
			break
		}
	}
	return c, nil
}

// isRunning reports whether it runs. Errors: errNoAdminAPI.
func (c *runningCaddy) isRunning(ctx context.Context) (bool, error) {
	if c.address == "" {
		return false, errNoAdminAPI
	}
	var sites struct{}
	err := c.get(ctx, "/lychgate/sites?limit=1", &sites)
	switch {
	case errors.Is(err, errNotRunning):
		return false, nil
	case errors.Is(err, errNoToken):
		return true, nil
	}
	return err == nil, err
}

// storeAt is where its store is, "" if it does not say.
func (c *runningCaddy) storeAt(ctx context.Context) string {
	var health struct {
		StoreAt string `json:"store_at"`
	}
	if c.address == "" || c.get(ctx, "/lychgate/health", &health) != nil {
		return ""
	}
	return health.StoreAt
}

// inState has the sites that the running edge alone knows to be in a state, and why they are. Errors: errNotRunning, errNoAdminAPI, errNoToken.
func (c *runningCaddy) inState(ctx context.Context, of trouble.State) (map[string]trouble.Reason, error) {
	if c.address == "" {
		return nil, errNoAdminAPI
	}
	reasons := make(map[string]trouble.Reason)
	for next := "/lychgate/sites?limit=1000&state=" + url.QueryEscape(string(of)); next != ""; {
		var page struct {
			Sites []trouble.Site `json:"sites"`
			Next  string         `json:"next"`
		}
		if err := c.get(ctx, next, &page); err != nil {
			return nil, err
		}
		for _, site := range page.Sites {
			for _, r := range site.Reasons {
				if r.State == of && r.ThisEdge {
					reasons[site.Name] = r
				}
			}
		}
		next = page.Next
	}
	return reasons, nil
}

// get decodes a response.
func (c *runningCaddy) get(ctx context.Context, path string, into any) error {
	bounded, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { // which goes on if Caddy does not respond, as long as the command
		response, err := caddycmd.AdminAPIRequest(c.address, http.MethodGet, path, c.header, nil)
		if err == nil {
			defer response.Body.Close()
			var body []byte
			if body, err = io.ReadAll(response.Body); err == nil {
				err = json.Unmarshal(body, into)
			}
		}
		done <- err
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-bounded.Done():
		return fmt.Errorf("asking Caddy at %s: no response in %s", c.address, askTimeout)
	case err := <-done:
		if err == nil {
			return nil
		}
		// What answers in another way is a Caddy without Lychgate, or another program.
		for _, text := range []string{"connect: connection refused", "connect: no such file", "HTTP 404", "malformed HTTP", "invalid character"} {
			if strings.Contains(err.Error(), text) {
				return errNotRunning
			}
		}
		if strings.Contains(err.Error(), "HTTP 401") {
			return errNoToken
		}
		return fmt.Errorf("asking Caddy at %s: %s", c.address, strings.TrimSpace(err.Error()))
	}
}
