package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// This file checks the options of a platform, and connects to it.

// SetArgs takes the arguments that the option has in a Caddyfile.
func (p *Platform) SetArgs(args []string) error {
	p.Kind = args[0]
	_, ok := p.Of()
	switch {
	case ok && p.Has("url") && len(args) == 2:
		p.URL = args[1]
		return nil
	case ok && !p.Has("url") && len(args) == 1:
		return nil
	}
	return ErrNoPlatform()
}

// resolve checks the platform, but for where its webhook events go, and replaces placeholders.
func (p *Platform) resolve(ph Placeholders) (of platform.Settings, err error) {
	kind, ok := p.Of()
	if !ok {
		return of, ErrNoPlatform()
	}
	if of.URL, err = p.resolveURL(ph); err != nil {
		return of, err
	}
	if p.AdminURL != "" && p.Has("admin_url") {
		of.AdminURL, err = resolveAddress(ph, "admin_url", p.AdminURL, kind.AdminURL)
	}
	if err == nil && !kind.Key.IsZero() {
		of.Key, err = p.resolveKey(ph, kind)
	}
	if err == nil {
		_, err = p.Interval()
	}
	return of, p.in(err)
}

func (p *Platform) resolveURL(ph Placeholders) (string, error) {
	kind := p.kind()
	if kind.URL.IsZero() {
		return "", nil
	}
	address, err := resolveAddress(ph, "", p.URL, kind.URL)
	return address, p.in(inField("url", err))
}

func resolveAddress(ph Placeholders, option, text string, setting platform.Setting) (address string, err error) {
	err = ph.Use(option, text, func(value string) error {
		address = value
		if err := setting.Check(value); err != nil {
			return &Mistake{Option: option, Text: literal(err.Error())}
		}
		return nil
	})
	return address, err
}

// No error has the key in it.
func (p *Platform) resolveKey(ph Placeholders, kind platform.Kind) (key string, err error) {
	if p.AdminKey == "" {
		return "", errNoAdminKey(kind)
	}
	err = ph.Use("admin_key", p.AdminKey, func(value string) error {
		key = value
		if err := kind.Key.Check(value); err != nil {
			return cmp.Or(checkVariable("admin_key", value), error(&Mistake{Option: "admin_key", Text: literal(err.Error())}))
		}
		return nil
	})
	return key, err
}

// Connect makes a client, nil without a platform. It sends nothing to the platform yet.
func (p *Platform) Connect(ph Placeholders) (platform.Platform, error) {
	if p == nil {
		return nil, ErrNoPlatform()
	}
	of, err := p.resolve(ph)
	if connect := p.kind().Connect; err != nil || connect == nil {
		return nil, err
	}
	connected, err := p.kind().Connect(of)
	return connected, p.in(err)
}

// Upstream is where the platform listens, with a port; nil for none.
func (p *Platform) Upstream(ph Placeholders) (*url.URL, error) {
	text, err := p.resolveURL(ph)
	if err != nil || text == "" {
		return nil, err
	}
	address, err := url.Parse(text)
	if err != nil {
		return nil, p.in(&Mistake{Field: "url", Text: literal(err.Error())})
	}
	return &url.URL{Scheme: address.Scheme, Host: net.JoinHostPort(address.Hostname(), portOf(address))}, nil
}

func portOf(address *url.URL) string {
	return cmp.Or(address.Port(), map[string]string{"http": "80", "https": "443", "smtp": "587", "smtps": "465"}[address.Scheme])
}

// ErrTransport is of a platform to which a reverse_proxy cannot pass requests on.
func (p *Platform) ErrTransport() error {
	return p.in(&Mistake{Field: "url", Text: "dynamic lychgate cannot reach an https:// address over this transport: write transport http, or none, into its reverse_proxy"})
}

// defaultInterval finds what no webhook event told of within a working day.
const defaultInterval = 6 * time.Hour

// Interval is the time between comparisons of all members with the platform's, 0 for none.
func (p *Platform) Interval() (time.Duration, error) {
	switch p.Reconcile {
	case "":
		return defaultInterval, nil
	case "off":
		return 0, nil
	}
	interval, err := ParseDuration(p.Reconcile)
	if err != nil || interval < time.Minute {
		return 0, &Mistake{Option: "reconcile", Text: quote(p.Reconcile) + ": write ‹off›, or a duration of a minute or more, such as ‹6h›"}
	}
	return interval, nil
}

// checkWebhooks checks that webhook events which are sent to an address arrive at a site.
func checkWebhooks(kind platform.Kind, address string, hosts []string) error {
	wrong := func(text string) error {
		return &Mistake{Option: "webhooks", Text: quote(address) + ": " + text}
	}
	u, err := url.Parse(address)
	if err != nil || !platform.IsServer(u) || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return wrong("write ‹off›, or the address at which " + kind.Title + " reaches the edge, without a path, such as ‹https://news.example.com›")
	}
	switch host := HostOf(u.Host); {
	case host == "localhost":
		return wrong(kind.Title + " looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts")
	case len(hosts) > 0 && !slices.Contains(hosts, host):
		return wrong("the host is none of the site's, so nothing would arrive: add it to hosts, or write another")
	}
	return nil
}
