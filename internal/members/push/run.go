package push

import (
	"context"
	"crypto/sha256"
	"iter"
	"sync"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// Run pushes rows, until ctx is done or one cannot be read. What is under way then is
// finished.
func Run(ctx context.Context, cfg Config, rows iter.Seq2[Row, error]) (Counts, error) {
	cfg.Integration.Adopt = true
	if cfg.DryRun { // a read would ask the platform, and keep what it finds
		ofStore := cfg.Service.Config
		ofStore.Inbound, ofStore.Outbox = nil, nil
		cfg.Service = members.New(ofStore)
	}
	p := &push{Config: cfg, limiter: make(chan struct{}, concurrency), inUse: make(map[string]bool), planned: make(map[string][sha256.Size]byte)}
	p.ended = sync.NewCond(&p.mu)
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	var working sync.WaitGroup
	var err error
	for row, readErr := range rows {
		if err = readErr; err != nil || ctx.Err() != nil {
			break
		}
		p.start(ctx, &working, row)
	}
	working.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return p.counts, err
}

// start starts with a row once those before it that name the same are done.
func (p *push) start(ctx context.Context, working *sync.WaitGroup, row Row) {
	keys := []string{"id " + p.keyOf(row.Identifier)}
	if row.Email != "" {
		keys = append(keys, "email "+emailaddr.Key(row.Email))
	}
	p.reserve(keys)
	known, _, result, err := p.missing(ctx, row)
	if err != nil || result == unchanged && !known.IsPending() {
		p.free(keys)
		p.end(row, result, err)
		return
	}
	if before := "email "; known != nil && row.Email != "" {
		if before += emailaddr.Key(known.Email); before != keys[len(keys)-1] { // which others may want
			p.reserve([]string{before})
			keys = append(keys, before)
		}
	}
	select {
	case <-ctx.Done():
	case p.limiter <- struct{}{}:
	}
	if ctx.Err() != nil { // select takes either if both are ready
		p.free(keys)
		return
	}
	working.Go(func() {
		defer func() { <-p.limiter }()
		result, err := p.put(ctx, row)
		p.free(keys)
		p.end(row, result, err)
	})
}
