// Package ghost is a client of Ghost's Admin API, as far as members and staff go.
// It implements [platform.Platform].
package ghost

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Config holds what a [Client] is made from. URL and AdminKey are required.
type Config struct {
	// URL is where Ghost responds, without /ghost: http://127.0.0.1:2368.
	URL string

	// AdminURL is where staff see Ghost's admin, without /ghost, if Ghost has an admin:url of another
	// host than its url. Default: as Ghost tells.
	AdminURL string

	// AdminKey is an Admin API key, as Ghost's settings show it: an ID and a
	// hexadecimal secret with a colon between them.
	AdminKey string

	// Timeout bounds each request. Default: 30 seconds, and 10 for those about the
	// staff.
	Timeout time.Duration
}

// Client talks to one Ghost. It may be used by many goroutines at once. Close
// it when it is no longer needed. What it can do is in its parts, a file or two each.
type Client struct {
	memberClient
	postClient
	searchClient
	eventClient
	webhookClient
	examiner
	visitorClient
	readerClient
}

var (
	_ platform.Platform      = (*Client)(nil)
	_ platform.EventSource   = (*Client)(nil)
	_ platform.BulkChanger   = (*Client)(nil)
	_ platform.Locator       = (*Client)(nil)
	_ platform.AdminLocator  = (*Client)(nil)
	_ platform.Authenticator = (*Client)(nil)
	_ platform.ThemeHost     = (*Client)(nil)
	_ platform.PostHost      = (*Client)(nil)
	_ platform.EventHost     = (*Client)(nil)
	_ platform.ReaderHost    = (*Client)(nil)
	_ platform.MemberLabeler = (*Client)(nil)
	_ platform.Examiner      = (*Client)(nil)
	_ platform.EventTester   = (*Client)(nil)
)

// New makes a Client. It does not talk to Ghost yet.
func New(cfg Config) (*Client, error) {
	if err := checkURL(cfg.URL); err != nil {
		return nil, err
	}
	if err := checkAdminKey(cfg.AdminKey); err != nil {
		return nil, fmt.Errorf("admin_key: %w", err)
	}
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	id, secret, _ := strings.Cut(cfg.AdminKey, ":")
	key, err := hex.DecodeString(secret)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(id, key)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	t := &transport{
		site: strings.TrimRight(base.String(), "/"), base: base.JoinPath(adminAPI).String(), tokens: tokens, timeout: cfg.Timeout,
		finding: make(chan struct{}, 1),
	}
	if cfg.AdminURL != "" {
		if t.admin, err = url.Parse(strings.TrimRight(cfg.AdminURL, "/")); err != nil {
			return nil, err
		}
	}
	t.addresses.Store(&addresses{admin: t.admin})
	forMembers, forPosts := t.newAPI(maxConnections), t.newAPI(maxPostConnections)
	forVisitors, forReaders := t.newAPI(maxStaffConnections), t.newAPI(maxReaderConnections)
	source := webhookClient{api: forMembers, key: key}
	return &Client{
		memberClient:  memberClient{labelClient{api: forMembers, labelling: make(chan struct{}, 1)}},
		postClient:    postClient{forPosts},
		searchClient:  searchClient{postClient{forPosts}, &titleIndex{lists: make(map[string]*titleList)}},
		eventClient:   eventClient{postClient{forPosts}},
		webhookClient: source,
		examiner:      examiner{webhookClient: source, tags: forPosts},
		visitorClient: visitorClient{forVisitors},
		readerClient:  readerClient{api: forReaders, mails: t.newAPI(maxMailConnections), key: key},
	}, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() error {
	c.titles.close()
	for _, of := range []api{c.memberClient.api, c.postClient.api, c.visitorClient.api, c.readerClient.api, c.mails} {
		of.http.CloseIdleConnections()
	}
	return nil
}
