package config

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/platform/ghost"
)

// Kinds are the kinds of platform that a site may have, in the order in which messages
// name them.
var Kinds = []platform.Kind{
	{Name: "none"}, // members live in the store alone
	ghost.Kind,
}

// DefaultAdminPath is the path of the admin unless a directive names another.
const DefaultAdminPath = ghost.AdminPath

// Platform is a publishing platform.
type Platform struct {
	// Kind is `ghost`, or `none` for members that live in the store alone.
	Kind string `json:"kind,omitempty"`

	// URL is where Ghost answers, such as http://127.0.0.1:2368.
	URL string `json:"url,omitempty"`

	// AdminKey is an Admin API key of a custom integration in Ghost.
	// Placeholders such as {env.GHOST_ADMIN_KEY} are replaced.
	AdminKey string `json:"admin_key,omitempty"`

	// Webhooks is the address at which Ghost reaches this site's edge, such as
	// https://news.example.com, so that it sends webhook events of what changes in
	// Ghost; `off` for none. Placeholders are replaced. Default: https:// and
	// the site's first host.
	Webhooks string `json:"webhooks,omitempty"`

	// Reconcile is how often all members are compared with Ghost's, which finds
	// changes of which no webhook event came, such as what staff do to many members at once; `off`
	// for when staff do such a thing through this edge only. Default: `6h`.
	Reconcile string `json:"reconcile,omitempty"`
}

// Of looks the kind up by its name. ok is false for no platform, and for a name that no
// kind has.
func (p *Platform) Of() (kind platform.Kind, ok bool) {
	if p == nil {
		return platform.Kind{}, false
	}
	i := slices.IndexFunc(Kinds, func(k platform.Kind) bool { return k.Name == p.Kind })
	if i < 0 {
		return platform.Kind{}, false
	}
	return Kinds[i], true
}

func (p *Platform) kind() platform.Kind {
	kind, _ := p.Of()
	return kind
}

// Has reports whether platforms of this one's kind have an option.
func (p *Platform) Has(option string) bool {
	kind := p.kind()
	return map[string]bool{
		"url": !kind.URL.IsZero(), "admin_key": !kind.Key.IsZero(), "webhooks": kind.SendsEvents(), "reconcile": kind.Connect != nil,
	}[option]
}

// PlatformWith finds the block of a platform that has an option, "" for none.
func PlatformWith(option string) string {
	for _, kind := range Kinds {
		if p := (&Platform{Kind: kind.Name}); p.Has(option) {
			return p.Block()
		}
	}
	return ""
}

// Title is what people call the platform, such as Ghost.
func (p *Platform) Title() string { return p.kind().Title }

// SendsEvents reports whether the platform sends webhook events, if it is told where to.
func (p *Platform) SendsEvents() bool { return p.kind().SendsEvents() }

// HasThemes reports whether the platform has themes.
func (p *Platform) HasThemes() bool { return p.kind().HasThemes() }

// Block is what a Caddyfile calls the platform's block.
func (p *Platform) Block() string { return "platform " + p.Kind }

func (p *Platform) in(err error) error { return In(p.Block(), "platform", err) }

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

// settings are the values of a platform with placeholders replaced.
type settings struct {
	kind         platform.Kind
	address, key string
}

// resolve checks the platform, but for where its webhook events go.
func (p *Platform) resolve(ph Placeholders) (of settings, err error) {
	var ok bool
	if of.kind, ok = p.Of(); !ok {
		return of, ErrNoPlatform()
	}
	if of.address, err = p.resolveURL(ph); err != nil {
		return of, err
	}
	if !of.kind.Key.IsZero() {
		of.key, err = p.resolveKey(ph, of.kind)
	}
	if err == nil {
		_, err = p.Interval()
	}
	return of, p.in(err)
}

func (p *Platform) resolveURL(ph Placeholders) (address string, err error) {
	kind := p.kind()
	if kind.URL.IsZero() {
		return "", nil
	}
	err = ph.Use("", p.URL, func(value string) error {
		address = value
		if err := kind.URL.Check(value); err != nil {
			return &Mistake{Text: literal(err.Error())}
		}
		return nil
	})
	return address, p.in(inField("url", err))
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
	if err != nil || of.kind.Connect == nil {
		return nil, err
	}
	connected, err := of.kind.Connect(of.address, of.key)
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
	port := cmp.Or(address.Port(), map[string]string{"http": "80", "https": "443"}[address.Scheme])
	return &url.URL{Scheme: address.Scheme, Host: net.JoinHostPort(address.Hostname(), port)}, nil
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
