package doctor

import (
	"context"
	"net/netip"
	"net/url"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/trouble"
)

// Config is what is checked.
type Config struct {
	Resolvers []netip.AddrPort
	Store     *Store       // nil if none is used
	Redis     string       // URL, empty for none
	Mail      *mail.Server // of sites that have none of their own, nil for none
	Sites     []Site
	Servers   []Server

	// Warnings are what Caddy will log when it starts the configuration.
	Warnings []string

	// UnknownHosts warns of hosts of the configuration that no site has, given those of the sites in the store.
	UnknownHosts func(stored []string) []string

	// Folders are where to look for a platform that is not at its address (see
	// platform.Locator).
	Folders []string

	// WithoutCertificate has the sites for a host of which the edge that runs on this machine could
	// get no certificate. Nil if it is not to be asked.
	WithoutCertificate func(context.Context) (map[string]trouble.Reason, error)

	// IsRunning asks whether a Caddy runs on this machine with the configuration. Nil if that cannot be known.
	IsRunning func(context.Context) (bool, error)

	// Admin has the TCP address of Caddy's admin API, if that listens on TCP.
	Admin []string

	// RunningStore is where the Caddy that runs on this machine has its store, as database.Place says; empty if none
	// tells. Nil if it is not to be asked.
	RunningStore func(context.Context) string

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
	Mail     *mail.Server      // of its own, nil for none
	Themes   []Theme

	// AdminPath is the path of the platform's admin, below that of the publication. It
	// is empty where neither uploads of themes are watched nor staff have pages.
	AdminPath string

	// UsesEvents tells that webhook events are of use, EventsOff that the configuration
	// wants none, and WebhookURL where they arrive, without the token; it is empty for
	// nowhere.
	UsesEvents, EventsOff bool
	WebhookURL            string

	// Target is the warning that some versions of the platform send no webhook events to WebhookURL, empty if all do.
	Target string
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
	Listens   []string // TCP addresses that it listens at
	HTTPS     string   // host and port at which this machine reaches it over HTTPS; empty for none

	// TrustsProxies, Strict and TrustsUnix tell whether it has Caddy's trusted_proxies,
	// trusted_proxies_strict and trusted_proxies_unix.
	TrustsProxies, Strict, TrustsUnix bool

	// Get takes the server's routes as the request of a reader does, of this machine's, for a URL. A server
	// without HTTPS is asked as by a proxy in front of it that has HTTPS, if the URL has.
	Get func(ctx context.Context, to *url.URL) Response

	Directives []Directive
}

// Response is one of a server's. Of a long body it has the beginning.
type Response struct {
	Status         int // 0 if nothing answered
	IsAborted      bool
	Type, Location string
	Body           []byte
}

// Directive is one of Lychgate's in a server's routes.
type Directive struct {
	Name, At, Path string     // At is its line in a Caddyfile, or its place in JSON
	Needs          [][]string // paths, of each of which one has to arrive
	IsPartial      bool       // whether matchers of more than hosts and paths decide
	IsForAll       bool       // whether it is for any host

	Serves func(host string) bool                                  // whether the matchers of hosts let one through
	Gets   func(ctx context.Context, to *url.URL) (bool, Response) // whether a request arrives at a directive of this name, or what it is answered
}
