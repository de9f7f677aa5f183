// Package inprocess runs Caddy in the process of a test or a benchmark, which
// imports Lychgate itself.
package inprocess

import (
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // what a Caddyfile may name
)

// Load has the process's Caddy run a Caddyfile, instead of the one before.
func Load(caddyfile string) error {
	config, err := Adapt(caddyfile)
	if err != nil {
		return err
	}
	return caddy.Load(config, true)
}

// Adapt converts a Caddyfile to JSON. A warning is an error, unless it is about the
// format.
func Adapt(caddyfile string) ([]byte, error) {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	if err == nil && len(warnings) > 0 && warnings[0].Message != "Caddyfile input is not formatted; run 'caddy fmt --overwrite' to fix inconsistencies" {
		err = fmt.Errorf("warnings: %v", warnings)
	}
	return config, err
}
