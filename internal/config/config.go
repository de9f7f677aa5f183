// Package config is a configuration as plain values, and what is wrong with it. It knows
// neither Caddy nor how anything runs: Caddyfiles and JSON are both read into a [Config],
// and each mistake is found here, once, with its place and what to write instead.
//
// Values may have placeholders. [Config.Check] looks at what is written, and leaves values
// with placeholders out. What is used is resolved with [Placeholders], by the same checks.
package config

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/seal"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/manifest"
)

// Config is what the operator configures for the whole edge.
type Config struct {
	// Resolvers are the recursive DNS servers that are asked for MX records,
	// in this order: IP addresses, with a port if it is not 53. Placeholders
	// such as {env.RESOLVER} are replaced. Default: the servers of
	// /etc/resolv.conf when the configuration is loaded.
	Resolvers []string `json:"resolvers,omitempty"`

	// Store is where members, integrations and theme manifests are kept. Default: SQLite, in the
	// file lychgate/lychgate.db in Caddy's data directory.
	Store *Store `json:"store,omitempty"`

	// Redis is the Redis, or Valkey, that several edges share, so that their rate limits
	// are exact over all of them and one lookup serves them all. Default: none.
	Redis *Redis `json:"redis,omitempty"`

	// Secrets seal what is secret of sites in the store: the first seals, the others
	// still open. Each has 32 characters or more. Placeholders such as
	// {env.LYCHGATE_SECRET} are replaced. Default: none, so such sites cannot be added.
	Secrets []string `json:"secrets,omitempty"`

	// AdminTokens are those that requests to Lychgate's endpoints on Caddy's admin API have, by
	// name. Default: none, so that anyone who reaches the admin API may do everything.
	AdminTokens map[string]*AdminToken `json:"admin_tokens,omitempty"`

	// Mail is how mails to those who have registered for events are sent. Default: none are.
	Mail *Mail `json:"mail,omitempty"`

	// Service is what the file name of theme manifests starts with:
	// `<service>-manifest.yaml`. Default: `lychgate`.
	Service string `json:"service,omitempty"`

	// FallbackManifest is a file on this machine whose event types all themes have that declare none:
	// a manifest of any name, or the folder or the zip of a theme that has one. Placeholders are
	// replaced. It is read when the configuration is loaded. Default: none.
	FallbackManifest string `json:"fallback_manifest,omitempty"`

	// Sites are the publications, by name. A name has up to 63 letters,
	// digits, hyphens and underscores; it names the site in metrics and logs. Other
	// sites may be in the store.
	Sites map[string]*Site `json:"sites,omitempty"`
}

// UnmarshalJSON names the field in its errors.
func (c *Config) UnmarshalJSON(data []byte) error {
	type plain Config
	err := ReadJSON(data, (*plain)(c))
	for name, site := range c.Sites {
		if site == nil { // null is as good as {}
			c.Sites[name] = new(Site)
		}
	}
	return err
}

// Names are sorted.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.Sites)) }

// CheckHasSites fails with ErrNoSite. With a store there may be sites that are added
// later.
func (c *Config) CheckHasSites() error {
	if len(c.Sites) > 0 || c.Store != nil {
		return nil
	}
	return ErrNoSite
}

// ErrNoSite means that the configuration has no site.
var ErrNoSite error = &Mistake{Text: "no site is configured, so there is nothing to answer for: write ‹a global option, in a block before all others, such as\n" +
	ExampleApp + `|an app such as "lychgate": {"sites": {"daily": {"hosts": ["news.example.com"]}}}›, or there the store that has the sites`}

// Examples of blocks in Caddyfiles.
const (
	ExampleSite = "site daily {\n\thosts news.example.com\n}"
	ExampleApp  = "lychgate {\n\tsite daily {\n\t\thosts news.example.com\n\t}\n}"
)

// Check finds mistakes in what is written, wherever it is used or not.
func (c *Config) Check(p Placeholders) error {
	p = p.AsWritten()
	owners := make(map[string]string) // host → the site that has it
	all := []func() error{
		func() error { _, err := c.Servers(p); return err },
		func() error { _, _, err := c.Store.Resolve(p, ""); return In("lychgate", "", err) },
		func() error { _, err := c.Redis.Resolve(p); return err },
		func() error { _, err := c.Mail.Resolve(p); return err },
		func() error { _, err := c.Keyring(p); return err },
		func() error { _, err := c.ResolveAdminTokens(p); return err },
		func() error { _, err := c.ManifestFile(); return err },
	}
	for _, name := range c.Names() {
		all = append(all, func() error { return inSite(name, c.Sites[name].check(p, owners, name)) })
	}
	for _, check := range all {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ResolveSites checks the names of the sites, their hosts, and their themes. It returns the
// hosts of each as they appear in requests.
func (c *Config) ResolveSites(p Placeholders) (map[string][]string, error) {
	all, owners := make(map[string][]string), make(map[string]string)
	for _, name := range c.Names() {
		if err := CheckSiteName(name); err != nil {
			return nil, err
		}
		site := c.Sites[name]
		hosts, err := site.ResolveHosts(p, owners, name)
		if err == nil {
			err = site.checkThemes(p)
		}
		if err != nil {
			return nil, inSite(name, err)
		}
		all[name] = hosts
	}
	return all, nil
}

// Keyring seals and opens the secrets of sites in the store. Without Secrets it can do
// neither.
func (c *Config) Keyring(p Placeholders) (*seal.Keyring, error) {
	var secrets []string
	for i, secret := range c.Secrets {
		value := secret // as it is written, if it has a placeholder
		err := p.Use("secret", secret, func(secret string) error {
			value = secret
			return checkSecret(secret)
		})
		if err == nil && slices.Contains(secrets, value) {
			err = &Mistake{Option: "secret", Text: "number " + strconv.Itoa(i+1) + " is written before: write the new one in front of the old one, or one alone"}
		}
		if err != nil {
			return nil, In("lychgate", "", inField("secrets", err))
		}
		secrets = append(secrets, value)
	}
	if p.written {
		return nil, nil
	}
	return seal.NewKeyring(secrets...)
}

// checkSecret checks a secret. It is in no error.
func checkSecret(secret string) error {
	if _, err := seal.NewKeyring(secret); err != nil {
		return cmp.Or(checkVariable("secret", secret), error(&Mistake{Option: "secret", Text: literal(err.Error())}))
	}
	return nil
}

// Servers are none for those of the system.
func (c *Config) Servers(p Placeholders) (servers []netip.AddrPort, err error) {
	for _, resolver := range c.Resolvers {
		err := p.Use("resolvers", resolver, func(resolver string) error {
			server, err := parseResolver(resolver)
			servers = append(servers, server)
			return err
		})
		if err != nil {
			return nil, In("lychgate", "", err)
		}
	}
	return servers, nil
}

// parseResolver parses the address of a DNS server, with or without port.
func parseResolver(s string) (netip.AddrPort, error) {
	if server, err := netip.ParseAddrPort(s); err == nil && server.Port() != 0 {
		return server, nil
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		return netip.AddrPort{}, &Mistake{
			Option: "resolvers",
			Text:   quote(s) + " is not an IP address, with or without port, such as 1.1.1.1, 127.0.0.1:5353 or [2606:4700:4700::1111]:53",
		}
	}
	return netip.AddrPortFrom(address, 53), nil
}

// ManifestFile is the name of the file at the root of a theme.
func (c *Config) ManifestFile() (string, error) {
	name, err := themes.FileName(cmp.Or(c.Service, "lychgate"))
	if err != nil {
		err = In("lychgate", "", &Mistake{Text: literal(err.Error()), Field: "service"})
	}
	return name, err
}

// FallbackEvents reads the event types of themes without a manifest. They are nil if there is no file for them.
func (c *Config) FallbackEvents(p Placeholders) (declared *manifest.Events, err error) {
	if c.FallbackManifest == "" {
		return nil, nil
	}
	fileName, err := c.ManifestFile()
	if err != nil {
		return nil, err
	}
	err = p.Use("fallback_manifest", c.FallbackManifest, func(name string) error {
		report, err := themes.Read(context.Background(), themes.FromFile(name, fileName))
		var wrong string
		switch {
		case err == nil && report.Status == themes.NoManifest:
			wrong = quote(name) + " has no " + fileName + "; name a manifest, or the folder or the zip of a theme that has one"
		case err != nil:
			wrong = literal(err.Error()) + "; name a manifest, or the folder or the zip of a theme"
		case len(report.Findings) > 0:
			first, more := report.Findings[0], ""
			if others := len(report.Findings) - 1; others > 0 {
				more = fmt.Sprintf("; caddy lychgate manifest validate says %d more", others)
			}
			wrong = literal(fmt.Sprintf("%s:%d: %s: %s%s", name, first.Line, first.Field, first.Message, more))
		case report.Manifest.Events == nil:
			wrong = quote(name) + " declares no event types; write them below events"
		default:
			declared = report.Manifest.Events
			return nil
		}
		return &Mistake{Option: "fallback_manifest", Text: wrong, Err: err}
	})
	return declared, In("lychgate", "", err)
}
