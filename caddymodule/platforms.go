package caddymodule

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/platform"
	"github.com/lychgate/caddy-lychgate/platform/ghost"
)

// kinds are the kinds of platform that a site may have, in the order in which messages
// name them.
var kinds = []platform.Kind{
	{Name: "none"}, // members live in the store alone
	ghost.Kind,
}

// defaultAdminPath is the path of the admin unless theme_manifest names another.
const defaultAdminPath = ghost.AdminPath

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

// kind returns the kind of a platform. It is the zero value, and not ok, if there is no
// such kind, or no platform.
func (p *Platform) kind() (kind platform.Kind, ok bool) {
	if p == nil {
		return platform.Kind{}, false
	}
	i := slices.IndexFunc(kinds, func(k platform.Kind) bool { return k.Name == p.Kind })
	if i < 0 {
		return platform.Kind{}, false
	}
	return kinds[i], true
}

// Title returns what people call the platform, such as Ghost.
func (p *Platform) Title() string {
	kind, _ := p.kind()
	return kind.Title
}

// sendsEvents reports whether the platform sends webhook events, if it is told where to.
func (p *Platform) sendsEvents() bool {
	kind, _ := p.kind()
	return kind.SendsEvents()
}

// hasThemes reports whether the platform has themes.
func (p *Platform) hasThemes() bool {
	kind, _ := p.kind()
	return kind.HasThemes()
}

// block is what a Caddyfile calls the platform's block.
func (p *Platform) block() string { return "platform " + p.Kind }

// inBlock wraps an error of the platform's configuration, nil for nil.
func (p *Platform) inBlock(err error) error { return inBlock(p.block(), "platform", err) }

func (p *Platform) unmarshalCaddyfile(d *caddyfile.Dispenser, args []string, in block) error {
	p.Kind = args[0]
	kind, ok := p.kind()
	switch {
	case !ok, kind.URL.IsZero() && len(args) != 1, !kind.URL.IsZero() && len(args) != 2:
		return d.WrapErr(errPlatform())
	case !kind.URL.IsZero():
		p.URL = args[1]
	}
	if err := checkEach("", args[1:], func(address string) error { return checkURL(kind, address) }); err != nil {
		return d.WrapErr(inBlock(p.block(), "", err))
	}
	err := parseBlock(d, p.block(), in, p.options(kind))
	if err == nil && p.AdminKey == "" && !kind.Key.IsZero() {
		err = d.WrapErr(inBlock(p.block(), "", errNoAdminKey(kind)))
	}
	return err
}

// options returns those that the block of a kind of platform has.
func (p *Platform) options(kind platform.Kind) map[string]option {
	known := make(map[string]option)
	if !kind.Key.IsZero() {
		known["admin_key"] = option{example: "admin_key " + kind.Key.Example, args: 1, set: func(args []string) error {
			p.AdminKey = args[0]
			return checkEach("admin_key", args, func(key string) error { return checkAdminKey(kind, key) })
		}}
	}
	if kind.SendsEvents() {
		known["webhooks"] = option{example: "webhooks https://news.example.com", args: 1, set: func(args []string) error {
			p.Webhooks = args[0]
			return checkEach("webhooks", args, func(address string) error { return checkWebhooks(kind, address) })
		}}
	}
	if kind.Connect != nil {
		known["reconcile"] = option{example: "reconcile 6h", args: 1, set: func(args []string) error {
			p.Reconcile = args[0]
			_, err := p.reconcile()
			return err
		}}
	}
	return known
}

// Connect returns the platform, nil for none. Nothing is sent to it yet.
func (p *Platform) Connect() (platform.Platform, error) {
	kind, ok := p.kind()
	switch {
	case !ok:
		return nil, errPlatform()
	case kind.Connect == nil:
		return nil, nil
	}
	address, key, err := p.resolve(kind)
	if err != nil {
		return nil, p.inBlock(err)
	}
	connected, err := kind.Connect(address, key)
	return connected, p.inBlock(err)
}

// resolve returns the settings of a kind of platform with placeholders replaced.
func (p *Platform) resolve(kind platform.Kind) (address, key string, err error) {
	address, err = p.resolveURL(kind)
	if err != nil || kind.Key.IsZero() {
		return address, "", err
	}
	if p.AdminKey == "" {
		return "", "", errNoAdminKey(kind)
	}
	if key, err = replace("admin_key", p.AdminKey); err == nil {
		err = checkAdminKey(kind, key)
	}
	return address, key, err
}

// resolveURL returns the URL of a kind of platform with placeholders replaced, empty if it
// has none.
func (p *Platform) resolveURL(kind platform.Kind) (address string, err error) {
	if kind.URL.IsZero() {
		return "", nil
	}
	if address, err = replace("", p.URL); err == nil {
		err = checkURL(kind, address)
	}
	return address, err
}

func checkURL(kind platform.Kind, address string) error {
	if err := kind.URL.Check(address); err != nil {
		return &mistake{text: err.Error(), field: "url"}
	}
	return nil
}

// checkAdminKey checks the key of a platform. The key is in no error.
func checkAdminKey(kind platform.Kind, key string) error {
	if err := kind.Key.Check(key); err != nil {
		return cmp.Or(checkVariable("admin_key", key), error(&mistake{name: "admin_key", text: err.Error()}))
	}
	return nil
}

const defaultReconcile = 6 * time.Hour

// reconcile returns how often members are compared with the platform's, 0 for off.
func (p *Platform) reconcile() (time.Duration, error) {
	switch p.Reconcile {
	case "":
		return defaultReconcile, nil
	case "off":
		return 0, nil
	}
	pause, err := caddy.ParseDuration(p.Reconcile)
	if err != nil || pause < time.Minute {
		const text = "%q: write %s, or a duration of a minute or more, such as %s"
		return 0, &mistake{name: "reconcile", text: fmt.Sprintf(text, p.Reconcile, "off", "6h"), json: fmt.Sprintf(text, p.Reconcile, `"off"`, `"6h"`)}
	}
	return pause, nil
}

func checkWebhooks(kind platform.Kind, address string) error {
	if u, err := url.Parse(address); address != "off" && (err != nil || !platform.IsServer(u) ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		const text = "%q: write %s, or the address at which %s reaches the edge, without a path, such as %s"
		return &mistake{
			name: "webhooks", text: fmt.Sprintf(text, address, "off", kind.Title, "https://news.example.com"),
			json: fmt.Sprintf(text, address, `"off"`, kind.Title, `"https://news.example.com"`),
		}
	}
	return nil
}

// checkWebhooksHost checks that webhooks sent to an address arrive at a site.
func (p *Platform) checkWebhooksHost(address string, has func(host string) bool) error {
	u, err := url.Parse(address)
	if err == nil && hostOf(u.Host) == "localhost" {
		return &mistake{name: "webhooks", text: fmt.Sprintf("%q: %s looks names up in DNS, where localhost is not: write 127.0.0.1, and add it to hosts", address, p.Title())}
	}
	if err != nil || !has(hostOf(u.Host)) {
		return &mistake{name: "webhooks", text: fmt.Sprintf("%q: the host is none of the site's, so nothing would arrive: add it to hosts, or write another", address)}
	}
	return nil
}

// webhookURL returns where the platform is to send its webhook events, empty for
// nowhere. The path is that of the members API.
func (s *Site) webhookURL(app *App, path string) (string, error) {
	kind, _ := s.Platform.kind()
	if !kind.SendsEvents() || s.Platform.Webhooks == "off" {
		return "", nil
	}
	address := "https://" + s.hosts[0]
	if s.Platform.Webhooks == "" && s.hosts[0] == "localhost" {
		app.logger.Warn(fmt.Sprintf("%s cannot reach localhost, so it sends no webhook events: write webhooks into %s", kind.Title, s.Platform.block()),
			zap.String("site", s.name))
		return "", nil
	}
	if s.Platform.Webhooks != "" {
		var err error
		if address, err = replace("webhooks", s.Platform.Webhooks); err == nil {
			err = checkWebhooks(kind, address)
		}
		if address == "off" && err == nil {
			return "", nil
		}
		if err == nil {
			err = s.Platform.checkWebhooksHost(address, s.has)
		}
		if err != nil {
			return "", s.Platform.inBlock(err)
		}
	}
	return address + membersapi.WebhookPath(path), nil
}
