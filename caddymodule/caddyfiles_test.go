package caddymodule_test

import (
	"cmp"
	"strings"
)

// inboxSite is a Caddyfile with the site demo and an inbox button.
type inboxSite struct {
	name      string // default: demo
	resolvers string // default: {{dns}}
	before    string // directives in front of inbox_provider
	options   string // block of inbox_provider
}

func (s inboxSite) caddyfile() string {
	return `
{
	{{global}}
	lychgate {
		resolvers ` + cmp.Or(s.resolvers, "{{dns}}") + `
		site ` + cmp.Or(s.name, "demo") + ` {
			hosts localhost 127.0.0.1 news.example.com
		}
	}
}
http://:{{port}} {
	` + s.before + `
	inbox_provider ` + s.options + `
	handle /metrics {
		metrics
	}
	respond "the site's own page at {path}"
}
`
}

var oneSite = inboxSite{}.caddyfile()

// membersSites is a Caddyfile with the members API of the sites daily and other.
type membersSites struct {
	store, platform string // platform of daily

	global string // more global options
	form   string // more options of the integration form
	daily  string // more options of the site
	before string // directives in front of members_api
	limit  string // of members_api; default: 10000 1m
	api    string // in place of members_api
	own    string // what answers all else; default: the site's own page
}

func (s membersSites) caddyfile() string {
	return `
{
	{{global}}
	` + s.global + `
	lychgate {
		store ` + s.store + `
		site daily {
			hosts localhost 127.0.0.1
			platform ` + s.platform + `
			integration form {
				key ` + formKey + `
				` + s.form + `
			}
			integration crm {
				key ` + crmKey + `
				mode custom_id
				allow_duplicate_emails
			}
			integration strict {
				key ` + strictKey + `
				mode custom_id
				subscribe_by_default off
			}
			` + s.daily + `
		}
		site other {
			hosts other.example.com
			platform none
			integration form {
				key ` + otherKey + `
			}
		}
	}
}
http://:{{port}} {
	` + s.before + `
	` + cmp.Or(s.api, "members_api {\n limit "+cmp.Or(s.limit, "10000 1m")+"\n}") + `
	` + cmp.Or(s.own, `respond "the site's own page at {path}"`) + `
}
`
}

func membersConfig(store, platform string) string {
	return membersSites{store: store, platform: platform}.caddyfile()
}

// themesSite is a Caddyfile with a Ghost behind the edge, beside a site without one.
type themesSite struct {
	store, url, key string

	daily string // more options of the site
	serve string // what serves the admin; default: theme_manifest
}

func (s themesSite) caddyfile() string {
	upstream, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	return `
{
	{{global}}
	lychgate {
		store ` + s.store + `
		site daily {
			hosts localhost 127.0.0.1
			platform ` + ghostPlatform(s.url, s.key, "off") + `
			` + s.daily + `
		}
		site bare {
			hosts bare.example.com
			platform none
		}
	}
}
http://:{{port}} {
	` + cmp.Or(s.serve, "theme_manifest") + `
	metrics /metrics
	reverse_proxy ` + upstream + ` {
		transport http {
			keepalive 90s # the default has connections that outlive Caddy
		}
	}
}
`
}

func themesConfig(store, url, key, themes string) string {
	return themesSite{store: store, url: url, key: key, daily: themes}.caddyfile()
}

// homepageConfig adds the desk.
func homepageConfig(store, url, key string) string {
	return themesSite{store: store, url: url, key: key, serve: "theme_manifest\nstaff_desk"}.caddyfile()
}

// eventsConfig adds the desk, and events for readers.
func eventsConfig(store, url, key, limit string) string {
	return themesSite{store: store, url: url, key: key, serve: "theme_manifest\nstaff_desk\nevents_api {\nlimit " + limit + "\n}"}.caddyfile()
}

// deskConfig adds the desk and the members API. Options are what else is to be in the site's
// block.
func deskConfig(store, url, key, options string) string {
	return themesSite{store: store, url: url, key: key, daily: options, serve: "theme_manifest\nstaff_desk\nmembers_api {\nlimit 10000 1m\n}"}.caddyfile()
}
