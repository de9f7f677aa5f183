// Package curation fills the slots of homepages (docs/staff_desk.md#homepage-curation). A
// theme renders the post that carries a slot's tag; an editor's choice moves the tag.
//
// A choice is kept in the store before the platform is touched, and removed when the
// platform has it: work of the kind [Kind]. So it is finished by whichever process is there,
// whatever ends in between. The tag is given to the new post first and taken from others then: the
// homepage is never without.
package curation

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/history"
	"github.com/lychgate/caddy-lychgate/internal/lib/errcode"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/work"
	"github.com/lychgate/caddy-lychgate/manifest"
)

const (
	// moveTimeout bounds an attempt to move a tag, of which each request may take callTimeout:
	// a tag that some posts carry takes a request for each.
	moveTimeout = time.Minute
	callTimeout = 10 * time.Second

	// maxKey bounds a tag and a post's ID that are kept, in bytes: no platform has longer
	// ones, and PostgreSQL takes none of 2,700 for a key.
	maxKey = 1000

	// maxCarriers is how many posts that carry a tag are read at once, and maxRounds how
	// often.
	maxCarriers, maxRounds = 100, 50

	// maxTagged is how often a post is given the tag in an attempt: it may be taken from it at that moment.
	maxTagged = 3
)

// Curator moves the tags of all sites of a process. It may be used by many goroutines at
// once.
type Curator struct {
	*SQL
	work   *work.Queue
	posts  func(site string) platform.PostHost
	logger *zap.Logger
	by     history.Editor
}

// By sets the editor who is named in the history of slots.
func (c *Curator) By(e history.Editor) *Curator {
	theirs := *c
	theirs.by = e
	return &theirs
}

// New registers the kind of work that moves tags with the queue. posts is nil for a site that this
// process does not serve. Tags of a site are moved one after the other: several slots may change
// one post, and Ghost refuses two changes of it at once.
func New(store *SQL, queue *work.Queue, posts func(site string) platform.PostHost, logger *zap.Logger) *Curator {
	c := &Curator{SQL: store, work: queue, posts: posts, logger: logger}
	queue.Handle(work.Kind{Name: Kind, Do: c.sync, Timeout: moveTimeout, IsSerial: true, Platform: func(site string) any { return c.posts(site) }})
	return c
}

// Errors of Move.
var (
	// ErrPending means that a move is kept, and synced to the platform later.
	ErrPending = errors.New("the platform does not have it yet")

	// ErrReplaced means that somebody else chose another post at the same moment.
	ErrReplaced = errcode.New(errcode.Conflict, "another post was chosen at the same moment",
		"Somebody else chose another post at the same moment. Look again.")
)

// errUnpublished is of a post that would leave its slot empty.
var errUnpublished = &platform.Refusal{Reason: "The post is not published, so the homepage could not show it."}

// Choice is a post for a tag, "" for none.
type Choice struct{ Tag, Post string }

// Move has posts carry tags at a site, and no other posts: all of them, whatever ends in between. Errors:
// ErrPending, ErrReplaced, platform.ErrNoPost and *platform.Refusal of a post, which change nothing if
// they are known before, and those of the store.
func (c *Curator) Move(ctx context.Context, site string, choices ...Choice) error {
	posts := c.posts(site)
	if posts == nil {
		return fmt.Errorf("site %s is not served", site)
	}
	var moves []wanted
	for _, choice := range choices {
		m, err := c.check(ctx, posts, site, choice)
		if err != nil {
			return err
		}
		moves = append(moves, m)
	}
	if err := c.want(ctx, moves, c.work.Enqueuer(site, Kind)); err != nil {
		return err
	}
	var failed error
	for _, m := range moves {
		if err := c.try(ctx, posts, m); failed == nil || errors.Is(failed, ErrPending) && err != nil {
			failed = err
		}
	}
	return failed
}

// check makes a move of a choice.
func (c *Curator) check(ctx context.Context, posts platform.PostHost, site string, choice Choice) (wanted, error) {
	post := choice.Post
	if len(post) > maxKey || !utf8.ValidString(post) || strings.Contains(post, "\x00") {
		return wanted{}, platform.ErrNoPost
	}
	if len(choice.Tag) > maxKey {
		return wanted{}, &platform.Refusal{Reason: "The tag of this slot is too long."}
	}
	by := history.Entry{Editor: c.by, Did: "cleared"}
	if post != "" {
		by.Did = "filled"
	}
	if post != "" && !work.AskerOf(ctx).IsUnanswered {
		p, err := checkPublished(ctx, posts, post)
		if err != nil {
			return wanted{}, err
		}
		by.About = p.Title
	}
	return wanted{Move: moveOf(site, choice.Tag, post), by: by}, nil
}

// try waits for the first attempt at a move.
func (c *Curator) try(ctx context.Context, posts platform.PostHost, m wanted) error {
	attempt, isKnown := c.work.Try(ctx, m.task)
	switch failure, isRefused := attempt.Value.(error); {
	case !isKnown:
		return ErrPending
	case attempt.Task.Key == "", !attempt.Task.IsSame(m.task): // this move was synced by another process, or one that replaced it was
		return isDone(ctx, posts, m.Move)
	case isRefused:
		return failure
	case attempt.Outcome == work.Never:
		return &platform.Refusal{Reason: attempt.Reason}
	case attempt.Outcome != work.Done:
		return fmt.Errorf("%w: %s", ErrPending, attempt.Reason)
	}
	return nil
}

// Pending lists the moves of a site that the platform does not have yet. The keys are the
// [manifest.TagIdentity] of their tags.
func (c *Curator) Pending(ctx context.Context, site string) (map[string]Move, error) {
	list, err := c.List(ctx, site)
	if err != nil {
		return nil, err
	}
	pending := make(map[string]Move)
	for _, m := range list {
		pending[manifest.TagIdentity(m.Tag)] = m // which an earlier version may have stored otherwise
	}
	return pending, nil
}

// sync applies the latest move of a tag to the platform. The Value of its result is why the
// platform refused it for good.
func (c *Curator) sync(ctx context.Context, t work.Task) work.Result {
	m, isKept, err := c.find(ctx, t.Site, t.Key)
	if err == nil && !isKept {
		return work.Result{Outcome: work.Done, IsUnasked: true}
	}
	posts := c.posts(t.Site)
	isUnasked := err != nil || posts == nil
	switch {
	case err == nil && posts == nil:
		err = &otherError{"The site is not served any more."} // as staff see it
	case err == nil:
		err = apply(ctx, posts, m)
	}
	if err == nil {
		return work.Result{Outcome: work.Done, Settle: func(ctx context.Context, tx *sql.Tx) error {
			_, err := c.done(ctx, tx, m)
			return err
		}}
	}
	logged := []zap.Field{zap.String("site", m.Site), zap.String("tag", m.Tag), zap.String("post", m.Post), zap.Error(err)}
	refusal, isRefused := errors.AsType[*platform.Refusal](err)
	switch {
	case errors.Is(err, platform.ErrNoPost):
		refusal = &platform.Refusal{Reason: "The post is not there any more."}
	case !isRefused:
		c.logger.Warn("cannot fill homepage slot yet; retrying", logged...)
		_, isOther := errors.AsType[*otherError](err)
		return work.Result{Outcome: work.Again, Reason: reasonOf(err), IsUnanswered: !isOther, IsUnasked: isUnasked}
	}
	c.logger.Warn("platform refused to fill homepage slot, which stays as it was", logged...)
	return work.Result{Outcome: work.Never, Reason: refusal.Reason, Value: err, Settle: func(ctx context.Context, tx *sql.Tx) error {
		return c.refused(ctx, tx, m, refusal.Reason)
	}}
}

// reasonOf is shown to staff.
func reasonOf(err error) string {
	if other, ok := errors.AsType[*otherError](err); ok {
		return other.reason
	}
	return platform.ReasonOf(err)
}

// isDone fails with ErrReplaced if the platform has another post, and with ErrPending if it cannot
// be asked.
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

// checkPublished keeps a slot from losing a post that readers see for one that they do not. Errors:
// errUnpublished, ErrNoPost. If the platform does not respond, the change itself will fail.
func checkPublished(ctx context.Context, posts platform.PostHost, id string) (platform.Post, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := posts.Post(ctx, id)
	switch {
	case err == nil && p.Status != platform.Published:
		return p, errUnpublished
	case errors.Is(err, platform.ErrNoPost):
		return p, err
	}
	return p, nil
}

// apply has a post carry the tag of a move, and then no other. Errors of the post are its
// own; that another is gone is none.
func apply(ctx context.Context, posts platform.PostHost, m Move) error {
	taken, err := applyInRounds(ctx, posts, m)
	if err != nil && taken > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return manyCarriers(taken)
	}
	return err
}

// applyInRounds is apply, and returns from how many posts it took the tag.
func applyInRounds(ctx context.Context, posts platform.PostHost, m Move) (taken int, err error) {
	change := func(to func(ctx context.Context, id, tag string) error, id string) error {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return to(ctx, id, m.Tag)
	}
	tagged := 0
	for range maxRounds {
		has, others, err := carriers(ctx, posts, m)
		if err != nil {
			return taken, err
		}
		if has && len(others) == 0 {
			return taken, nil
		}
		if !has {
			if tagged++; tagged > maxTagged {
				return taken, &otherError{"The post was given the tag, and is not found by it."}
			}
			if _, err := checkPublished(ctx, posts, m.Post); err != nil { // which it may not be any more
				return taken, err
			}
			if err := change(posts.Tag, m.Post); err != nil {
				return taken, err
			}
		}
		for _, id := range others {
			if err := change(posts.Untag, id); err != nil && !errors.Is(err, platform.ErrNoPost) {
				return taken, fmt.Errorf("taking the tag from post %s: %w", id, plain(err))
			}
			taken++
		}
	}
	return taken, manyCarriers(taken)
}

// manyCarriers is the error for a tag that more posts carry than an attempt takes it from.
func manyCarriers(taken int) error {
	return &otherError{fmt.Sprintf("Very many posts carry the tag. It was taken from %d of them, and the next attempt goes on.", taken)}
}

// otherError is what keeps the platform, which responds, from having a move, but is no refusal of the
// post that was chosen.
type otherError struct{ reason string }

func (e *otherError) Error() string { return e.reason }

func plain(err error) error {
	if refusal, ok := errors.AsType[*platform.Refusal](err); ok {
		return &otherError{refusal.Reason}
	}
	return err
}
