package edgetest

import (
	"cmp"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// Tokens of the admin API.
const (
	OperatorToken = "operator-token-0123456789abcdef0123456789"
	AcmeToken     = "acme-token-0123456789abcdef0123456789abcd"
)

// InboxSite is a Caddyfile with the site demo and an inbox button.
type InboxSite struct {
	Name      string // default: demo
	Resolvers string // default: {{dns}}
	Before    string // directives in front of inbox_provider
	Options   string // block of inbox_provider
}

// Caddyfile has the names in braces that [StartEdge] fills.
func (s InboxSite) Caddyfile() string {
	return `
{
	{{global}}
	lychgate {
		resolvers ` + cmp.Or(s.Resolvers, "{{dns}}") + `
		site ` + cmp.Or(s.Name, "demo") + ` {
			hosts localhost 127.0.0.1 news.example.com
		}
	}
}
http://:{{port}} {
	` + s.Before + `
	inbox_provider ` + s.Options + `
	handle /metrics {
		metrics
	}
	respond "the site's own page at {path}"
}
`
}

// OneSite is the plain [InboxSite].
var OneSite = InboxSite{}.Caddyfile()

// MembersSites is a Caddyfile with the members API of the sites daily and other.
type MembersSites struct {
	Store, Platform string // platform of daily

	Global string // more global options
	Form   string // more options of the integration form
	Daily  string // more options of the site
	Before string // directives in front of members_api
	Limit  string // of members_api; default: 10000 1m
	API    string // in place of members_api
	Own    string // what answers all else; default: the site's own page
}

// Caddyfile has the names in braces that [StartEdge] fills.
func (s MembersSites) Caddyfile() string {
	return `
{
	{{global}}
	` + s.Global + `
	lychgate {
		store ` + s.Store + `
		site daily {
			hosts localhost 127.0.0.1
			platform ` + s.Platform + `
			integration form {
				key ` + FormKey + `
				` + s.Form + `
			}
			integration crm {
				key ` + CRMKey + `
				mode custom_id
				allow_duplicate_emails
			}
			integration strict {
				key ` + StrictKey + `
				mode custom_id
				subscribe_by_default off
			}
			` + s.Daily + `
		}
		site other {
			hosts other.example.com
			platform none
			integration form {
				key ` + OtherKey + `
			}
		}
	}
}
http://:{{port}} {
	` + s.Before + `
	` + cmp.Or(s.API, "members_api {\n limit "+cmp.Or(s.Limit, "10000 1m")+"\n}") + `
	` + cmp.Or(s.Own, `respond "the site's own page at {path}"`) + `
}
`
}

// MembersConfig is a [MembersSites] of a store and a platform.
func MembersConfig(store, platform string) string {
	return MembersSites{Store: store, Platform: platform}.Caddyfile()
}

// ThemesSite is a Caddyfile with a Ghost behind the edge, beside a site without one.
type ThemesSite struct {
	Store, URL, Key string

	daily string // more options of the site
	Serve string // what serves the admin; default: theme_manifest
}

// Caddyfile has the names in braces that [StartEdge] fills.
func (s ThemesSite) Caddyfile() string {
	upstream, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	return `
{
	{{global}}
	lychgate {
		store ` + s.Store + `
		site daily {
			hosts localhost 127.0.0.1
			platform ` + GhostPlatform(s.URL, s.Key, "off") + `
			` + s.daily + `
		}
		site bare {
			hosts bare.example.com
			platform none
		}
	}
}
http://:{{port}} {
	` + cmp.Or(s.Serve, "theme_manifest") + `
	metrics /metrics
	reverse_proxy ` + upstream + ` {
		transport http {
			keepalive 90s # the default has connections that outlive Caddy
		}
	}
}
`
}

// ThemesConfig is a [ThemesSite] with more options of the site.
func ThemesConfig(store, url, key, themes string) string {
	return ThemesSite{Store: store, URL: url, Key: key, daily: themes}.Caddyfile()
}

// HomepageConfig adds the desk.
func HomepageConfig(store, url, key string) string {
	return ThemesSite{Store: store, URL: url, Key: key, Serve: "theme_manifest\nstaff_desk"}.Caddyfile()
}

// EventsConfig adds the desk, and events for readers.
func EventsConfig(store, url, key, limit string) string {
	return ThemesSite{Store: store, URL: url, Key: key, Serve: "theme_manifest\nstaff_desk\nevents_api {\nlimit " + limit + "\n}"}.Caddyfile()
}

// DeskConfig adds the desk and the members API. Options are what else is to be in the site's
// block.
func DeskConfig(store, url, key, options string) string {
	return ThemesSite{Store: store, URL: url, Key: key, daily: options, Serve: "theme_manifest\nstaff_desk\nmembers_api {\nlimit 10000 1m\n}"}.Caddyfile()
}

// GhostPlatform is a platform of membersConfig. Webhooks is their address,
// or off. What other tests do in the same Ghost is not compared.
func GhostPlatform(url, key, webhooks string) string {
	return "ghost " + url + " {\n admin_key " + key + "\n webhooks " + webhooks + "\n reconcile off\n}"
}

// OpenDatabase opens the database of a running edge beside it. Store is as in the option of that name.
func OpenDatabase(t testing.TB, store string) *database.DB {
	t.Helper()
	kind, source, _ := strings.Cut(store, " ")
	db, err := database.Open(t.Context(), database.Kind(kind), source)
	if err != nil {
		t.Fatalf("database.Open: %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// OpenStore opens the store of a running edge beside it.
func OpenStore(t testing.TB, source string) *memberstore.SQL {
	t.Helper()
	store, err := memberstore.NewSQL(t.Context(), OpenDatabase(t, source))
	if err != nil {
		t.Fatalf("memberstore.NewSQL: %v", err)
	}
	return store
}

// AnAdminKey has the form of a key of Ghost's Admin API.
const AnAdminKey = "0123456789abcdef01234567:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
