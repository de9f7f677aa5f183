// Package curation fills the slots of homepages (docs/staff_desk.md#homepage-curation). A
// theme renders the post that carries a slot's tag; an editor's choice moves the tag.
//
// A choice is kept in the store before the platform is touched, and forgotten when the
// platform has it. So it is finished by whichever process is there, whatever ends in
// between. The tag is given to the new post first and taken from others then: the
// homepage is never without.
package curation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/errcode"
	"github.com/lychgate/caddy-lychgate/manifest"
	"github.com/lychgate/caddy-lychgate/platform"
)

const (
	// patience is how long a caller waits for the platform. The move goes on after it.
	patience = 10 * time.Second

	// moveTimeout bounds one try to bring a move to the platform, and callTimeout each
	// request to it.
	moveTimeout = time.Minute
	callTimeout = 10 * time.Second

	// leaseTime is how long a process holds a site that does not say every prolongInterval
	// that it goes on.
	leaseTime       = 5 * time.Second
	prolongInterval = time.Second

	// holdInterval is how often it is tried to lease a site that another holds.
	holdInterval = 50 * time.Millisecond

	// dueInterval is how often Run looks for moves that are due.
	dueInterval = 5 * time.Second

	// maxPause bounds the time between two tries, the first of which is firstPause.
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute

	// maxMoves bounds the moves that are under way in a process, and maxMovesOfSite those
	// of a site: a platform that hangs leaves places for others.
	maxMoves       = 64
	maxMovesOfSite = 8

	// maxKey bounds a tag and a post's ID that are kept, in bytes: no platform has longer
	// ones, and PostgreSQL takes none of 2,700 for a key.
	maxKey = 1000

	// maxCarriers is how many posts that carry a tag are read at once, and maxRounds how
	// often.
	maxCarriers, maxRounds = 100, 50
)

// Curator moves the tags of all sites of a process. It may be used by many goroutines at
// once.
type Curator struct {
	store  Store
	posts  func(site string) platform.PostHost
	logger *zap.Logger

	places chan struct{} // one for each move under way
	turns  turns
	ctx    context.Context // of moves, until Run ends
	cancel context.CancelFunc
}

// New returns a Curator that needs Run. It brings moves to the posts of a site, which are
// nil for a site that this process does not serve.
func New(store Store, posts func(site string) platform.PostHost, logger *zap.Logger) *Curator {
	c := &Curator{store: store, posts: posts, logger: logger, places: make(chan struct{}, maxMoves), turns: turns{of: make(map[string]*turn)}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Errors of Move.
var (
	// ErrPending means that a move is kept, and brought to the platform later.
	ErrPending = errors.New("the platform does not have it yet")

	// ErrReplaced means that somebody else chose another post at the same moment.
	ErrReplaced = errcode.New(errcode.Conflict, "another post was chosen at the same moment",
		"Somebody else chose another post at the same moment. Look again.")
)

// errUnpublished is of a post that would leave its slot empty.
var errUnpublished = &platform.Refusal{Reason: "The post is not published, so the homepage could not show it."}

// Move has a post carry a tag at a site, and no other post; none if the post is "". Errors:
// ErrPending, ErrReplaced, platform.ErrNoPost and *platform.Refusal of that post, which
// change nothing, and those of the store.
func (c *Curator) Move(ctx context.Context, site, tag, post string) error {
	posts := c.posts(site)
	if posts == nil {
		return fmt.Errorf("site %s is not served", site)
	}
	if len(post) > maxKey || !utf8.ValidString(post) || strings.Contains(post, "\x00") {
		return platform.ErrNoPost
	}
	if len(tag) > maxKey {
		return &platform.Refusal{Reason: "The tag of this slot is too long."}
	}
	if post != "" {
		bounded, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		switch p, err := posts.Post(bounded, post); {
		case err == nil && p.Status != platform.Published:
			return errUnpublished
		case errors.Is(err, platform.ErrNoPost):
			return err
		}
	}
	m, err := c.store.Want(ctx, site, tag, post)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	if !c.begin(site, func(ctx context.Context) { done <- c.bring(ctx, posts, m) }) { //nolint:contextcheck // it outlives the caller
		return ErrPending
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return ErrPending
}

// Pending returns the moves of a site that the platform does not have, by
// [manifest.TagIdentity] of their tags.
func (c *Curator) Pending(ctx context.Context, site string) (map[string]Move, error) {
	list, err := c.store.List(ctx, site)
	if err != nil {
		return nil, err
	}
	pending := make(map[string]Move)
	for _, m := range list {
		pending[manifest.TagIdentity(m.Tag)] = m
	}
	return pending, nil
}

// begin runs work at a site in the background, unless too much is under way.
func (c *Curator) begin(site string, work func(ctx context.Context)) bool {
	if !c.turns.enter(site, maxMovesOfSite) {
		return false
	}
	select {
	case c.places <- struct{}{}:
	default:
		c.turns.leave(site)
		return false
	}
	go func() {
		defer func() {
			<-c.places
			c.turns.leave(site)
		}()
		ctx, cancel := context.WithTimeout(c.ctx, moveTimeout)
		defer cancel()
		work(ctx)
	}()
	return true
}

// Run brings moves to their platforms that are due, until ctx is done. It returns when
// nothing is under way any more.
func (c *Curator) Run(ctx context.Context) {
	defer c.turns.close()
	defer c.cancel()
	ticker := time.NewTicker(dueInterval)
	defer ticker.Stop()
	busy := make(map[string]bool) // the sites that are under way
	done := make(chan string, maxMoves)
	var last DueSite // that was looked at
	for {
		last = c.beginDue(ctx, last, busy, done)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return
			case site := <-done:
				delete(busy, site)
			case <-ticker.C:
				waiting = false
			}
		}
	}
}

// beginDue begins to bring the moves of sites that are due, behind the one that was looked
// at last, and returns the one that is now, zero for all. So sites that this process does
// not serve, however many there are, keep it from no other.
func (c *Curator) beginDue(ctx context.Context, last DueSite, busy map[string]bool, done chan<- string) DueSite {
	sites, err := c.store.Due(ctx, last)
	if err != nil {
		if ctx.Err() == nil {
			c.logger.Debug("the moves that are due cannot be read", zap.Error(err)) // the store that is away says so elsewhere
		}
		return last
	}
	for _, due := range sites {
		if len(c.places) == cap(c.places) {
			return last
		}
		last = due
		posts := c.posts(due.Site)
		if busy[due.Site] || posts == nil {
			continue
		}
		hasBegun := c.begin(due.Site, func(ctx context.Context) { //nolint:contextcheck // it ends as ctx does
			c.bringDue(ctx, due.Site, posts)
			done <- due.Site
		})
		if hasBegun {
			busy[due.Site] = true
		}
	}
	if len(sites) < maxDue {
		return DueSite{}
	}
	return last
}

// bringDue brings the moves of a site to its platform, one after the other.
func (c *Curator) bringDue(ctx context.Context, site string, posts platform.PostHost) {
	due, err := c.store.DueOf(ctx, site)
	if err != nil {
		return // Due says so
	}
	for _, m := range due {
		if err := c.bring(ctx, posts, m); errors.Is(err, ErrPending) {
			return // neither would it take the others
		}
	}
}

// bring brings a move to the platform, while no other process changes the site's tags.
// Errors: those of Move.
func (c *Curator) bring(ctx context.Context, posts platform.PostHost, m Move) error {
	held, end, err := c.lease(ctx, m.Site)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	defer end()
	now, found, err := c.store.Find(ctx, m)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrPending, err)
	case !found:
		return isDone(held, posts, m) // by another process, this move or one that replaced it
	case now.revision != m.revision:
		return ErrReplaced
	}
	err = apply(held, posts, m)
	var refusal *platform.Refusal
	switch {
	case err == nil:
	case errors.Is(err, platform.ErrNoPost), errors.As(err, &refusal):
		c.logger.Warn("a post cannot fill a slot of the homepage, so the slot stays as it was",
			zap.String("site", m.Site), zap.String("tag", m.Tag), zap.String("post", m.Post), zap.Error(err))
	default:
		postponing, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // also when the time is up
		defer cancel()
		if postponed := c.store.Postpone(postponing, m, pause(m.Tries), err.Error()); postponed != nil {
			err = errors.Join(err, postponed)
		}
		c.logger.Warn("a slot of the homepage cannot be filled yet; it is tried again",
			zap.String("site", m.Site), zap.String("tag", m.Tag), zap.String("post", m.Post), zap.Error(err))
		return fmt.Errorf("%w: %w", ErrPending, err)
	}
	if forgotten := c.store.Done(ctx, m); forgotten != nil {
		return fmt.Errorf("%w: %w", ErrPending, forgotten)
	}
	return err
}

// isDone returns nil if the platform has a move, and otherwise ErrReplaced.
func isDone(ctx context.Context, posts platform.PostHost, m Move) error {
	has, others, err := carriers(ctx, posts, m)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrPending, err)
	case !has || len(others) > 0:
		return ErrReplaced
	}
	return nil
}

// carriers tells whether the platform has the post of a move where it belongs, and returns
// the IDs of other posts that carry the tag.
func carriers(ctx context.Context, posts platform.PostHost, m Move) (has bool, others []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := posts.Tagged(ctx, []string{m.Tag}, maxCarriers)
	has = m.Post == ""
	for _, p := range all[m.Tag].Posts {
		if p.ID == m.Post {
			has = true
		} else {
			others = append(others, p.ID)
		}
	}
	return has, others, err
}

// apply has a post carry the tag of a move, and then no other. Errors of the post are its
// own; that another is gone is none.
func apply(ctx context.Context, posts platform.PostHost, m Move) error {
	change := func(to func(ctx context.Context, id, tag string) error, id string) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return to(ctx, id, m.Tag)
	}
	for range maxRounds {
		has, others, err := carriers(ctx, posts, m)
		if err != nil {
			return err
		}
		if has && len(others) == 0 {
			return nil
		}
		if !has {
			if err := change(posts.Tag, m.Post); err != nil {
				return err
			}
		}
		for _, id := range others {
			if err := change(posts.Untag, id); err != nil && !errors.Is(err, platform.ErrNoPost) {
				return fmt.Errorf("taking the tag from post %s: %w", id, plain(err))
			}
		}
	}
	return fmt.Errorf("more than %d posts carry the tag", maxRounds*maxCarriers)
}

// plain hides that an error is a refusal, where it is not one of the post that was chosen.
func plain(err error) error {
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return errors.New(refusal.Reason)
	}
	return err
}

// pause returns how long to wait after a number of tries.
func pause(tries int) time.Duration {
	return min(firstPause<<min(tries, 20), maxPause)
}

// lease waits for the lease of a site and keeps it until end is called. It returns a
// context that ends with the lease.
func (c *Curator) lease(ctx context.Context, site string) (held context.Context, end func(), err error) {
	endTurn, err := c.turns.take(ctx, site)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			endTurn()
		}
	}()
	holder := rand.Text()
	var until time.Time
	for {
		until = time.Now().Add(leaseTime)
		isHeld, err := c.store.Hold(ctx, site, holder, leaseTime)
		if err != nil {
			return nil, nil, err
		}
		if isHeld {
			break
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(holdInterval):
		}
	}
	held, lost := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() {
		defer lost()
		c.keep(held, site, holder, until)
	})
	return held, func() { // also when ctx has ended
		defer endTurn()
		lost()
		keeping.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		_ = c.store.Release(ctx, site, holder) // else it runs out
	}, nil
}

// keep prolongs a lease, which goes until a time, until ctx is done or the lease is lost.
func (c *Curator) keep(ctx context.Context, site, holder string, until time.Time) {
	ticker := time.NewTicker(prolongInterval)
	defer ticker.Stop()
	for time.Now().Before(until) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		bounded, cancel := context.WithDeadline(ctx, until)
		held, err := c.store.Hold(bounded, site, holder, leaseTime)
		cancel()
		switch {
		case held:
			until = asked.Add(leaseTime)
		case err == nil:
			return // it is another's
		}
	}
}
