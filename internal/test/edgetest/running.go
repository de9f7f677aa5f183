package edgetest

import (
	"context"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// AddKind adds a kind of platform until the test ends.
func AddKind(t *testing.T, kind platform.Kind) {
	before := config.Kinds
	config.Kinds = append(slices.Clone(before), kind)
	t.Cleanup(func() { config.Kinds = before })
}

// PurgeStored deletes what is kept of all sites that were removed from the store of the
// running configuration.
func PurgeStored(ctx context.Context) error {
	running, err := caddy.ActiveContext().AppIfConfigured("lychgate")
	if err != nil {
		return err
	}
	return running.(*caddymodule.App).Edge.Stored().PurgeNow(ctx)
}
