// Package caddymodule registers all of Lychgate with Caddy. The packages below it are the only
// ones that know Caddy: the app "lychgate", a package for each directive and for each other
// module, and the command line.
package caddymodule

import (
	_ "github.com/lychgate/caddy-lychgate/caddymodule/admin" // on Caddy's admin API
	_ "github.com/lychgate/caddy-lychgate/caddymodule/app"   // the global option

	// The directives.
	_ "github.com/lychgate/caddy-lychgate/caddymodule/eventsapi"
	_ "github.com/lychgate/caddy-lychgate/caddymodule/inboxprovider"
	_ "github.com/lychgate/caddy-lychgate/caddymodule/membersapi"
	_ "github.com/lychgate/caddy-lychgate/caddymodule/staffdesk"
	_ "github.com/lychgate/caddy-lychgate/caddymodule/thememanifest"

	// The command line.
	_ "github.com/lychgate/caddy-lychgate/caddymodule/command"

	// What others take a module for.
	_ "github.com/lychgate/caddy-lychgate/caddymodule/permission"
	_ "github.com/lychgate/caddy-lychgate/caddymodule/upstreams"
)
