// Package lychgate is a Caddy plugin that stands at the edge of Ghost
// publications. Importing it registers everything, so a custom Caddy is built
// with
//
//	xcaddy build --with github.com/lychgate/caddy-lychgate
//
// What is registered is documented in package caddymodule, and for operators in
// docs/.
package lychgate

import _ "github.com/lychgate/caddy-lychgate/caddymodule" // registers the modules and the command line
