// Package lychgate is a Caddy plugin that stands at the edge of Ghost
// publications. Importing it registers everything, so a custom Caddy is built
// with
//
//	xcaddy build --with github.com/lychgate/caddy-lychgate
//
// What is registered is documented in package caddymodule, and for operators in
// docs/.
package lychgate

import (
	_ "github.com/lychgate/caddy-lychgate/caddymodule"         // the directives and the global option
	_ "github.com/lychgate/caddy-lychgate/caddymodule/admin"   // on Caddy's admin API
	_ "github.com/lychgate/caddy-lychgate/caddymodule/command" // the command line
)
