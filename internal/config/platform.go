package config

import (
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
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

	// AdminURL is where staff see Ghost's admin, without /ghost, if Ghost's configuration
	// has an admin:url of another host than its url: https://admin.example.com. Default: as Ghost tells.
	AdminURL string `json:"admin_url,omitempty"`

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

// ReachesAs reports whether a platform is reached as another is: at the same address with the
// same key.
func (p *Platform) ReachesAs(other *Platform) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Kind == other.Kind && p.URL == other.URL && p.AdminURL == other.AdminURL && p.AdminKey == other.AdminKey
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
		"url": !kind.URL.IsZero(), "admin_url": !kind.AdminURL.IsZero(), "admin_key": !kind.Key.IsZero(),
		"webhooks": kind.SendsEvents(), "reconcile": kind.Connect != nil,
	}[option]
}

// PlatformOption is one of the options of platforms.
type PlatformOption struct {
	Name, Example, Help string
	Value               *string
}

// Options are all that platforms of any kind have.
func (p *Platform) Options() []PlatformOption {
	return []PlatformOption{
		{"url", exampleKind.URL.Example, "Where Ghost answers, such as http://127.0.0.1:2368", &p.URL},
		{"admin_url", exampleKind.AdminURL.Example, "Where staff see Ghost's admin, if that has a host of its own, such as https://admin.example.com (default: as Ghost tells)", &p.AdminURL},
		{"admin_key", exampleKind.Key.Example, "Admin API key of a custom integration in Ghost; - reads it from standard input", &p.AdminKey},
		{"webhooks", "https://news.example.com", "Address at which Ghost reaches this site's edge, or off (default: https:// and the first host)", &p.Webhooks},
		{"reconcile", "6h", "How often all members are compared with Ghost's, or off (default: 6h)", &p.Reconcile},
	}
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
