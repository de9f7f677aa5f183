package edge

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/contacts"
	"github.com/lychgate/caddy-lychgate/internal/curation"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/audit"
	"github.com/lychgate/caddy-lychgate/internal/lib/database"
	"github.com/lychgate/caddy-lychgate/internal/sites"
	"github.com/lychgate/caddy-lychgate/internal/themes"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

const (
	// purgeInterval is how often the edge looks for removed sites of which something is
	// left. It purges a site purgeDelay after the removal. By then no edge serves it, and
	// requests that were under way have ended.
	purgeInterval = 30 * time.Second
	purgeDelay    = 90 * time.Second

	// purgeTimeout is how long an edge may delete what is kept of a site before another
	// goes on with it.
	purgeTimeout = 5 * time.Minute
)

// purged are the tables of sites besides those of members.
var purged = []database.Schema{contacts.Schema, themes.Schema, curation.Schema, events.Schema, history.Schema, work.Schema}

// Schemas are those of all tables of a store.
func Schemas() []database.Schema {
	return append(slices.Clip(purged), memberstore.Schema, sites.Schema, audit.Schema)
}

// purger deletes what is kept of removed sites.
type purger struct {
	sites      *sites.SQL
	now        func() time.Time // by the store's clock
	logger     *zap.Logger
	configured map[string]*Site // of the configuration, by name
	db         *database.DB
	members    *memberstore.SQL
}

// isKept reports whether anything of a site is left that its staff, readers or programs made.
func (p *purger) isKept(ctx context.Context, site string) (bool, error) {
	for _, schema := range append(slices.Clip(purged), memberstore.Schema) {
		if has, err := schema.HasContent(ctx, p.db, site); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// run purges from time to time, until ctx is done.
func (p *purger) run(ctx context.Context) {
	for {
		if err := p.purge(ctx, purgeDelay); err != nil && ctx.Err() == nil && !database.IsAway(err) {
			p.logger.Error("cannot purge removed site", zap.Error(err))
		}
		if !waitFor(ctx, purgeInterval) {
			return
		}
	}
}

// purge deletes what is kept of all sites that were removed so long ago.
func (p *purger) purge(ctx context.Context, delay time.Duration) error {
	for {
		switch err := p.purgeOne(ctx, delay); {
		case errors.Is(err, sites.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
	}
}

// purgeOne deletes what is kept of one site, which no other edge does meanwhile. Nobody
// has the name again before it is done. Errors: sites.ErrNotFound, if there is none.
func (p *purger) purgeOne(ctx context.Context, delay time.Duration) error {
	now := p.now()
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	removed, err := p.sites.ClaimPurge(ctx, now.Add(-delay), now.Add(2*purgeTimeout))
	if err != nil {
		return err
	}
	if p.configured[removed.Name] == nil { // which goes on with what is kept
		if err := p.members.Forget(ctx, removed.Name); err != nil {
			return err
		}
		for _, schema := range purged { // whether or not this edge has a directive for it
			if err := schema.Forget(ctx, p.db, removed.Name); err != nil {
				return err
			}
		}
	}
	return p.sites.MarkPurged(ctx, removed)
}
