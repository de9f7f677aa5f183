package caddymodule

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/platform"
)

// AddKind adds a kind of platform until the test ends.
func AddKind(t *testing.T, kind platform.Kind) {
	before := kinds
	kinds = append(slices.Clone(before), kind)
	t.Cleanup(func() { kinds = before })
}

// PurgeStored deletes what is kept of all sites that were removed from the store of the
// running configuration.
func PurgeStored(ctx context.Context) error {
	app, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	if err != nil {
		return err
	}
	return app.(*App).stored.purge(ctx, -time.Hour)
}
