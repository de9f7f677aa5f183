// Command caddy is Caddy with its standard modules and Lychgate, for those who
// build without xcaddy.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/lychgate/caddy-lychgate"
)

func main() { caddycmd.Main() }
